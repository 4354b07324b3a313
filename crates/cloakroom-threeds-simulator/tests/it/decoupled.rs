//! Authentications without a browser: decoupled ones, merchants alone, and apps.

use std::time::Duration;

use serde_json::{Value, json};

use crate::answers::authenticate;
use crate::stand_in::{Stage, new_id, start, start_with, text};

fn decoupled(stage: &Stage, tail: &str) -> Value {
    let mut request = stage.areq("2.2.0", &format!("900010000000{tail}"));
    request["threeDSRequestorDecReqInd"] = json!("Y");
    request["threeDSRequestorDecMaxTime"] = json!("00005");
    request
}

#[tokio::test]
async fn cards_approve_and_deny_after_a_while() {
    for (tail, status, reason) in [("0080", "Y", None), ("0081", "N", Some("01"))] {
        let stage = start().await;
        let answer = authenticate(&stage, "visa", &decoupled(&stage, tail)).await;
        assert_eq!(text(&answer, "transStatus"), Some("D"));
        assert_eq!(text(&answer, "acsDecConInd"), Some("Y"));
        assert_eq!(text(&answer, "authenticationType"), Some("04"));
        assert!(text(&answer, "cardholderInfo").is_some());
        let result = stage.result().await;
        assert_eq!(text(&result, "transStatus"), Some(status));
        assert_eq!(text(&result, "transStatusReason"), reason);
        assert!(result.get("interactionCounter").is_none());
    }
}

#[tokio::test]
async fn a_test_decides_before_the_card_does_and_only_once() {
    let stage = start().await;
    let answer = authenticate(&stage, "visa", &decoupled(&stage, "0082")).await;
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert!(stage.results().is_empty(), "this card never decides");
    let path = format!("/acs/decoupled/{}", text(&answer, "acsTransID").unwrap());
    let decide = async |word: &str| stage.form(&path, &[(word, "")]).await.0;
    assert_eq!(decide("perhaps").await, 400);
    let url = format!("{}{path}", stage.simulator.acs_url());
    assert_eq!(stage.post_text(&url, "approve").await, 204);
    assert_eq!(stage.post_text(&url, "deny").await, 409);
    assert_eq!(text(&stage.result().await, "transStatus"), Some("Y"));
    let nobody = format!("{}/acs/decoupled/{}", stage.simulator.acs_url(), new_id());
    assert_eq!(stage.post_text(&nobody, "approve").await, 404);
}

#[tokio::test]
async fn too_little_time_is_said_at_once() {
    let stage = start().await;
    let answer = authenticate(&stage, "visa", &decoupled(&stage, "0083")).await;
    assert_eq!(text(&answer, "transStatus"), Some("N"));
    assert_eq!(text(&answer, "transStatusReason"), Some("25"));
    assert_eq!(text(&answer, "acsDecConInd"), Some("N"));
}

#[tokio::test]
async fn a_merchant_alone_is_never_challenged() {
    let stage = start().await;
    let card = "4200000000000004";
    let answer = authenticate(&stage, "visa", &stage.merchant_areq(card, false)).await;
    assert_eq!(text(&answer, "transStatus"), Some("U"));
    assert_eq!(text(&answer, "transStatusReason"), Some("23"));
    let answer = authenticate(&stage, "visa", &stage.merchant_areq(card, true)).await;
    assert_eq!(text(&answer, "transStatus"), Some("D"));
    assert_eq!(text(&stage.result().await, "transStatus"), Some("Y"));

    let mut wrong = stage.merchant_areq(card, false);
    wrong["notificationURL"] = json!("https://vault.example/notify");
    let answer = stage.exchange("visa", &wrong).await;
    assert_eq!(text(&answer, "errorCode"), Some("203"));
    assert_eq!(text(&answer, "errorDetail"), Some("notificationURL"));
}

#[tokio::test]
async fn a_challenge_in_an_app_ends_by_itself() {
    let stage = start_with(|options| options.creq_timeout = Duration::from_millis(50)).await;
    let mut request = stage.areq("2.2.0", "4200000000000004");
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
    let answer = authenticate(&stage, "visa", &request).await;
    assert_eq!(text(&answer, "transStatus"), Some("C"));
    assert!(answer.get("acsURL").is_none());
    assert_eq!(answer["acsRenderingType"]["acsInterface"], "01");
    assert_eq!(
        text(&answer, "acsSignedContent")
            .unwrap()
            .split('.')
            .count(),
        3
    );
    let result = stage.result().await;
    assert_eq!(text(&result, "transStatus"), Some("Y"));
    assert_eq!(result["sdkTransID"], request["sdkTransID"]);
}
