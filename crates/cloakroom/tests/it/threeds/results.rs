//! Results: told by the network over mutual TLS, and by nobody else.

use http::StatusCode;
use serde_json::{Value, json};

use super::checkout::{Checkout, Plan, digits, id_of};
use super::page::wrapped;
use super::requests::payment;

/// A session whose challenge is open, and what the merchant was answered.
async fn challenged(checkout: &Checkout, tail: &str) -> (String, Value) {
    let answer = checkout.authenticated(&digits(tail), payment()).await;
    assert_eq!(answer["authentication_status"], "challenge");
    (answer["session_id"].as_str().unwrap().to_owned(), answer)
}

/// The result has not been told: nobody can read one.
async fn has_no_result(checkout: &Checkout, id: &str) {
    let result = checkout.result(id).await;
    assert_eq!(
        result.status,
        StatusCode::FAILED_DEPENDENCY,
        "{}",
        result.body
    );
    let error = &result.body["error"];
    assert_eq!(error["service_status"], "404");
    assert_eq!(error["error_source"], "3DS Server");
    assert_eq!(error["session_id"], id);
    let read = checkout.read(id).await.body;
    assert_eq!(read["authentication"]["authentication_status"], "challenge");
    assert!(read["authentication"]["authentication_value"].is_null());
}

/// The AReq says whether the issuer has seen the browser.
#[tokio::test]
async fn a_network_is_told_whether_the_issuer_saw_the_browser() {
    let checkout = Checkout::start().await;
    for (tail, runs, expected) in [
        ("0000", true, "Y"),
        ("0000", false, "N"),
        ("0100", false, "U"),
        ("0200", true, "N"),
    ] {
        let session = checkout.created(&digits(tail)).await;
        let id = id_of(&session);
        assert_eq!(
            session["method_url"].is_null(),
            expected == "U",
            "{session}"
        );
        if runs {
            let is_answered = checkout.see_browser(&session).await;
            assert_eq!(is_answered, expected == "Y");
        }
        let answer = checkout.authenticate(id, payment()).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
        let seen = checkout.seen(id).await;
        assert_eq!(seen["areq"]["threeDSCompInd"], expected, "{tail} {runs}");
        let method = checkout.read(id).await.body["method"].clone();
        assert_eq!(method["method_completion_indicator"], expected);
        if expected == "N" && !runs {
            // What comes after the question changes nothing, and the page does not mind.
            assert!(checkout.see_browser(&session).await);
            let method = checkout.read(id).await.body["method"].clone();
            assert_eq!(method["method_completion_indicator"], "N");
        }
    }
}

/// Covers 24.10.
///
/// Whichever comes first, result or browser: both arrive, and the result is the network's.
#[tokio::test]
async fn a_result_counts_before_and_after_the_browser_is_back() {
    let checkout = Checkout::start().await;
    for (tail, is_late) in [("0070", false), ("0076", true), ("0071", false)] {
        let (id, answer) = challenged(&checkout, tail).await;
        let html = checkout.challenge(&answer).await;
        let back = checkout.pass(html).await.unwrap();
        let has_result = checkout.result(&id).await.status == StatusCode::OK;
        assert_eq!(has_result, !is_late, "{tail}");
        let (status, html) = checkout.submit(&back.action, &back.fields).await;
        assert_eq!(status, StatusCode::OK);
        let expected = if tail == "0071" {
            "failed"
        } else {
            "successful"
        };
        let told = format!("\"authenticationStatus\":\"{expected}\"");
        assert!(html.contains(&told), "{tail}: {html}");
        let result = checkout.result(&id).await;
        assert_eq!(result.body["authentication_status"], expected);
        assert_eq!(result.body["directory_status_code"], "C");
        assert_eq!(result.body["message_extensions"], json!([]));
        let replies = checkout.seen(&id).await["replies"].clone();
        assert_eq!(replies[0]["message"]["messageType"], "RRes");
        assert_eq!(replies[0]["message"]["resultsStatus"], "01");
        let recorded = checkout.recorded(&id).await;
        for operation in ["receive_result done", "complete_challenge done"] {
            let times = recorded.iter().filter(|one| *one == operation).count();
            assert_eq!(times, 1, "{operation} in {recorded:?}");
        }
        // Again, because browsers reload: nothing more happens.
        checkout.submit(&back.action, &back.fields).await;
        let again = checkout.recorded(&id).await;
        let times = again
            .iter()
            .filter(|one| one.starts_with("complete_challenge"));
        assert_eq!(times.count(), 1);
    }
}

/// A result without a return of the browser is a result.
#[tokio::test]
async fn a_result_needs_no_browser() {
    let checkout = Checkout::start().await;
    let (id, answer) = challenged(&checkout, "0075").await;
    let html = checkout.challenge(&answer).await;
    assert!(checkout.pass(html).await.is_none());
    let result = checkout.result(&id).await;
    assert_eq!(result.body["authentication_status"], "successful");
    let canceled = challenged(&checkout, "0074").await;
    checkout.challenge(&canceled.1).await;
    let result = checkout.result(&canceled.0).await.body;
    assert_eq!(result["authentication_status"], "failed");
    assert_eq!(result["challenge_cancel_reason"], "cardholder-canceled");
    assert_eq!(result["challenge_cancel_reason_code"], "01");
}

#[tokio::test]
async fn the_same_result_again_gets_the_same_receipt_and_another_one_none() {
    let checkout = Checkout::start().await;
    let (id, answer) = challenged(&checkout, "0070").await;
    checkout.challenge(&answer).await;
    let kept = checkout.result(&id).await.body;
    let first = checkout.seen(&id).await["replies"][0]["message"].clone();

    let again = checkout.send_result(&id, json!({})).await;
    assert_eq!(again["message"], first);

    for (change, code) in [
        (
            json!({"transStatus": "N", "transStatusReason": "01",
                "authenticationValue": null, "eci": null}),
            "305",
        ),
        (json!({"eci": "06"}), "305"),
        (
            json!({"authenticationValue": "AAAAAAAAAAAAAAAAAAAAAAAAAAA="}),
            "305",
        ),
        (
            json!({"dsTransID": "0fb3a2b5-6f1e-4c39-8a53-7e8f1fd9a1f0"}),
            "305",
        ),
        (json!({"transStatus": null}), "201"),
        (json!({"transStatus": "C"}), "203"),
        (json!({"messageVersion": "2.9.0"}), "102"),
        (
            json!({"threeDSServerTransID": "0fb3a2b5-6f1e-4c39-8a53-7e8f1fd9a1f0"}),
            "301",
        ),
    ] {
        let reply = checkout.send_result(&id, change.clone()).await;
        assert_eq!(reply["message"]["messageType"], "Erro", "{change}: {reply}");
        assert_eq!(reply["message"]["errorCode"], code, "{change}: {reply}");
        assert_eq!(reply["message"]["errorComponent"], "S");
        assert_eq!(checkout.result(&id).await.body, kept, "{change}");
    }
    let recorded = checkout.recorded(&id).await;
    let received = recorded
        .iter()
        .filter(|one| one.starts_with("receive_result"));
    assert_eq!(received.count(), 1);
}

/// Before a result is kept, one that belongs to another transaction is refused as well.
#[tokio::test]
async fn a_result_must_belong_to_what_was_answered() {
    let checkout = Checkout::start().await;
    let (id, answer) = challenged(&checkout, "0072").await;
    let other = "0fb3a2b5-6f1e-4c39-8a53-7e8f1fd9a1f0";
    for change in [
        json!({"dsTransID": other}),
        json!({"acsTransID": other}),
        json!({"messageVersion": "2.1.0"}),
        json!({"messageCategory": "02"}),
        json!({"authenticationValue": null}),
    ] {
        let reply = checkout.send_result(&id, change.clone()).await;
        assert_eq!(reply["message"]["messageType"], "Erro", "{change}: {reply}");
        has_no_result(&checkout, &id).await;
    }
    // The simulator's own mistake, for which it has a card.
    let (wrong, authentication) = challenged(&checkout, "0077").await;
    checkout.challenge(&authentication).await;
    has_no_result(&checkout, &wrong).await;

    let html = checkout.challenge(&answer).await;
    checkout.pass(html).await.unwrap();
    let result = checkout.result(&id).await;
    assert_eq!(result.body["authentication_status"], "successful");
}

/// Covers 24.10, 24.11.
///
/// What passes through the browser proves nothing.
#[tokio::test]
async fn a_forged_return_changes_nothing() {
    let checkout = Checkout::start().await;
    let (id, answer) = challenged(&checkout, "0072").await;
    let forged = json!({
        "messageType": "CRes", "messageVersion": answer["threeds_version"],
        "threeDSServerTransID": id, "acsTransID": answer["acs_transaction_id"],
        "transStatus": "Y",
    });
    let url = format!(
        "{}/3ds/sessions/{id}/challenge-notification",
        checkout.vault.base_url
    );
    let fields = [("cres".to_owned(), wrapped(&forged))];
    let (status, html) = checkout.submit(&url, &fields).await;
    assert_eq!(status, StatusCode::OK);
    assert!(!html.contains("authenticationStatus\":"), "{html}");
    has_no_result(&checkout, &id).await;

    let (other, _) = challenged(&checkout, "0072").await;
    let url = format!(
        "{}/3ds/sessions/{other}/challenge-notification",
        checkout.vault.base_url
    );
    let (status, _) = checkout.submit(&url, &fields).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    has_no_result(&checkout, &other).await;
}

/// Covers 24.10.
#[tokio::test]
async fn results_are_told_with_a_certificate_of_the_network_only() {
    let checkout = Checkout::start().await;
    let (id, _) = challenged(&checkout, "0072").await;
    let path = format!("/control/transactions/{id}/result");
    let reply = checkout.control(&path, json!({"certificate": false})).await;
    assert!(
        reply["failure"].is_string() && reply["message"].is_null(),
        "{reply}"
    );
    let anonymous = checkout.tell_anonymously(&json!({})).await;
    assert_eq!(anonymous, None);
    has_no_result(&checkout, &id).await;

    for (told, code) in [
        (json!({"messageType": "RReq"}), "101"),
        (json!("no message"), "101"),
        (
            json!({"messageType": "AReq", "messageVersion": "2.2.0"}),
            "101",
        ),
    ] {
        let reply = checkout.tell(&told).await;
        assert_eq!(reply["messageType"], "Erro", "{told}: {reply}");
        let wrong = reply["errorCode"].as_str().unwrap();
        assert!(wrong == code || wrong == "201", "{told}: {reply}");
    }
}

/// The authority may have issued certificates to others than the directory server.
#[tokio::test]
async fn a_certificate_with_another_name_tells_no_results() {
    let senders = &["ds.example.com"];
    let checkout = Checkout::start_with(Plan {
        senders,
        ..Plan::default()
    })
    .await;
    let (id, _) = challenged(&checkout, "0072").await;
    let reply = checkout.send_result(&id, json!({})).await;
    assert_eq!(reply["message"]["errorCode"], "303", "{reply}");
    has_no_result(&checkout, &id).await;
    let unknown = json!({"threeDSServerTransID": "0fb3a2b5-6f1e-4c39-8a53-7e8f1fd9a1f0"});
    let reply = checkout.send_result(&id, unknown).await;
    assert_eq!(reply["message"]["errorCode"], "301", "{reply}");

    let senders = &["ds.example.com", "localhost"];
    let checkout = Checkout::start_with(Plan {
        senders,
        ..Plan::default()
    })
    .await;
    let (id, _) = challenged(&checkout, "0072").await;
    let reply = checkout.send_result(&id, json!({})).await;
    assert_eq!(reply["message"]["messageType"], "RRes", "{reply}");
    let result = checkout.result(&id).await;
    assert_eq!(result.body["authentication_status"], "successful");
}

/// A card that passed without a challenge has no result to be told.
#[tokio::test]
async fn a_result_is_not_awaited_where_nothing_was_asked() {
    let checkout = Checkout::start().await;
    let session = checkout.created(&digits("0000")).await;
    let answer = checkout.authenticate(id_of(&session), payment()).await.body;
    assert_eq!(answer["authentication_status"], "successful");
    let reply = checkout.send_result(id_of(&session), json!({})).await;
    assert_eq!(reply["message"]["errorCode"], "305", "{reply}");
    assert_eq!(checkout.result(id_of(&session)).await.body, answer);
}
