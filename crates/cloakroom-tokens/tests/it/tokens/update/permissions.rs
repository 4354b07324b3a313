//! Permissions for updates, and what their responses show.

use cloakroom::access::{ApplicationKind, Permission, Transform};
use cloakroom_testkit::{TestVault, everything, grants, rule};
use http::StatusCode;
use serde_json::{Value, json};

use super::row_version;
use crate::tokens::{create, send_patch, setup};

/// Covers 5.12.
#[tokio::test]
async fn empty_patches_record_the_caller_and_time() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = vault.client(&tenant, everything(Transform::Reveal)).await;
    let updater = vault
        .holder(
            &tenant,
            ApplicationKind::Private,
            everything(Transform::Reveal),
        )
        .await;
    let path = create(
        &client,
        json!({"type": "token", "data": "x", "metadata": {"k": "v"}}),
    )
    .await;
    let before = client.get(&path).await;

    let changed = send_patch(&vault.client_with(Some(&updater.key)), &path, json!({})).await;
    let after = client.get(&path).await;

    assert_eq!(before.body.get("modified_by"), None);
    assert_eq!(before.body.get("modified_at"), None);
    assert_eq!(after.body["modified_by"], json!(updater.application));
    assert!(after.body["modified_at"].as_str() > before.body["created_at"].as_str());
    assert_eq!(after.body["modified_at"], changed.body["modified_at"]);
    let mut rest = after.body.clone();
    rest.as_object_mut()
        .unwrap()
        .retain(|name, _| !name.starts_with("modified_"));
    assert_eq!(rest, before.body);

    let again = send_patch(&client, &path, json!({})).await;
    assert!(again.body["modified_at"].as_str() > after.body["modified_at"].as_str());
    assert_eq!(again.body["modified_by"], before.body["created_by"]);
}

/// Covers 5.16.
#[tokio::test]
async fn responses_are_transformed_by_the_update_grant() {
    use Permission::{TokenRead, TokenUpdate};
    let (vault, tenant, writer) = setup().await;
    let by_rule = |transform| {
        let mut granted = grants(&[]);
        granted.rules = vec![
            rule(1, "/", Transform::Reveal, &[TokenRead]),
            rule(2, "/", transform, &[TokenUpdate]),
        ];
        granted
    };

    let cases = [
        (grants(&[TokenUpdate]), Some("XXXX5678")),
        (by_rule(Transform::Redact), None),
        (by_rule(Transform::Mask), Some("XXXX5678")),
        (by_rule(Transform::Reveal), Some("12345678")),
    ];
    for (granted, expected) in cases {
        let client = vault.client(&tenant, granted).await;
        let new = json!({"type": "token", "data": "x", "mask": "{{ data | reveal_last: 4 }}"});
        let path = create(&writer, new).await;

        let changed = send_patch(&client, &path, json!({"data": "12345678"})).await;

        assert_eq!(changed.body.get("data").and_then(Value::as_str), expected);
        assert_eq!(changed.body["_extras"], json!({"deduplicated": false}));
    }
    let public = vault
        .holder(&tenant, ApplicationKind::Public, grants(&[TokenUpdate]))
        .await;
    let path = create(&writer, json!({"type": "token", "data": "x"})).await;
    let public = vault.client_with(Some(&public.key));
    let changed = send_patch(&public, &path, json!({"data": "y"})).await;
    assert_eq!(changed.body.get("data"), None);
}

/// Covers 5.6, 5.16, 5.23.
#[tokio::test]
async fn moving_a_token_requires_permission_in_both_containers() {
    use Permission::TokenUpdate;
    let (vault, tenant, writer) = setup().await;
    let in_containers = |rules: &[(&str, Transform)]| {
        let mut granted = grants(&[]);
        granted.rules = (1..)
            .zip(rules)
            .map(|(priority, (path, transform))| rule(priority, path, *transform, &[TokenUpdate]))
            .collect();
        granted
    };
    let (mask, reveal) = (Transform::Mask, Transform::Reveal);

    let cases = [
        (vec![("/a/", reveal)], "/a/", "/a/sub/", Some(json!("x"))),
        (vec![("/a/", reveal)], "/a/", "/b/", None),
        (vec![("/b/", reveal)], "/a/", "/b/", None),
        (vec![("/b/", reveal)], "/a/", "/a/", None),
        (vec![("/a/sub/", reveal)], "/a/sub/", "/a/", None),
        // A caller that cannot see the data could otherwise move it to where it can, or show it to others.
        (vec![("/a/", mask), ("/b/", reveal)], "/a/", "/b/", None),
        (
            vec![("/a/", reveal), ("/b/", mask)],
            "/a/",
            "/b/",
            Some(json!("m")),
        ),
    ];
    for (rules, from, to, shown) in cases {
        let case = format!("{rules:?} {from} {to}");
        let client = vault.client(&tenant, in_containers(&rules)).await;
        let new = json!({"type": "token", "data": "x", "mask": "m", "containers": [from]});
        let path = create(&writer, new).await;

        let response = client.patch(&path, json!({"containers": [to]})).await;

        let moved = shown.is_some();
        let expected = if moved {
            StatusCode::OK
        } else {
            StatusCode::FORBIDDEN
        };
        assert_eq!(response.status, expected, "{case}");
        assert_eq!(response.body.get("data"), shown.as_ref(), "{case}");
        let container = if moved { to } else { from };
        assert_eq!(
            writer.get(&path).await.body["containers"],
            json!([container]),
            "{case}"
        );
        assert_eq!(
            row_version(&vault, &path).await,
            if moved { 2 } else { 1 },
            "{case}"
        );
    }
    // The default container, which null selects, needs the permission too.
    let client = vault
        .client(&tenant, in_containers(&[("/a/", reveal)]))
        .await;
    let path = create(
        &writer,
        json!({"type": "token", "data": 1, "containers": ["/a/"]}),
    )
    .await;
    let response = client.patch(&path, json!({"containers": null})).await;
    assert_eq!(response.status, StatusCode::FORBIDDEN);
}

/// Covers 5.22, 5.23.
#[tokio::test]
async fn updates_without_permission_are_forbidden() {
    use Permission::{TokenRead, TokenUpdate};
    let (vault, tenant, writer) = setup().await;
    let mut elsewhere = grants(&[TokenRead]);
    elsewhere.rules = vec![rule(1, "/elsewhere/", Transform::Reveal, &[TokenUpdate])];
    let elsewhere = vault.client(&tenant, elsewhere).await;
    let nowhere = vault.client(&tenant, grants(&[TokenRead])).await;
    let path = create(&writer, json!({"type": "token", "data": "x"})).await;

    let here = elsewhere.patch(&path, json!({"data": "y"})).await;
    let unknown = elsewhere.patch("/tokens/nowhere", json!({})).await;
    let probing = nowhere.patch("/tokens/nowhere", json!({})).await;

    assert_eq!(here.status, StatusCode::FORBIDDEN);
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
    // A caller without any update permission cannot probe for ids.
    assert_eq!(probing.status, StatusCode::FORBIDDEN);
    assert_eq!(row_version(&vault, &path).await, 1);
}
