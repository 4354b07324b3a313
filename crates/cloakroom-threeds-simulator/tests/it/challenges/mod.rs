//! Browser challenges.

mod delivery;

use std::time::Duration;

use cloakroom_threeds_simulator::test_cards;
use serde_json::{Value, json};

use crate::authentication::authenticate;
use crate::harness::{Harness, decode, encode, hidden_field, start, start_with, text, with};

fn creq(response: &Value) -> Value {
    json!({
        "messageType": "CReq", "messageVersion": response["messageVersion"],
        "threeDSServerTransID": response["threeDSServerTransID"],
        "acsTransID": response["acsTransID"], "challengeWindowSize": "01",
    })
}

/// Posts the CReq and returns the page.
async fn open_challenge(harness: &Harness, response: &Value) -> String {
    let (status, page) = harness
        .form("/acs/challenge", &[("creq", &encode(&creq(response)))])
        .await;
    assert_eq!(status, 200, "{page}");
    page
}

async fn submit(harness: &Harness, response: &Value, action: &str, code: &str) -> String {
    let id = text(response, "acsTransID").unwrap();
    let fields = [("transaction", id), ("action", action), ("code", code)];
    harness.form("/acs/challenge/submit", &fields).await.1
}

fn cres(page: &str) -> Value {
    decode(&hidden_field(page, "cres").unwrap_or_else(|| panic!("no CRes in {page}")))
}

async fn challenged(harness: &Harness, number: &str) -> Value {
    let response = authenticate(harness, "visa", &harness.areq("2.2.0", number)).await;
    assert_eq!(text(&response, "transStatus"), Some("C"));
    response
}

#[tokio::test]
async fn a_valid_code_after_an_invalid_one_succeeds() {
    let harness = start().await;
    let response = challenged(&harness, "4200000000000004").await;
    let session_data = "c2Vzc2lvbg";
    let fields = [
        ("creq", &*encode(&creq(&response))),
        ("threeDSSessionData", session_data),
    ];
    let (_, page) = harness.form("/acs/challenge", &fields).await;
    for shown in [
        "Simulated issuer",
        "Shop &lt;1&gt;",
        "12.34 EUR",
        "•••• 0004",
        "Password",
    ] {
        assert!(page.contains(shown), "{shown} is not in {page}");
    }
    assert!(!page.contains("4200000000000004"));

    let page = submit(&harness, &response, "submit", "9999").await;
    assert!(page.contains("2 tries left"), "{page}");
    assert!(harness.results().is_empty());
    let page = submit(&harness, &response, "submit", "1234").await;
    // The RReq arrives before the browser gets the CRes.
    let result = harness.results().first().cloned().unwrap();
    assert_eq!(text(&result, "transStatus"), Some("Y"));
    assert_eq!(text(&result, "interactionCounter"), Some("02"));
    assert_eq!(text(&result, "eci"), Some("05"));
    assert!(text(&result, "authenticationValue").is_some());
    for name in [
        "acsTransID",
        "dsTransID",
        "threeDSServerTransID",
        "messageVersion",
    ] {
        assert_eq!(result[name], response[name], "{name}");
    }
    assert!(page.contains("action=\"https://vault.example/notify\""));
    assert_eq!(
        hidden_field(&page, "threeDSSessionData").as_deref(),
        Some(session_data)
    );
    let end = cres(&page);
    assert_eq!(text(&end, "transStatus"), Some("Y"));
    assert!(end.get("challengeCompletionInd").is_none());

    // A reload returns the same CRes and sends no second RReq.
    assert_eq!(cres(&open_challenge(&harness, &response).await), end);
    assert_eq!(harness.results().len(), 1);
}

#[tokio::test]
async fn every_challenge_card_has_its_documented_result() {
    let harness = start().await;
    let challenged = test_cards()
        .iter()
        .filter(|card| card.expected().challenge_type.is_some());
    for (count, card) in challenged.enumerate() {
        let expected = card.expected();
        let version = ["2.1.0", "2.2.0", "2.3.1"][count % 3];
        let completion = if expected.has_method { "Y" } else { "U" };
        let request = with(
            harness.areq(version, card.number),
            "threeDSCompInd",
            completion,
        );
        let response = authenticate(&harness, card.network().unwrap(), &request).await;
        let page = open_challenge(&harness, &response).await;
        let action = if page.contains("value=\"approve\"") {
            "approve"
        } else {
            "submit"
        };
        assert_eq!(action == "approve", expected.challenge_type == Some("03"));
        let end = cres(&submit(&harness, &response, action, "1234").await);
        assert_eq!(
            text(&end, "transStatus"),
            expected.browser_status,
            "{}",
            card.number
        );
        let result = harness.results().pop().unwrap();
        assert_eq!(result["acsTransID"], response["acsTransID"]);
        assert_eq!(
            text(&result, "transStatus"),
            expected.final_status,
            "{}",
            card.number
        );
        assert_eq!(text(&result, "transStatusReason"), expected.final_reason);
    }
}

#[tokio::test]
async fn three_invalid_codes_or_a_cancellation_fail() {
    let harness = start().await;
    let response = challenged(&harness, "4200000000000004").await;
    open_challenge(&harness, &response).await;
    submit(&harness, &response, "submit", "1").await;
    submit(&harness, &response, "submit", "2").await;
    let page = submit(&harness, &response, "submit", "3").await;
    assert_eq!(text(&cres(&page), "transStatus"), Some("N"));
    let result = harness.results().pop().unwrap();
    assert_eq!(text(&result, "transStatusReason"), Some("19"));

    let response = challenged(&harness, "4200000000000016").await;
    open_challenge(&harness, &response).await;
    let page = submit(&harness, &response, "cancel", "").await;
    assert_eq!(text(&cres(&page), "transStatus"), Some("N"));
    let result = harness.results().pop().unwrap();
    assert_eq!(text(&result, "challengeCancel"), Some("01"));
    assert_eq!(text(&result, "transStatusReason"), Some("01"));
}

#[tokio::test]
async fn a_challenge_without_creq_times_out() {
    let harness = start_with(|options| options.creq_timeout = Duration::from_millis(300)).await;
    let response = challenged(&harness, "4200000000000004").await;
    let result = harness.result().await;
    assert_eq!(text(&result, "transStatus"), Some("N"));
    assert_eq!(text(&result, "transStatusReason"), Some("14"));
    assert_eq!(text(&result, "challengeCancel"), Some("05"));
    assert_eq!(text(&result, "interactionCounter"), Some("00"));
    let page = open_challenge(&harness, &response).await;
    let erro = decode(&hidden_field(&page, "error").unwrap());
    assert_eq!(text(&erro, "errorCode"), Some("402"));
    assert_eq!(text(&erro, "errorComponent"), Some("A"));
}

#[tokio::test]
async fn an_invalid_creq_is_rejected() {
    let harness = start().await;
    let response = challenged(&harness, "4200000000000004").await;
    let cases = [
        ("messageVersion", "2.1.0", "305"),
        (
            "threeDSServerTransID",
            "11111111-1111-4111-8111-111111111111",
            "305",
        ),
        ("challengeWindowSize", "09", "203"),
    ];
    for (name, value, code) in cases {
        let wrong = encode(&with(creq(&response), name, value));
        let (_, page) = harness.form("/acs/challenge", &[("creq", &wrong)]).await;
        let erro = decode(&hidden_field(&page, "error").unwrap());
        assert_eq!(text(&erro, "errorCode"), Some(code), "{name}");
    }
    let unknown = encode(&with(
        creq(&response),
        "acsTransID",
        "11111111-1111-4111-8111-111111111111",
    ));
    assert_eq!(
        harness
            .form("/acs/challenge", &[("creq", &unknown)])
            .await
            .0,
        400
    );
    assert_eq!(
        harness.form("/acs/challenge", &[("creq", "%%%")]).await.0,
        400
    );
    let input = [
        ("transaction", text(&response, "acsTransID").unwrap()),
        ("action", "cancel"),
    ];
    assert_eq!(
        harness.form("/acs/challenge/submit", &input).await.0,
        400,
        "the challenge was not started"
    );
}

#[tokio::test]
async fn a_challenge_started_in_time_stays_open() {
    let harness = start_with(|options| options.creq_timeout = Duration::from_millis(300)).await;
    let response = challenged(&harness, "4200000000000004").await;
    open_challenge(&harness, &response).await;
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert!(harness.results().is_empty());
    let page = submit(&harness, &response, "submit", "1234").await;
    assert_eq!(text(&cres(&page), "transStatus"), Some("Y"));
}
