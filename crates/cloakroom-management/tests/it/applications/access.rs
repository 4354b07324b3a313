//! Permissions, tenants, integrity and audit log of applications.

use cloakroom::access::{ALL_PERMISSIONS, ApplicationKind, Permission};
use cloakroom::route_requirements::{ROUTES, RouteRequirement};
use cloakroom_testkit::{TestVault, grants};
use http::{Method, StatusCode};
use serde_json::json;

use super::{UNKNOWN_ID, create_application, create_status, manager, new_application};

/// Covers 13.1.
#[tokio::test]
async fn each_operation_requires_its_own_permission() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let manager = manager(&vault, &tenant).await;
    let management = ApplicationKind::Management;
    let all = ALL_PERMISSIONS.iter().copied();
    let all: Vec<Permission> = all.filter(|one| one.fits(management)).collect();

    for RouteRequirement {
        method,
        path,
        needs,
    } in ROUTES
    {
        let [needed] = needs.permissions() else {
            continue;
        };
        if !path.starts_with("/applications") {
            continue;
        }
        assert_eq!(needed.kinds(), [management]);
        let others = all.iter().copied().filter(|other| other != needed);
        let others: Vec<Permission> = others.collect();
        // The application holds no more than the allowed caller; more would need `application:grant`.
        let new = json!({"name": "n", "type": "management", "permissions": [needed.name()]});
        for (held, is_allowed) in [(&others[..], false), (&[*needed][..], true)] {
            let application = create_application(&manager, new.clone()).await;
            let path = path
                .replace("{id}", &application.id)
                .replace("{key_id}", &application.key_id);
            let holder = vault.holder(&tenant, management, grants(held)).await;
            let client = vault.client_with(Some(&holder.key));
            let request = client.request(method.clone(), &path);
            let request = request.header("content-type", "application/json");
            let response = client.send(request.body(new.to_string())).await;
            let case = format!("{method} {path} {}", response.body);
            assert_eq!(response.status.is_success(), is_allowed, "{case}");
            assert_eq!(
                response.status == StatusCode::FORBIDDEN,
                !is_allowed,
                "{case}"
            );
        }
    }
}

/// Covers 13.25.
#[tokio::test]
async fn applications_of_other_tenants_are_not_found() {
    let vault = TestVault::start().await;
    let (one, two) = (vault.tenant().await, vault.tenant().await);
    let (owner, foreign_manager) = (manager(&vault, &one).await, manager(&vault, &two).await);
    let application = create_application(&owner, new_application()).await;
    let before = owner.get(&application.path).await.body;
    let body = json!({"name": "Mine", "permissions": ["token:read"]});

    let mut requests = 0;
    for RouteRequirement { method, path, .. } in ROUTES {
        if !path.starts_with("/applications/{id}") || path.ends_with("/regenerate") {
            continue;
        }
        let send = async |id: &str, key_id: &str| {
            let path = path.replace("{id}", id).replace("{key_id}", key_id);
            let request = foreign_manager.request(method.clone(), &path);
            let request = request.header("content-type", "application/json");
            foreign_manager.send(request.body(body.to_string())).await
        };
        let (foreign, unknown) = (
            send(&application.id, &application.key_id).await,
            send(UNKNOWN_ID, UNKNOWN_ID).await,
        );
        assert_eq!(foreign.status, StatusCode::NOT_FOUND, "{method} {path}");
        assert_eq!(foreign.bytes, unknown.bytes, "{method} {path}");
        requests += 1;
    }

    assert_eq!(requests, 7);
    let listed = foreign_manager
        .get(&format!("/applications?id={}", application.id))
        .await;
    assert_eq!(listed.body["pagination"]["total_items"], 0);
    assert_eq!(listed.items(), [json!(null); 0]);
    let all = foreign_manager.get("/applications?size=100").await;
    assert!(!String::from_utf8_lossy(&all.bytes).contains(&application.id));
    assert_eq!(owner.get(&application.path).await.body, before);
    assert_eq!(
        create_status(&vault, &application.key).await,
        StatusCode::CREATED
    );
}

/// Covers 13.26.
#[tokio::test]
async fn rows_modified_by_sql_are_rejected_but_deletable() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let manager = manager(&vault, &tenant).await;
    let database = vault.database.connect().await;
    let everything = r#"{"permissions":["token:create","token:delete"],"rules":[]}"#;
    let attacks = [
        format!("update application set grants = '{everything}' where application_id = $1"),
        "update application set name = 'another' where application_id = $1".to_owned(),
        "update application set kind = 3 where application_id = $1".to_owned(),
        "update application set kind = 99 where application_id = $1".to_owned(),
        "update application set expires_at = '2090-01-01' where application_id = $1".to_owned(),
    ];
    for attack in attacks {
        let application = create_application(&manager, new_application()).await;
        let id: uuid::Uuid = application.id.parse().unwrap();
        assert_eq!(database.execute(&attack, &[&id]).await.unwrap(), 1);

        let keys = format!("{}/keys", application.path);
        let change = json!({"name": "x", "permissions": ["token:read"]});
        for rejected in [
            manager.get(&application.path).await,
            manager.get("/applications").await,
            manager.put(&application.path, change).await,
            manager.get(&keys).await,
            manager.send(manager.request(Method::POST, &keys)).await,
            manager.get(&format!("{keys}/{}", application.key_id)).await,
        ] {
            assert_eq!(rejected.body["code"], "altered_row", "{attack}");
        }
        assert_eq!(
            create_status(&vault, &application.key).await,
            StatusCode::UNAUTHORIZED
        );
        assert_eq!(
            manager.delete(&application.path).await.status,
            StatusCode::NO_CONTENT
        );
    }

    let application = create_application(&manager, new_application()).await;
    let id: uuid::Uuid = application.key_id.parse().unwrap();
    let attack = "update application_key set expires_at = '2090-01-01' where key_id = $1";
    assert_eq!(database.execute(attack, &[&id]).await.unwrap(), 1);
    let one = format!("{}/keys/{}", application.path, application.key_id);
    for rejected in [
        manager.get(&application.path).await,
        manager.get(&one).await,
    ] {
        assert_eq!(rejected.body["code"], "altered_row");
    }
    assert_eq!(manager.delete(&one).await.status, StatusCode::NO_CONTENT);
    assert_eq!(manager.get(&application.path).await.status, StatusCode::OK);
}

/// Covers 13.27.
#[tokio::test]
async fn application_and_key_operations_are_recorded_in_the_audit_log() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let manager = manager(&vault, &tenant).await;
    let own = manager.get("/applications/key").await.id();
    let application = create_application(&manager, new_application()).await;
    let keys = format!("{}/keys", application.path);
    let second = manager
        .send(manager.request(Method::POST, &keys))
        .await
        .id();
    manager.get(&application.path).await;
    manager.get(&format!("{keys}/{second}")).await;
    manager.get("/applications").await;
    manager.get(&keys).await;
    let change = json!({"name": "x", "permissions": ["token:read"]});
    manager.put(&application.path, change).await;
    manager.put(&application.path, json!({"name": "x"})).await;
    manager.delete(&format!("{keys}/{second}")).await;
    manager.delete(&format!("{keys}/{second}")).await;
    manager.delete(&application.path).await;
    vault.vault.audit.flush().await.unwrap();

    let log_of = async |id: &str| {
        let listed = manager.get(&format!("/logs?entity_id={id}")).await;
        let entries = listed.items().iter().map(|record| {
            assert_eq!(record["actor_id"], own);
            format!("{}: {}", record["entity_type"], record["message"])
        });
        entries.collect::<Vec<_>>().join("; ").replace('"', "")
    };
    assert_eq!(
        log_of(&application.id).await,
        "application: Application deleted; application: Application updated; \
         application: Application retrieved; application: Application created"
    );
    assert_eq!(
        log_of(&second).await,
        "application_key: Application key deleted; application_key: Application key retrieved; \
         application_key: Application key created"
    );
    assert_eq!(
        log_of(&application.key_id).await,
        "application_key: Application key deleted; application_key: Application key created"
    );
}
