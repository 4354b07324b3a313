//! Effects of a tenant deletion.

use std::collections::BTreeSet;
use std::time::Duration;

use cloakroom::access::{self, ApplicationKind, Permission, Tenant, Transform};
use cloakroom::members::{self, Email, NewInvitation, Role};
use cloakroom::{ids, jobs, tenants};
use cloakroom_testkit::{Client, LogCapture, TestVault, everything, grants};
use http::StatusCode;
use serde_json::json;

use super::{SELF, add_member, keys_are_destroyed, manager, note, until};

/// Number of rows of a tenant in every table with a `tenant_id`.
async fn rows_of(vault: &TestVault, tenant: &Tenant) -> Vec<(String, i64)> {
    let database = vault.database.connect().await;
    let mut rows = Vec::new();
    for table in tables(vault).await {
        let count = format!("select count(*) from {table} where tenant_id = $1");
        let row = database.query_one(&count, &[&tenant.id.number]).await;
        rows.push((table, row.unwrap().get(0)));
    }
    rows
}

/// Every table with a `tenant_id`; partitions count as their table.
async fn tables(vault: &TestVault) -> Vec<String> {
    let database = vault.database.connect().await;
    let sql = "select c.relname::text
        from pg_class c
        join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant_id'
        where c.relnamespace = 'public'::regnamespace
          and c.relkind in ('r', 'p')
          and not c.relispartition
          -- No code writes it yet.
          and c.relname <> 'access_state'
        order by 1";
    let rows = database.query(sql, &[]).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

/// Tables whose rows outlive the tenant: the tenant row, so that its number is never reused, and its access states, so
/// that it is not restored by SQL; the destroyed keys; and the audit log, which is append-only.
const RETAINED: [&str; 6] = [
    "access_state",
    "key_proof",
    "key_rotation",
    "log",
    "tenant",
    "tenant_key",
];

#[tokio::test]
async fn every_table_with_a_tenant_id_is_swept() {
    let vault = TestVault::start().await;
    let swept: BTreeSet<String> = cloakroom::statements()
        .filter_map(|statement| statement.name.strip_prefix("tenants::remove_"))
        .map(str::to_owned)
        .collect();

    let tables: BTreeSet<String> = tables(&vault)
        .await
        .into_iter()
        .filter(|table| !RETAINED.contains(&table.as_str()))
        .collect();

    assert_eq!(swept, tables);
}

/// Inserts rows into almost every table and returns a client for the tokens.
async fn populate(vault: &TestVault, tenant: &Tenant) -> Client {
    let tokens = vault.client(tenant, everything(Transform::Reveal)).await;
    for data in ["a", "b", "c"] {
        let new = json!({"type": "token", "data": data, "metadata": {"m": data},
            "deduplicate_token": true});
        let created = tokens.post("/tokens", new).await;
        assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
    }
    let card = json!({"type": "card", "data": {"number": "4242424242424242",
        "expiration_month": 12, "expiration_year": 2099, "cvc": "123"}});
    tokens.post("/tokens", card).await;
    let intents = vault
        .client(tenant, grants(&[Permission::TokenIntentCreate]))
        .await;
    intents.post("/token-intents", note("later")).await;
    let public = grants(&[Permission::TokenCreate]);
    let public = vault.holder(tenant, ApplicationKind::Public, public).await;
    let browser = vault.client_with(Some(&public.key));
    browser.post("/sessions", json!({})).await;
    let keys = grants(&[Permission::KeysCreate, Permission::WebhookCreate]);
    let keys = vault
        .holder(tenant, ApplicationKind::Management, keys)
        .await;
    let keys = vault.client_with(Some(&keys.key));
    keys.post("/keys", json!({})).await;
    let webhook =
        json!({"name": "n", "url": "https://hooks.example.com/", "events": ["token.created"]});
    let webhook = keys.post("/webhooks", webhook).await;
    assert_eq!(webhook.status, StatusCode::CREATED);
    tokens.post("/tokens", note("event")).await;
    add_member(vault, tenant, "ada@example.com", Role::Owner).await;
    let new = NewInvitation {
        email: Email::parse("grace@example.com").unwrap(),
        role: Role::Admin,
    };
    let invited = members::invite_as_operator(&vault.vault, tenant.id, &new).await;
    invited.unwrap();
    tokens
}

/// Covers 14.17, 14.18.
#[tokio::test]
async fn deletion_revokes_access_on_all_nodes_and_removes_rows() {
    let vault = TestVault::start_with_immediate_deletion().await;
    let other = vault.second_node().await;
    let (tenant, other_tenant) = (vault.tenant().await, vault.tenant().await);
    let tokens = populate(&vault, &tenant).await;
    let other_client = populate(&vault, &other_tenant).await;
    let client = manager(&vault, &tenant).await;
    let holder = vault
        .holder(
            &tenant,
            ApplicationKind::Private,
            everything(Transform::Reveal),
        )
        .await;
    let other_node_client = other.client_with(Some(&holder.key));
    assert_eq!(other_node_client.get("/v2/tokens").await.items().len(), 5);
    let before = rows_of(&vault, &tenant).await;
    let filled = before.iter().filter(|(_, count)| *count > 0).count();
    assert!(filled >= 17, "{before:?}");
    let other_rows = rows_of(&vault, &other_tenant).await;
    let lines = LogCapture::start();

    let deleted = client.delete(SELF).await;

    assert_eq!(deleted.status, StatusCode::NO_CONTENT);
    let unauthorized = StatusCode::UNAUTHORIZED;
    assert_eq!(tokens.get("/v2/tokens").await.status, unauthorized);
    assert_eq!(client.get(SELF).await.status, unauthorized);
    let lag = until(unauthorized, async || {
        other_node_client.get("/v2/tokens").await.status
    })
    .await;
    assert!(lag <= Duration::from_secs(5), "{lag:?}");
    // A deleted tenant's key must not raise the alarm for altered rows.
    assert_eq!(lines.count("altered_row"), 0, "{}", lines.text());
    assert!(keys_are_destroyed(&vault, &tenant).await);
    assert!(tenants::find(&vault.vault, tenant.id.uuid).await.is_err());

    let swept = jobs::sweep_once(&vault.vault, ids::new_uuid()).await;
    assert_eq!(swept.unwrap(), Some(0));
    let after = rows_of(&vault, &tenant).await;
    for ((table, count), (_, earlier)) in after.into_iter().zip(&before) {
        let retained = RETAINED.contains(&table.as_str()) && *earlier > 0;
        assert_eq!(count > 0, retained, "{table}: {count} of {before:?}");
    }
    let left = rows_of(&vault, &other_tenant).await;
    assert_eq!(left, other_rows);
    assert_eq!(other_client.get("/v2/tokens").await.items().len(), 5);
    let examined = access::verify_rows(&vault.vault.db, vault.vault.keys.control())
        .await
        .unwrap();
    assert_eq!(examined.altered, Vec::<String>::new());
}

/// Covers 14.18.
#[tokio::test]
async fn rows_inserted_after_deletion_are_swept() {
    let vault = TestVault::start_with_immediate_deletion().await;
    let tenant = vault.tenant().await;
    let client = manager(&vault, &tenant).await;
    let sweep = async || {
        jobs::sweep_once(&vault.vault, ids::new_uuid())
            .await
            .unwrap()
    };
    client.delete(SELF).await;
    // The lease belongs to the last sweeper.
    let database = vault.database.connect().await;
    let release = async || database.execute("delete from lease", &[]).await.unwrap();
    sweep().await;

    // A node with a stale cache adds a member.
    add_member(&vault, &tenant, "late@example.com", Role::Admin).await;
    release().await;
    sweep().await;
    let members = async || {
        let rows = rows_of(&vault, &tenant).await;
        rows.into_iter()
            .find(|(table, _)| table == "member")
            .unwrap()
            .1
    };
    assert_eq!(members().await, 0);

    // The sweep ends once no node can have a stale cache.
    let is_swept = async || {
        let row = database
            .query_one("select swept_at is not null from tenant", &[])
            .await;
        row.unwrap().get::<_, bool>(0)
    };
    assert!(!is_swept().await);
    let hour = Duration::from_secs(60 * 60);
    for (late, expected) in [(hour, false), (Duration::ZERO, true)] {
        tenants::sweep(&vault.vault, late).await.unwrap();
        assert_eq!(is_swept().await, expected, "{late:?}");
    }
    add_member(&vault, &tenant, "never@example.com", Role::Admin).await;
    let removed = tenants::sweep(&vault.vault, Duration::ZERO).await.unwrap();
    assert_eq!(removed, 0);
}

/// Covers 14.18.
#[tokio::test]
async fn a_deletion_mark_set_by_sql_deletes_nothing() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    populate(&vault, &tenant).await;
    let before = rows_of(&vault, &tenant).await;

    let database = vault.database.connect().await;
    database
        .execute("update tenant set deleted_at = now()", &[])
        .await
        .unwrap();
    jobs::sweep_once(&vault.vault, ids::new_uuid())
        .await
        .unwrap();

    assert_eq!(rows_of(&vault, &tenant).await, before);
}

/// Covers 14.17.
#[tokio::test]
async fn a_deleted_tenant_cannot_be_restored_by_sql() {
    let vault = TestVault::start_with_immediate_deletion().await;
    let tenant = vault.tenant().await;
    let client = manager(&vault, &tenant).await;
    client.delete(SELF).await;

    let database = vault.database.connect().await;
    database
        .execute("update tenant set deleted_at = null", &[])
        .await
        .unwrap();

    assert_eq!(client.get(SELF).await.status, StatusCode::UNAUTHORIZED);
}

/// Covers 14.17.
#[tokio::test]
async fn tenant_numbers_are_not_reused() {
    let vault = TestVault::start_with_immediate_deletion().await;
    let tenant = vault.tenant().await;
    let client = manager(&vault, &tenant).await;
    client.delete(SELF).await;
    jobs::sweep_once(&vault.vault, ids::new_uuid())
        .await
        .unwrap();

    let next = vault.tenant().await;

    assert_ne!(next.id.number, tenant.id.number);
    let listed = tenants::list(&vault.vault).await.unwrap();
    assert_eq!(listed.len(), 1);
}
