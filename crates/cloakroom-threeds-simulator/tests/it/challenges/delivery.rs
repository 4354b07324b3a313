//! Delivery of the RReq to the 3DS Server.

use std::time::Duration;

use super::{challenged, cres, open_challenge};
use crate::authentication::authenticate;
use crate::harness::{hidden_field, start, text, with};

#[tokio::test]
async fn digits_select_the_delivery_of_results() {
    let harness = start().await;
    let cases = [
        ("0070", "Y", None),
        ("0071", "N", Some("01")),
        ("0074", "N", Some("01")),
        ("0078", "U", Some("13")),
        ("0079", "R", Some("11")),
    ];
    for (tail, status, reason) in cases {
        let response = challenged(&harness, &format!("900010000000{tail}")).await;
        let end = cres(&open_challenge(&harness, &response).await);
        let result = harness.results().pop().unwrap();
        assert_eq!(text(&result, "transStatus"), Some(status), "{tail}");
        assert_eq!(text(&result, "transStatusReason"), reason, "{tail}");
        let browser = if status == "Y" { "Y" } else { "N" };
        assert_eq!(text(&end, "transStatus"), Some(browser), "{tail}");
    }
    let count = harness.results().len();

    let response = challenged(&harness, "9000100000000075").await;
    assert!(hidden_field(&open_challenge(&harness, &response).await, "cres").is_none());
    assert_eq!(harness.results().len(), count + 1);

    let response = challenged(&harness, "9000100000000076").await;
    cres(&open_challenge(&harness, &response).await);
    assert_eq!(
        harness.results().len(),
        count + 1,
        "the RReq is sent after the CRes"
    );
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert_eq!(harness.results().len(), count + 2);

    let response = challenged(&harness, "9000100000000077").await;
    cres(&open_challenge(&harness, &response).await);
    assert_ne!(
        harness.results().pop().unwrap()["dsTransID"],
        response["dsTransID"]
    );
}

#[tokio::test]
async fn an_undelivered_result_is_retried() {
    let harness = start().await;
    let request = harness.areq("2.2.0", "9000100000000070");
    let request = with(
        request,
        "threeDSServerURL",
        "https://127.0.0.1:9/unreachable",
    );
    let response = authenticate(&harness, "visa", &request).await;
    // The browser continues anyway.
    cres(&open_challenge(&harness, &response).await);
    let id = text(&response, "threeDSServerTransID").unwrap();
    let (_, recorded) = harness
        .control(&format!("/control/transactions/{id}"), None)
        .await;
    let replies = recorded["replies"].as_array().unwrap();
    assert!(replies.len() >= 2, "{replies:?}");
    assert!(replies.iter().all(|reply| reply.get("failure").is_some()));
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (_, recorded) = harness
        .control(&format!("/control/transactions/{id}"), None)
        .await;
    assert!(recorded["replies"].as_array().unwrap().len() > 2);
}
