//! Decoupled authentication, 3RI and app challenges.

use std::time::Duration;

use serde_json::{Value, json};

use crate::authentication::authenticate;
use crate::harness::{Harness, new_id, start, start_with, text};

fn decoupled(harness: &Harness, tail: &str) -> Value {
    let mut request = harness.areq("2.2.0", &format!("900010000000{tail}"));
    request["threeDSRequestorDecReqInd"] = json!("Y");
    request["threeDSRequestorDecMaxTime"] = json!("00005");
    request
}

#[tokio::test]
async fn decoupled_authentications_complete_after_a_delay() {
    for (tail, status, reason) in [("0080", "Y", None), ("0081", "N", Some("01"))] {
        let harness = start().await;
        let response = authenticate(&harness, "visa", &decoupled(&harness, tail)).await;
        assert_eq!(text(&response, "transStatus"), Some("D"));
        assert_eq!(text(&response, "acsDecConInd"), Some("Y"));
        assert_eq!(text(&response, "authenticationType"), Some("04"));
        assert!(text(&response, "cardholderInfo").is_some());
        let result = harness.result().await;
        assert_eq!(text(&result, "transStatus"), Some(status));
        assert_eq!(text(&result, "transStatusReason"), reason);
        assert!(result.get("interactionCounter").is_none());
    }
}

#[tokio::test]
async fn a_test_can_complete_a_decoupled_authentication_once() {
    let harness = start().await;
    let response = authenticate(&harness, "visa", &decoupled(&harness, "0082")).await;
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert!(harness.results().is_empty(), "this card never completes");
    let path = format!("/acs/decoupled/{}", text(&response, "acsTransID").unwrap());
    let decide = async |word: &str| harness.form(&path, &[(word, "")]).await.0;
    assert_eq!(decide("perhaps").await, 400);
    let url = format!("{}{path}", harness.simulator.acs_url());
    assert_eq!(harness.post_text(&url, "approve").await, 204);
    assert_eq!(harness.post_text(&url, "deny").await, 409);
    assert_eq!(text(&harness.result().await, "transStatus"), Some("Y"));
    let unknown = format!("{}/acs/decoupled/{}", harness.simulator.acs_url(), new_id());
    assert_eq!(harness.post_text(&unknown, "approve").await, 404);
}

#[tokio::test]
async fn insufficient_time_fails_at_once() {
    let harness = start().await;
    let response = authenticate(&harness, "visa", &decoupled(&harness, "0083")).await;
    assert_eq!(text(&response, "transStatus"), Some("N"));
    assert_eq!(text(&response, "transStatusReason"), Some("25"));
    assert_eq!(text(&response, "acsDecConInd"), Some("N"));
}

#[tokio::test]
async fn three_ri_requests_are_never_challenged() {
    let harness = start().await;
    let card = "4200000000000004";
    let response = authenticate(&harness, "visa", &harness.three_ri_areq(card, false)).await;
    assert_eq!(text(&response, "transStatus"), Some("U"));
    assert_eq!(text(&response, "transStatusReason"), Some("23"));
    let response = authenticate(&harness, "visa", &harness.three_ri_areq(card, true)).await;
    assert_eq!(text(&response, "transStatus"), Some("D"));
    assert_eq!(text(&harness.result().await, "transStatus"), Some("Y"));

    let mut wrong = harness.three_ri_areq(card, false);
    wrong["notificationURL"] = json!("https://vault.example/notify");
    let response = harness.exchange("visa", &wrong).await;
    assert_eq!(text(&response, "errorCode"), Some("203"));
    assert_eq!(text(&response, "errorDetail"), Some("notificationURL"));
}

#[tokio::test]
async fn an_app_challenge_completes_without_input() {
    let harness = start_with(|options| options.creq_timeout = Duration::from_millis(50)).await;
    let mut request = harness.areq("2.2.0", "4200000000000004");
    let fields = request.as_object_mut().unwrap();
    fields.retain(|name, _| !name.starts_with("browser"));
    fields.remove("threeDSCompInd");
    fields.remove("notificationURL");
    let sdk = json!({
        "deviceChannel": "01", "sdkAppID": new_id(), "sdkTransID": new_id(),
        "sdkEncData": "e30.e30.e30.e30.e30", "sdkMaxTimeout": "05", "sdkReferenceNumber": "sdk",
        "sdkEphemPubKey": {"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"},
        "deviceRenderOptions": {"sdkInterface": "03", "sdkUiType": ["01", "02"]},
    });
    for (name, value) in sdk.as_object().unwrap() {
        request[name] = value.clone();
    }
    let response = authenticate(&harness, "visa", &request).await;
    assert_eq!(text(&response, "transStatus"), Some("C"));
    assert!(response.get("acsURL").is_none());
    assert_eq!(response["acsRenderingType"]["acsInterface"], "01");
    assert_eq!(
        text(&response, "acsSignedContent")
            .unwrap()
            .split('.')
            .count(),
        3
    );
    let result = harness.result().await;
    assert_eq!(text(&result, "transStatus"), Some("Y"));
    assert_eq!(result["sdkTransID"], request["sdkTransID"]);
}
