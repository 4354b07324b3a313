//! How a range is written into a PRes; each protocol version has its own shape.

use serde_json::{Value, json};

use super::{Action, Method, Range};
use crate::wire::{Fields, put, put_some};

const VERSIONS: [&str; 3] = ["2.1.0", "2.2.0", "2.3.1"];
const FORGOTTEN: &str = "2.0.0";
/// Authentication, attempts, decoupled authentication and trust lists are all available.
const ACS_INFORMATION: [&str; 4] = ["01", "02", "03", "04"];

/// Where the ranges are sent: in which version, and where the pages of the 3DS Method are.
pub(crate) struct Wire<'a> {
    pub(crate) version: &'a str,
    pub(crate) acs_url: &'a str,
}

impl Wire<'_> {
    /// Mostly one element. Version 2.1.0 has no way to modify: there it takes two.
    pub(super) fn elements(&self, action: Action, range: &Range) -> Vec<Value> {
        match (action, self.version) {
            (Action::Modify, "2.1.0") => vec![self.element("D", range), self.element("A", range)],
            (Action::Add, _) => vec![self.element("A", range)],
            (Action::Delete, _) => vec![self.element("D", range)],
            (Action::Modify, _) => vec![self.element("M", range)],
        }
    }

    /// What the range can do, in the names that a message gives to it.
    pub(crate) fn describe(&self, range: &Range) -> Fields {
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
        let mut element = self.describe(range);
        put(&mut element, "startRange", first);
        put(&mut element, "endRange", last);
        put(&mut element, "actionInd", action);
        Value::Object(element)
    }

    /// Version 2.3.1 lists versions instead of telling the first and the last. It cannot say that
    /// the last comes before the first: such a range has a version that nobody speaks.
    fn versions(&self, range: &Range) -> Vec<Value> {
        let mut versions = Vec::from(VERSIONS);
        versions.retain(|version| range.supports(version));
        if versions.is_empty() {
            versions.push(FORGOTTEN);
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
            Method::Answers => Some(format!("{}/acs/method", self.acs_url)),
            Method::Silent => Some(format!("{}/acs/method/silent", self.acs_url)),
            Method::Absent => None,
        }
    }
}
