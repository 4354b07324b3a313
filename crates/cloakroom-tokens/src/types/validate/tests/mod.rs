//! Tests of data validation by token type.

mod cards;
mod other_types;
mod patches;

use proptest::prelude::*;
use serde_json::json;

use super::*;

/// The stored data and the security code, or the paths of the errors.
type Outcome = Result<(String, Option<String>), Vec<String>>;

fn outcome(validated: Result<ValidatedData, Vec<FieldError>>) -> Outcome {
    let describe = |validated: ValidatedData| {
        let code = match &validated.security_code {
            SecurityCode::Absent => None,
            SecurityCode::Given(code) => Some(code.expose().clone()),
            SecurityCode::Removed => Some("removed".to_owned()),
        };
        (
            String::from_utf8(validated.data.into_inner()).unwrap(),
            code,
        )
    };
    validated
        .map(describe)
        .map_err(|broken| broken.into_iter().map(|broken| broken.path).collect())
}

fn validated(kind: TokenKind, data: &str, tenant_kind: TenantKind) -> Outcome {
    let raw: &RawValue = serde_json::from_str(data).unwrap();
    outcome(validate_data(kind, raw, tenant_kind))
}

/// Asserts the stored form of data that a production tenant sends.
fn assert_accepted(kind: TokenKind, data: &str, stored: &str, code: Option<&str>) {
    let expected = Ok((stored.to_owned(), code.map(str::to_owned)));
    let outcome = validated(kind, data, TenantKind::Production);
    assert_eq!(outcome, expected, "{kind:?} {data}");
}

fn assert_rejected(kind: TokenKind, data: &str, paths: &[&str]) {
    let expected = Err(paths.iter().map(|path| (*path).to_owned()).collect());
    for tenant_kind in [TenantKind::Test, TenantKind::Production] {
        let outcome = validated(kind, data, tenant_kind);
        assert_eq!(outcome, expected, "{kind:?} {data}");
    }
}

#[test]
fn errors_never_contain_the_value() {
    let data = json!({
        "number": "9876", "expiration_month": "9876", "expiration_year": "98765",
        "cvc": "98765", "routing_number": "9876", "account_number": "9876x",
    });
    for kind in TokenKind::ALL {
        for data in [json!("9876x").to_string(), data.to_string()] {
            let raw: &RawValue = serde_json::from_str(&data).unwrap();
            for broken in validate_data(kind, raw, TenantKind::Test)
                .err()
                .into_iter()
                .flatten()
            {
                assert!(!broken.rule.contains("9876"), "{broken:?}");
            }
        }
    }
}

/// Arbitrary JSON, and objects that are nearly valid.
fn any_data() -> impl Strategy<Value = Value> {
    let digits = prop_oneof![
        "[0-9-]{0,20}",
        Just("4242424242424242".to_owned()),
        Just("021000021".to_owned()),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (0_u16..3000).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        digits.prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    let name = prop_oneof![
        "(number|expiration_month|expiration_year|cvc|routing_number|account_number)",
        "[a-z\"\\\\]{0,3}",
    ];
    leaf.prop_recursive(3, 24, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((name.clone(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// The same with valid members, so that most of it is accepted.
fn likely_data() -> impl Strategy<Value = Value> {
    (any_data(), 1..13, any::<bool>()).prop_map(|(mut data, month, as_text)| {
        if let Value::Object(members) = &mut data {
            let month = match as_text {
                true => json!(format!("{month:02}")),
                false => json!(month),
            };
            let known = [
                ("number", json!("4242424242424242")),
                ("routing_number", json!("021000021")),
                ("account_number", json!("00001")),
                ("expiration_month", month),
                ("expiration_year", json!(2030)),
                ("cvc", json!(123)),
            ];
            for (name, value) in known {
                members.insert(name.to_owned(), value);
            }
        }
        data
    })
}

proptest! {
    #[test]
    fn validation_is_idempotent(
        data in prop_oneof![any_data(), likely_data()],
        kind in prop::sample::select(TokenKind::ALL.to_vec()),
        tenant_kind in prop::sample::select(vec![TenantKind::Test, TenantKind::Production]),
    ) {
        if let Ok((stored, _)) = validated(kind, &data.to_string(), tenant_kind) {
            let again = validated(kind, &stored, tenant_kind);
            prop_assert_eq!(again, Ok((stored, None)));
        }
    }
}
