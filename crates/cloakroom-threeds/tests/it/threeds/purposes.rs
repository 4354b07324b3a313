//! Authentication types by initiator and channel.

use http::StatusCode;
use serde_json::json;

use super::checkout::{Checkout, card_number, id_of};
use super::requests::{app, request};

/// Authentication type, its code with a cardholder, and its code without one.
const TYPES: &[(&str, Option<&str>, Option<&str>)] = &[
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

/// Creates a session on a channel, ready to be authenticated.
async fn session(checkout: &Checkout, channel: Channel, number: &str) -> String {
    match channel {
        Channel::Browser => id_of(&checkout.create_session(number).await).to_owned(),
        Channel::Merchant => checkout.create_merchant_session(number).await,
        Channel::App => {
            let new = json!({"token_id": checkout.create_token(number).await, "device": "app"});
            let created = checkout.page.post("/3ds/sessions", new).await;
            assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
            assert_eq!(created.body["method_url"], "");
            let path = format!("/3ds/sessions/{}", created.id());
            let updated = checkout
                .page
                .put(&path, json!({"device_info": app()}))
                .await;
            assert_eq!(updated.status, StatusCode::OK, "{}", updated.body);
            created.id()
        }
    }
}

/// Covers 24.6.
///
/// Every type, category and channel: allowed ones pass the checks of the network, others are rejected by name.
#[tokio::test]
async fn authentication_types_depend_on_the_initiator() {
    let checkout = Checkout::start().await;
    let number = card_number("0000");
    println!("| channel | category | type | code |\n| --- | --- | --- | --- |");
    for channel in [Channel::Browser, Channel::App, Channel::Merchant] {
        for category in ["payment", "non-payment"] {
            for (kind, with_cardholder, without) in TYPES {
                let code = match channel {
                    Channel::Merchant => without,
                    _ => with_cardholder,
                };
                let id = session(&checkout, channel, &number).await;
                let response = checkout.authenticate(&id, request(category, kind)).await;
                let result = code.unwrap_or("400");
                println!("| {channel:?} | {category} | {kind} | {result} |");
                let Some(code) = code else {
                    assert_eq!(response.status, StatusCode::BAD_REQUEST, "{kind}");
                    assert_eq!(response.refused(), ["authentication_type"], "{channel:?}");
                    continue;
                };
                assert_eq!(response.status, StatusCode::OK, "{kind}: {}", response.body);
                assert_eq!(response.body["authentication_status"], "successful");
                let is_shifted = category == "payment";
                assert_eq!(response.body["liability_shifted"], is_shifted, "{kind}");
                let areq = checkout.transaction(&id).await["areq"].clone();
                let (name, other, number) = match channel {
                    Channel::Merchant => ("threeRIInd", "threeDSRequestorAuthenticationInd", "03"),
                    Channel::App => ("threeDSRequestorAuthenticationInd", "threeRIInd", "01"),
                    Channel::Browser => ("threeDSRequestorAuthenticationInd", "threeRIInd", "02"),
                };
                assert_eq!(areq[name], *code, "{channel:?} {kind}");
                assert!(areq[other].is_null());
                assert_eq!(areq["deviceChannel"], number);
                let expected = if category == "payment" { "01" } else { "02" };
                assert_eq!(areq["messageCategory"], expected);
                assert_eq!(areq["threeDSServerTransID"], id);
            }
        }
    }
}

/// Covers 24.15.
///
/// Version 2.1.0 supports no merchant-initiated payments, and few types.
#[tokio::test]
async fn version_2_1_0_rejects_unsupported_merchant_requests() {
    let checkout = Checkout::start().await;
    let number = card_number("1000");
    for (category, kind, is_supported) in [
        ("payment", "recurring-transaction", false),
        ("payment", "add-card", false),
        ("non-payment", "top-up", false),
        ("non-payment", "billing-agreement", false),
        ("non-payment", "add-card", true),
        ("non-payment", "account-verification", true),
    ] {
        let id = checkout.create_merchant_session(&number).await;
        let before = checkout.received_count("AReq").await;
        let response = checkout.authenticate(&id, request(category, kind)).await;
        let sent = checkout.received_count("AReq").await - before;
        if is_supported {
            assert_eq!(response.status, StatusCode::OK, "{kind}: {}", response.body);
            assert_eq!(response.body["threeds_version"], "2.1.0");
            continue;
        }
        assert_eq!(response.status, StatusCode::FAILED_DEPENDENCY, "{kind}");
        assert_eq!(response.body["error"]["error_source"], "3DS Server");
        assert_eq!(response.body["error"]["service_status"], "400");
        assert_eq!(sent, 0, "{kind}");
    }
}
