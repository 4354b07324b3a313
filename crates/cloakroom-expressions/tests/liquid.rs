//! The standard filters of section 3.

use cloakroom_expressions::{Context, EvaluationError, Scope, Sources, Template};
use serde_json::{Value, json};

#[expect(clippy::unwrap_used, reason = "every filter in these tables parses")]
fn apply_filter(data: Value, filter: &str) -> Result<Value, EvaluationError> {
    let text = format!("{{{{ data | {filter} }}}}");
    let template = Template::parse(Context::Mask, &text).unwrap();
    template.evaluate(&Scope {
        variables: &[("data", &data)],
        sources: Sources {
            now: Some("2030-01-02T03:04:05Z".parse().unwrap()),
            ..Sources::default()
        },
    })
}

/// Compares as text, which distinguishes 1.0 from 1.
fn check(cases: &[(Value, &str, Value)]) {
    for (data, filter, expected) in cases {
        let result = apply_filter(data.clone(), filter).map(|value| value.to_string());
        assert_eq!(result, Ok(expected.to_string()), "{data} | {filter}");
    }
}

#[expect(clippy::unwrap_used, reason = "these are numbers")]
fn number(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn section_3_documented_examples() {
    check(&[
        (
            json!("John Doe"),
            "split: ' ' | last | upcase",
            json!("DOE"),
        ),
        (json!("Doe"), "slice: 0", json!("D")),
        (json!(2025), "to_string | slice: -2, 2", json!("25")),
        (json!("111-22-3333"), "remove: '-'", json!("111223333")),
        (json!("111-22-3333"), "replace: '-'", json!("111223333")),
    ]);
}

#[test]
fn section_3_strings() {
    check(&[
        (json!("a"), "append: 'b'", json!("ab")),
        (json!(null), "append: 'b'", json!("b")),
        (json!(1), "append: 2", json!("12")),
        (json!("a"), "prepend: 'b'", json!("ba")),
        (
            json!("my GREAT title"),
            "capitalize",
            json!("My great title"),
        ),
        (json!("ÄB"), "downcase", json!("äb")),
        (json!("straße"), "upcase", json!("STRASSE")),
        (json!(null), "upcase", json!("")),
        (json!(true), "upcase", json!("TRUE")),
        (json!("  a b  "), "strip", json!("a b")),
        (json!("  a  "), "lstrip", json!("a  ")),
        (json!("  a  "), "rstrip", json!("  a")),
        (
            json!("<p class='x'>a <b>b</b></p><!-- <i> -->"),
            "strip_html",
            json!("a b"),
        ),
        (
            json!("a<SCRIPT>x < y</script>b<style>i{}</style>"),
            "strip_html",
            json!("ab"),
        ),
        (json!("1 < 2"), "strip_html", json!("1 < 2")),
        (json!("a\r\nb\nc"), "strip_newlines", json!("abc")),
        (
            json!("a\r\nb\nc"),
            "newline_to_br",
            json!("a<br />\nb<br />\nc"),
        ),
        (
            json!("<a href='x'>&\"</a>"),
            "escape",
            json!("&lt;a href=&#39;x&#39;&gt;&amp;&quot;&lt;/a&gt;"),
        ),
        (json!(null), "escape", json!(null)),
        (
            json!("1 &lt; 2 & 3 &#39; &;"),
            "escape_once",
            json!("1 &lt; 2 &amp; 3 &#39; &amp;;"),
        ),
    ]);
}

#[test]
fn section_3_encoding_and_truncation() {
    check(&[
        (
            json!("john@x.de ä/~"),
            "url_encode",
            json!("john%40x.de+%C3%A4%2F~"),
        ),
        (json!("%27a+b%27%zz"), "url_decode", json!("'a b'%zz")),
        (json!("one two?>"), "base64_encode", json!("b25lIHR3bz8+")),
        (json!("b25lIHR3bz8+"), "base64_decode", json!("one two?>")),
        (
            json!("one two?>"),
            "base64_url_safe_encode",
            json!("b25lIHR3bz8-"),
        ),
        (
            json!("b25lIHR3bz8-"),
            "base64_url_safe_decode",
            json!("one two?>"),
        ),
        (
            json!("Ground control to Major Tom."),
            "truncate: 20",
            json!("Ground control to..."),
        ),
        (
            json!("Ground control to Major Tom."),
            "truncate: 25, ', and so on'",
            json!("Ground control, and so on"),
        ),
        (json!("Ground control"), "truncate: 6, ''", json!("Ground")),
        (json!("short"), "truncate: 5", json!("short")),
        (
            json!("Ground control to Major Tom."),
            "truncatewords: 3",
            json!("Ground control to..."),
        ),
        (
            json!("Ground control"),
            "truncatewords: 3",
            json!("Ground control"),
        ),
        (
            json!("Ground control to"),
            "truncatewords: 1, '--'",
            json!("Ground--"),
        ),
    ]);
}

#[test]
fn section_3_replacing_and_slicing() {
    check(&[
        (json!("1, 1, 1"), "replace: '1', 2", json!("2, 2, 2")),
        (
            json!("1, 1, 1"),
            "replace_first: '1', '2'",
            json!("2, 1, 1"),
        ),
        (json!("1, 1, 1"), "replace_last: '1', '2'", json!("1, 1, 2")),
        (json!("1, 1, 1"), "remove: '1'", json!(", , ")),
        (json!("1, 1, 1"), "remove_first: '1, '", json!("1, 1")),
        (json!("1, 1, 1"), "remove_last: ', 1'", json!("1, 1")),
        (json!("abc"), "replace_last: 'x', 'y'", json!("abc")),
        (json!("Liquid"), "slice: 2", json!("q")),
        (json!("Liquid"), "slice: 2, 5", json!("quid")),
        (json!("Liquid"), "slice: -3, 2", json!("ui")),
        (json!("Liquid"), "slice: -9, 2", json!("")),
        (json!("Liquid"), "slice: 9", json!("")),
        (json!("日本語"), "slice: 1, 2", json!("本語")),
        (json!([1, 2, 3, 4]), "slice: 1, 2", json!([2, 3])),
        (json!("a,b,,c,,"), "split: ','", json!(["a", "b", "", "c"])),
        (json!("abc"), "split: ''", json!(["a", "b", "c"])),
        (json!(" a  b "), "split: ' '", json!(["a", "b"])),
        (json!(null), "split: ','", json!([])),
        (json!("日本"), "size", json!(2)),
        (json!([1, 2, 3]), "size", json!(3)),
        (json!(null), "size", json!(0)),
        (json!([1, 2, 3]), "first", json!(1)),
        (json!([1, 2, 3]), "last", json!(3)),
        (json!([]), "first", json!(null)),
        (json!("text"), "first", json!(null)),
    ]);
}

#[test]
fn section_3_arrays() {
    let people = json!([
        { "name": "b", "age": 20, "ok": true },
        { "name": "A", "age": "5" },
        { "name": "c", "age": 20 },
    ]);
    check(&[
        (
            json!(["a", 1, null, [2]]),
            "join: ', '",
            json!("a, 1, , [2]"),
        ),
        (json!(["a", "b"]), "join", json!("a b")),
        (json!([1]), "concat: data", json!([1, 1])),
        (json!([1, 2, 3]), "reverse", json!([3, 2, 1])),
        (json!([10, 9.5, null, 1e1]), "sort | first", number("9.5")),
        (json!([3, null, 1]), "sort", json!([1, 3, null])),
        (json!(["b", "a", "C"]), "sort", json!(["C", "a", "b"])),
        (
            json!(["b", "a", "C"]),
            "sort_natural",
            json!(["a", "b", "C"]),
        ),
        (
            people.clone(),
            "sort_natural: 'name' | map: 'name'",
            json!(["A", "b", "c"]),
        ),
        (json!([1, "1", 1, [1], [1]]), "uniq", json!([1, "1", [1]])),
        (
            people.clone(),
            "uniq: 'age' | map: 'name'",
            json!(["b", "A"]),
        ),
        (json!([1, null, 2]), "compact", json!([1, 2])),
        (people.clone(), "map: 'age'", json!([20, "5", 20])),
        (
            people.clone(),
            "where: 'age', 20 | map: 'name'",
            json!(["b", "c"]),
        ),
        (people.clone(), "where: 'ok' | map: 'name'", json!(["b"])),
        (
            people.clone(),
            "reject: 'ok' | map: 'name'",
            json!(["A", "c"]),
        ),
        (
            people.clone(),
            "find: 'name', 'c' | json: '$.age'",
            json!(20),
        ),
        (people.clone(), "find: 'name', 'x'", json!(null)),
        (people.clone(), "has: 'name', 'c'", json!(true)),
        (people.clone(), "has: 'name', 'x'", json!(false)),
        (people, "sum: 'age'", json!(45)),
        (json!([1, 2.50, "3"]), "sum", number("6.5")),
        (json!(null), "reverse", json!([])),
    ]);
}

#[test]
fn section_3_math() {
    check(&[
        (json!(-17), "abs", json!(17)),
        (number("-19.90"), "abs", number("19.90")),
        (number("1.2"), "ceil", json!(2)),
        (number("-1.2"), "ceil", json!(-1)),
        (json!("3.5"), "ceil", json!(4)),
        (number("1.2"), "floor", json!(1)),
        (number("-1.2"), "floor", json!(-2)),
        (number("2.5"), "round", json!(3)),
        (number("-2.5"), "round", json!(-3)),
        (number("183.357"), "round: 2", number("183.36")),
        (number("19.9"), "round: 2", number("19.9")),
        (json!(4), "plus: 2", json!(6)),
        (number("19.90"), "plus: 0", number("19.90")),
        (number("0.1"), "plus: 0.2", number("0.3")),
        (json!("4"), "plus: '2'", json!(6)),
        (json!(null), "plus: 1", json!(1)),
        (json!("12 apples"), "plus: 1", json!(13)),
        (json!("apples"), "plus: 1", json!(1)),
        (number("183.357"), "minus: 12", number("171.357")),
        (number("183.357"), "times: 12", number("2200.284")),
        (number("0.1"), "times: 3", number("0.3")),
        (number("1.5"), "times: 2.0", number("3.0")),
        (
            json!(12345678901234567890_u64),
            "times: 10",
            number("123456789012345678900"),
        ),
        (json!(16), "divided_by: 4", json!(4)),
        (json!(20), "divided_by: 7", json!(2)),
        (json!(-20), "divided_by: 7", json!(-3)),
        (json!(10), "divided_by: 2.5", number("4.0")),
        (number("0.3"), "divided_by: 0.1", number("3.0")),
        (json!(3), "modulo: 2", json!(1)),
        (json!(-3), "modulo: 2", json!(1)),
        (number("183.357"), "modulo: 12", number("3.357")),
        (json!(4), "at_least: 5", json!(5)),
        (json!(4), "at_least: 3", json!(4)),
        (json!(4), "at_most: 3", json!(3)),
        (number("4.0"), "at_most: 5", number("4.0")),
        (number("1e3"), "plus: 1", json!(1001)),
    ]);
}

#[test]
fn section_3_default_and_date() {
    check(&[
        (json!(null), "default: 2.99", number("2.99")),
        (json!(""), "default: 'x'", json!("x")),
        (json!(false), "default: 'x'", json!("x")),
        (json!([]), "default: 'x'", json!("x")),
        (json!(0), "default: 'x'", json!(0)),
        (
            json!("now"),
            "date: '%Y-%m-%d %H:%M:%S'",
            json!("2030-01-02 03:04:05"),
        ),
        (
            json!("2024-03-14"),
            "date: '%a, %b %d, %y'",
            json!("Thu, Mar 14, 24"),
        ),
        (
            json!("2024-03-14T10:20:30-07:00"),
            "date: '%H:%M %z'",
            json!("10:20 -0700"),
        ),
        (
            json!("2024-03-14T10:20:30Z"),
            "date: '%s'",
            json!("1710411630"),
        ),
        (json!(1710411630), "date: '%F'", json!("2024-03-14")),
        (json!("1710411630"), "date: '%F'", json!("2024-03-14")),
        (
            json!("March 14, 2016"),
            "date: '%b %d, %y'",
            json!("Mar 14, 16"),
        ),
        (json!("soon"), "date: '%Y'", json!("soon")),
        (json!(null), "date: '%Y'", json!(null)),
        (json!("2024-03-14"), "date: ''", json!("2024-03-14")),
    ]);
}

#[test]
fn section_3_errors() {
    let cases = [
        (
            json!(1),
            "divided_by: 0",
            EvaluationError::DivisionByZero("divided_by"),
        ),
        (
            json!(1),
            "divided_by: 0.0",
            EvaluationError::DivisionByZero("divided_by"),
        ),
        (
            json!(1),
            "modulo: nil",
            EvaluationError::DivisionByZero("modulo"),
        ),
        (json!([1]), "plus: 1", EvaluationError::NotNumber("plus")),
        (
            number("1e300"),
            "plus: 1",
            EvaluationError::NumberTooLarge("plus"),
        ),
        (json!({}), "upcase", EvaluationError::NotText("upcase")),
        (json!([1, "a"]), "sort", EvaluationError::NotComparable),
        (
            json!([1]),
            "concat: 1",
            EvaluationError::BadArgument("concat"),
        ),
        (
            json!("?"),
            "base64_decode",
            EvaluationError::BadEncoding("base64_decode"),
        ),
        (
            json!("/w=="),
            "base64_decode",
            EvaluationError::BadEncoding("base64_decode"),
        ),
        (
            json!("%ff"),
            "url_decode",
            EvaluationError::BadEncoding("url_decode"),
        ),
        (
            json!("now"),
            "date: '%!'",
            EvaluationError::BadArgument("date"),
        ),
    ];
    for (data, filter, expected) in cases {
        assert_eq!(
            apply_filter(data.clone(), filter),
            Err(expected),
            "{data} | {filter}"
        );
    }
}
