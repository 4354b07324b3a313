//! What was erased stays erased, also when an older backup is restored.

use std::time::Duration;

use cloakroom::access::{ApplicationKind, Permission, Transform};
use cloakroom::erasures::{self, Applied, Error, Ledger};
use http::StatusCode;
use serde_json::json;

use crate::support::{Client, TestVault, everything, grants};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

async fn keep(client: &Client, data: &str) -> String {
    let body = json!({"type": "token", "data": data});
    client.post("/tokens", body).await.id()
}

/// The ledger as it lies in a file.
async fn written(vault: &TestVault) -> String {
    let ledger = erasures::write(&vault.vault, DAY).await.unwrap();
    ledger.to_text(vault.vault.keys.audit()).unwrap()
}

async fn apply(vault: &TestVault, text: &str) -> Applied {
    let ledger = Ledger::parse(text, vault.vault.keys.audit()).unwrap();
    erasures::apply(&vault.vault, &ledger, |_| {})
        .await
        .unwrap()
}

#[tokio::test]
async fn what_was_deleted_after_a_backup_is_deleted_from_what_it_restores() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = vault.client(&tenant, everything(Transform::Reveal)).await;
    let kept = keep(&client, "kept").await;
    let mut deleted = Vec::new();
    for number in 0..20 {
        deleted.push(keep(&client, &format!("secret {number}")).await);
    }
    let named = json!({"id": "a name", "type": "token", "data": "first"});
    client.post("/tokens", named.clone()).await;
    let grant = || everything(Transform::Reveal);
    let private = ApplicationKind::Private;
    let gone_application = vault.holder(&tenant, private, grant()).await;
    let gone_key = vault.holder(&tenant, private, grant()).await;
    let backup = vault.database.dump(&[]);

    for id in deleted.iter().map(String::as_str).chain(["a name"]) {
        let answer = client.delete(&format!("/tokens/{id}")).await;
        assert_eq!(answer.status, StatusCode::NO_CONTENT);
    }
    client.post("/tokens", named).await;
    let manager = grants(&[Permission::ApplicationDelete]);
    let manager = vault.holder(&tenant, ApplicationKind::Management, manager);
    let manager = vault.client_with(Some(&manager.await.key));
    for path in [
        format!("/applications/{}", gone_application.application),
        format!(
            "/applications/{}/keys/{}",
            gone_key.application, gone_key.key_id
        ),
    ] {
        assert_eq!(manager.delete(&path).await.status, StatusCode::NO_CONTENT);
    }
    let ledger = written(&vault).await;

    let restored = vault.restored(&backup).await;
    let reader = client.at(&restored.base_url);
    let gone = [gone_application, gone_key].map(|holder| restored.client_with(Some(&holder.key)));
    // Without the ledger it is all there again.
    let resurrected = reader.get(&format!("/tokens/{}", deleted[0])).await;
    assert_eq!(resurrected.body["data"], "secret 0");
    assert_eq!(
        gone[0].get(&format!("/tokens/{kept}")).await.status,
        StatusCode::OK
    );

    // Twenty tokens, a name, two keys and an application; the key that goes with it is named as well.
    let applied = apply(&restored, &ledger).await;
    assert_eq!(applied.erased, 24, "{applied:?}");
    for id in deleted.iter().map(String::as_str).chain(["a name"]) {
        let answer = reader.get(&format!("/tokens/{id}")).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{id}");
    }
    for client in gone {
        let answer = client.get(&format!("/tokens/{kept}")).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
    }
    let answer = reader.get(&format!("/tokens/{kept}")).await;
    assert_eq!(answer.body["data"], "kept");
    let again = apply(&restored, &ledger).await;
    assert_eq!(
        again,
        Applied {
            erased: 0,
            absent: 24
        }
    );

    // In the vault itself, the token that got the same name later stays.
    assert_eq!(apply(&vault, &ledger).await.erased, 0);
    assert_eq!(client.get("/tokens/a name").await.body["data"], "first");
}

#[tokio::test]
async fn a_tenant_that_was_deleted_is_dead_in_what_is_restored() {
    let vault = TestVault::start().await;
    let (tenant, other) = (vault.tenant().await, vault.tenant().await);
    let client = vault.client(&tenant, everything(Transform::Reveal)).await;
    let neighbour = vault.client(&other, everything(Transform::Reveal)).await;
    let (id, kept) = (
        keep(&client, "a secret").await,
        keep(&neighbour, "kept").await,
    );
    let manager = grants(&[Permission::TenantDelete]);
    let manager = vault.holder(&tenant, ApplicationKind::Management, manager);
    let manager = vault.client_with(Some(&manager.await.key));
    let backup = vault.database.dump(&[]);
    let answer = manager.delete("/tenants/self").await;
    assert_eq!(answer.status, StatusCode::NO_CONTENT);
    let ledger = written(&vault).await;

    let restored = vault.restored(&backup).await;
    let path = format!("/tokens/{id}");
    let resurrected = client.at(&restored.base_url).get(&path).await;
    assert_eq!(resurrected.body["data"], "a secret");

    assert_eq!(
        apply(&restored, &ledger).await,
        Applied {
            erased: 1,
            absent: 0
        }
    );
    let answer = client.at(&restored.base_url).get(&path).await;
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
    // Its keys are destroyed: no row of it opens any more.
    let database = restored.database.connect().await;
    let sql = "select count(*) from tenant_key where tenant_id = $1 and wrapped <> ''";
    let keys: i64 = database
        .query_one(sql, &[&tenant.id.number])
        .await
        .unwrap()
        .get(0);
    assert_eq!(keys, 0);
    let answer = neighbour
        .at(&restored.base_url)
        .get(&format!("/tokens/{kept}"))
        .await;
    assert_eq!(answer.body["data"], "kept");
}

#[tokio::test]
async fn a_ledger_that_was_changed_or_cut_or_is_another_vaults_is_refused() {
    let (vault, other) = (TestVault::start().await, TestVault::start().await);
    let client = vault.revealing_client().await;
    for data in ["one", "two"] {
        let id = keep(&client, data).await;
        client.delete(&format!("/tokens/{id}")).await;
    }
    let text = written(&vault).await;
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    assert_eq!(lines.len(), 3);
    let key = vault.vault.keys.audit();

    assert!(Ledger::parse(&text, key).is_ok());
    for changed in [
        lines[1..].concat(),
        [lines[1], lines[0], lines[2]].concat(),
        text.replace("\"token\"", "\"tenant\""),
        text.replacen("\"from\":\"20", "\"from\":\"19", 1),
    ] {
        assert_ne!(changed, text);
        let refused = Ledger::parse(&changed, key);
        assert!(matches!(refused, Err(Error::NotGenuine)), "{changed}");
    }
    for cut in ["", lines[0], &text[..text.len() - 20]] {
        let refused = Ledger::parse(cut, key);
        assert!(matches!(refused, Err(Error::Unreadable(_))), "{cut}");
    }
    let foreign = Ledger::parse(&text, other.vault.keys.audit());
    assert!(matches!(foreign, Err(Error::NotGenuine)));
}
