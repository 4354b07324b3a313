//! `Mask`: JSON whose strings are templates, showing of some data what may be seen.

use serde_json::{Map, Value};

use crate::work::Work;
use crate::{Context, DEPTH_MAX, OUTPUT_BYTES_MAX, ParseError, Scope, Sources, Template};

/// A parsed mask. Keys, numbers, booleans and nulls stand for themselves.
#[derive(Debug)]
pub struct Mask {
    root: Node,
}

#[derive(Debug)]
enum Node {
    Literal(Value),
    Template(Template),
    Array(Vec<Node>),
    Object(Vec<(String, Node)>),
}

/// Why a JSON value is no mask, and where in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{error}")]
pub struct MaskError {
    /// As in `cards[0].number`; empty if the mask itself is the culprit.
    pub path: String,
    pub error: ParseError,
}

impl Mask {
    pub fn parse(mask: &Value) -> Result<Self, MaskError> {
        let root = parse(mask, &mut Vec::new())?;
        Ok(Self { root })
    }

    /// What this mask shows of `data`. A part that cannot be evaluated is null: a mask that fails
    /// must neither reveal anything nor keep the rest from being read.
    pub fn apply(&self, data: &Value) -> Value {
        self.apply_with(data, &Sources::default())
    }

    /// As `apply`, for masks that ask for the time, for chance or for a keyed hash.
    pub fn apply_with(&self, data: &Value, sources: &Sources<'_>) -> Value {
        let variables = [("data", data)];
        let scope = Scope {
            variables: &variables,
            sources: *sources,
        };
        let mut budget = Budget {
            output_bytes_left: OUTPUT_BYTES_MAX,
            work: Work::default(),
        };
        apply(&self.root, &scope, &mut budget)
    }
}

/// A step down into a JSON value.
#[derive(Clone, Copy)]
pub(crate) enum Step<'a> {
    Key(&'a str),
    Index(usize),
}

fn parse<'a>(mask: &'a Value, path: &mut Vec<Step<'a>>) -> Result<Node, MaskError> {
    if path.len() > DEPTH_MAX {
        return Err(at(path, ParseError::TooDeep));
    }
    let mut parse_at = |step, child| {
        path.push(step);
        let node = parse(child, path);
        path.pop();
        node
    };
    Ok(match mask {
        Value::String(text) => {
            let template = Template::parse(Context::Mask, text);
            Node::Template(template.map_err(|error| at(path, error))?)
        }
        Value::Array(children) => Node::Array(
            (children.iter().enumerate())
                .map(|(index, child)| parse_at(Step::Index(index), child))
                .collect::<Result<_, _>>()?,
        ),
        Value::Object(members) => Node::Object(
            (members.iter())
                .map(|(key, child)| Ok((key.clone(), parse_at(Step::Key(key), child)?)))
                .collect::<Result<_, _>>()?,
        ),
        literal => Node::Literal(literal.clone()),
    })
}

fn at(path: &[Step<'_>], error: ParseError) -> MaskError {
    MaskError {
        path: path_text(path),
        error,
    }
}

/// A place in a JSON value, as in `cards[0].number`.
pub(crate) fn path_text(path: &[Step<'_>]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            Step::Key(key) if text.is_empty() => text.push_str(key),
            Step::Key(key) => text.extend([".", key]),
            Step::Index(index) => text.push_str(&format!("[{index}]")),
        }
    }
    text
}

/// What one application of a mask may still cost, over all of its templates.
struct Budget {
    output_bytes_left: usize,
    work: Work,
}

fn apply(node: &Node, scope: &Scope<'_>, budget: &mut Budget) -> Value {
    match node {
        Node::Literal(value) => value.clone(),
        Node::Template(template) => {
            let limit = budget.output_bytes_left;
            match template.evaluate_within(scope, limit, &mut budget.work) {
                Ok((value, size)) => {
                    budget.output_bytes_left -= size;
                    value
                }
                Err(_) => Value::Null,
            }
        }
        Node::Array(children) => (children.iter())
            .map(|child| apply(child, scope, budget))
            .collect(),
        Node::Object(members) => (members.iter())
            .map(|(key, child)| (key.clone(), apply(child, scope, budget)))
            .collect::<Map<_, _>>()
            .into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn strings_are_evaluated_and_the_rest_stays() {
        let mask = json!({
            "number": "{{ data.number | reveal_last: 4 }}",
            "expiration_month": "{{ data.expiration_month }}",
            "list": ["{{ data.number | last4 }}", 1, null, true, "text"],
            "{{ data.number }}": {},
        });
        let data = json!({ "number": "4242424242424242", "expiration_month": 12 });

        let shown = Mask::parse(&mask).unwrap().apply(&data);

        let expected = json!({
            "number": "XXXXXXXXXXXX4242",
            "expiration_month": 12,
            "list": ["4242", 1, null, true, "text"],
            "{{ data.number }}": {},
        });
        assert_eq!(shown.to_string(), expected.to_string());
    }

    #[test]
    fn large_data_under_many_filters_costs_a_bounded_amount() {
        let data = json!("a".repeat(900_000));
        let leaf = "{{ data | reveal_last: 4 | reveal_last: 4 | last4 }}";
        let mask = Mask::parse(&Value::from(vec![leaf; 3_000])).unwrap();

        let started = std::time::Instant::now();
        let shown = mask.apply(&data);

        assert!(shown.as_array().unwrap().iter().all(Value::is_null));
        assert!(started.elapsed() < std::time::Duration::from_secs(1));
    }

    #[test]
    fn a_part_that_fails_is_null() {
        let mask = json!([
            "{{ data | last4 }}",
            "{{ data.number | reveal_last: 'x' }}",
            "kept"
        ]);
        let data = json!({ "number": "4242" });

        let shown = Mask::parse(&mask).unwrap().apply(&data);

        assert_eq!(shown, json!([null, null, "kept"]));
    }

    #[test]
    fn an_error_names_its_place() {
        let cases = [
            (json!("{{ data | shout }}"), ""),
            (json!({ "number": "{{ data | shout }}" }), "number"),
            (
                json!({ "cards": [1, { "number": "{{ data | shout }}" }] }),
                "cards[1].number",
            ),
            (json!([["{{ data | shout }}"]]), "[0][0]"),
        ];
        for (mask, path) in cases {
            let error = Mask::parse(&mask).unwrap_err();
            assert_eq!(error.path, path);
            assert_eq!(error.to_string(), "unknown filter `shout`");
        }
    }

    #[test]
    fn masks_have_a_depth_and_a_total_size() {
        let nested = |depth| (0..depth).fold(json!(1), |inner, _| json!([inner]));
        assert!(Mask::parse(&nested(DEPTH_MAX)).is_ok());
        let error = Mask::parse(&nested(DEPTH_MAX + 1)).unwrap_err();
        assert_eq!(error.error, ParseError::TooDeep);

        let mask = Mask::parse(&json!(["{{ data }}", "{{ data }}", "{{ data | last4 }}"])).unwrap();
        let data = json!("a".repeat(OUTPUT_BYTES_MAX / 2 + 1));
        assert_eq!(mask.apply(&data), json!([data, null, "aaaa"]));
    }
}
