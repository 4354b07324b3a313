//! The vendor interface.

use cloakroom_threeds_simulator::VENDOR_API_KEY;
use serde_json::{Value, json};

use crate::harness::{Harness, encode, start, text, with};

async fn call(harness: &Harness, name: &str, body: &Value) -> Value {
    let (status, response) = harness.vendor(name, VENDOR_API_KEY, body).await;
    assert_eq!(status, 200);
    response
}

/// An AReq without the fields that the vendor adds.
fn request(harness: &Harness, number: &str, id: &str) -> Value {
    let mut request = with(harness.areq("2.2.0", number), "threeDSServerTransID", id);
    for name in ["messageType", "threeDSServerURL", "threeDSServerRefNumber"] {
        request.as_object_mut().unwrap().remove(name);
    }
    request
}

#[tokio::test]
async fn a_challenge_uses_all_three_calls() {
    let harness = start().await;
    let number = "9000100000002270";
    let found = call(&harness, "preauth", &json!({"acctNumber": number})).await;
    assert_eq!(text(&found, "messageType"), Some("CRD"));
    assert_eq!(text(&found, "scheme"), Some("visa"));
    assert_eq!(text(&found, "acsEndProtocolVersion"), Some("2.2.0"));
    assert!(text(&found, "threeDSMethodURL").is_some());
    let id = text(&found, "threeDSServerTransID").unwrap();
    let response = call(&harness, "auth", &request(&harness, number, id)).await;
    assert_eq!(text(&response, "transStatus"), Some("C"), "{response}");
    assert_eq!(text(&response, "threeDSServerTransID"), Some(id));

    let query = json!({"threeDSServerTransID": id});
    let pending = call(&harness, "postauth", &query).await;
    assert_eq!(text(&pending, "errorCode"), Some("305"));
    let creq = json!({
        "messageType": "CReq", "messageVersion": "2.2.0", "threeDSServerTransID": id,
        "acsTransID": response["acsTransID"], "challengeWindowSize": "05",
    });
    harness
        .form("/acs/challenge", &[("creq", &encode(&creq))])
        .await;
    let result = call(&harness, "postauth", &query).await;
    assert_eq!(text(&result, "messageType"), Some("RReq"));
    assert_eq!(text(&result, "transStatus"), Some("Y"));
    assert!(harness.results().is_empty(), "the vendor stores results");
}

#[tokio::test]
async fn invalid_requests_are_rejected() {
    let harness = start().await;
    let (status, _) = harness.vendor("preauth", "wrong", &json!({})).await;
    assert_eq!(status, 401);
    for (number, code) in [("4100000000000003", "305"), ("4200000000000013", "404")] {
        let response = call(&harness, "preauth", &json!({"acctNumber": number})).await;
        assert_eq!(text(&response, "errorCode"), Some(code), "{number}");
        assert_eq!(text(&response, "errorComponent"), Some("S"));
    }
    let number = "4200000000000002";
    let unassigned = request(&harness, number, &crate::harness::new_id());
    let response = call(&harness, "auth", &unassigned).await;
    assert_eq!(text(&response, "errorCode"), Some("301"));
    let found = call(&harness, "preauth", &json!({"acctNumber": number})).await;
    let id = text(&found, "threeDSServerTransID").unwrap();
    let mut incomplete = request(&harness, number, id);
    incomplete.as_object_mut().unwrap().remove("mcc");
    let response = call(&harness, "auth", &incomplete).await;
    assert_eq!(text(&response, "errorCode"), Some("201"));
    assert_eq!(text(&response, "errorDetail"), Some("mcc"));

    let fault = json!({"kind": "auth", "what": "http-500", "times": 1});
    harness.control("/control/trouble", Some(fault)).await;
    let (status, _) = harness.vendor("auth", VENDOR_API_KEY, &incomplete).await;
    assert_eq!(status, 500);
}

#[tokio::test]
async fn the_second_network_of_a_card_can_be_selected() {
    let harness = start().await;
    let query = json!({"acctNumber": "4150580996517927", "ds": "cartes-bancaires"});
    let found = call(&harness, "preauth", &query).await;
    assert_eq!(text(&found, "scheme"), Some("cartes-bancaires"));
    let id = text(&found, "threeDSServerTransID").unwrap();
    let response = call(&harness, "auth", &request(&harness, "4150580996517927", id)).await;
    assert_eq!(
        text(&response, "dsReferenceNumber"),
        Some("sim-ds-cartes-bancaires")
    );
}
