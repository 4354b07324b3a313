//! Tests of quotas.

use serde_json::json;

use super::*;

#[test]
fn quotas_are_set_by_name_within_their_range() {
    let cases = [
        ("rate_limit", json!("unlimited"), true),
        ("rate_limit", json!("none"), false),
        ("rate_limit", json!("5x"), true),
        ("rate_limit", json!("100x"), true),
        ("rate_limit", json!("0x"), false),
        ("rate_limit", json!("101x"), false),
        ("rate_limit", json!("1.5x"), false),
        ("rate_limit", json!("x"), false),
        ("rate_limit", json!(1), false),
        ("log_retention", json!(3_600), true),
        ("log_retention", json!(3_599), false),
        ("log_retention", json!(92 * 86_400), true),
        ("log_retention", json!(92 * 86_400 + 1), false),
        ("tokenize_limit", json!(1), true),
        ("tokenize_limit", json!(0), false),
        ("tokenize_limit", json!(1_000), true),
        ("tokenize_limit", json!(1_001), false),
        ("tokenize_limit", json!(-1), false),
        ("tokenize_limit", json!(1.5), false),
        ("tokenize_limit", json!("5"), false),
        ("detokenize_limit", json!(1_000), true),
        ("detokenize_limit", json!(1_001), false),
        ("cvc_retention", json!(1), true),
        ("cvc_retention", json!(0), false),
        ("cvc_retention", json!(172_800), true),
        ("cvc_retention", json!(172_801), false),
        ("token_intent_retention", json!(172_800), true),
        ("token_intent_retention", json!(172_801), false),
        ("card_velocity_limit", json!(1), true),
        ("card_velocity_limit", json!(0), false),
        ("card_velocity_limit", json!(1_000), true),
        ("card_velocity_limit", json!(1_001), false),
        ("threeds", json!(true), true),
        ("threeds", json!("true"), false),
        ("tokenise_limit", json!(5), false),
    ];
    for (name, value, fits) in cases {
        let mut quotas = TenantQuotas::default();
        let set = quotas.set(QuotaSource::Operator, name, &value);
        assert_eq!(set.is_ok(), fits, "{name} {value}");
        assert_eq!(quotas != TenantQuotas::default(), fits, "{name} {value}");
        if fits {
            assert_eq!(TenantQuotas::parse(&quotas.to_text()), Some(quotas.clone()));
            quotas
                .set(QuotaSource::Operator, name, &Value::Null)
                .unwrap();
            assert_eq!(quotas.to_text(), NO_QUOTAS, "{name}");
        }
    }
}

#[test]
fn operators_set_durations_with_units() {
    let cases = [
        (
            "cvc_retention",
            "30m",
            Some(json!({"cvc_retention": 1_800})),
        ),
        (
            "log_retention",
            "48h",
            Some(json!({"log_retention": 172_800})),
        ),
        ("tokenize_limit", "20", Some(json!({"tokenize_limit": 20}))),
        (
            "rate_limit",
            "unlimited",
            Some(json!({"rate_limit": "unlimited"})),
        ),
        ("rate_limit", "default", Some(json!({}))),
        ("cvc_retention", "default", Some(json!({}))),
        ("cvc_retention", "1800", None),
        ("cvc_retention", "1500ms", None),
        ("cvc_retention", "-30m", None),
        ("tokenize_limit", "many", None),
        ("tokenize", "5", None),
    ];
    for (name, text, expected) in cases {
        let mut quotas = TenantQuotas::default();
        let value = TenantQuotas::value_of(name, text);
        let set = value.and_then(|value| quotas.set(QuotaSource::Operator, name, &value));
        let stored = set.is_ok().then(|| quotas.to_text());
        let expected = expected.map(|value: Value| value.to_string());
        assert_eq!(stored, expected, "{name}={text}");
    }
}

#[test]
fn every_listed_quota_can_be_set() {
    for name in TenantQuotas::NAMES {
        let mut quotas = TenantQuotas::default();
        quotas
            .set(QuotaSource::Operator, name, &Value::Null)
            .unwrap();
    }
}

#[test]
fn a_tenants_own_value_applies_where_it_is_stricter() {
    use QuotaSource::{Operator, Tenant};
    let config = Config::default();
    // The deployment has `default`, 10 numbers, one hour, no 3-D Secure, and one day.
    let cases = [
        ("rate_limit", json!(null), json!("5x"), "default", false),
        ("rate_limit", json!("5x"), json!("2x"), "2x", true),
        ("rate_limit", json!("5x"), json!("unlimited"), "5x", false),
        (
            "rate_limit",
            json!("unlimited"),
            json!("default"),
            "default",
            true,
        ),
        ("card_velocity_limit", json!(null), json!(11), "10", false),
        ("card_velocity_limit", json!(5), json!(10), "5", false),
        ("card_velocity_limit", json!(50), json!(20), "20", true),
        ("cvc_retention", json!(7_200), json!(7_200), "7200", true),
        ("cvc_retention", json!(7_200), json!(7_201), "7200", false),
        ("threeds", json!(null), json!(true), "false", false),
        ("threeds", json!(true), json!(false), "false", true),
        ("log_retention", json!(null), json!(3_600), "86400", false),
        ("log_retention", json!(7_200), json!(7_201), "7201", true),
        ("tokenize_limit", json!(7), json!(1_000), "1000", true),
        ("tokenize_limit", json!(7), json!(null), "7", true),
    ];
    for (name, operators, own, expected, is_allowed) in cases {
        let mut quotas = TenantQuotas::default();
        quotas.set(Operator, name, &operators).unwrap();
        quotas.set(Tenant, name, &own).unwrap();
        let quotas = TenantQuotas::parse(&quotas.to_text()).unwrap();

        let held = quotas.or_default(&config);
        let held = match name {
            "rate_limit" => held.rate_limit.to_string(),
            "card_velocity_limit" => held.card_velocity_limit.to_string(),
            "cvc_retention" => held.cvc_retention.as_secs().to_string(),
            "threeds" => held.threeds.to_string(),
            "log_retention" => held.log_retention.as_secs().to_string(),
            _ => held.tokenize_limit.to_string(),
        };
        assert_eq!(held, expected, "{name} {operators} {own}");
        let rejected = quotas.limit_violation(name, &config);
        assert_eq!(rejected.is_none(), is_allowed, "{name} {operators} {own}");
    }
}

#[test]
fn the_operators_value_replaces_the_tenants() {
    let mut quotas = TenantQuotas::default();
    quotas
        .set(QuotaSource::Tenant, "cvc_retention", &json!(60))
        .unwrap();
    assert_eq!(quotas.to_text(), r#"{"own":{"cvc_retention":60}}"#);
    assert_eq!(quotas.set_by("cvc_retention"), Some(QuotaSource::Tenant));

    quotas
        .set(QuotaSource::Operator, "cvc_retention", &json!(7_200))
        .unwrap();

    assert_eq!(quotas.to_text(), r#"{"cvc_retention":7200}"#);
    assert_eq!(quotas.set_by("cvc_retention"), Some(QuotaSource::Operator));
    assert_eq!(quotas.set_by("threeds"), None);
}
