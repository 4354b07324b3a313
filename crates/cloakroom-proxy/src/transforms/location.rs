//! Where `append_json` writes: a JSON path to exactly one value.

use serde_json::{Map, Value};

use super::Reason;

const STEPS_MAX: usize = 32;

/// A definite JSON path: `$.card['token id'].ids[0]`.
#[derive(Debug)]
pub(super) struct Location(Vec<Step>);

#[derive(Debug)]
enum Step {
    Member(String),
    Element(usize),
}

impl Location {
    /// Parses a path; `None` if it is malformed or may select several values.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut rest = text.trim().strip_prefix('$')?;
        let mut steps = Vec::new();
        while !rest.is_empty() {
            let (step, tail) = match rest.strip_prefix('.') {
                Some(tail) => member(tail)?,
                None => bracketed(rest.strip_prefix('[')?)?,
            };
            steps.push(step);
            rest = tail;
        }
        let is_valid = !steps.is_empty() && steps.len() <= STEPS_MAX;
        is_valid.then_some(Self(steps))
    }

    /// Replaces the value at this location. Missing objects on the way are created; elements of lists must exist, except
    /// for the one after the last.
    pub(super) fn write(&self, root: &mut Value, value: Value) -> Result<(), Reason> {
        let mut place = root;
        for step in &self.0 {
            place = match step {
                Step::Member(name) => {
                    if place.is_null() {
                        *place = Value::Object(Map::new());
                    }
                    let members = place.as_object_mut().ok_or(Reason::NoLocation)?;
                    members.entry(name).or_insert(Value::Null)
                }
                Step::Element(index) => {
                    let elements = place.as_array_mut().ok_or(Reason::NoLocation)?;
                    if *index == elements.len() {
                        elements.push(Value::Null);
                    }
                    elements.get_mut(*index).ok_or(Reason::NoLocation)?
                }
            };
        }
        *place = value;
        Ok(())
    }
}

fn member(text: &str) -> Option<(Step, &str)> {
    let end = text.find(['.', '[']).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    let is_valid = !name.is_empty() && name.chars().all(is_name);
    is_valid.then(|| (Step::Member(name.to_owned()), rest))
}

/// The inside of brackets: a quoted name or an index.
fn bracketed(text: &str) -> Option<(Step, &str)> {
    for quote in ['\'', '"'] {
        if let Some(inside) = text.strip_prefix(quote) {
            let (name, rest) = inside.split_once(quote)?;
            let is_valid = !name.is_empty() && !name.contains('\\');
            let step = is_valid.then(|| Step::Member(name.to_owned()))?;
            return Some((step, rest.strip_prefix(']')?));
        }
    }
    let (index, rest) = text.split_once(']')?;
    let is_index = !index.is_empty() && index.bytes().all(|b| b.is_ascii_digit());
    let index = is_index.then(|| index.parse().ok()).flatten()?;
    Some((Step::Element(index), rest))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_written_at_their_location() {
        let body = json!({"card": {"number": "4"}, "list": [1]});
        let cases = [
            (
                "$.id",
                Some(json!({"card": {"number": "4"}, "list": [1], "id": "new"})),
            ),
            (
                "$.card.number",
                Some(json!({"card": {"number": "new"}, "list": [1]})),
            ),
            (
                "$['card'][\"number\"]",
                Some(json!({"card": {"number": "new"}, "list": [1]})),
            ),
            (
                "$.a.b",
                Some(json!({"card": {"number": "4"}, "list": [1], "a": {"b": "new"}})),
            ),
            (
                "$.list[0]",
                Some(json!({"card": {"number": "4"}, "list": ["new"]})),
            ),
            (
                "$.list[1]",
                Some(json!({"card": {"number": "4"}, "list": [1, "new"]})),
            ),
            ("$.list[2]", None),
            ("$.card[0]", None),
            ("$.card.number.a", None),
        ];
        for (text, expected) in cases {
            let mut written = body.clone();
            let location = Location::parse(text).unwrap();
            let outcome = location.write(&mut written, json!("new"));
            assert_eq!(outcome.is_ok().then_some(written), expected, "{text}");
        }
    }

    #[test]
    fn paths_that_are_malformed_or_select_several_values_are_rejected() {
        let long = format!("${}", ".a".repeat(STEPS_MAX + 1));
        for text in [
            "",
            "$",
            "id",
            "$id",
            "$.",
            "$..id",
            "$.*",
            "$[*]",
            "$[-1]",
            "$[0:2]",
            "$[?(@.a)]",
            "$['a",
            "$['a'",
            "$['']",
            "$[",
            "$.a b",
            &long,
        ] {
            assert!(Location::parse(text).is_none(), "{text}");
        }
    }
}
