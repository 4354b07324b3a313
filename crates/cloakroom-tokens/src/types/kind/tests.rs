//! Tests of kind.

use cloakroom_expressions::{Context, Scope, Template};
use serde_json::json;

use super::*;

#[test]
fn every_type_is_found_by_name_and_number() {
    for kind in TokenKind::ALL {
        assert_eq!(TokenKind::parse(kind.name()), Some(kind));
        assert_eq!(TokenKind::from_number(kind as i16), Some(kind));
    }
    for name in ["Card", "CARD", "", " card", "cvc", "card_Number"] {
        assert_eq!(TokenKind::parse(name), None, "{name}");
    }
    for number in [i16::MIN, -1, 0, 10, i16::MAX] {
        assert_eq!(TokenKind::from_number(number), None, "{number}");
    }
}

/// Documented values: type, number, container, fingerprint, mask, search indexes, security code.
type Documented = (
    &'static str,
    i16,
    &'static str,
    &'static str,
    Value,
    Value,
    bool,
);

fn documented() -> [Documented; 9] {
    let m1 = json!({
        "number": "{{ data.number | reveal_last: 4 }}",
        "expiration_month": "{{ data.expiration_month }}",
        "expiration_year": "{{ data.expiration_year }}",
    });
    let m2 = json!({
        "routing_number": "{{ data.routing_number }}",
        "account_number": "{{ data.account_number | reveal_last: 4 }}",
    });
    let last4 = json!("{{ data | reveal_last: 4 }}");
    let i1 = json!([
        "{{ data }}",
        "{{ data | replace: '-' }}",
        "{{ data | last4 }}"
    ]);
    let account_and_routing = "{{ data.account_number }}|{{ data.routing_number }}";
    let number = "{{ data.number }}";
    let no_dashes = "{{ data | remove: '-' }}";
    #[rustfmt::skip]
    let rows = [
        ("token", 1, "/general/high/", "{{ data | stringify }}", json!(null), json!([]), false),
        ("card", 2, "/pci/high/", number, m1.clone(), json!([]), true),
        ("card_number", 3, "/pci/high/", "{{ data }}", last4.clone(), json!([]), false),
        ("network_token", 4, "/pci/high/", number, m1, json!([]), true),
        ("bank", 5, "/bank/high/", account_and_routing, m2, json!([]), false),
        ("us_bank_account_number", 6, "/bank/high/", "{{ data }}", last4.clone(), json!([]), false),
        ("us_bank_routing_number", 7, "/bank/low/", "{{ data }}", last4.clone(), json!([]), false),
        ("social_security_number", 8, "/pii/high/", no_dashes, last4.clone(), i1.clone(), false),
        ("employer_id_number", 9, "/pii/high/", no_dashes, last4, i1, false),
    ];
    rows
}

#[test]
fn defaults_match_the_documentation() {
    let rows = documented();
    assert_eq!(rows.len(), TokenKind::ALL.len());
    for (name, number, container, fingerprint, mask, search_indexes, has_code) in rows {
        let kind = TokenKind::parse(name).unwrap();
        let shown = kind
            .default_mask()
            .map_or(Value::Null, |mask| mask.shown.clone());
        assert_eq!(kind as i16, number, "{name}");
        assert_eq!(kind.default_container().as_str(), container, "{name}");
        assert_eq!(
            Container::parse(container),
            Ok(kind.default_container()),
            "{name}"
        );
        assert_eq!(kind.default_fingerprint_expression(), fingerprint, "{name}");
        assert_eq!(shown.to_string(), mask.to_string(), "{name}");
        assert_eq!(
            json!(kind.default_search_indexes()),
            search_indexes,
            "{name}"
        );
        assert_eq!(kind.has_security_code(), has_code, "{name}");
    }
}

/// Type, data, and the results of the defaults: mask, fingerprint, search indexes.
type Evaluated = (
    &'static str,
    Value,
    Value,
    &'static str,
    &'static [&'static str],
);

fn evaluated() -> [Evaluated; 10] {
    let card = json!({
        "number": "4242424242424242", "expiration_month": 4, "expiration_year": 2025,
    });
    let masked_card = json!({
        "number": "XXXXXXXXXXXX4242", "expiration_month": 4, "expiration_year": 2025,
    });
    let bare = json!({"number": "378282246310005"});
    let masked_bare = json!({
        "number": "XXXXXXXXXXX0005", "expiration_month": null, "expiration_year": null,
    });
    let bank = json!({"routing_number": "021000021", "account_number": "00001"});
    let masked_bank = json!({"routing_number": "021000021", "account_number": "X0001"});
    let ssn: &[&str] = &["078-05-1120", "078051120", "1120"];
    let ein: &[&str] = &["12-3456789", "123456789", "6789"];
    #[rustfmt::skip]
    let rows: [Evaluated; 10] = [
        ("token", json!({"b": 1.50, "a": [true]}), json!(null), r#"{"b":1.5,"a":[true]}"#, &[]),
        ("card", card.clone(), masked_card.clone(), "4242424242424242", &[]),
        ("card", bare, masked_bare, "378282246310005", &[]),
        ("card_number", json!("4242424242424242"), json!("XXXXXXXXXXXX4242"), "4242424242424242", &[]),
        ("network_token", card, masked_card, "4242424242424242", &[]),
        ("bank", bank, masked_bank, "00001|021000021", &[]),
        ("us_bank_account_number", json!("0123456"), json!("XXX3456"), "0123456", &[]),
        ("us_bank_routing_number", json!("021000021"), json!("XXXXX0021"), "021000021", &[]),
        ("social_security_number", json!("078-05-1120"), json!("XXX-XX-1120"), "078051120", ssn),
        ("employer_id_number", json!("12-3456789"), json!("XX-XXX6789"), "123456789", ein),
    ];
    rows
}

#[test]
fn defaults_evaluate_as_documented() {
    for (name, data, masked, fingerprint, search_indexes) in evaluated() {
        let kind = TokenKind::parse(name).unwrap();
        let mask = kind.default_mask();
        let evaluate = |context, text| {
            let template = Template::parse(context, text).unwrap();
            template
                .evaluate_to_text(&Scope::of(&[("data", &data)]))
                .unwrap()
        };
        let print = evaluate(Context::Fingerprint, kind.default_fingerprint_expression());
        let indexes: Vec<String> = (kind.default_search_indexes().iter())
            .map(|text| evaluate(Context::SearchIndex, text))
            .collect();
        assert_eq!(
            mask.map_or(Value::Null, |mask| mask.mask.apply(&data)),
            masked,
            "{name}"
        );
        assert_eq!(print, fingerprint, "{name}");
        assert_eq!(indexes, search_indexes, "{name}");
    }
}
