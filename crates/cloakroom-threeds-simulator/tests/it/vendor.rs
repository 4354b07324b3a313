//! The vendor's three calls.

use cloakroom_threeds_simulator::VENDOR_API_KEY;
use serde_json::{Value, json};

use crate::stand_in::{Stage, encode, start, text, with};

async fn call(stage: &Stage, name: &str, body: &Value) -> Value {
    let (status, answer) = stage.vendor(name, VENDOR_API_KEY, body).await;
    assert_eq!(status, 200);
    answer
}

/// An AReq as a client of the vendor sends it.
fn request(stage: &Stage, number: &str, id: &str) -> Value {
    let mut request = with(stage.areq("2.2.0", number), "threeDSServerTransID", id);
    for name in ["messageType", "threeDSServerURL", "threeDSServerRefNumber"] {
        request.as_object_mut().unwrap().remove(name);
    }
    request
}

#[tokio::test]
async fn a_challenge_goes_through_all_three_calls() {
    let stage = start().await;
    let number = "9000100000002270";
    let found = call(&stage, "preauth", &json!({"acctNumber": number})).await;
    assert_eq!(text(&found, "messageType"), Some("CRD"));
    assert_eq!(text(&found, "scheme"), Some("visa"));
    assert_eq!(text(&found, "acsEndProtocolVersion"), Some("2.2.0"));
    assert!(text(&found, "threeDSMethodURL").is_some());
    let id = text(&found, "threeDSServerTransID").unwrap();
    let answer = call(&stage, "auth", &request(&stage, number, id)).await;
    assert_eq!(text(&answer, "transStatus"), Some("C"), "{answer}");
    assert_eq!(text(&answer, "threeDSServerTransID"), Some(id));

    let asked = json!({"threeDSServerTransID": id});
    let pending = call(&stage, "postauth", &asked).await;
    assert_eq!(text(&pending, "errorCode"), Some("305"));
    let creq = json!({
        "messageType": "CReq", "messageVersion": "2.2.0", "threeDSServerTransID": id,
        "acsTransID": answer["acsTransID"], "challengeWindowSize": "05",
    });
    stage
        .form("/acs/challenge", &[("creq", &encode(&creq))])
        .await;
    let result = call(&stage, "postauth", &asked).await;
    assert_eq!(text(&result, "messageType"), Some("RReq"));
    assert_eq!(text(&result, "transStatus"), Some("Y"));
    assert!(stage.results().is_empty(), "the vendor keeps results");
}

#[tokio::test]
async fn what_does_not_fit_is_refused() {
    let stage = start().await;
    let (status, _) = stage.vendor("preauth", "wrong", &json!({})).await;
    assert_eq!(status, 401);
    for (number, code) in [("4100000000000003", "305"), ("4200000000000013", "404")] {
        let answer = call(&stage, "preauth", &json!({"acctNumber": number})).await;
        assert_eq!(text(&answer, "errorCode"), Some(code), "{number}");
        assert_eq!(text(&answer, "errorComponent"), Some("S"));
    }
    let number = "4200000000000002";
    let unassigned = request(&stage, number, &crate::stand_in::new_id());
    let answer = call(&stage, "auth", &unassigned).await;
    assert_eq!(text(&answer, "errorCode"), Some("301"));
    let found = call(&stage, "preauth", &json!({"acctNumber": number})).await;
    let id = text(&found, "threeDSServerTransID").unwrap();
    let mut incomplete = request(&stage, number, id);
    incomplete.as_object_mut().unwrap().remove("mcc");
    let answer = call(&stage, "auth", &incomplete).await;
    assert_eq!(text(&answer, "errorCode"), Some("201"));
    assert_eq!(text(&answer, "errorDetail"), Some("mcc"));

    let trouble = json!({"kind": "auth", "what": "http-500", "times": 1});
    stage.control("/control/trouble", Some(trouble)).await;
    let (status, _) = stage.vendor("auth", VENDOR_API_KEY, &incomplete).await;
    assert_eq!(status, 500);
}

#[tokio::test]
async fn the_second_network_of_a_card_can_be_asked_for() {
    let stage = start().await;
    let asked = json!({"acctNumber": "4150580996517927", "ds": "cartes-bancaires"});
    let found = call(&stage, "preauth", &asked).await;
    assert_eq!(text(&found, "scheme"), Some("cartes-bancaires"));
    let id = text(&found, "threeDSServerTransID").unwrap();
    let answer = call(&stage, "auth", &request(&stage, "4150580996517927", id)).await;
    assert_eq!(
        text(&answer, "dsReferenceNumber"),
        Some("sim-ds-cartes-bancaires")
    );
}
