//! Tests of paths and their limits.

use serde_json::json;

use super::*;
use crate::{Context, Scope};

#[test]
fn paths_resolve_to_their_value_or_null() {
    let data = json!({
        "number": "42", "a-b": 1, "list": [1, 2, 3], "key": "number", "at": 1,
        "deep": { "list": [{ "x": true }] }, "size": "own",
    });
    let cases = [
        ("data.number", json!("42")),
        ("data.a-b", json!(1)),
        ("data['number']", json!("42")),
        ("data[\"number\"]", json!("42")),
        ("data[ 'number' ]", json!("42")),
        ("data.list[0]", json!(1)),
        ("data.list[-1]", json!(3)),
        ("data.list[-4]", Value::Null),
        ("data.list[3]", Value::Null),
        ("data.list['0']", Value::Null),
        ("data.list[-9223372036854775808]", Value::Null),
        ("data.list.size", json!(3)),
        ("data.list.first", json!(1)),
        ("data.list.last", json!(3)),
        ("data.number.size", json!(2)),
        ("data.deep.size", json!(1)),
        ("data.size", json!("own")),
        ("data.deep.list[0].x", json!(true)),
        ("data[data.key]", json!("42")),
        ("data.list[data.at]", json!(2)),
        ("data.missing", Value::Null),
        ("data.missing.deeper[1]", Value::Null),
        ("data.number.deeper", Value::Null),
        ("other.number", Value::Null),
        ("metadata.number", Value::Null),
        ("nil", Value::Null),
        ("'text'", json!("text")),
        ("-1.5", json!(-1.5)),
        ("false", json!(false)),
        ("blank", json!("")),
    ];
    let variables = [("data", &data), ("metadata", &data)];
    let environment = Environment::new(Context::Mask, &Scope::of(&variables));
    for (text, expected) in cases {
        let mut cursor = Cursor::new(text);
        let operand = Operand::parse(&mut cursor).unwrap().unwrap();
        assert!(cursor.is_at_end(), "{text}");
        assert_eq!(*operand.resolve(&environment), expected, "{text}");
    }
}

#[test]
fn variable_nesting_and_path_length_are_limited() {
    let nested = |depth| "data[".repeat(depth) + "1" + &"]".repeat(depth);
    let parse = |text: &str| Operand::parse(&mut Cursor::new(text)).map(|_| ());

    assert_eq!(parse(&nested(DEPTH_MAX)), Ok(()));
    assert_eq!(parse(&nested(DEPTH_MAX + 1)), Err(ParseError::TooDeep));

    let long = |lookups| "data".to_owned() + &".a".repeat(lookups);
    assert_eq!(parse(&long(LOOKUPS_MAX)), Ok(()));
    let error = Err(ParseError::TooManyLookups);
    assert_eq!(parse(&long(LOOKUPS_MAX + 1)), error);
}
