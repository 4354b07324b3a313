//! AReq and ARes without a challenge.

use std::time::{Duration, Instant};

use cloakroom_emv3ds::{AReq, ARes, Message, MessageKind, Version};
use cloakroom_threeds_simulator::test_cards;
use serde_json::{Value, json};

use crate::harness::{Harness, new_id, start, text, with};

/// Sends an AReq, and validates the ARes as a 3DS Server does.
pub(crate) async fn authenticate(harness: &Harness, network: &str, request: &Value) -> Value {
    let response = harness.exchange(network, request).await;
    let read = cloakroom_emv3ds::read(
        response.to_string().as_bytes(),
        &[MessageKind::ARes],
        &Version::ALL,
    );
    match read.unwrap() {
        Message::ARes(read) => validate(&read, request),
        other => panic!("{other:?} {response}"),
    }
    response
}

fn validate(ares: &ARes, request: &Value) {
    let fields = request.as_object().unwrap().clone();
    let request = AReq::from_object(fields).unwrap();
    ares.answers(&request).unwrap();
}

#[tokio::test]
async fn every_test_card_has_its_documented_ares_in_every_version() {
    let harness = start().await;
    for version in ["2.1.0", "2.2.0", "2.3.1"] {
        for card in test_cards()
            .iter()
            .filter(|card| !card.scenario.fails_at_session_creation())
        {
            let expected = card.expected();
            let request = harness.areq(version, card.number);
            let completion = if expected.has_method { "N" } else { "U" };
            let request = with(request, "threeDSCompInd", completion);
            let network = card.network().unwrap();
            let Some(status) = expected.directory_status else {
                let response = harness.exchange(network, &request).await;
                assert_eq!(text(&response, "errorCode"), Some("403"));
                assert_eq!(text(&response, "errorComponent"), Some("D"));
                continue;
            };
            let response = authenticate(&harness, network, &request).await;
            assert_eq!(
                text(&response, "transStatus"),
                Some(status),
                "{}",
                card.number
            );
            assert_eq!(
                text(&response, "transStatusReason"),
                expected.directory_reason
            );
            assert_eq!(
                text(&response, "dsReferenceNumber"),
                Some(&*format!("sim-ds-{network}"))
            );
            let mandated = (status == "C").then_some(if expected.is_mandated { "Y" } else { "N" });
            assert_eq!(text(&response, "acsChallengeMandated"), mandated);
            let kind = match version {
                "2.3.1" => response["authenticationMethod"][0]
                    .as_str()
                    .map(|it| it.replace("09", "03")),
                _ => text(&response, "authenticationType").map(str::to_owned),
            };
            assert_eq!(kind.as_deref(), expected.challenge_type);
        }
    }
}

#[tokio::test]
async fn a_success_has_an_authentication_value_and_the_eci_of_its_network() {
    let harness = start().await;
    let cases = [
        ("visa", "4200000000000002", Some("05"), true),
        ("visa", "4200000000000003", Some("06"), true),
        ("visa", "4200000000000005", Some("07"), false),
        ("mastercard", "5204247750001471", Some("02"), true),
        ("mastercard", "5424180011113336", Some("01"), true),
        ("american-express", "340000000004001", Some("05"), true),
    ];
    for (network, number, eci, has_value) in cases {
        let response = authenticate(&harness, network, &harness.areq("2.2.0", number)).await;
        assert_eq!(text(&response, "eci"), eci, "{number}");
        assert_eq!(text(&response, "authenticationValue").is_some(), has_value);
    }
    let response = authenticate(
        &harness,
        "cartes-bancaires",
        &harness.areq("2.2.0", "4150580996517927"),
    )
    .await;
    assert_eq!(response["messageExtension"][0]["name"], "CB-SCORE");
}

#[tokio::test]
async fn errors_are_reported_by_code_and_field() {
    let harness = start().await;
    let request = || harness.areq("2.2.0", "4200000000000002");
    let without = |name: &str| {
        let mut message = request();
        message.as_object_mut().unwrap().remove(name);
        message.to_string()
    };
    let duplicated = request().to_string().replacen('{', "{\"mcc\":\"5411\",", 1);
    let cases = [
        (without("merchantName"), "201", "merchantName"),
        (without("deviceChannel"), "201", "deviceChannel"),
        (with(request(), "mcc", "54").to_string(), "203", "mcc"),
        (
            with(request(), "messageVersion", "2.9.0").to_string(),
            "102",
            "messageVersion",
        ),
        (duplicated, "204", "mcc"),
        (
            with(request(), "acquirerMerchantID", "unknown").to_string(),
            "303",
            "acquirerMerchantID",
        ),
        (
            with(request(), "acctNumber", "5204247750001471").to_string(),
            "305",
            "acctNumber",
        ),
        (
            with(request(), "threeDSCompInd", "U").to_string(),
            "203",
            "threeDSCompInd",
        ),
        (
            with(request(), "purchaseCurrency", "999").to_string(),
            "203",
            "purchaseCurrency",
        ),
    ];
    for (message, code, detail) in cases {
        let (status, response) = harness.send("visa", &message).await.unwrap();
        let response: Value = serde_json::from_str(&response).unwrap();
        assert_eq!(status, 200);
        assert_eq!(text(&response, "errorCode"), Some(code), "{response}");
        assert!(
            text(&response, "errorDetail").unwrap().contains(detail),
            "{response}"
        );
    }
    let (_, response) = harness.send("visa", "no message").await.unwrap();
    assert!(response.contains("\"101\""), "{response}");
}

#[tokio::test]
async fn a_transaction_has_one_ares_and_may_be_retried_after_an_error() {
    let harness = start().await;
    let id = new_id();
    let request = |number: &str| with(harness.areq("2.2.0", number), "threeDSServerTransID", &id);
    let response = harness.exchange("visa", &request("4200000000000012")).await;
    assert_eq!(text(&response, "errorCode"), Some("403"));
    let response = harness.exchange("visa", &request("4200000000000002")).await;
    assert_eq!(text(&response, "transStatus"), Some("Y"));
    let response = harness.exchange("visa", &request("4200000000000002")).await;
    assert_eq!(text(&response, "errorCode"), Some("305"));
}

#[tokio::test]
async fn amounts_select_errors_extensions_cardholder_info_and_delays() {
    let harness = start().await;
    let request = |amount: &str| {
        with(
            harness.areq("2.2.0", "4200000000000002"),
            "purchaseAmount",
            amount,
        )
    };
    for code in [
        "101", "103", "202", "303", "304", "306", "402", "403", "404", "405",
    ] {
        let response = harness
            .exchange("visa", &request(&format!("991{code}")))
            .await;
        assert_eq!(text(&response, "errorCode"), Some(code));
    }
    let response = authenticate(&harness, "visa", &request("990101")).await;
    assert!(text(&response, "cardholderInfo").is_some());
    let response = authenticate(&harness, "visa", &request("990103")).await;
    assert_eq!(
        response["messageExtension"][0]["criticalityIndicator"],
        false
    );

    let response = harness.exchange("visa", &request("990102")).await;
    let body = response.to_string();
    let read = cloakroom_emv3ds::read(body.as_bytes(), &[MessageKind::ARes], &Version::ALL);
    assert_eq!(read.unwrap_err().code.code(), "202");

    let began = Instant::now();
    authenticate(&harness, "visa", &request("990201")).await;
    assert!(began.elapsed() >= Duration::from_secs(1));
}

#[tokio::test]
async fn digits_select_statuses_and_reasons() {
    let harness = start().await;
    let cases = [
        ("2.2.0", "0012", "N", Some("03")),
        ("2.2.0", "0040", "I", None),
        ("2.1.0", "1040", "U", Some("12")),
        ("2.2.0", "2059", "U", Some("26")),
        ("2.1.0", "1059", "U", Some("14")),
        ("2.3.1", "3031", "R", Some("12")),
        ("2.2.0", "0080", "U", Some("23")),
    ];
    for (version, tail, status, reason) in cases {
        let request = harness.areq(version, &format!("900010000000{tail}"));
        let response = authenticate(&harness, "visa", &request).await;
        assert_eq!(text(&response, "transStatus"), Some(status), "{tail}");
        assert_eq!(text(&response, "transStatusReason"), reason, "{tail}");
    }
    let response = harness
        .exchange("visa", &harness.areq("2.2.0", "9000100000001000"))
        .await;
    assert_eq!(text(&response, "errorCode"), Some("102"));
}

#[tokio::test]
async fn the_trust_list_status_follows_the_challenge_preference() {
    let harness = start().await;
    for (preference, status) in [("08", Some("Y")), ("09", Some("P")), ("02", None)] {
        let request = harness.areq("2.2.0", "4200000000000002");
        let request = with(request, "threeDSRequestorChallengeInd", preference);
        let response = authenticate(&harness, "visa", &request).await;
        assert_eq!(text(&response, "whiteListStatus"), status, "{preference}");
    }
    let mut request = harness.areq("2.3.1", "4200000000000002");
    request["threeDSRequestorChallengeInd"] = json!(["08"]);
    let response = authenticate(&harness, "visa", &request).await;
    assert_eq!(text(&response, "trustListStatus"), Some("Y"));
}

#[tokio::test]
async fn a_card_can_suppress_the_response_of_the_ds() {
    let harness = start().await;
    let request = harness.areq("2.2.0", "9000100000000060").to_string();
    let response = harness.send("visa", &request);
    let timeout = Duration::from_secs(2);
    assert!(tokio::time::timeout(timeout, response).await.is_err());
}
