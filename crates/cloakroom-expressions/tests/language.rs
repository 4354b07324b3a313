//! The grammar of section 1 and the typing of section 2.

use cloakroom_expressions::{Context, EvaluationError, ParseError, Scope, Template};
use serde_json::{Value, json};

fn data() -> Value {
    json!({
        "number": "4242424242424242", "month": 12, "price": 19.5, "ok": true,
        "list": [1, 2, 3], "object": { "b": 1, "a": [true, null] }, "X-Date": "today",
        "people": [{ "name": "a" }, { "name": "b" }],
    })
}

#[expect(clippy::unwrap_used, reason = "every template in these tables parses")]
fn evaluate(text: &str) -> Result<Value, EvaluationError> {
    let data = data();
    let template = Template::parse(Context::IdAlias, text).unwrap();
    template.evaluate(&Scope::of(&[("data", &data)]))
}

fn check(cases: &[(&str, Value)]) {
    for (text, expected) in cases {
        assert_eq!(evaluate(text), Ok(expected.clone()), "{text}");
    }
}

#[test]
fn section_1_outputs() {
    check(&[
        ("{{ data.X-Date }}", json!("today")),
        ("{{ data.list[-1] }}", json!(3)),
        ("{{ data.list.size }}", json!(3)),
        ("{{ data.missing.deeper }}", json!(null)),
        ("{{ unknown }}", json!(null)),
        ("{{ data[\"number\"] | last4 }}", json!("4242")),
        ("a {{- data.month -}} b", json!("a12b")),
        ("{{ data.month | append: 'x', strict: true }}", json!("12x")),
        ("{{ 19.90 | to_string }}", json!("19.90")),
    ]);
}

#[test]
fn section_1_trailing_text_is_ignored_except_in_masks() {
    check(&[
        (
            "{{ data.number, reveal_last: 4 }}",
            json!("4242424242424242"),
        ),
        ("{{ data.number, reveal_last: 4 | last4 }}", json!("4242")),
        ("{{ data.number don't }}", json!("4242424242424242")),
    ]);
    let data = data();
    for text in [
        "{{ data.number, reveal_last: 4 }}",
        "{{ data.number, a | last4 }}",
    ] {
        let template = Template::parse(Context::Mask, text).unwrap();
        let result = template.evaluate(&Scope::of(&[("data", &data)]));
        assert_eq!(result, Ok(Value::Null), "{text}");
    }
}

#[test]
fn section_1_tags() {
    check(&[
        (
            "{% if data.month == 12 %}y{% else %}n{% endif %}",
            json!("y"),
        ),
        (
            "{% if data.month > 12 %}a{% elsif data.ok %}b{% else %}c{% endif %}",
            json!("b"),
        ),
        ("{% if data.missing %}a{% endif %}", json!("")),
        (
            "{% unless data.missing %}a{% else %}b{% endunless %}",
            json!("a"),
        ),
        (
            "{% unless data.ok %}a{% elsif data.ok %}b{% endunless %}",
            json!("b"),
        ),
        (
            "{% case data.month %} {% when 1, 2 %}a{% when 11 or 12 %}b{% else %}c{% endcase %}",
            json!("b"),
        ),
        (
            "{% case data.month %}{% when 1 %}a{% else %}c{% endcase %}",
            json!("c"),
        ),
        (
            "{% assign x = data.number | last4 %}{{ x }}-{{ x.size }}",
            json!("4242-4"),
        ),
        (
            "{% capture x %}<{{ data.month }}>{% endcapture %}{{ x }}{{ x }}",
            json!("<12><12>"),
        ),
        (
            "a{% comment %}{{ data.number | shout }}{% endcomment %}b",
            json!("ab"),
        ),
        (
            "{% raw %}{{ data.number }}{% endraw %}",
            json!("{{ data.number }}"),
        ),
    ]);
}

#[test]
fn section_1_loops() {
    check(&[
        (
            "{% for x in data.list %}{{ x }},{% endfor %}",
            json!("1,2,3,"),
        ),
        (
            "{% for x in data.list reversed %}{{ x }}{% endfor %}",
            json!("321"),
        ),
        (
            "{% for x in data.list limit: 1 offset: 1 %}{{ x }}{% endfor %}",
            json!("2"),
        ),
        (
            "{% for x in (1..data.list.size) %}{{ x }}{% endfor %}",
            json!("123"),
        ),
        (
            "{% for x in data.missing %}a{% else %}b{% endfor %}",
            json!("b"),
        ),
        (
            "{% for p in data.people %}{{ p.name }}{% unless forloop.last %}, {% endunless %}{% endfor %}",
            json!("a, b"),
        ),
        (
            "{% for x in data.list %}{{ forloop.index }}/{{ forloop.length }} {% endfor %}",
            json!("1/3 2/3 3/3 "),
        ),
        (
            "{% for x in data.list %}{% if x == 2 %}{% continue %}{% endif %}{{ x }}{% endfor %}",
            json!("13"),
        ),
        (
            "{% for x in data.list %}{% if x == 2 %}{% break %}{% endif %}{{ x }}{% endfor %}",
            json!("1"),
        ),
        (
            "{% for m in data.object %}{{ m[0] }}{% endfor %}",
            json!("ba"),
        ),
        ("{%- if true -%} a {%- endif -%} ", json!("a")),
        ("{% if true or false and false %}y{% endif %}", json!("y")),
    ]);
}

#[test]
fn section_1_unsupported_tags_are_rejected_by_name() {
    for tag in [
        "render",
        "include",
        "cycle",
        "increment",
        "tablerow",
        "echo",
        "liquid",
    ] {
        let error = Template::parse(Context::Mask, &format!("{{% {tag} x %}}")).unwrap_err();
        assert_eq!(error, ParseError::UnsupportedTag(tag.to_owned()));
    }
}

#[test]
fn section_2_typing() {
    check(&[
        ("{{ data.month }}", json!(12)),
        ("{{ data.price }}", json!(19.5)),
        ("{{ data.ok }}", json!(true)),
        ("{{ data.object }}", json!({ "b": 1, "a": [true, null] })),
        ("{{ data.list }}", json!([1, 2, 3])),
        ("{{ data.missing }}", json!(null)),
        (" {{ data.month }}", json!(" 12")),
        ("{{ data.month }}{{ data.ok }}", json!("12true")),
        ("<{{ data.missing }}>", json!("<>")),
        ("{{ data.object }};", json!("{\"b\":1,\"a\":[true,null]};")),
        ("{% comment %}{% endcomment %}{{ data.month }}", json!("12")),
    ]);
}

#[test]
fn section_2_number_notation_and_member_order_are_preserved() {
    let text = r#"{"z":19.90,"a":-0.0,"big":123456789012345678901234567890.10}"#;
    let data: Value = serde_json::from_str(text).unwrap();
    let variables = [("data", &data)];
    for template in [
        "{{ data }}",
        "{{ data | stringify }}",
        "{{ data }}{{ nil }}",
    ] {
        let parsed = Template::parse(Context::Fingerprint, template).unwrap();
        let result = parsed.evaluate_to_text(&Scope::of(&variables));
        assert_eq!(result.as_deref(), Ok(text), "{template}");
    }
}
