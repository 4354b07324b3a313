//! Tests of masks, their errors and limits.

use serde_json::json;

use super::*;

#[test]
fn templates_are_evaluated_and_literals_are_preserved() {
    let mask = json!({
        "number": "{{ data.number | reveal_last: 4 }}",
        "expiration_month": "{{ data.expiration_month }}",
        "list": ["{{ data.number | last4 }}", 1, null, true, "text"],
        "{{ data.number }}": {},
    });
    let data = json!({ "number": "4242424242424242", "expiration_month": 12 });

    let result = Mask::parse(&mask).unwrap().apply(&data);

    let expected = json!({
        "number": "XXXXXXXXXXXX4242",
        "expiration_month": 12,
        "list": ["4242", 1, null, true, "text"],
        "{{ data.number }}": {},
    });
    assert_eq!(result.to_string(), expected.to_string());
}

#[test]
fn filters_on_large_data_have_a_bounded_cost() {
    let data = json!("a".repeat(900_000));
    let leaf = "{{ data | reveal_last: 4 | reveal_last: 4 | last4 }}";
    let mask = Mask::parse(&Value::from(vec![leaf; 3_000])).unwrap();

    let started = std::time::Instant::now();
    let result = mask.apply(&data);

    assert!(result.as_array().unwrap().iter().all(Value::is_null));
    assert!(started.elapsed() < std::time::Duration::from_secs(1));
}

#[test]
fn a_template_that_fails_is_null() {
    let mask = json!([
        "{{ data | last4 }}",
        "{{ data.number | reveal_last: 'x' }}",
        "kept"
    ]);
    let data = json!({ "number": "4242" });

    let result = Mask::parse(&mask).unwrap().apply(&data);

    assert_eq!(result, json!([null, null, "kept"]));
}

#[test]
fn errors_contain_their_path() {
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
fn mask_depth_and_total_size_are_limited() {
    let nested = |depth| (0..depth).fold(json!(1), |inner, _| json!([inner]));
    assert!(Mask::parse(&nested(DEPTH_MAX)).is_ok());
    let error = Mask::parse(&nested(DEPTH_MAX + 1)).unwrap_err();
    assert_eq!(error.error, ParseError::TooDeep);

    let mask = Mask::parse(&json!(["{{ data }}", "{{ data }}", "{{ data | last4 }}"])).unwrap();
    let data = json!("a".repeat(OUTPUT_BYTES_MAX / 2 + 1));
    assert_eq!(mask.apply(&data), json!([data, null, "aaaa"]));
}
