//! The 3DS Method page.

use serde_json::json;

use crate::harness::{decode, encode, hidden_field, start};

#[tokio::test]
async fn the_method_page_notifies_or_never_completes() {
    let harness = start().await;
    let id = crate::harness::new_id();
    let url = "https://vault.example/method?a=1&b=2";
    let data = json!({"threeDSServerTransID": id, "threeDSMethodNotificationURL": url});
    let (status, page) = harness
        .form("/acs/method", &[("threeDSMethodData", &encode(&data))])
        .await;
    assert_eq!(status, 200);
    assert!(
        page.contains("action=\"https://vault.example/method?a=1&amp;b=2\""),
        "{page}"
    );
    let notified = decode(&hidden_field(&page, "threeDSMethodData").unwrap());
    assert_eq!(notified, json!({"threeDSServerTransID": id}));
    let (_, recorded) = harness
        .control(&format!("/control/transactions/{id}"), None)
        .await;
    assert_eq!(recorded["method_seen"], true);

    let (status, page) = harness
        .form(
            "/acs/method/silent",
            &[("threeDSMethodData", &encode(&data))],
        )
        .await;
    assert_eq!(status, 200);
    assert!(
        !page.contains("<form") && !page.contains("<script"),
        "{page}"
    );
    let script =
        json!({"threeDSServerTransID": id, "threeDSMethodNotificationURL": "javascript:alert(1)"});
    assert_eq!(
        harness
            .form("/acs/method", &[("threeDSMethodData", &encode(&script))])
            .await
            .0,
        400
    );
}
