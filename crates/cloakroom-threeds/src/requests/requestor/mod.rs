//! The 3DS Requestor, by the rules of each network.

use cloakroom_platform::api::FieldError;
use serde_json::{Map, Value};

use super::field::value_at;
use crate::networks::Network;

/// Identification of the 3DS Requestor.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Requestor {
    pub id: String,
    pub name: String,
    pub url: String,
}

/// Uses the values in the request, or derives them by the rules of the network.
pub(super) fn requestor(
    body: &Map<String, Value>,
    network: Network,
    server_name: &str,
) -> Result<Requestor, Vec<FieldError>> {
    let text = |path: &str| value_at(body, path).and_then(Value::as_str);
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
    let mut errors = Vec::new();
    let mut need = |path: &'static str| {
        let found = text(path);
        if found.is_none() {
            let rule = "is required unless requestor_info contains id, name and url";
            errors.push(FieldError::new(path, rule));
        }
        found.unwrap_or_default().to_owned()
    };
    let url = need("merchant_info.url");
    let (id, name) = match network {
        Network::Visa | Network::UnionPay => (
            truncate(&need("merchant_info.mid"), 26),
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
            let client = truncate(&need("requestor_info.discover_client_id"), 8);
            let name = need("merchant_info.name");
            let own = text("requestor_info.discover_requestor_id").unwrap_or(&name);
            (format!("{client}_{}", truncate(own, 26)), name)
        }
        Network::Jcb => {
            let mid = need("merchant_info.mid");
            let acquirer = need("merchant_info.acquirer_bin");
            (truncate(&format!("{acquirer}MCT{mid}"), 26), mid)
        }
        Network::CartesBancaires => {
            let name = need("merchant_info.name");
            let is_payment = text("authentication_category") == Some("payment");
            let siret = text("requestor_info.cb_siret_number").filter(|_| !is_payment);
            (siret.map_or_else(|| name.clone(), str::to_owned), name)
        }
    };
    match errors.is_empty() {
        true => Ok(Requestor {
            id: truncate(&id, 35),
            name: truncate(&name, 40),
            url,
        }),
        false => Err(errors),
    }
}

fn truncate(text: &str, max: usize) -> String {
    text.chars().take(max).collect()
}

#[cfg(test)]
mod tests;
