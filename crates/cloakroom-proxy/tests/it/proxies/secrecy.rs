//! Secrets of proxies: sealed at rest, returned to management keys only, each read in the audit log.

use cloakroom::config::Secret;
use cloakroom_testkit::{LogCapture, TestRedis};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::Fixture;

const SECRET: &str = "sk_live_2f1b6a9c";

/// Covers 29.14.
#[tokio::test]
async fn keys_configuration_and_transforms_are_encrypted_at_rest_and_not_logged() {
    let logs = LogCapture::start();
    let fixture = Fixture::start().await;
    let header = json!([{"type": "append_header", "options": {"value": "transform-secret {{ config: KEY }}", "location": "X-A"}}]);
    let proxy = fixture
        .create(json!({"configuration": {"KEY": SECRET}, "request_transforms": header}))
        .await;
    let invoked = fixture.invoke(&fixture.caller, &proxy, json!({})).await;
    assert_eq!(invoked.status, StatusCode::OK, "{}", invoked.body);
    assert_eq!(
        fixture.destination.last().headers["x-a"],
        format!("transform-secret {SECRET}")
    );

    let database = fixture.vault.database.connect().await;
    let rows = database
        .query(
            "select proxy::text, encode(sealed, 'escape') from proxy",
            &[],
        )
        .await
        .unwrap();
    let stored: String = rows
        .iter()
        .map(|row| format!("{} {}", row.get::<_, String>(0), row.get::<_, String>(1)))
        .collect();

    assert!(stored.contains("Payments"), "{stored}");
    let key = proxy["key"].as_str().unwrap();
    for secret in [SECRET, key, "transform-secret"] {
        assert!(!stored.contains(secret), "{secret}");
        assert!(!logs.text().contains(secret), "{secret}");
        let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
        assert!(!stored.contains(&hex), "{secret}");
    }
}

/// Covers 29.15.
#[tokio::test]
async fn reads_of_configuration_values_are_in_the_audit_log() {
    let fixture = Fixture::start().await;
    let proxy = fixture
        .create(json!({"configuration": {"KEY": SECRET}}))
        .await;
    let id = proxy["id"].as_str().unwrap();
    fixture.manager.get(&format!("/proxies/{id}")).await;
    fixture.manager.get("/proxies").await;

    let rows = fixture
        .vault
        .database
        .connect()
        .await
        .query(
            "select count(*) from log where entity_id = $1 and operation = 2 and outcome = 4",
            &[&id],
        )
        .await
        .unwrap();

    assert_eq!(rows[0].get::<_, i64>(0), 2);
}

/// The key of an open proxy is a secret of the merchant; Redis counts its requests by a digest.
#[tokio::test]
async fn the_key_of_an_open_proxy_is_not_in_redis() {
    let redis = TestRedis::start(&[]).await;
    let fixture = Fixture::configured(&[], |config| {
        config.limits.enabled = true;
        config.redis.url = Some(Secret::new(redis.url()));
    })
    .await;
    let proxy = fixture.create(json!({"require_auth": false})).await;
    let key = proxy["key"].as_str().unwrap();
    let anonymous = fixture.vault.client_with(None);
    let request = anonymous.request(Method::POST, "/proxy");
    let response = anonymous.send(request.header("bt-proxy-key", key)).await;
    assert_eq!(response.status, StatusCode::OK, "{}", response.body);

    let counters = redis.keys().await;

    let of_proxies = counters.iter().filter(|name| name.contains(":proxy="));
    assert_eq!(of_proxies.count(), 1, "{counters:?}");
    assert!(!counters.iter().any(|name| name.contains(key)));
}

/// A configuration value that a transform inserts leaves only after its audit log entry.
#[tokio::test]
async fn configuration_values_of_transforms_are_not_sent_if_they_cannot_be_logged() {
    let fixture = Fixture::start().await;
    let header = json!([{"type": "append_header", "options": {"value": "{{ config: KEY }}", "location": "X-Key"}}]);
    let proxy = fixture
        .create(json!({"configuration": {"KEY": SECRET}, "request_transforms": header}))
        .await;
    let database = fixture.vault.database.connect().await;
    let sql = "alter table log add constraint no_more check (false) not valid";
    database.batch_execute(sql).await.unwrap();

    let response = fixture.invoke(&fixture.caller, &proxy, json!({})).await;

    assert_eq!(response.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(response.body["proxy_error"]["code"], "audit_unavailable");
    assert!(fixture.destination.received().is_empty());
}

/// Covers 29.16.
#[tokio::test]
async fn masked_configuration_values_stand_for_the_stored_ones() {
    let fixture = Fixture::start_with(&[("mask_proxy_configuration", "true")]).await;
    let header = json!([{"type": "append_header", "options": {"value": "{{ config: KEY }}", "location": "X-Key"}}]);
    let attributes =
        json!({"configuration": {"KEY": SECRET, "B": "2"}, "request_transforms": header});
    let proxy = fixture.create(attributes).await;
    let path = format!("/proxies/{}", proxy["id"].as_str().unwrap());
    let masked = json!({"KEY": "********", "B": "********"});
    assert_eq!(proxy["configuration"], masked);
    let read = fixture.manager.get(&path).await.body;
    assert_eq!(read["configuration"], masked);
    let listed = fixture.manager.get("/proxies").await;
    assert_eq!(listed.items()[0]["configuration"], masked);

    let mut change = fixture.new_proxy();
    change["request_transforms"] = header;
    change["configuration"] = json!({"KEY": "********", "B": "3"});
    let changed = fixture.manager.put(&path, change.clone()).await;
    assert_eq!(changed.status, StatusCode::OK, "{}", changed.body);
    assert_eq!(changed.body["configuration"], masked);
    fixture.invoke(&fixture.caller, &proxy, json!({})).await;
    assert_eq!(fixture.destination.last().headers["x-key"], SECRET);

    change["configuration"] = json!({"NEW": "********"});
    let rejected = fixture.manager.put(&path, change.clone()).await;
    assert_eq!(rejected.refused(), ["configuration"]);

    // A value that is masked does not follow the proxy to another host, where it could be read.
    let elsewhere = json!({"destination_url": "https://evil.example.com"});
    let rejected = fixture.manager.patch(&path, elsewhere).await;
    assert_eq!(rejected.refused(), ["configuration"]);
    change["configuration"] = json!({"KEY": "********"});
    change["destination_url"] = json!("https://evil.example.com");
    let rejected = fixture.manager.put(&path, change).await;
    assert_eq!(rejected.refused(), ["configuration"]);
    let renamed = fixture
        .manager
        .patch(&path, json!({"name": "Renamed"}))
        .await;
    assert_eq!(renamed.status, StatusCode::NO_CONTENT);
    fixture.invoke(&fixture.caller, &proxy, json!({})).await;
    assert_eq!(fixture.destination.last().headers["x-key"], SECRET);
}

/// A key that may change a proxy but not see its configuration values cannot learn them from a new transform.
#[tokio::test]
async fn a_changed_transform_does_not_keep_masked_configuration_values() {
    let fixture = Fixture::start_with(&[("mask_proxy_configuration", "true")]).await;
    let header = |value: &str| json!({"type": "append_header", "options": {"value": value, "location": "X-Key"}});
    let attributes = json!({"configuration": {"KEY": SECRET}, "request_transforms": [header("{{ config: KEY }}")]});
    let proxy = fixture.create(attributes).await;
    let path = format!("/proxies/{}", proxy["id"].as_str().unwrap());
    let oracle = "{{ config: KEY | slice: 0,1 | to_number }}";

    let transforms = json!({"request_transforms": [header(oracle)]});
    let rejected = fixture.manager.patch(&path, transforms).await;
    assert_eq!(rejected.refused(), ["configuration"]);
    let single = json!({"request_transform": header(oracle)});
    let rejected = fixture.manager.patch(&path, single).await;
    assert_eq!(rejected.refused(), ["configuration"]);
    let elsewhere = json!({"destination_url": fixture.destination.url("/echo")});
    let rejected = fixture.manager.patch(&path, elsewhere).await;
    assert_eq!(rejected.refused(), ["configuration"]);

    // With the value, the transform may change. Its failure does not name it.
    let change = json!({"configuration": {"KEY": SECRET}, "request_transforms": [header("a"), header(oracle)]});
    let changed = fixture.manager.patch(&path, change).await;
    assert_eq!(changed.status, StatusCode::NO_CONTENT, "{}", changed.body);
    let failed = fixture.invoke(&fixture.caller, &proxy, json!({})).await;
    assert_eq!(failed.status, StatusCode::BAD_REQUEST);
    let error = &failed.body["proxy_error"];
    assert_eq!(error["code"], "not_evaluated");
    assert!(
        !failed.body.to_string().contains("append_header"),
        "{error}"
    );
    assert!(fixture.destination.received().is_empty());
}

/// A row that was changed by SQL is neither returned nor invoked.
///
/// Covers 29.17.
#[tokio::test]
async fn rows_changed_by_sql_are_not_used() {
    let fixture = Fixture::start().await;
    let proxy = fixture
        .create(json!({"configuration": {"KEY": SECRET}}))
        .await;
    let other = fixture
        .create(json!({"name": "Other", "require_auth": false}))
        .await;
    let (id, other_id) = (proxy["id"].as_str().unwrap(), other["id"].as_str().unwrap());
    let database = fixture.vault.database.connect().await;
    let sealed = format!(
        "update proxy set sealed = other.sealed from proxy other where proxy.proxy_id = '{id}' and other.proxy_id = '{other_id}'"
    );
    let changes = [
        "update proxy set destination_url = 'https://evil.example.com'",
        "update proxy set name = 'x'",
        "update proxy set row_version = row_version + 1",
        "update proxy set application_id = gen_random_uuid()",
        "update proxy set sealed = set_byte(sealed, 40, get_byte(sealed, 40) # 1)",
        "update proxy set key_digest = set_byte(key_digest, 0, get_byte(key_digest, 0) # 1)",
        sealed.as_str(),
    ];
    for change in changes {
        database
            .batch_execute("create table backup as table proxy")
            .await
            .unwrap();
        database.batch_execute(change).await.unwrap();
        let read = fixture.manager.get(&format!("/proxies/{id}")).await;
        assert_eq!(read.status, StatusCode::INTERNAL_SERVER_ERROR, "{change}");
        assert_eq!(read.body["code"], "altered_row", "{change}");
        let changed = fixture
            .manager
            .put(&format!("/proxies/{id}"), fixture.new_proxy())
            .await;
        assert_eq!(
            changed.status,
            StatusCode::INTERNAL_SERVER_ERROR,
            "{change}"
        );
        // Invalidates the cache of this node.
        fixture.create(json!({"name": "Another"})).await;
        let invoked = fixture.invoke(&fixture.caller, &proxy, json!({})).await;
        assert!(!invoked.status.is_success(), "{change}");
        assert_eq!(
            invoked.header("bt-proxy-destination-status"),
            "",
            "{change}"
        );
        database
            .batch_execute(
                "delete from proxy where proxy_id in (select proxy_id from backup);
                insert into proxy select * from backup; drop table backup",
            )
            .await
            .unwrap();
    }
    assert_eq!(fixture.destination.received().len(), 0);
    assert_eq!(
        fixture.manager.get(&format!("/proxies/{id}")).await.body,
        proxy
    );
    let _: Value = other;
}

/// Authentic rows that Cloakroom has changed or deleted since are not invoked.
///
/// Covers 29.17.
#[tokio::test]
async fn proxies_restored_by_sql_are_not_invoked() {
    for is_deleted in [false, true] {
        let fixture = Fixture::start().await;
        let database = fixture.vault.database.connect().await;
        let proxy = fixture.create(json!({})).await;
        let path = format!("/proxies/{}", proxy["id"].as_str().unwrap());
        fixture.invoke(&fixture.caller, &proxy, json!({})).await;
        assert_eq!(fixture.destination.received().len(), 1);
        let save = "create table backup as table proxy";
        database.batch_execute(save).await.unwrap();
        match is_deleted {
            true => fixture.manager.delete(&path).await,
            false => fixture.manager.put(&path, fixture.new_proxy()).await,
        };
        let restore =
            "delete from proxy; insert into proxy select * from backup; drop table backup";
        database.batch_execute(restore).await.unwrap();

        let invoked = fixture.invoke(&fixture.caller, &proxy, json!({})).await;

        assert_eq!(invoked.status, StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(invoked.header("bt-proxy-destination-status"), "");
        let changed = fixture.manager.put(&path, fixture.new_proxy()).await;
        assert_eq!(changed.body["code"], "altered_row", "{is_deleted}");
        assert_eq!(fixture.destination.received().len(), 1);
    }
}
