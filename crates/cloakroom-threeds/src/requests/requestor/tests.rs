//! Tests of the rules of each network.

use serde_json::json;

use super::*;

fn body(requestor: Value) -> Map<String, Value> {
    let merchant = json!({"mid": "123456789112345", "name": "Shoes", "acquirer_bin": "444500",
                          "url": "https://shoes.example"});
    let body = json!({"requestor_info": requestor, "merchant_info": merchant});
    body.as_object().cloned().unwrap_or_default()
}

#[test]
fn requestors_are_derived_by_network_rules() {
    let later = json!({"amex_requestor_type": "AGG", "discover_client_id": "client-1",
                       "cb_siret_number": "12345678901234"});
    let cases = [
        (Network::Visa, "123456789112345", "Shoes"),
        (
            Network::Mastercard,
            "123456789112345",
            "cloak_123456789112345",
        ),
        (
            Network::AmericanExpress,
            "AGG_123456789112345",
            "123456789112345",
        ),
        (Network::Discover, "client-1_Shoes", "Shoes"),
        (Network::Jcb, "444500MCT123456789112345", "123456789112345"),
        (Network::UnionPay, "123456789112345", "Shoes"),
        (Network::CartesBancaires, "12345678901234", "Shoes"),
    ];
    for (network, id, name) in cases {
        let derived = requestor(&body(later.clone()), network, "cloak");
        let expected = Requestor {
            id: id.to_owned(),
            name: name.to_owned(),
            url: "https://shoes.example".to_owned(),
        };
        assert_eq!(derived, Ok(expected), "{network:?}");
    }
    let amex = requestor(&body(json!({})), Network::AmericanExpress, "cloak");
    assert_eq!(amex.unwrap().id, "MER_123456789112345");
    let cb = requestor(&body(json!({})), Network::CartesBancaires, "cloak");
    assert_eq!(cb.unwrap().id, "Shoes");
}

#[test]
fn given_requestors_are_used_unchanged() {
    let given = json!({"id": "an id", "name": "a name", "url": "https://other.example"});
    for network in Network::ALL.iter().copied() {
        let taken = requestor(&body(given.clone()), network, "cloak").unwrap();
        assert_eq!(
            (taken.id.as_str(), taken.name.as_str()),
            ("an id", "a name")
        );
        assert_eq!(taken.url, "https://other.example");
    }
}

#[test]
fn missing_fields_are_reported_by_path() {
    let without = requestor(&body(json!({})), Network::Discover, "cloak");
    let paths: Vec<String> = without
        .unwrap_err()
        .into_iter()
        .map(|one| one.path)
        .collect();
    assert_eq!(paths, ["requestor_info.discover_client_id"]);
    let bare = json!({"requestor_info": {}});
    let bare = bare.as_object().cloned().unwrap_or_default();
    let without = requestor(&bare, Network::Jcb, "cloak").unwrap_err();
    let paths: Vec<String> = without.into_iter().map(|one| one.path).collect();
    let expected = [
        "merchant_info.url",
        "merchant_info.mid",
        "merchant_info.acquirer_bin",
    ];
    assert_eq!(paths, expected);
}
