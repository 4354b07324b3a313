//! JSON paths in Goessner's dialect: which values of a document a path leads to.

mod find;
mod parse;

use serde_json::Value;

/// A parsed path, from the root of a document or from the element a filter looks at.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct JsonPath {
    from_root: bool,
    segments: Vec<Segment>,
}

#[derive(Debug, Clone, PartialEq)]
struct Segment {
    /// Whether `..` precedes it, so that it is tried at every depth.
    is_deep: bool,
    selectors: Vec<Selector>,
}

#[derive(Debug, Clone, PartialEq)]
enum Selector {
    Name(String),
    Index(i64),
    Slice(Slice),
    Every,
    Filter(Test),
}

#[derive(Debug, Clone, PartialEq)]
struct Slice {
    start: Option<i64>,
    end: Option<i64>,
    step: i64,
}

/// What a filter asks of an element.
#[derive(Debug, Clone, PartialEq)]
enum Test {
    Any(Vec<Test>),
    All(Vec<Test>),
    Not(Box<Test>),
    Exists(JsonPath),
    Compare(Term, Operator, Term),
}

#[derive(Debug, Clone, PartialEq)]
enum Term {
    Literal(Value),
    Path(JsonPath),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::EvaluationError;

    fn find(path: &str) -> Option<Vec<Value>> {
        let document = json!({
            "request": { "headers": { "X-User-Id": "u", "a.b": 1 } },
            "items": [{ "x": 1, "n": "a" }, { "x": 20 }, { "x": 3, "n": "b" }],
            "o": { "b": 1, "deep": { "b": 2 } },
            "limit": 10,
        });
        let path = JsonPath::parse(path)?;
        let found = path.find(&document, &|| Ok(())).unwrap();
        Some(found.into_iter().cloned().collect())
    }

    #[test]
    fn section_4_paths_lead_to_their_values() {
        let cases = [
            ("$.o.b", vec![json!(1)]),
            ("$.request.headers.X-User-Id", vec![json!("u")]),
            ("$['o']['b']", vec![json!(1)]),
            ("$[\"o\"].b", vec![json!(1)]),
            ("$.request.headers['a.b']", vec![json!(1)]),
            ("$.items[0].x", vec![json!(1)]),
            ("$.items[-1].x", vec![json!(3)]),
            ("$.items[-1:].x", vec![json!(3)]),
            ("$.items[:2].x", vec![json!(1), json!(20)]),
            ("$.items[1:].x", vec![json!(20), json!(3)]),
            ("$.items[::2].x", vec![json!(1), json!(3)]),
            ("$.items[::-1].x", vec![json!(3), json!(20), json!(1)]),
            ("$.items[0,2].x", vec![json!(1), json!(3)]),
            ("$.o['b','deep'].b", vec![json!(2)]),
            ("$.items.*.x", vec![json!(1), json!(20), json!(3)]),
            ("$.items[*].n", vec![json!("a"), json!("b")]),
            ("$..b", vec![json!(1), json!(2)]),
            ("$..['n']", vec![json!("a"), json!("b")]),
            ("$.items[?(@.x < 10)].x", vec![json!(1), json!(3)]),
            ("$.items[?(@.x < 3)].x", vec![json!(1)]),
            ("$.items[?(@.x <= 3)].x", vec![json!(1), json!(3)]),
            ("$.items[?(@.x > 3)].x", vec![json!(20)]),
            ("$.items[?(@.x >= 3)].x", vec![json!(20), json!(3)]),
            ("$.items[?(@.x<10 && @.n=='b')].x", vec![json!(3)]),
            (
                "$.items[?(@.x > 10 || @.n == \"b\")].x",
                vec![json!(20), json!(3)],
            ),
            ("$.items[?(@.n)].x", vec![json!(1), json!(3)]),
            ("$.items[?(!@.n)].x", vec![json!(20)]),
            ("$.items[?(@.x >= $.limit)].x", vec![json!(20)]),
            ("$.items[?@.x != 1].x", vec![json!(20), json!(3)]),
            (
                "$.items[?((@.x == 1 || @.x == 3) && @.n == 'a')].x",
                vec![json!(1)],
            ),
            ("$.missing", vec![]),
            ("$.items[9]", vec![]),
            ("$.o[0]", vec![]),
            ("$.limit.x", vec![]),
        ];
        for (path, expected) in cases {
            assert_eq!(find(path), Some(expected), "{path}");
        }
    }

    #[test]
    fn what_is_no_path_is_refused() {
        let nested = format!("$[?({}@{})]", "(".repeat(100), ")".repeat(100));
        let broken = [
            "",
            "data",
            "$.",
            "$..",
            "$[",
            "$[]",
            "$['a]",
            "$[a]",
            "$.a b",
            "$[?()]",
            "$[?(@.x <)]",
            "$[1:2:0]",
            "$[(@.length-1)]",
            "$[?(@.x < 10]",
            "$[99999999999999999999]",
            &nested,
        ];
        for path in broken {
            assert_eq!(JsonPath::parse(path), None, "{path}");
        }
    }

    #[test]
    fn every_visit_is_paid_for() {
        let document = (0..16).fold(json!(1), |inner, _| json!([inner, inner]));
        let path = JsonPath::parse("$..*..*..*").unwrap();
        let visits = std::cell::Cell::new(0);
        let pay = || {
            visits.set(visits.get() + 1);
            match visits.get() > 1000 {
                true => Err(EvaluationError::TooMuchWork),
                false => Ok(()),
            }
        };

        assert_eq!(
            path.find(&document, &pay),
            Err(EvaluationError::TooMuchWork)
        );
    }
}
