//! Lifetime of sessions, and steps that do not arrive in time.

use std::time::Duration;

use cloakroom::config::Secret;
use cloakroom::threeds::sessions;
use cloakroom_testkit::TestVault;
use http::StatusCode;
use serde_json::{Value, json};

use super::checkout::{Checkout, card_number, id_of};
use super::requests::{browser, decoupled, payment};

/// A node with its clock set ahead. All time comes from the database, so its clock functions are replaced.
pub(super) async fn node_in_future(checkout: &Checkout, interval: &str) -> TestVault {
    let database = checkout.vault.database.connect().await;
    let sql = format!(
        "create or replace function public.now() returns timestamptz language sql stable as
            $$ select pg_catalog.now() + interval '{interval}' $$;
        create or replace function public.clock_timestamp() returns timestamptz language sql as
            $$ select pg_catalog.clock_timestamp() + interval '{interval}' $$"
    );
    database.batch_execute(&sql).await.unwrap();
    let url = &checkout.vault.database.url;
    let url = format!("{url}?options=-c%20search_path%3Dpublic%2Cpg_catalog");
    let node = checkout
        .vault
        .node_with(|config| config.database.url = Some(Secret::new(url)));
    node.await
}

async fn wait_for_result(checkout: &Checkout, id: &str) -> Value {
    for _ in 0..100 {
        let result = checkout.result(id).await;
        if result.status == StatusCode::OK {
            return result.body;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("no result of {id}");
}

/// Covers 24.1, 24.13.
#[tokio::test]
async fn sessions_expire_with_their_card_or_after_an_hour() {
    let checkout = Checkout::start().await;
    let data =
        json!({"number": card_number("0000"), "expiration_month": 12, "expiration_year": 2030});
    let token = json!({"type": "card", "data": data, "expires_at": "2040-08-26T19:23:57Z"});
    let token = checkout.merchant.post("/tokens", token).await;
    let intent = json!({"type": "card", "data": data});
    let intent = checkout.merchant.post("/token-intents", intent).await;
    assert_eq!(intent.status, StatusCode::CREATED, "{}", intent.body);
    let create = async |field: &str, id: String| {
        let mut new = json!({"device": "browser", "device_info": browser()});
        new[field] = id.into();
        let created = checkout.page.post("/3ds/sessions", new).await;
        assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
        checkout.read(&created.id()).await.body
    };
    let by_token = create("token_id", token.id()).await;
    let expires = by_token["expiration_date"].as_str().unwrap();
    assert!(expires.starts_with("2040-08-26T19:23:57"), "{expires}");
    let by_intent = create("token_intent_id", intent.id()).await;
    let text = |value: &Value| value.as_str().unwrap()[..19].to_owned();
    let expected = text(&intent.body["expires_at"]);
    assert_eq!(text(&by_intent["expiration_date"]), expected);
    assert_eq!(by_intent["token_intent_id"], intent.id());

    let waiting = checkout.create_session(&card_number("0000")).await;
    let session = checkout.read(id_of(&waiting)).await.body;
    let read = |name: &str| session[name].as_str().unwrap().parse::<jiff::Timestamp>();
    let lifetime = read("expiration_date").unwrap() - read("created_date").unwrap();
    let seconds = lifetime.total(jiff::Unit::Second).unwrap();
    assert!((3_599.0..=3_601.0).contains(&seconds), "{seconds}");
    for name in [
        "id",
        "tenant_id",
        "type",
        "pan_token_id",
        "token_id",
        "card_brand",
        "created_by",
        "device",
        "device_info",
        "version",
        "method",
    ] {
        assert!(!session[name].is_null(), "{name} in {session}");
    }
    assert!(session["authentication"].is_null());
    let finished = checkout
        .create_and_authenticate(&card_number("0000"), payment())
        .await;

    let node = node_in_future(&checkout, "61 minutes").await;
    let there = checkout.merchant.at(&node.base_url);
    let get = async |id: &str| there.get(&format!("/3ds/sessions/{id}")).await.status;
    assert_eq!(get(id_of(&waiting)).await, StatusCode::NOT_FOUND);
    let path = format!("/3ds/sessions/{}/authenticate", id_of(&waiting));
    assert_eq!(
        there.post(&path, payment()).await.status,
        StatusCode::NOT_FOUND
    );
    let id = finished["session_id"].as_str().unwrap();
    assert_eq!(get(id).await, StatusCode::OK);
    assert_eq!(get(by_token["id"].as_str().unwrap()).await, StatusCode::OK);
    assert!(sessions::sweep(&node.vault).await.unwrap() >= 1);
    assert_eq!(
        checkout.read(id_of(&waiting)).await.status,
        StatusCode::NOT_FOUND
    );
    assert_eq!(checkout.read(id).await.status, StatusCode::OK);
}

/// Covers 24.12, 24.16.
#[tokio::test]
async fn decoupled_authentications_are_approved_denied_or_time_out() {
    let checkout = Checkout::start().await;
    for (tail, status, reason) in [
        ("0080", "successful", Value::Null),
        ("0081", "failed", json!("card-authentication-failed")),
    ] {
        let response = checkout
            .create_and_authenticate(&card_number(tail), decoupled(1))
            .await;
        assert_eq!(response["authentication_status"], "decoupled_challenge");
        assert_eq!(response["acs_decoupled_authentication"], "Y");
        assert_eq!(response["authentication_challenge_type"], "decoupled");
        assert!(response["cardholder_info"].is_string());
        let id = response["session_id"].as_str().unwrap();
        let areq = checkout.transaction(id).await["areq"].clone();
        assert_eq!(areq["threeDSRequestorDecReqInd"], "Y");
        assert_eq!(areq["threeDSRequestorDecMaxTime"], "00001");
        let result = wait_for_result(&checkout, id).await;
        assert_eq!(result["authentication_status"], status);
        assert_eq!(result["authentication_status_reason"], reason);
        assert_eq!(result["directory_status_code"], "D");
        let entries = checkout.log_entries(id).await;
        assert!(
            entries.contains(&"receive_result done".to_owned()),
            "{entries:?}"
        );
    }
    let rejected = checkout
        .create_and_authenticate(&card_number("0083"), decoupled(1))
        .await;
    let reason = "insufficient-decoupled-authentication-time";
    assert_eq!(rejected["authentication_status_reason"], reason);

    let response = checkout
        .create_and_authenticate(&card_number("0082"), decoupled(1))
        .await;
    let id = response["session_id"].as_str().unwrap();
    let early = checkout.result(id).await;
    assert_eq!(early.status, StatusCode::FAILED_DEPENDENCY);
    assert_eq!(early.body["error"]["service_status"], "404");
    assert_eq!(
        sessions::time_out_overdue(&checkout.vault.vault)
            .await
            .unwrap(),
        0
    );
    let node = node_in_future(&checkout, "75 seconds").await;
    assert_eq!(sessions::time_out_overdue(&node.vault).await.unwrap(), 0);
    let node = node_in_future(&checkout, "95 seconds").await;
    assert_eq!(sessions::time_out_overdue(&node.vault).await.unwrap(), 1);
    let result = checkout.result(id).await.body;
    assert_eq!(result["authentication_status"], "failed");
    assert_eq!(result["authentication_status_reason_code"], "24");
    assert_eq!(
        result["authentication_status_reason"],
        "decoupled-authentication-timeout"
    );
    let late = checkout.send_result(id, json!({})).await;
    assert_eq!(late["message"]["errorCode"], "402", "{late}");
    assert_eq!(checkout.result(id).await.body, result);
    // A later event is not listed by an earlier clock.
    let entries = checkout.log_entries_at(&node.base_url, id).await;
    assert!(entries.contains(&"expire done".to_owned()), "{entries:?}");
}

/// Covers 24.9.
///
/// A session of a node that was killed does not wait forever.
#[tokio::test]
async fn sessions_of_a_killed_node_are_abandoned() {
    let checkout = Checkout::start().await;
    let session = checkout.create_session(&card_number("0000")).await;
    let id = id_of(&session).to_owned();
    let fault = json!({"kind": "AReq", "what": "stall", "seconds": 60, "times": 1});
    checkout.control("/control/trouble", fault).await;
    let mut config = checkout.vault.vault.config.clone();
    config.http.listen.set_port(0);
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let node = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    node.spawn(async move {
        let vault = cloakroom::Node::open(config).await.unwrap();
        let server = cloakroom::server::Server::bind(&vault.config.http)
            .await
            .unwrap();
        sender
            .send(format!("http://{}", server.local_addr()))
            .unwrap();
        let app = cloakroom::router::api(vault);
        server.run(app, std::future::pending()).await;
    });
    let there = checkout.merchant.at(&receiver.await.unwrap());
    let path = format!("/3ds/sessions/{id}/authenticate");
    let request = there.request(http::Method::POST, &path);
    let request = request
        .header("content-type", "application/json")
        .body(payment().to_string());
    let mut response = Box::pin(request.send());
    while checkout.received_count("AReq").await == 0 {
        tokio::select! {
            result = &mut response => panic!("{result:?}"),
            () = tokio::time::sleep(Duration::from_millis(100)) => {}
        }
    }
    node.shutdown_background();

    let busy = checkout.authenticate(&id, payment()).await;
    assert_eq!(busy.status, StatusCode::CONFLICT);
    assert_eq!(
        sessions::time_out_overdue(&checkout.vault.vault)
            .await
            .unwrap(),
        0
    );
    let future = node_in_future(&checkout, "40 seconds").await;
    assert_eq!(sessions::time_out_overdue(&future.vault).await.unwrap(), 1);
    let failed = checkout.authenticate(&id, payment()).await;
    assert_eq!(failed.status, StatusCode::CONFLICT);
    assert_ne!(failed.body["detail"], busy.body["detail"]);
    assert_eq!(checkout.received_count("AReq").await, 1);
}
