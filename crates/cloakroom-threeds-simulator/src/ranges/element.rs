//! Encodes ranges for a PRes in each protocol version.

use serde_json::{Value, json};

use super::{Action, Method, Range};
use crate::wire::{Fields, put, put_some};

const VERSIONS: [&str; 3] = ["2.1.0", "2.2.0", "2.3.1"];
const UNSUPPORTED_VERSION: &str = "2.0.0";
/// Authentication, attempts, decoupled authentication and trust lists are supported.
const ACS_INFORMATION: [&str; 4] = ["01", "02", "03", "04"];

/// Encodes ranges in a protocol version, with 3DS Method URLs at `acs_url`.
pub(crate) struct RangeEncoder<'a> {
    pub(crate) version: &'a str,
    pub(crate) acs_url: &'a str,
}

impl RangeEncoder<'_> {
    /// The elements for a change. 2.1.0 has no modify action, so it uses delete and add.
    pub(super) fn elements(&self, action: Action, range: &Range) -> Vec<Value> {
        match (action, self.version) {
            (Action::Modify, "2.1.0") => vec![self.element("D", range), self.element("A", range)],
            (Action::Add, _) => vec![self.element("A", range)],
            (Action::Delete, _) => vec![self.element("D", range)],
            (Action::Modify, _) => vec![self.element("M", range)],
        }
    }

    /// The ACS capabilities of a range as message fields.
    pub(crate) fn capabilities(&self, range: &Range) -> Fields {
        let mut fields = Fields::new();
        put(
            &mut fields,
            "acsStartProtocolVersion",
            range.acs_start.as_str(),
        );
        put(&mut fields, "acsEndProtocolVersion", range.acs_end.as_str());
        if self.version != "2.1.0" {
            put(&mut fields, "acsInfoInd", json!(ACS_INFORMATION));
        }
        put_some(
            &mut fields,
            "threeDSMethodURL",
            self.method_url(range.method),
        );
        fields
    }

    fn element(&self, action: &str, range: &Range) -> Value {
        let (first, last) = range.numbers();
        if self.version == "2.3.1" {
            return json!({
                "ranges": [{"startRange": first, "endRange": last}],
                "actionInd": action,
                "acsProtocolVersions": self.versions(range),
            });
        }
        let mut element = self.capabilities(range);
        put(&mut element, "startRange", first);
        put(&mut element, "endRange", last);
        put(&mut element, "actionInd", action);
        Value::Object(element)
    }

    /// 2.3.1 lists the versions instead of the first and last. It cannot express an inverted range,
    /// which is encoded as an unsupported version.
    fn versions(&self, range: &Range) -> Vec<Value> {
        let mut versions = Vec::from(VERSIONS);
        versions.retain(|version| range.supports(version));
        if versions.is_empty() {
            versions.push(UNSUPPORTED_VERSION);
        }
        versions
            .iter()
            .map(|version| {
                let mut entry = json!({"version": version, "acsInfoInd": ACS_INFORMATION});
                if let Some(url) = self.method_url(range.method) {
                    entry["threeDSMethodURL"] = json!(url);
                }
                entry
            })
            .collect()
    }

    fn method_url(&self, method: Method) -> Option<String> {
        match method {
            Method::Completes => Some(format!("{}/acs/method", self.acs_url)),
            Method::Silent => Some(format!("{}/acs/method/silent", self.acs_url)),
            Method::Absent => None,
        }
    }
}
