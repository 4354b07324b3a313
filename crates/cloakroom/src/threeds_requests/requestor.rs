//! Who asks, in the words that each network wants.

use serde_json::{Map, Value};

use super::field::at;
use crate::api::Broken;
use crate::card_networks::Network;

/// What a network calls the merchant that asks.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Requestor {
    pub id: String,
    pub name: String,
    pub url: String,
}

/// Takes what the request says, or derives it by the rules of the network.
pub(super) fn requestor(
    body: &Map<String, Value>,
    network: Network,
    server_name: &str,
) -> Result<Requestor, Vec<Broken>> {
    let text = |path: &str| at(body, path).and_then(Value::as_str);
    let given = [
        text("requestor_info.id"),
        text("requestor_info.name"),
        text("requestor_info.url"),
    ];
    if let [Some(id), Some(name), Some(url)] = given {
        return Ok(Requestor {
            id: id.to_owned(),
            name: name.to_owned(),
            url: url.to_owned(),
        });
    }
    let mut broken = Vec::new();
    let mut need = |path: &'static str| {
        let found = text(path);
        if found.is_none() {
            let rule = "is required when requestor_info does not hold id, name and url";
            broken.push(Broken::new(path, rule));
        }
        found.unwrap_or_default().to_owned()
    };
    let url = need("merchant_info.url");
    let (id, name) = match network {
        Network::Visa | Network::UnionPay => (
            cut(&need("merchant_info.mid"), 26),
            need("merchant_info.name"),
        ),
        Network::Mastercard => {
            let mid = need("merchant_info.mid");
            let name = format!("{server_name}_{mid}");
            (mid, name)
        }
        Network::AmericanExpress => {
            let kind = text("requestor_info.amex_requestor_type").unwrap_or("MER");
            let mid = need("merchant_info.mid");
            (format!("{kind}_{mid}"), mid)
        }
        Network::Discover => {
            let client = cut(&need("requestor_info.discover_client_id"), 8);
            let name = need("merchant_info.name");
            let own = text("requestor_info.discover_requestor_id").unwrap_or(&name);
            (format!("{client}_{}", cut(own, 26)), name)
        }
        Network::Jcb => {
            let mid = need("merchant_info.mid");
            let acquirer = need("merchant_info.acquirer_bin");
            (cut(&format!("{acquirer}MCT{mid}"), 26), mid)
        }
        Network::CartesBancaires => {
            let name = need("merchant_info.name");
            let is_payment = text("authentication_category") == Some("payment");
            let siret = text("requestor_info.cb_siret_number").filter(|_| !is_payment);
            (siret.map_or_else(|| name.clone(), str::to_owned), name)
        }
    };
    match broken.is_empty() {
        true => Ok(Requestor {
            id: cut(&id, 35),
            name: cut(&name, 40),
            url,
        }),
        false => Err(broken),
    }
}

fn cut(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn body(requestor: Value) -> Map<String, Value> {
        let merchant = json!({"mid": "123456789112345", "name": "Shoes", "acquirer_bin": "444500",
                              "url": "https://shoes.example"});
        let body = json!({"requestor_info": requestor, "merchant_info": merchant});
        body.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn each_network_has_its_own_rule() {
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
    fn what_is_given_is_taken_as_it_is() {
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
    fn what_cannot_be_derived_is_asked_for_by_name() {
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
}
