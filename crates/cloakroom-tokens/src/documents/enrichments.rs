//! Additional card details for detokenization.

use serde_json::{Map, Value, json};

use crate::bins::CardDetails;

/// The `enrichments` of a card, available only to `{{ token: ID }}` expressions.
pub(super) fn enrichments(card: &CardDetails) -> Value {
    let mut enrichments = Map::new();
    let known = json!({ "bin": card.bin, "last4": card.last4 });
    enrichments.insert("card_details".to_owned(), known);
    if let Some(bin_details) = bin_details(card) {
        enrichments.insert("bin_details".to_owned(), bin_details);
    }
    Value::Object(enrichments)
}

/// The BIN record in the format of `bin_details`; `None` without a record. Unknown attributes are omitted.
fn bin_details(card: &CardDetails) -> Option<Value> {
    let funding = card.funding?;
    let mut details = Map::new();
    let mut add = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            details.insert(name.to_owned(), value);
        }
    };
    add(
        "card_brand",
        card.brand.map(|brand| uppercase_brand(brand).into()),
    );
    let kind = if funding == "credit" {
        "CREDIT"
    } else {
        "DEBIT"
    };
    add("type", Some(kind.into()));
    add("prepaid", Some((funding == "prepaid").into()));
    add("card_segment_type", card.segment.clone().map(Value::from));
    let bank = card.issuer.as_ref().and_then(|issuer| issuer.name.clone());
    add("bank", bank.map(|name| json!({ "name": name })));
    let product = card.product.as_ref();
    add(
        "product",
        product.map(|product| json!({ "code": product.code })),
    );
    let country = card.issuer_country.as_ref();
    add(
        "country",
        country.and_then(|country| serde_json::to_value(country).ok()),
    );
    Some(Value::Object(details))
}

/// `american-express` as `AMERICAN EXPRESS`.
fn uppercase_brand(brand: &str) -> String {
    brand.to_uppercase().replace('-', " ")
}
