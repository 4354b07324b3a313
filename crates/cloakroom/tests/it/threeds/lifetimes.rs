//! When sessions end, who may tell them what, and what happens when an awaited step does not come.

use std::time::Duration;

use cloakroom::threeds;
use http::StatusCode;
use serde_json::{Value, json};

use super::checkout::{Checkout, digits, id_of, merchant, page};
use super::requests::{app, browser, decoupled, payment};
use crate::support::{TestDatabase, TestVault};

/// A node at which it is later. Only the database tells the time, so it is told another one.
async fn later(checkout: &Checkout, interval: &str) -> TestVault {
    let database = checkout.vault.database.connect().await;
    let name = database
        .query_one("select current_database()::text", &[])
        .await;
    let name: String = name.unwrap().get(0);
    let sql = format!(
        "create or replace function public.now() returns timestamptz language sql stable as
            $$ select pg_catalog.now() + interval '{interval}' $$;
        create or replace function public.clock_timestamp() returns timestamptz language sql as
            $$ select pg_catalog.clock_timestamp() + interval '{interval}' $$;
        alter database {name} set search_path = public, pg_catalog"
    );
    database.batch_execute(&sql).await.unwrap();
    checkout.vault.second_node().await
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
async fn a_session_ends_with_its_card_or_after_an_hour() {
    let checkout = Checkout::start().await;
    let data = json!({"number": digits("0000"), "expiration_month": 12, "expiration_year": 2030});
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
    let end = by_token["expiration_date"].as_str().unwrap();
    assert!(end.starts_with("2040-08-26T19:23:57"), "{end}");
    let by_intent = create("token_intent_id", intent.id()).await;
    let text = |value: &Value| value.as_str().unwrap()[..19].to_owned();
    let expected = text(&intent.body["expires_at"]);
    assert_eq!(text(&by_intent["expiration_date"]), expected);
    assert_eq!(by_intent["token_intent_id"], intent.id());

    let waiting = checkout.created(&digits("0000")).await;
    let session = checkout.read(id_of(&waiting)).await.body;
    let read = |name: &str| session[name].as_str().unwrap().parse::<jiff::Timestamp>();
    let lasts = read("expiration_date").unwrap() - read("created_date").unwrap();
    let seconds = lasts.total(jiff::Unit::Second).unwrap();
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
    let answered = checkout.authenticated(&digits("0000"), payment()).await;

    let node = later(&checkout, "61 minutes").await;
    let there = checkout.merchant.at(&node.base_url);
    let get = async |id: &str| there.get(&format!("/3ds/sessions/{id}")).await.status;
    assert_eq!(get(id_of(&waiting)).await, StatusCode::NOT_FOUND);
    let path = format!("/3ds/sessions/{}/authenticate", id_of(&waiting));
    assert_eq!(
        there.post(&path, payment()).await.status,
        StatusCode::NOT_FOUND
    );
    let kept = answered["session_id"].as_str().unwrap();
    assert_eq!(get(kept).await, StatusCode::OK);
    assert_eq!(get(by_token["id"].as_str().unwrap()).await, StatusCode::OK);
    assert!(threeds::sweep(&node.vault).await.unwrap() >= 1);
    assert_eq!(
        checkout.read(id_of(&waiting)).await.status,
        StatusCode::NOT_FOUND
    );
    assert_eq!(checkout.read(kept).await.status, StatusCode::OK);
}

/// Covers 24.3.
#[tokio::test]
async fn an_app_tells_its_session_of_itself_and_no_other_application_does() {
    let checkout = Checkout::start().await;
    let token = checkout.token(&digits("0000")).await;
    let new = json!({"token_id": token, "device": "app"});
    let created = checkout.page.post("/3ds/sessions", new).await;
    let path = format!("/3ds/sessions/{}", created.id());
    let early = checkout.authenticate(&created.id(), payment()).await;
    assert_eq!(early.status, StatusCode::BAD_REQUEST);
    assert!(
        early.refused().contains(&"device_info.sdk_transaction_id"),
        "{}",
        early.body
    );

    let told = json!({"device_info": app()});
    let other = page(&checkout.vault, &checkout.tenant).await;
    assert_eq!(
        other.put(&path, told.clone()).await.status,
        StatusCode::NOT_FOUND
    );
    let elsewhere = merchant(&checkout.vault, &checkout.vault.tenant().await).await;
    assert_eq!(
        elsewhere.put(&path, told.clone()).await.status,
        StatusCode::NOT_FOUND
    );
    let answer = checkout.page.put(&path, told.clone()).await;
    assert_eq!(answer.status, StatusCode::OK);
    for name in [
        "id",
        "method_url",
        "method_notification_url",
        "directory_server_id",
        "cardBrand",
    ] {
        assert_eq!(answer.body[name], created.body[name], "{name}");
    }
    let read = checkout.read(&created.id()).await.body;
    assert_eq!(read["device"], "mobile");
    let answer = checkout.authenticate(&created.id(), payment()).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
    let late = checkout.page.put(&path, told.clone()).await;
    assert_eq!(late.status, StatusCode::CONFLICT);
    let in_browser = checkout.created(&digits("0000")).await;
    let path = format!("/3ds/sessions/{}", id_of(&in_browser));
    assert_eq!(
        checkout.page.put(&path, told).await.status,
        StatusCode::NOT_FOUND
    );
}

/// Covers 24.14.
#[tokio::test]
async fn tenants_without_the_quota_are_refused_everywhere() {
    let change = |config: &mut cloakroom::config::Config| config.quotas.threeds = false;
    let vault = TestVault::start_with(TestDatabase::create().await, change).await;
    let tenant = vault.tenant().await;
    let client = merchant(&vault, &tenant).await;
    let path = "/3ds/sessions/0fb3a2b5-6f1e-4c39-8a53-7e8f1fd9a1f0";
    let answers = [
        client
            .post(
                "/3ds/sessions",
                json!({"token_id": "x", "type": "merchant"}),
            )
            .await,
        client.put(path, json!({"device_info": app()})).await,
        client.get(path).await,
        client
            .post(&format!("{path}/authenticate"), payment())
            .await,
        client.get(&format!("{path}/challenge-result")).await,
    ];
    for answer in answers {
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{}", answer.body);
        let detail = answer.body["detail"].as_str().unwrap();
        assert!(detail.contains("3-D Secure is not enabled"), "{detail}");
    }
}

/// Covers 24.12, 24.16.
#[tokio::test]
async fn a_decoupled_authentication_is_approved_denied_or_runs_out() {
    let checkout = Checkout::start().await;
    for (tail, status, reason) in [
        ("0080", "successful", Value::Null),
        ("0081", "failed", json!("card-authentication-failed")),
    ] {
        let answer = checkout.authenticated(&digits(tail), decoupled(1)).await;
        assert_eq!(answer["authentication_status"], "decoupled_challenge");
        assert_eq!(answer["acs_decoupled_authentication"], "Y");
        assert_eq!(answer["authentication_challenge_type"], "decoupled");
        assert!(answer["cardholder_info"].is_string());
        let id = answer["session_id"].as_str().unwrap();
        let seen = checkout.seen(id).await["areq"].clone();
        assert_eq!(seen["threeDSRequestorDecReqInd"], "Y");
        assert_eq!(seen["threeDSRequestorDecMaxTime"], "00001");
        let result = wait_for_result(&checkout, id).await;
        assert_eq!(result["authentication_status"], status);
        assert_eq!(result["authentication_status_reason"], reason);
        assert_eq!(result["directory_status_code"], "D");
        let recorded = checkout.recorded(id).await;
        assert!(
            recorded.contains(&"receive_result done".to_owned()),
            "{recorded:?}"
        );
    }
    let hasty = checkout.authenticated(&digits("0083"), decoupled(1)).await;
    let reason = "insufficient-decoupled-authentication-time";
    assert_eq!(hasty["authentication_status_reason"], reason);

    let answer = checkout.authenticated(&digits("0082"), decoupled(1)).await;
    let id = answer["session_id"].as_str().unwrap();
    let early = checkout.result(id).await;
    assert_eq!(early.status, StatusCode::FAILED_DEPENDENCY);
    assert_eq!(early.body["error"]["service_status"], "404");
    assert_eq!(
        threeds::settle_late(&checkout.vault.vault).await.unwrap(),
        0
    );
    let node = later(&checkout, "75 seconds").await;
    assert_eq!(threeds::settle_late(&node.vault).await.unwrap(), 0);
    let node = later(&checkout, "95 seconds").await;
    assert_eq!(threeds::settle_late(&node.vault).await.unwrap(), 1);
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
    // What happens later is not told earlier.
    let recorded = checkout.recorded_at(&node.base_url, id).await;
    assert!(recorded.contains(&"expire done".to_owned()), "{recorded:?}");
}

/// Covers 24.9.
///
/// A node that is killed while it waits leaves a session that nobody waits for for ever.
#[tokio::test]
async fn a_session_whose_node_was_killed_is_given_up() {
    let checkout = Checkout::start().await;
    let session = checkout.created(&digits("0000")).await;
    let id = id_of(&session).to_owned();
    let trouble = json!({"kind": "AReq", "what": "stall", "seconds": 60, "times": 1});
    checkout.control("/control/trouble", trouble).await;
    let mut config = checkout.vault.vault.config.clone();
    config.http.listen.set_port(0);
    let (told, heard) = tokio::sync::oneshot::channel();
    let node = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    node.spawn(async move {
        let vault = cloakroom::Vault::open(config).await.unwrap();
        let server = cloakroom::server::Server::bind(&vault.config.http)
            .await
            .unwrap();
        told.send(format!("http://{}", server.local_addr()))
            .unwrap();
        let app = cloakroom::router::api(vault);
        server.run(app, std::future::pending()).await;
    });
    let there = checkout.merchant.at(&heard.await.unwrap());
    let path = format!("/3ds/sessions/{id}/authenticate");
    let request = there.request(http::Method::POST, &path);
    let request = request
        .header("content-type", "application/json")
        .body(payment().to_string());
    let mut asking = Box::pin(request.send());
    while checkout.received("AReq").await == 0 {
        tokio::select! {
            answer = &mut asking => panic!("{answer:?}"),
            () = tokio::time::sleep(Duration::from_millis(100)) => {}
        }
    }
    node.shutdown_background();

    let busy = checkout.authenticate(&id, payment()).await;
    assert_eq!(busy.status, StatusCode::CONFLICT);
    assert_eq!(
        threeds::settle_late(&checkout.vault.vault).await.unwrap(),
        0
    );
    let future = later(&checkout, "40 seconds").await;
    assert_eq!(threeds::settle_late(&future.vault).await.unwrap(), 1);
    let dead = checkout.authenticate(&id, payment()).await;
    assert_eq!(dead.status, StatusCode::CONFLICT);
    assert_ne!(dead.body["detail"], busy.body["detail"]);
    assert_eq!(checkout.received("AReq").await, 1);
}
