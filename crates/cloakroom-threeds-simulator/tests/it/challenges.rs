//! Challenges, through the pages that a browser is shown.

use std::time::Duration;

use cloakroom_threeds_simulator::test_cards;
use serde_json::{Value, json};

use crate::answers::authenticate;
use crate::stand_in::{Stage, decode, encode, hidden, start, start_with, text, with};

fn creq(answer: &Value) -> Value {
    json!({
        "messageType": "CReq", "messageVersion": answer["messageVersion"],
        "threeDSServerTransID": answer["threeDSServerTransID"],
        "acsTransID": answer["acsTransID"], "challengeWindowSize": "01",
    })
}

/// Sends the CReq, and gives the page that it leads to.
async fn open(stage: &Stage, answer: &Value) -> String {
    let (status, page) = stage
        .form("/acs/challenge", &[("creq", &encode(&creq(answer)))])
        .await;
    assert_eq!(status, 200, "{page}");
    page
}

async fn press(stage: &Stage, answer: &Value, action: &str, code: &str) -> String {
    let id = text(answer, "acsTransID").unwrap();
    let fields = [("transaction", id), ("action", action), ("code", code)];
    stage.form("/acs/challenge/submit", &fields).await.1
}

fn cres(page: &str) -> Value {
    decode(&hidden(page, "cres").unwrap_or_else(|| panic!("no CRes in {page}")))
}

async fn challenged(stage: &Stage, number: &str) -> Value {
    let answer = authenticate(stage, "visa", &stage.areq("2.2.0", number)).await;
    assert_eq!(text(&answer, "transStatus"), Some("C"));
    answer
}

#[tokio::test]
async fn a_code_that_is_right_in_the_end_leads_to_success() {
    let stage = start().await;
    let answer = challenged(&stage, "4200000000000004").await;
    let session_data = "c2Vzc2lvbg";
    let fields = [
        ("creq", &*encode(&creq(&answer))),
        ("threeDSSessionData", session_data),
    ];
    let (_, page) = stage.form("/acs/challenge", &fields).await;
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

    let page = press(&stage, &answer, "submit", "9999").await;
    assert!(page.contains("2 tries left"), "{page}");
    assert!(stage.results().is_empty());
    let page = press(&stage, &answer, "submit", "1234").await;
    // The result is there before the browser has anything to bring.
    let result = stage.results().first().cloned().unwrap();
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
        assert_eq!(result[name], answer[name], "{name}");
    }
    assert!(page.contains("action=\"https://vault.example/notify\""));
    assert_eq!(
        hidden(&page, "threeDSSessionData").as_deref(),
        Some(session_data)
    );
    let end = cres(&page);
    assert_eq!(text(&end, "transStatus"), Some("Y"));
    assert!(end.get("challengeCompletionInd").is_none());

    // A reload shows the same end, and no second result is sent.
    assert_eq!(cres(&open(&stage, &answer).await), end);
    assert_eq!(stage.results().len(), 1);
}

#[tokio::test]
async fn every_challenge_card_ends_as_documented() {
    let stage = start().await;
    let challenged = test_cards()
        .iter()
        .filter(|card| card.expected().challenge_type.is_some());
    for (count, card) in challenged.enumerate() {
        let expected = card.expected();
        let version = ["2.1.0", "2.2.0", "2.3.1"][count % 3];
        let completion = if expected.has_method { "Y" } else { "U" };
        let request = with(
            stage.areq(version, card.number),
            "threeDSCompInd",
            completion,
        );
        let answer = authenticate(&stage, card.network().unwrap(), &request).await;
        let page = open(&stage, &answer).await;
        let action = if page.contains("value=\"approve\"") {
            "approve"
        } else {
            "submit"
        };
        assert_eq!(action == "approve", expected.challenge_type == Some("03"));
        let end = cres(&press(&stage, &answer, action, "1234").await);
        assert_eq!(
            text(&end, "transStatus"),
            expected.browser_status,
            "{}",
            card.number
        );
        let result = stage.results().pop().unwrap();
        assert_eq!(result["acsTransID"], answer["acsTransID"]);
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
async fn three_wrong_codes_and_a_cancel_end_in_failure() {
    let stage = start().await;
    let answer = challenged(&stage, "4200000000000004").await;
    open(&stage, &answer).await;
    press(&stage, &answer, "submit", "1").await;
    press(&stage, &answer, "submit", "2").await;
    let page = press(&stage, &answer, "submit", "3").await;
    assert_eq!(text(&cres(&page), "transStatus"), Some("N"));
    let result = stage.results().pop().unwrap();
    assert_eq!(text(&result, "transStatusReason"), Some("19"));

    let answer = challenged(&stage, "4200000000000016").await;
    open(&stage, &answer).await;
    let page = press(&stage, &answer, "cancel", "").await;
    assert_eq!(text(&cres(&page), "transStatus"), Some("N"));
    let result = stage.results().pop().unwrap();
    assert_eq!(text(&result, "challengeCancel"), Some("01"));
    assert_eq!(text(&result, "transStatusReason"), Some("01"));
}

#[tokio::test]
async fn digits_choose_how_results_are_delivered() {
    let stage = start().await;
    let cases = [
        ("0070", "Y", None),
        ("0071", "N", Some("01")),
        ("0074", "N", Some("01")),
        ("0078", "U", Some("13")),
        ("0079", "R", Some("11")),
    ];
    for (tail, status, reason) in cases {
        let answer = challenged(&stage, &format!("900010000000{tail}")).await;
        let end = cres(&open(&stage, &answer).await);
        let result = stage.results().pop().unwrap();
        assert_eq!(text(&result, "transStatus"), Some(status), "{tail}");
        assert_eq!(text(&result, "transStatusReason"), reason, "{tail}");
        let browser = if status == "Y" { "Y" } else { "N" };
        assert_eq!(text(&end, "transStatus"), Some(browser), "{tail}");
    }
    let count = stage.results().len();

    let answer = challenged(&stage, "9000100000000075").await;
    assert!(hidden(&open(&stage, &answer).await, "cres").is_none());
    assert_eq!(stage.results().len(), count + 1);

    let answer = challenged(&stage, "9000100000000076").await;
    cres(&open(&stage, &answer).await);
    assert_eq!(
        stage.results().len(),
        count + 1,
        "the result comes after the CRes"
    );
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert_eq!(stage.results().len(), count + 2);

    let answer = challenged(&stage, "9000100000000077").await;
    cres(&open(&stage, &answer).await);
    assert_ne!(
        stage.results().pop().unwrap()["dsTransID"],
        answer["dsTransID"]
    );
}

#[tokio::test]
async fn a_challenge_that_nobody_starts_in_time_fails() {
    let stage = start_with(|options| options.creq_timeout = Duration::from_millis(300)).await;
    let answer = challenged(&stage, "4200000000000004").await;
    let result = stage.result().await;
    assert_eq!(text(&result, "transStatus"), Some("N"));
    assert_eq!(text(&result, "transStatusReason"), Some("14"));
    assert_eq!(text(&result, "challengeCancel"), Some("05"));
    assert_eq!(text(&result, "interactionCounter"), Some("00"));
    let page = open(&stage, &answer).await;
    let erro = decode(&hidden(&page, "error").unwrap());
    assert_eq!(text(&erro, "errorCode"), Some("402"));
    assert_eq!(text(&erro, "errorComponent"), Some("A"));
}

#[tokio::test]
async fn a_creq_that_does_not_fit_gets_an_error() {
    let stage = start().await;
    let answer = challenged(&stage, "4200000000000004").await;
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
        let wrong = encode(&with(creq(&answer), name, value));
        let (_, page) = stage.form("/acs/challenge", &[("creq", &wrong)]).await;
        let erro = decode(&hidden(&page, "error").unwrap());
        assert_eq!(text(&erro, "errorCode"), Some(code), "{name}");
    }
    let unknown = encode(&with(
        creq(&answer),
        "acsTransID",
        "11111111-1111-4111-8111-111111111111",
    ));
    assert_eq!(
        stage.form("/acs/challenge", &[("creq", &unknown)]).await.0,
        400
    );
    assert_eq!(
        stage.form("/acs/challenge", &[("creq", "%%%")]).await.0,
        400
    );
    let press = [
        ("transaction", text(&answer, "acsTransID").unwrap()),
        ("action", "cancel"),
    ];
    assert_eq!(
        stage.form("/acs/challenge/submit", &press).await.0,
        400,
        "it was not opened"
    );
}

#[tokio::test]
async fn the_method_page_notifies_or_stays_silent() {
    let stage = start().await;
    let id = crate::stand_in::new_id();
    let url = "https://vault.example/method?a=1&b=2";
    let data = json!({"threeDSServerTransID": id, "threeDSMethodNotificationURL": url});
    let (status, page) = stage
        .form("/acs/method", &[("threeDSMethodData", &encode(&data))])
        .await;
    assert_eq!(status, 200);
    assert!(
        page.contains("action=\"https://vault.example/method?a=1&amp;b=2\""),
        "{page}"
    );
    let notified = decode(&hidden(&page, "threeDSMethodData").unwrap());
    assert_eq!(notified, json!({"threeDSServerTransID": id}));
    let (_, seen) = stage
        .control(&format!("/control/transactions/{id}"), None)
        .await;
    assert_eq!(seen["method_seen"], true);

    let (status, page) = stage
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
        stage
            .form("/acs/method", &[("threeDSMethodData", &encode(&script))])
            .await
            .0,
        400
    );
}

#[tokio::test]
async fn a_challenge_that_was_started_in_time_stays_open() {
    let stage = start_with(|options| options.creq_timeout = Duration::from_millis(300)).await;
    let answer = challenged(&stage, "4200000000000004").await;
    open(&stage, &answer).await;
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert!(stage.results().is_empty());
    let page = press(&stage, &answer, "submit", "1234").await;
    assert_eq!(text(&cres(&page), "transStatus"), Some("Y"));
}

#[tokio::test]
async fn a_result_that_does_not_arrive_is_sent_again() {
    let stage = start().await;
    let request = stage.areq("2.2.0", "9000100000000070");
    let request = with(request, "threeDSServerURL", "https://127.0.0.1:9/nobody");
    let answer = authenticate(&stage, "visa", &request).await;
    // The cardholder goes on all the same.
    cres(&open(&stage, &answer).await);
    let id = text(&answer, "threeDSServerTransID").unwrap();
    let (_, seen) = stage
        .control(&format!("/control/transactions/{id}"), None)
        .await;
    let replies = seen["replies"].as_array().unwrap();
    assert!(replies.len() >= 2, "{replies:?}");
    assert!(replies.iter().all(|reply| reply.get("failure").is_some()));
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (_, seen) = stage
        .control(&format!("/control/transactions/{id}"), None)
        .await;
    assert!(seen["replies"].as_array().unwrap().len() > 2);
}
