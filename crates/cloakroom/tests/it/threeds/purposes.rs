//! What sessions may be for, by who asks and on which channel.

use http::StatusCode;
use serde_json::json;

use super::checkout::{Checkout, digits, id_of};
use super::requests::{app, request};

/// Purpose, its code with a cardholder and its code without one.
const PURPOSES: &[(&str, Option<&str>, Option<&str>)] = &[
    ("payment-transaction", Some("01"), None),
    ("recurring-transaction", Some("02"), Some("01")),
    ("installment-transaction", Some("03"), Some("02")),
    ("add-card", Some("04"), Some("03")),
    ("maintain-card", Some("05"), Some("04")),
    ("cardholder-emv-verification", Some("06"), None),
    ("account-verification", Some("04"), Some("05")),
    ("split-or-delayed-shipment", None, Some("06")),
    ("top-up", None, Some("07")),
    ("mail-order", None, Some("08")),
    ("telephone-order", None, Some("09")),
    ("whitelist-status-check", None, Some("10")),
    ("other-payment", None, Some("11")),
    ("billing-agreement", None, Some("12")),
];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Channel {
    Browser,
    App,
    Merchant,
}

/// A session on a channel, ready to be authenticated.
async fn session(checkout: &Checkout, channel: Channel, number: &str) -> String {
    match channel {
        Channel::Browser => id_of(&checkout.created(number).await).to_owned(),
        Channel::Merchant => checkout.merchant_session(number).await,
        Channel::App => {
            let new = json!({"token_id": checkout.token(number).await, "device": "app"});
            let created = checkout.page.post("/3ds/sessions", new).await;
            assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
            assert_eq!(created.body["method_url"], "");
            let path = format!("/3ds/sessions/{}", created.id());
            let told = checkout
                .page
                .put(&path, json!({"device_info": app()}))
                .await;
            assert_eq!(told.status, StatusCode::OK, "{}", told.body);
            created.id()
        }
    }
}

/// Covers 24.6.
///
/// Every purpose, category and channel: allowed ones pass the checks of the network, others are refused
/// by name.
#[tokio::test]
async fn purposes_are_allowed_by_who_asks() {
    let checkout = Checkout::start().await;
    let number = digits("0000");
    println!("| channel | category | type | code |\n| --- | --- | --- | --- |");
    for channel in [Channel::Browser, Channel::App, Channel::Merchant] {
        for category in ["payment", "non-payment"] {
            for (purpose, with_cardholder, without) in PURPOSES {
                let code = match channel {
                    Channel::Merchant => without,
                    _ => with_cardholder,
                };
                let id = session(&checkout, channel, &number).await;
                let answer = checkout.authenticate(&id, request(category, purpose)).await;
                let told = code.unwrap_or("400");
                println!("| {channel:?} | {category} | {purpose} | {told} |");
                let Some(code) = code else {
                    assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{purpose}");
                    assert_eq!(answer.refused(), ["authentication_type"], "{channel:?}");
                    continue;
                };
                assert_eq!(answer.status, StatusCode::OK, "{purpose}: {}", answer.body);
                assert_eq!(answer.body["authentication_status"], "successful");
                let is_shifted = category == "payment";
                assert_eq!(answer.body["liability_shifted"], is_shifted, "{purpose}");
                let seen = checkout.seen(&id).await["areq"].clone();
                let (name, other, number) = match channel {
                    Channel::Merchant => ("threeRIInd", "threeDSRequestorAuthenticationInd", "03"),
                    Channel::App => ("threeDSRequestorAuthenticationInd", "threeRIInd", "01"),
                    Channel::Browser => ("threeDSRequestorAuthenticationInd", "threeRIInd", "02"),
                };
                assert_eq!(seen[name], *code, "{channel:?} {purpose}");
                assert!(seen[other].is_null());
                assert_eq!(seen["deviceChannel"], number);
                let expected = if category == "payment" { "01" } else { "02" };
                assert_eq!(seen["messageCategory"], expected);
                assert_eq!(seen["threeDSServerTransID"], id);
            }
        }
    }
}

/// Covers 24.15.
///
/// The oldest version knows no payment without the cardholder, and few purposes.
#[tokio::test]
async fn the_oldest_version_refuses_what_a_merchant_cannot_do_in_it() {
    let checkout = Checkout::start().await;
    let number = digits("1000");
    for (category, purpose, is_fine) in [
        ("payment", "recurring-transaction", false),
        ("payment", "add-card", false),
        ("non-payment", "top-up", false),
        ("non-payment", "billing-agreement", false),
        ("non-payment", "add-card", true),
        ("non-payment", "account-verification", true),
    ] {
        let id = checkout.merchant_session(&number).await;
        let before = checkout.received("AReq").await;
        let answer = checkout.authenticate(&id, request(category, purpose)).await;
        let asked = checkout.received("AReq").await - before;
        if is_fine {
            assert_eq!(answer.status, StatusCode::OK, "{purpose}: {}", answer.body);
            assert_eq!(answer.body["threeds_version"], "2.1.0");
            continue;
        }
        assert_eq!(answer.status, StatusCode::FAILED_DEPENDENCY, "{purpose}");
        assert_eq!(answer.body["error"]["error_source"], "3DS Server");
        assert_eq!(answer.body["error"]["service_status"], "400");
        assert_eq!(asked, 0, "{purpose}");
    }
}
