//! The audit log of proxied requests, and what else is written about them.

use cloakroom::access::{ApplicationKind, Permission};
use cloakroom_testkit::{LogCapture, grants};
use http::StatusCode;
use serde_json::json;

use super::destination::{Behavior, HOST};
use super::{Fixture, NUMBER, proxy_error};

#[tokio::test]
async fn uses_are_logged_with_their_destination() {
    let fixture = Fixture::start().await;
    let id = fixture.card().await;
    let reader = fixture.vault.holder(
        &fixture.tenant,
        ApplicationKind::Management,
        grants(&[Permission::LogRead]),
    );
    let reader = fixture.vault.client_with(Some(&reader.await.key));

    fixture
        .post_json(json!({ "n": format!("{{{{ {id} | json: '$.number' }}}}") }))
        .await;

    let token = reader.get(&format!("/logs?entity_id={id}")).await;
    let destination = reader.get("/logs?entity_type=destination").await;
    let entry = &token.items()[0];
    assert_eq!(
        (&entry["operation"], &entry["outcome"]),
        (&json!("use"), &json!("revealed"))
    );
    let entry = &destination.items()[0];
    assert_eq!(
        (&entry["operation"], &entry["entity_id"]),
        (&json!("use"), &json!(HOST))
    );
    assert_eq!(entry["created_at"], token.items()[0]["created_at"]);
}

/// Each evaluation that fails is in the audit log: it tells something about the value, here to a caller that sees it.
#[tokio::test]
async fn failed_evaluations_are_logged_and_all_alike() {
    let fixture = Fixture::start().await;
    let id = fixture.card().await;
    let client = fixture.revealing().await;
    let digit =
        format!("{{{{ {id} | json: '$.number' | slice: 5,1 | replace: '2','x' | to_number }}}}");
    let mut errors = Vec::new();
    for (media, body) in [
        ("application/json", json!({ "a": digit }).to_string()),
        ("text/plain", digit.clone()),
    ] {
        let response = fixture.post_as(&client, media, body).await;
        assert_eq!(response.status, StatusCode::BAD_REQUEST, "{media}");
        let error = proxy_error(&response);
        errors.push((error["code"].clone(), error["detail"].clone()));
    }

    assert_eq!(errors[0].0, "not_evaluated");
    assert_eq!(errors[0], errors[1]);
    assert_eq!(fixture.destination.connections(), 0);
    let database = fixture.vault.database.connect().await;
    let sql = "select count(*) from log where log::text like '%' || $1 || '%'";
    let logged: i64 = database.query_one(sql, &[&HOST]).await.unwrap().get(0);
    assert_eq!(logged, 2);
}

/// A value that cannot be recorded is not sent.
#[tokio::test]
async fn nothing_is_sent_that_cannot_be_logged() {
    let fixture = Fixture::start().await;
    let id = fixture.card().await;
    let database = fixture.vault.database.connect().await;
    let sql = "alter table log add constraint no_more check (false) not valid";
    database.batch_execute(sql).await.unwrap();

    let response = fixture.post("text/plain", format!("{{{{ {id} }}}}")).await;

    assert_eq!(response.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(proxy_error(&response)["code"], "audit_unavailable");
    assert_eq!(fixture.destination.connections(), 0);
}

/// A destination that returns what it received, with everything at the most verbose log level.
#[tokio::test]
async fn values_are_in_no_log_line_and_no_row() {
    let echo = Behavior::respond(|received| {
        let response = http::Response::builder().status(400);
        let response = response.header("x-echo", received.header("x-card"));
        response.body(received.body.clone().into()).unwrap()
    });
    let fixture = Fixture::with(echo, |_| {}).await;
    let id = fixture.card().await;
    let capture = LogCapture::start();

    let number = format!("{{{{ {id} | json: '$.number' }}}}");
    let query = serde_urlencoded::to_string([("card", &number)]).unwrap();
    let client = fixture.revealing().await;
    let request = fixture.request_of(&client, http::Method::POST, &format!("/{id}?{query}"));
    let request = request
        .header("x-card", &number)
        .header("authorization", "Bearer credential-of-psp");
    let response = client.send(request.body(number)).await;

    assert_eq!(response.bytes, NUMBER.as_bytes());
    assert_eq!(response.header("x-echo"), NUMBER);
    let log = capture.text();
    assert!(log.contains("/proxy/{suffix}"), "{log}");
    for secret in [NUMBER, "credential-of-psp"] {
        assert!(!log.contains(secret), "{log}");
    }
    let database = fixture.vault.database.connect().await;
    let sql = "select count(*) from log where log::text like '%42424242%'";
    let found: i64 = database.query_one(sql, &[]).await.unwrap().get(0);
    assert_eq!(found, 0);
}
