//! Values of every field of an authentication request, and the codes that the network receives.

use serde_json::{Value, json};

use super::requests::payment;

/// API values and their protocol codes, by field.
const CODES: &[(&str, &[(&str, &str)])] = &[
    (
        "challenge_preference",
        &[
            ("no-preference", "01"),
            ("no-challenge", "02"),
            ("challenge-requested", "03"),
            ("challenge-mandated", "04"),
            ("no-challenge-risk-analysis-performed", "05"),
            ("no-challenge-data-sharing-only", "06"),
            ("no-challenge-strong-consumer-auth", "07"),
            ("no-challenge-whitelist-exemption", "08"),
            ("challenge-requested-whitelist-prompt", "09"),
            ("cartes-bancaires", "90"),
        ],
    ),
    (
        "purchase_info.transaction_type",
        &[
            ("purchase", "01"),
            ("check-acceptance", "03"),
            ("account-funding", "10"),
            ("quasi-cash", "11"),
            ("prepaid-activation-load", "28"),
        ],
    ),
    (
        "cardholder_info.account_type",
        &[("credit", "02"), ("debit", "03")],
    ),
    ("cardholder_info.account_info.account_age", AGES),
    ("cardholder_info.account_info.payment_account_created", AGES),
    (
        "cardholder_info.account_info.account_last_changed",
        &[
            ("changed-this-transaction", "01"),
            ("less-than-30-days", "02"),
            ("30-to-60-days", "03"),
            ("more-than-60-days", "04"),
            ("no-change", ""),
        ],
    ),
    (
        "cardholder_info.account_info.account_pwd_last_changed",
        &[
            ("no-change", "01"),
            ("changed-this-transaction", "02"),
            ("less-than-30-days", "03"),
            ("30-to-60-days", "04"),
            ("more-than-60-days", "05"),
        ],
    ),
    (
        "cardholder_info.account_info.shipping_address_first_used",
        &[
            ("this-transaction", "01"),
            ("address-first-used", "01"),
            ("less-than-30-days", "02"),
            ("30-to-60-days", "03"),
            ("more-than-60-days", "04"),
            ("no-address", ""),
        ],
    ),
    (
        "cardholder_info.authentication_info.method",
        &[
            ("no-login", "01"),
            ("username-password", "02"),
            ("federated-id", "03"),
            ("issuer-credentials", "04"),
            ("third-party", "05"),
            ("fido", "06"),
            ("fido-data-signed", "07"),
            ("src-assurance-data", "08"),
        ],
    ),
    (
        "cardholder_info.prior_authentication_info.method",
        &[
            ("frictionless", "01"),
            ("challenged", "02"),
            ("avs-verified", "03"),
            ("other", "04"),
        ],
    ),
    (
        "merchant_info.risk_info.delivery_time_frame",
        &[
            ("electronic-delivery", "01"),
            ("same-day-shipping", "02"),
            ("overnight-shipping", "03"),
            ("two-or-more-day-shipping", "04"),
        ],
    ),
    (
        "merchant_info.risk_info.shipping_method",
        &[
            ("ship-to-billing-address", "01"),
            ("ship-to-verified-address", "02"),
            ("ship-to-different-address", "03"),
            ("ship-to-store", "04"),
            ("digital-goods", "05"),
            ("travel-and-event-tickets", "06"),
            ("other", "07"),
        ],
    ),
];
const AGES: &[(&str, &str)] = &[
    ("no-account", "01"),
    ("created-this-transaction", "02"),
    ("less-than-30-days", "03"),
    ("30-to-60-days", "04"),
    ("more-than-60-days", "05"),
];
const FLAGS: &[(&str, &str, &str)] = &[
    (
        "cardholder_info.account_info.shipping_account_name_match",
        "01",
        "02",
    ),
    (
        "cardholder_info.account_info.suspicious_activity_observed",
        "02",
        "01",
    ),
    ("merchant_info.risk_info.pre_order_purchase", "02", "01"),
    ("merchant_info.risk_info.reordered_purchase", "02", "01"),
];

/// A request with every field of the table.
pub(super) fn full_request(category: &str, purpose: &str) -> Value {
    let mut request = payment();
    let more = json!({
        "authentication_category": category, "authentication_type": purpose,
        "card_brand": "Visa", "request_decoupled_challenge": true,
        "decoupled_challenge_max_time": 5, "broadcast_info": {"any": "thing"}, "metadata": {"a": "b"},
        "message_extensions": [{"id": "A000000003_own", "name": "own", "critical": false,
                                "data": {"any": "thing"}}],
        "purchase_info": {"currency": "EUR", "installment_count": "12",
                          "recurring_expiration": "20300101", "recurring_frequency": "30"},
        "merchant_info": {"url": "https://shop.example.com", "risk_info": {
            "delivery_email": "gift@example.com", "gift_card_amount": "123",
            "gift_card_count": "02", "gift_card_currency": "USD", "pre_order_date": "20300102"}},
        "requestor_info": {"amex_requestor_type": "MER", "cb_siret_number": "12345678901234",
                           "discover_client_id": "client-1", "discover_requestor_id": "own"},
        "cardholder_info": {"name": "José Muñoz", "account_id": "account-7",
            "account_info": {"account_created_date": "20200101", "account_change_date": "20200102",
                "account_pwd_change_date": "20200103", "purchase_count_half_year": "12",
                "transaction_count_day": "3", "transaction_count_year": "45",
                "payment_account_age": "20200104", "shipping_address_usage_date": "20200105"},
            "authentication_info": {"timestamp": "202401091410", "data": "signed in"},
            "prior_authentication_info": {"timestamp": "202301091410", "data": "before",
                "reference_id": "3ac7caa7-aa42-4663-891b-2ac05a542c4a"},
            "phone_number": {"country_code": "1", "number": "5551234561"},
            "mobile_phone_number": {"country_code": "44", "number": "5551234562"},
            "work_phone_number": {"country_code": "49", "number": "5551234563"},
            "billing_shipping_address_match": "N",
            "billing_address": {"line1": "b1", "line2": "b2", "line3": "b3", "postal_code": "94105",
                "city": "San Francisco", "state_code": "US-CA", "country_code": "840"},
            "shipping_address": {"line1": "s1", "line2": "s2", "line3": "s3", "postal_code": "10001",
                "city": "New York", "state_code": "NY", "country_code": "840"}},
    });
    merge(&mut request, &more);
    set_choices(&mut request, 0);
    request
}

/// Sets every enumeration and flag to its value number `turn`.
pub(super) fn set_choices(request: &mut Value, turn: usize) {
    for (path, names) in CODES {
        set_field(request, path, Some(names[turn % names.len()].0.into()));
    }
    for (path, ..) in FLAGS {
        set_field(request, path, Some(turn.is_multiple_of(2).into()));
    }
}

fn merge(into: &mut Value, more: &Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            for (name, value) in more {
                merge(into.entry(name).or_insert(Value::Null), value);
            }
        }
        (into, more) => *into = more.clone(),
    }
}

/// Sets or removes the field at a path.
pub(super) fn set_field(request: &mut Value, path: &str, value: Option<Value>) {
    let (outer, name) = path.rsplit_once('.').unwrap_or(("", path));
    let mut place = request;
    for part in outer.split('.').filter(|part| !part.is_empty()) {
        place = &mut place[part];
    }
    match value {
        Some(value) => place[name] = value,
        None => {
            place.as_object_mut().unwrap().remove(name);
        }
    }
}

pub(super) fn at<'a>(value: &'a Value, path: &str) -> &'a Value {
    path.split('.').fold(value, |value, part| &value[part])
}

/// The value that the network must receive.
pub(super) fn expected(path: &str, given: &Value, turn: usize) -> Value {
    if let Some((_, names)) = CODES.iter().find(|(field, _)| *field == path) {
        return match names[turn % names.len()].1 {
            "" => Value::Null,
            code => code.into(),
        };
    }
    if let Some((_, yes, no)) = FLAGS.iter().find(|(field, ..)| *field == path) {
        return if given == true { *yes } else { *no }.into();
    }
    match path {
        "authentication_category" => "01".into(),
        "request_decoupled_challenge" => "Y".into(),
        "decoupled_challenge_max_time" => "00005".into(),
        "purchase_info.currency" => "978".into(),
        "merchant_info.risk_info.gift_card_currency" => "840".into(),
        "cardholder_info.name" => "Jose Munoz".into(),
        "cardholder_info.billing_address.state_code" => "CA".into(),
        "message_extensions" => json!([{"id": "A000000003_own", "name": "own",
            "criticalityIndicator": false, "data": {"any": "thing"}}]),
        _ => given.clone(),
    }
}
