//! Results (RReq): accepted only from the network, over mutual TLS.

use http::StatusCode;
use serde_json::{Value, json};

use super::checkout::{Checkout, CheckoutOptions, card_number, id_of};
use super::form::encode_message;
use super::requests::payment;

/// Creates a session with an open challenge. Returns its id and the authentication.
async fn start_challenge(checkout: &Checkout, tail: &str) -> (String, Value) {
    let response = checkout
        .create_and_authenticate(&card_number(tail), payment())
        .await;
    assert_eq!(response["authentication_status"], "challenge");
    (
        response["session_id"].as_str().unwrap().to_owned(),
        response,
    )
}

/// Asserts that no result was received.
async fn assert_no_result(checkout: &Checkout, id: &str) {
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

/// The AReq states whether the 3DS Method completed.
#[tokio::test]
async fn the_areq_states_whether_the_method_completed() {
    let checkout = Checkout::start().await;
    for (tail, runs_method, expected) in [
        ("0000", true, "Y"),
        ("0000", false, "N"),
        ("0100", false, "U"),
        ("0200", true, "N"),
    ] {
        let session = checkout.create_session(&card_number(tail)).await;
        let id = id_of(&session);
        assert_eq!(
            session["method_url"].is_null(),
            expected == "U",
            "{session}"
        );
        if runs_method {
            let is_completed = checkout.run_method(&session).await;
            assert_eq!(is_completed, expected == "Y");
        }
        let response = checkout.authenticate(id, payment()).await;
        assert_eq!(response.status, StatusCode::OK, "{}", response.body);
        let transaction = checkout.transaction(id).await;
        assert_eq!(
            transaction["areq"]["threeDSCompInd"], expected,
            "{tail} {runs_method}"
        );
        let method = checkout.read(id).await.body["method"].clone();
        assert_eq!(method["method_completion_indicator"], expected);
        if expected == "N" && !runs_method {
            // Completion after the AReq changes nothing, and the page still succeeds.
            assert!(checkout.run_method(&session).await);
            let method = checkout.read(id).await.body["method"].clone();
            assert_eq!(method["method_completion_indicator"], "N");
        }
    }
}

/// Covers 24.10.
///
/// The result and the return of the browser arrive in either order; the result is the one of the network.
#[tokio::test]
async fn results_are_accepted_before_and_after_the_browser_returns() {
    let checkout = Checkout::start().await;
    for (tail, is_late) in [("0070", false), ("0076", true), ("0071", false)] {
        let (id, response) = start_challenge(&checkout, tail).await;
        let html = checkout.open_challenge(&response).await;
        let return_form = checkout.complete_challenge(html).await.unwrap();
        let has_result = checkout.result(&id).await.status == StatusCode::OK;
        assert_eq!(has_result, !is_late, "{tail}");
        let (status, html) = checkout
            .submit(&return_form.action, &return_form.fields)
            .await;
        assert_eq!(status, StatusCode::OK);
        let expected = if tail == "0071" {
            "failed"
        } else {
            "successful"
        };
        let status_text = format!("\"authenticationStatus\":\"{expected}\"");
        assert!(html.contains(&status_text), "{tail}: {html}");
        let result = checkout.result(&id).await;
        assert_eq!(result.body["authentication_status"], expected);
        assert_eq!(result.body["directory_status_code"], "C");
        assert_eq!(result.body["message_extensions"], json!([]));
        let replies = checkout.transaction(&id).await["replies"].clone();
        assert_eq!(replies[0]["message"]["messageType"], "RRes");
        assert_eq!(replies[0]["message"]["resultsStatus"], "01");
        let entries = checkout.log_entries(&id).await;
        for operation in ["receive_result done", "complete_challenge done"] {
            let count = entries.iter().filter(|one| *one == operation).count();
            assert_eq!(count, 1, "{operation} in {entries:?}");
        }
        // Browsers reload pages: a repeated return changes nothing.
        checkout
            .submit(&return_form.action, &return_form.fields)
            .await;
        let again = checkout.log_entries(&id).await;
        let completions = again
            .iter()
            .filter(|one| one.starts_with("complete_challenge"));
        assert_eq!(completions.count(), 1);
    }
}

/// A result is valid without the return of the browser.
#[tokio::test]
async fn results_do_not_require_the_browser() {
    let checkout = Checkout::start().await;
    let (id, response) = start_challenge(&checkout, "0075").await;
    let html = checkout.open_challenge(&response).await;
    assert!(checkout.complete_challenge(html).await.is_none());
    let result = checkout.result(&id).await;
    assert_eq!(result.body["authentication_status"], "successful");
    let canceled = start_challenge(&checkout, "0074").await;
    checkout.open_challenge(&canceled.1).await;
    let result = checkout.result(&canceled.0).await.body;
    assert_eq!(result["authentication_status"], "failed");
    assert_eq!(result["challenge_cancel_reason"], "cardholder-canceled");
    assert_eq!(result["challenge_cancel_reason_code"], "01");
}

#[tokio::test]
async fn repeated_results_get_the_same_reply_and_different_ones_are_rejected() {
    let checkout = Checkout::start().await;
    let (id, response) = start_challenge(&checkout, "0070").await;
    checkout.open_challenge(&response).await;
    let stored = checkout.result(&id).await.body;
    let first = checkout.transaction(&id).await["replies"][0]["message"].clone();

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
        assert_eq!(checkout.result(&id).await.body, stored, "{change}");
    }
    let entries = checkout.log_entries(&id).await;
    let received = entries
        .iter()
        .filter(|one| one.starts_with("receive_result"));
    assert_eq!(received.count(), 1);
}

/// A result of another transaction is rejected before any result is stored.
#[tokio::test]
async fn results_must_match_the_transaction() {
    let checkout = Checkout::start().await;
    let (id, response) = start_challenge(&checkout, "0072").await;
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
        assert_no_result(&checkout, &id).await;
    }
    // A faulty result that the simulator sends for this card.
    let (faulty, authentication) = start_challenge(&checkout, "0077").await;
    checkout.open_challenge(&authentication).await;
    assert_no_result(&checkout, &faulty).await;

    let html = checkout.open_challenge(&response).await;
    checkout.complete_challenge(html).await.unwrap();
    let result = checkout.result(&id).await;
    assert_eq!(result.body["authentication_status"], "successful");
}

/// Covers 24.10, 24.11.
///
/// A message that passes through the browser proves nothing.
#[tokio::test]
async fn forged_browser_returns_change_nothing() {
    let checkout = Checkout::start().await;
    let (id, response) = start_challenge(&checkout, "0072").await;
    let forged = json!({
        "messageType": "CRes", "messageVersion": response["threeds_version"],
        "threeDSServerTransID": id, "acsTransID": response["acs_transaction_id"],
        "transStatus": "Y",
    });
    let url = format!(
        "{}/3ds/sessions/{id}/challenge-notification",
        checkout.vault.base_url
    );
    let fields = [("cres".to_owned(), encode_message(&forged))];
    let (status, html) = checkout.submit(&url, &fields).await;
    assert_eq!(status, StatusCode::OK);
    assert!(!html.contains("authenticationStatus\":"), "{html}");
    assert_no_result(&checkout, &id).await;

    let (other, _) = start_challenge(&checkout, "0072").await;
    let url = format!(
        "{}/3ds/sessions/{other}/challenge-notification",
        checkout.vault.base_url
    );
    let (status, _) = checkout.submit(&url, &fields).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert_no_result(&checkout, &other).await;
}

/// Covers 24.10.
#[tokio::test]
async fn results_require_a_certificate_of_the_network() {
    let checkout = Checkout::start().await;
    let (id, _) = start_challenge(&checkout, "0072").await;
    let path = format!("/control/transactions/{id}/result");
    let reply = checkout.control(&path, json!({"certificate": false})).await;
    assert!(
        reply["failure"].is_string() && reply["message"].is_null(),
        "{reply}"
    );
    let anonymous = checkout.post_result_without_certificate(&json!({})).await;
    assert_eq!(anonymous, None);
    assert_no_result(&checkout, &id).await;

    for (message, code) in [
        (json!({"messageType": "RReq"}), "101"),
        (json!("no message"), "101"),
        (
            json!({"messageType": "AReq", "messageVersion": "2.2.0"}),
            "101",
        ),
    ] {
        let reply = checkout.post_result(&message).await;
        assert_eq!(reply["messageType"], "Erro", "{message}: {reply}");
        let error_code = reply["errorCode"].as_str().unwrap();
        assert!(
            error_code == code || error_code == "201",
            "{message}: {reply}"
        );
    }
}

/// The authority may have issued certificates to other parties than the directory server.
#[tokio::test]
async fn results_require_the_configured_certificate_name() {
    let senders = &["ds.example.com"];
    let checkout = Checkout::start_with(CheckoutOptions {
        senders,
        ..CheckoutOptions::default()
    })
    .await;
    let (id, _) = start_challenge(&checkout, "0072").await;
    let reply = checkout.send_result(&id, json!({})).await;
    assert_eq!(reply["message"]["errorCode"], "303", "{reply}");
    assert_no_result(&checkout, &id).await;
    let unknown = json!({"threeDSServerTransID": "0fb3a2b5-6f1e-4c39-8a53-7e8f1fd9a1f0"});
    let reply = checkout.send_result(&id, unknown).await;
    assert_eq!(reply["message"]["errorCode"], "301", "{reply}");

    let senders = &["ds.example.com", "localhost"];
    let checkout = Checkout::start_with(CheckoutOptions {
        senders,
        ..CheckoutOptions::default()
    })
    .await;
    let (id, _) = start_challenge(&checkout, "0072").await;
    let reply = checkout.send_result(&id, json!({})).await;
    assert_eq!(reply["message"]["messageType"], "RRes", "{reply}");
    let result = checkout.result(&id).await;
    assert_eq!(result.body["authentication_status"], "successful");
}

/// A session that passed without a challenge accepts no result.
#[tokio::test]
async fn results_without_a_challenge_are_rejected() {
    let checkout = Checkout::start().await;
    let session = checkout.create_session(&card_number("0000")).await;
    let response = checkout.authenticate(id_of(&session), payment()).await.body;
    assert_eq!(response["authentication_status"], "successful");
    let reply = checkout.send_result(id_of(&session), json!({})).await;
    assert_eq!(reply["message"]["errorCode"], "305", "{reply}");
    assert_eq!(checkout.result(id_of(&session)).await.body, response);
}
