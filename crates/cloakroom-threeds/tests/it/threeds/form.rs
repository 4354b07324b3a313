//! HTML forms of issuer pages, parsed, filled in and sent like a browser does.

use serde_json::Value;

/// An HTML form.
#[derive(Debug)]
pub(super) struct Form {
    pub(super) action: String,
    pub(super) fields: Vec<(String, String)>,
}

impl Form {
    /// The form of a page, if it has one.
    pub(super) fn of(html: &str) -> Option<Self> {
        let form = html.split_once("<form ")?.1;
        let form = form.split_once("</form>")?.0;
        let action = attribute(form, "action")?;
        let inputs = form.split("<input ").skip(1);
        let fields = inputs.filter_map(|input| {
            let input = input.split_once('>')?.0;
            Some((attribute(input, "name")?, attribute(input, "value")?))
        });
        Some(Self {
            action,
            fields: fields.collect(),
        })
    }

    pub(super) fn with(mut self, name: &str, value: &str) -> Self {
        self.fields.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(super) fn field(&self, name: &str) -> Option<&str> {
        let mut fields = self.fields.iter();
        let found = fields.find(|(field, _)| field == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The message in a field.
    pub(super) fn message(&self, name: &str) -> Value {
        let text = self.field(name).unwrap_or_default();
        let decoded = cloakroom_emv3ds::base64url::decode(text).unwrap();
        serde_json::from_slice(&decoded).unwrap()
    }
}

fn attribute(tag: &str, name: &str) -> Option<String> {
    let value = tag.split_once(&format!("{name}=\""))?.1;
    let value = value.split_once('"')?.0;
    let value = value.replace("&quot;", "\"").replace("&#39;", "'");
    Some(
        value
            .replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&amp;", "&"),
    )
}

/// A message as base64url, as forms carry it.
pub(super) fn encode_message(message: &Value) -> String {
    cloakroom_emv3ds::base64url::encode(message.to_string().as_bytes())
}
