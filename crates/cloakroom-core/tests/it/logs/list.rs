//! Listing log entries.

use std::time::Duration;

use cloakroom::access::{ApplicationKind, Transform};
use cloakroom_testkit::{DatabaseProxy, TestVault, everything};
use http::StatusCode;
use serde_json::{Value, json};

use super::{note, reader};

/// Requests to several nodes, one after the other, are logged in that order.
/// Covers 19.4.
#[tokio::test]
async fn entries_of_several_nodes_are_listed_in_order() {
    let near = TestVault::start().await;
    let proxy = DatabaseProxy::with_delay(&near.database.url, Duration::from_millis(100)).await;
    let proxy_url = proxy.url.clone();
    let far = near
        .node_with(|config| {
            config.database.url = Some(cloakroom::config::Secret::new(&proxy_url));
            config.database.max_connections = 1;
        })
        .await;
    let tenant = near.tenant().await;
    let grants = everything(Transform::Reveal);
    let holder = near.holder(&tenant, ApplicationKind::Private, grants).await;
    let (near_client, far_client) = (
        near.client_with(Some(&holder.key)),
        far.client_with(Some(&holder.key)),
    );
    // Warm up, so that each create takes a single round trip to the database.
    for client in [&near_client, &near_client, &far_client, &far_client] {
        client.post("/tokens", note("warm")).await;
    }

    let first = near_client.post("/tokens", note("first")).await.id();
    let second = far_client.post("/tokens", note("second")).await.id();

    let logs = reader(&near, &tenant).await;
    let listed = logs.get("/logs?entity_type=token&size=2").await;
    let ids: Vec<&Value> = listed
        .items()
        .iter()
        .map(|record| &record["entity_id"])
        .collect();
    assert_eq!(ids, [&json!(second), &json!(first)]);
}

/// Covers 19.4.
#[tokio::test]
async fn logs_are_listed_by_page_and_by_cursor() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = vault.client(&tenant, everything(Transform::Mask)).await;
    let logs = reader(&vault, &tenant).await;
    let mut ids = Vec::new();
    for index in 0..25 {
        ids.push(client.post("/tokens", note(&index.to_string())).await.id());
    }
    ids.reverse();
    let tokens = |items: &[Value]| -> Vec<String> {
        let id = |record: &Value| record["entity_id"].as_str().unwrap().to_owned();
        items.iter().map(id).collect()
    };

    let mut by_page = Vec::new();
    for page in 1.. {
        let path = format!("/logs?entity_type=token&page={page}&size=10");
        let response = logs.get(&path).await;
        assert_eq!(response.body["pagination"]["page_number"], page);
        if response.items().is_empty() {
            assert_eq!(page, 4);
            break;
        }
        by_page.extend(tokens(response.items()));
    }
    let mut by_cursor = Vec::new();
    let mut path = "/logs?entity_type=token&size=10".to_owned();
    loop {
        let response = logs.get(&path).await;
        assert_eq!(
            response.body["pagination"]["page_size"],
            response.items().len()
        );
        by_cursor.extend(tokens(response.items()));
        let Some(next) = response.body["pagination"]["next"].as_str() else {
            break;
        };
        path = format!("/logs?entity_type=token&size=10&start={next}");
    }

    assert_eq!(by_page, ids);
    assert_eq!(by_cursor, ids);
    let other_filter = path.replace("entity_type=token", "entity_type=card");
    assert_eq!(logs.get(&other_filter).await.refused(), ["start"]);
    let other = reader(&vault, &vault.tenant().await).await;
    assert_eq!(other.get(&path).await.refused(), ["start"]);
    assert_eq!(other.get("/logs?size=0").await.items().len(), 0);
    let theirs = other.get("/logs?entity_type=token").await;
    assert_eq!(theirs.items().len(), 0, "entries of another tenant");
}

/// Covers 19.5.
#[tokio::test]
async fn logs_are_filtered_and_invalid_filters_are_rejected() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = vault.client(&tenant, everything(Transform::Mask)).await;
    let logs = reader(&vault, &tenant).await;
    let card = json!({"type": "card", "data": {"number": "4242424242424242"}});
    let bank = json!({
        "type": "bank",
        "data": {"routing_number": "021000021", "account_number": "00001"},
    });
    for token in [note("a"), card, bank] {
        assert_eq!(
            client.post("/tokens", token).await.status,
            StatusCode::CREATED
        );
    }

    let cases = [
        ("entity_type=token", 3),
        ("entity_type=card", 1),
        ("entity_type=bank", 1),
        ("entity_type=session", 0),
        ("entity_type=token&start_date=2020-01-01", 3),
        ("entity_type=token&start_date=2020-01-01T00:00:00.000Z", 3),
        ("entity_type=token&start_date=2999-01-01T00:00:00Z", 0),
        ("entity_type=token&end_date=2020-01-01", 0),
        ("entity_type=token&end_date=2999-01-01", 3),
        ("entity_id=nothing", 0),
    ];
    for (filter, expected) in cases {
        let response = logs.get(&format!("/logs?{filter}")).await;
        assert_eq!(response.items().len(), expected, "{filter}");
        let all_tokens = response
            .items()
            .iter()
            .all(|it| it["entity_type"] == "token");
        assert!(all_tokens, "{filter}");
    }
    let invalid = [
        ("entity_type=cards", "entity_type"),
        ("start_date=yesterday", "start_date"),
        ("end_date=1.1.2020", "end_date"),
        ("size=5001", "size"),
        ("size=-1", "size"),
        ("page=0", "page"),
        ("start=AAAA", "start"),
    ];
    for (filter, name) in invalid {
        let response = logs.get(&format!("/logs?{filter}")).await;
        assert_eq!(response.refused(), [name], "{filter}");
    }
    let types = logs.get("/logs/entity-types").await;
    let values: Vec<&str> = types
        .body
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["value"].as_str().unwrap())
        .collect();
    assert_eq!(values.len(), 21);
    assert!(values.contains(&"threeds_session") && values.contains(&"key"));
}

/// A tenant sees the period of its quota; older entries stay for verification.
/// Covers 19.6.
#[tokio::test]
async fn entries_older_than_the_quota_are_not_listed() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = vault.client(&tenant, everything(Transform::Mask)).await;
    let logs = reader(&vault, &tenant).await;
    client.post("/tokens", note("a")).await;
    client.post("/tokens", note("b")).await;
    let database = vault.database.connect().await;
    let age = async |time: &str| {
        let sql = format!(
            "with aged as (delete from log where seq = (select max(seq) from log where entity_kind = 1)
                 and entity_kind = 1 returning *)
             insert into log select mod((extract(epoch from now() - interval '{time}') / 86400)::int, 100),
                 now() - interval '{time}', tenant_id, actor_kind, actor_id, key_id, entity_kind, entity_id,
                 operation, outcome, origin, trace_id, chain, seq, commit from aged"
        );
        // The day of a timestamp is rounded down.
        let sql = sql
            .replace("(extract(epoch", "(floor(extract(epoch")
            .replace("/ 86400)::int", "/ 86400))::int");
        database.batch_execute(&sql).await.unwrap();
    };

    age("23 hours 59 minutes").await;
    let before = logs.get("/logs?entity_type=token").await.items().len();
    age("24 hours 1 second").await;
    let after = logs.get("/logs?entity_type=token").await.items().len();

    assert_eq!((before, after), (2, 1));
}
