//! JSON pointers into a value, and serializations with another text at one of them.

use cloakroom_testkit::SeededRng;
use serde_json::{Value, json};

/// Placeholder for the inserted text; occurs in no body.
const MARK: &str = "@put here@";

/// JSON pointers of all nested values, outermost first.
pub(super) fn places(value: &Value) -> Vec<String> {
    let mut found = vec![String::new()];
    collect(value, "", &mut found);
    found
}

fn collect(value: &Value, at: &str, found: &mut Vec<String>) {
    let inner: Vec<(String, &Value)> = match value {
        Value::Object(members) => (members.iter())
            .map(|(name, value)| (name.replace('~', "~0").replace('/', "~1"), value))
            .collect(),
        Value::Array(items) => (items.iter().enumerate())
            .map(|(index, value)| (index.to_string(), value))
            .collect(),
        _ => return,
    };
    for (name, value) in inner {
        let at = format!("{at}/{name}");
        found.push(at.clone());
        collect(value, &at, found);
    }
}

/// Serializes the body with a random nested value replaced by `text`, which need not be JSON.
pub(super) fn put(chance: &mut SeededRng, body: &Value, text: &str) -> String {
    let places = places(body);
    let place = chance.pick(&places).clone();
    put_at(body, &place, text)
}

/// Serializes the body with the value at `place` replaced by `text`.
pub(super) fn put_at(body: &Value, place: &str, text: &str) -> String {
    let mut body = body.clone();
    if let Some(value) = body.pointer_mut(place) {
        *value = json!(MARK);
    }
    body.to_string().replace(&json!(MARK).to_string(), text)
}

/// Serializes the body with `members` added to a random nested object; without any object, returns a new one.
pub(super) fn add_members(chance: &mut SeededRng, body: &Value, members: &str) -> String {
    let is_object = |place: &String| body.pointer(place).is_some_and(Value::is_object);
    let objects: Vec<String> = places(body).into_iter().filter(is_object).collect();
    if objects.is_empty() {
        return format!("{{{members}}}");
    }
    let mut body = body.clone();
    let place: &String = chance.pick(&objects);
    let object = body.pointer_mut(place).unwrap();
    object
        .as_object_mut()
        .unwrap()
        .insert(MARK.to_owned(), Value::Null);
    let mark = format!("{}:null", json!(MARK));
    body.to_string().replace(&mark, members)
}
