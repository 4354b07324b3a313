//! Expired tokens are invisible and cannot be changed.

use std::time::Duration;

use cloakroom::access::{ApplicationKind, Transform};
use cloakroom_testkit::{Client, TestResponse, TestVault, everything};
use http::StatusCode;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{count, database_time};

/// Whether a token is visible, for every kind of request. One other token precedes it in lists; `next` is the cursor
/// between the two.
async fn visibility(client: &Client, id: &str, next: &str) -> Vec<(String, bool)> {
    let by_id = format!("/tokens?id={id}");
    let second_page = format!("/v2/tokens?container=/brief/&size=1&start={next}");
    let mut pages: Vec<(String, TestResponse)> = Vec::new();
    for path in [
        "/v2/tokens",
        "/v2/tokens?container=/brief/",
        second_page.as_str(),
        "/v2/tokens?type=token",
        "/v2/tokens?metadata.brief=yes",
        "/tokens",
        by_id.as_str(),
        "/tokens?metadata.brief=YES",
    ] {
        pages.push((path.to_owned(), client.get(path).await));
    }
    for (path, query) in [
        ("/v2/tokens/search", json!({})),
        ("/v2/tokens/search", json!({"query": "data:brief"})),
        ("/tokens/search", json!({"query": "data:brief"})),
        ("/tokens/search", json!({"query": format!("id:{id}")})),
    ] {
        pages.push((format!("{path} {query}"), client.post(path, query).await));
    }
    let mut visible = Vec::new();
    for (request, page) in pages {
        assert_eq!(page.status, StatusCode::OK, "{request}: {}", page.body);
        let items = page.body["data"].as_array().unwrap();
        let is_listed = items.iter().any(|item| item["id"] == id);
        // Pages of the older list also return a total, which a later query counts.
        if let Some(total) = page.body["pagination"]["total_items"].as_u64() {
            let others = u64::from(request == "/tokens");
            visible.push((format!("{request} counted"), total > others));
        }
        visible.push((request, is_listed));
    }
    let read = client.get(&format!("/tokens/{id}")).await;
    assert!(matches!(read.status.as_u16(), 200 | 404), "{}", read.body);
    visible.push(("get".to_owned(), read.status == StatusCode::OK));
    let filled = client
        .post("/detokenize", json!(format!("{{{{ {id} }}}}")))
        .await;
    assert!(
        matches!(filled.status.as_u16(), 200 | 400),
        "{}",
        filled.body
    );
    visible.push(("detokenize".to_owned(), filled.status == StatusCode::OK));
    visible
}

/// An expiring token that every kind of request finds.
fn expiring_token(expires_at: Timestamp) -> Value {
    json!({
        "type": "token",
        "data": "brief",
        "containers": ["/brief/"],
        "metadata": {"brief": "yes"},
        "search_indexes": ["{{ data }}"],
        "deduplicate_token": true,
        "expires_at": expires_at.to_string(),
    })
}

/// I05: from the instant of its expiry, no request on any node returns a token.
///
/// Covers 8.9, 8.10, 8.11, 4.2.
#[tokio::test]
async fn expired_tokens_are_invisible_from_the_instant_of_expiry() {
    let vault = TestVault::start_with_long_timeouts().await;
    let node = vault.second_node().await;
    let tenant = vault.tenant().await;
    let granted = everything(Transform::Reveal);
    let holder = vault
        .holder(&tenant, ApplicationKind::Private, granted)
        .await;
    let clients = [
        vault.client_with(Some(&holder.key)),
        node.client_with(Some(&holder.key)),
    ];
    let database = vault.database.connect().await;
    let expires_at = database_time(&database).await + Duration::from_secs(5);
    let created = clients[0].post("/tokens", expiring_token(expires_at)).await;
    assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
    let beside = json!({"type": "token", "data": "beside", "containers": ["/brief/"]});
    clients[0].post("/tokens", beside).await;
    let page = clients[0].get("/v2/tokens?container=/brief/&size=1").await;
    let next = page.body["pagination"]["next"].as_str().unwrap();

    let (mut requests, mut before, mut after) = (0, 0, 0);
    while after < 4 {
        for client in &clients {
            let sent_at = database_time(&database).await;
            let visible = visibility(client, &created.id(), next).await;
            let received_at = database_time(&database).await;
            requests = visible.len();
            if received_at < expires_at {
                assert!(
                    visible.iter().all(|(_, is_visible)| *is_visible),
                    "{visible:?}"
                );
                before += 1;
            } else if sent_at >= expires_at {
                assert!(
                    !visible.iter().any(|(_, is_visible)| *is_visible),
                    "{visible:?}"
                );
                after += 1;
            }
        }
    }
    println!("{requests} requests: {before} rounds before the expiry, {after} after it");
    assert!(before > 0);
    // No sweep has run, so the row still exists.
    assert_eq!(count(&vault, "token").await, 2);
}

/// I05: an expired token cannot be changed or deleted, and does not block a new one.
///
/// Covers 8.9, 8.11, 9.14.
#[tokio::test]
async fn expired_tokens_cannot_be_changed_and_their_ids_are_free() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let database = vault.database.connect().await;
    let created = client
        .post(
            "/tokens",
            expiring_token("2040-01-01T00:00:00Z".parse().unwrap()),
        )
        .await;
    let (id, path) = (created.id(), format!("/tokens/{}", created.id()));
    let sql = "update token set expires_at = now()";
    database.execute(sql, &[]).await.unwrap();

    let missing = client
        .get("/tokens/c06d0789-0a38-40be-b7cc-c28a718f76f1")
        .await;
    assert_eq!(missing.status, StatusCode::NOT_FOUND);
    let responses = [
        client.get(&path).await,
        client.patch(&path, json!({"expires_at": null})).await,
        client.patch(&path, json!({})).await,
        client.delete(&path).await,
    ];
    for response in responses {
        assert_eq!(response.bytes, missing.bytes, "{}", response.body);
    }
    for document in [
        json!(format!("{{{{ {id} }}}}")),
        json!([1, format!("{{{{ token: {id} }}}}")]),
    ] {
        let filled = client.post("/detokenize", document).await;
        assert_eq!(filled.status, StatusCode::BAD_REQUEST);
        assert!(
            filled.body["detail"].as_str().unwrap().contains(&id),
            "{}",
            filled.body
        );
    }

    // The new token inherits nothing.
    let again = client
        .post(
            "/tokens",
            json!({"id": id, "type": "token", "data": "again"}),
        )
        .await;
    assert_eq!(again.status, StatusCode::CREATED, "{}", again.body);
    let found = client.get(&path).await;
    assert_eq!(
        (&found.body["data"], found.body.get("expires_at")),
        (&json!("again"), None)
    );
    let page = client
        .post("/v2/tokens/search", json!({"query": "data:brief"}))
        .await;
    assert_eq!(page.body["data"], json!([]));
}
