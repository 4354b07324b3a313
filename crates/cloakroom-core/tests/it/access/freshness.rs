//! Authentic rows that are not current: restored by SQL after Cloakroom changed or deleted them.

use std::time::Duration;

use cloakroom::access::{
    self, Anchored, ApplicationKind, Bucket, Grants, LockError, Permission, Tenant,
};
use cloakroom::applications::{self, ApplicationChange};
use cloakroom::idempotency::ResponseTemplate;
use cloakroom::tenants::{self, TenantChanges};
use cloakroom::{Vault, access_change, audit, ids};
use cloakroom_testkit::{TestApplication, TestDatabase, TestVault, grants};
use http::StatusCode;
use serde_json::json;
use uuid::Uuid;

use super::create_status;

/// Tables whose rows are in a bucket.
const TABLES: [&str; 8] = [
    "tenant",
    "application",
    "application_key",
    "proxy",
    "webhook",
    "branding",
    "tenant_deletion",
    "export_request",
];

/// A vault without a cache of principals, so that every request reads the rows.
async fn uncached_vault() -> TestVault {
    TestVault::start_with(TestDatabase::create().await, |config| {
        config.access.key_cache_ttl = Duration::ZERO;
        config.tenants.immediate_deletion = true;
    })
    .await
}

async fn run(vault: &TestVault, sql: &str) {
    let database = vault.database.connect().await;
    database.batch_execute(sql).await.unwrap();
}

/// Copies a table, like a backup does.
async fn save(vault: &TestVault, table: &str) {
    run(
        vault,
        &format!("create table saved_{table} as table {table}"),
    )
    .await;
}

/// Replaces the rows of a table by those of the copy.
async fn restore(vault: &TestVault, table: &str) {
    let sql = format!("delete from {table}; insert into {table} select * from saved_{table}");
    run(vault, &sql).await;
}

async fn creator(vault: &TestVault, tenant: &Tenant) -> TestApplication {
    let granted = grants(&[Permission::TokenCreate]);
    vault
        .holder(tenant, ApplicationKind::Private, granted)
        .await
}

async fn delete_key(vault: &TestVault, tenant: &Tenant, holder: &TestApplication) {
    let (application, key) = (holder.application.to_string(), holder.key_id.to_string());
    applications::delete_key(&vault.vault, tenant.into(), &application, &key)
        .await
        .unwrap();
}

async fn set_grants(
    vault: &Vault,
    tenant: &Tenant,
    application: Uuid,
    granted: Grants,
) -> Result<(), applications::Error> {
    let change = ApplicationChange {
        name: Some("Changed".into()),
        grants: granted.into(),
    };
    let (id, none) = (application.to_string(), ResponseTemplate::none());
    let updated = applications::update(vault, tenant.into(), &id, change, &none).await;
    updated.map(drop)
}

async fn findings(vault: &TestVault) -> Vec<String> {
    access::verify_states(&vault.vault.db, vault.vault.keys.control())
        .await
        .unwrap()
}

#[tokio::test]
async fn a_deleted_key_restored_by_sql_is_rejected() {
    let vault = uncached_vault().await;
    let tenant = vault.tenant().await;
    let holder = creator(&vault, &tenant).await;
    assert_eq!(
        create_status(&vault, &holder.key).await,
        StatusCode::CREATED
    );
    save(&vault, "application_key").await;
    delete_key(&vault, &tenant, &holder).await;

    restore(&vault, "application_key").await;

    let status = create_status(&vault, &holder.key).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
    let found = findings(&vault).await;
    let expected = format!("the API key {} was restored or added", holder.key_id);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains(&expected), "{found:?}");
}

#[tokio::test]
async fn a_deleted_application_restored_with_its_key_is_rejected() {
    let vault = uncached_vault().await;
    let tenant = vault.tenant().await;
    let holder = creator(&vault, &tenant).await;
    save(&vault, "application_key").await;
    save(&vault, "application").await;
    let id = holder.application.to_string();
    applications::delete(&vault.vault, (&tenant).into(), &id)
        .await
        .unwrap();

    restore(&vault, "application_key").await;
    restore(&vault, "application").await;

    let status = create_status(&vault, &holder.key).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
    let found = findings(&vault).await;
    assert_eq!(found.len(), 1, "{found:?}");
    for id in [holder.application, holder.key_id] {
        assert!(found[0].contains(&id.to_string()), "{found:?}");
    }
}

#[tokio::test]
async fn former_grants_restored_by_sql_grant_nothing() {
    let vault = uncached_vault().await;
    let tenant = vault.tenant().await;
    let holder = creator(&vault, &tenant).await;
    save(&vault, "application").await;
    let narrowed = grants(&[Permission::TokenUse]);
    set_grants(&vault.vault, &tenant, holder.application, narrowed)
        .await
        .unwrap();
    let status = create_status(&vault, &holder.key).await;
    assert_eq!(status, StatusCode::FORBIDDEN);

    restore(&vault, "application").await;

    let status = create_status(&vault, &holder.key).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
    let found = findings(&vault).await;
    assert_eq!(found.len(), 1, "{found:?}");
    let named = found[0].contains(&holder.application.to_string());
    assert!(named, "{found:?}");
}

#[tokio::test]
async fn former_settings_and_quotas_restored_by_sql_stop_the_tenant() {
    let changes = [
        TenantChanges {
            settings: vec![("deduplicate_tokens".into(), json!("true"))],
            ..TenantChanges::default()
        },
        TenantChanges {
            quotas: vec![("tokenize_limit".into(), json!(5))],
            ..TenantChanges::default()
        },
    ];
    for change in changes {
        let vault = uncached_vault().await;
        let tenant = vault.tenant().await;
        let holder = creator(&vault, &tenant).await;
        save(&vault, "tenant").await;
        tenants::update_as_operator(&vault.vault, tenant.id, &change)
            .await
            .unwrap();
        assert_eq!(
            create_status(&vault, &holder.key).await,
            StatusCode::CREATED
        );

        restore(&vault, "tenant").await;

        let status = create_status(&vault, &holder.key).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "{change:?}");
        let found = findings(&vault).await;
        assert!(found[0].contains(&tenant.id.uuid.to_string()), "{found:?}");
    }
}

#[tokio::test]
async fn a_deleted_tenant_restored_by_sql_stays_deleted() {
    let vault = uncached_vault().await;
    let tenant = vault.tenant().await;
    let holder = creator(&vault, &tenant).await;
    for table in ["tenant", "tenant_key"] {
        save(&vault, table).await;
    }
    tenants::delete_as_operator(&vault.vault, tenant.id)
        .await
        .unwrap();

    for table in ["tenant", "tenant_key"] {
        restore(&vault, table).await;
    }

    let status = create_status(&vault, &holder.key).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
    // The tenant, and its keys.
    assert_eq!(findings(&vault).await.len(), 2);
    let deleted = "delete from tenant";
    run(&vault, deleted).await;
    let found = findings(&vault).await;
    assert!(found[0].contains("was deleted outside"), "{found:?}");
}

#[tokio::test]
async fn a_change_does_not_make_restored_rows_current() {
    let vault = uncached_vault().await;
    let tenant = vault.tenant().await;
    let holder = creator(&vault, &tenant).await;
    save(&vault, "application_key").await;
    delete_key(&vault, &tenant, &holder).await;
    restore(&vault, "application_key").await;

    let granted = grants(&[Permission::TokenCreate]);
    let changed = set_grants(&vault.vault, &tenant, holder.application, granted).await;

    let error = changed.err().unwrap();
    assert!(matches!(error, applications::Error::Altered(_)), "{error}");
    assert!(error.to_string().contains("cloakroom doctor"), "{error}");
    let status = create_status(&vault, &holder.key).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
}

/// The digest is computed from the verified rows and the declared change, not read again from the table.
#[tokio::test]
async fn a_row_restored_while_a_change_is_under_way_does_not_become_current() {
    let vault = uncached_vault().await;
    let tenant = vault.tenant().await;
    let holder = creator(&vault, &tenant).await;
    save(&vault, "application_key").await;
    delete_key(&vault, &tenant, &holder).await;
    let bucket = Bucket::of_application(holder.application);

    let mut change = access_change::begin(&vault.vault, tenant.id, &[bucket])
        .await
        .unwrap();
    restore(&vault, "application_key").await;
    change.insert(bucket, &[1; 32]).unwrap();
    change.remove(bucket, &[1; 32]).unwrap();
    change.commit(&[]).await.unwrap();

    let status = create_status(&vault, &holder.key).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_row_restored_with_its_state_is_rejected_by_nodes_that_saw_the_newer_one() {
    let vault = uncached_vault().await;
    let tenant = vault.tenant().await;
    let holder = creator(&vault, &tenant).await;
    let other = vault.second_node().await;
    for table in ["application_key", "access_state"] {
        save(&vault, table).await;
    }
    let (id, none) = (holder.application.to_string(), ResponseTemplate::none());
    let another = applications::create_key(&vault.vault, (&tenant).into(), &id, &none)
        .await
        .unwrap();
    delete_key(&vault, &tenant, &holder).await;
    // The other node sees the new generation with the new key.
    let status = create_status(&other, another.key.expose()).await;
    assert_eq!(status, StatusCode::CREATED);

    for table in ["application_key", "access_state"] {
        restore(&vault, table).await;
    }

    for node in [&vault, &other] {
        let status = create_status(node, &holder.key).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED);
    }
    let bucket = Bucket::of_application(holder.application);
    let change = access_change::begin(&vault.vault, tenant.id, &[bucket]).await;
    assert!(matches!(change.err(), Some(LockError::Stale)));
}

/// A node that starts afterwards has seen no newer state. Checkpoints have.
#[tokio::test]
async fn a_row_restored_with_its_state_is_named_by_the_next_verification() {
    let vault = uncached_vault().await;
    let tenant = vault.tenant().await;
    let other = creator(&vault, &tenant).await;
    let holder = creator(&vault, &tenant).await;
    for table in ["application_key", "access_state"] {
        save(&vault, table).await;
    }
    delete_key(&vault, &tenant, &holder).await;
    vault.vault.audit.checkpoint().await.unwrap();
    let verify = async || {
        let verified = audit::verify(&vault.vault.audit, None, |_| {}).await;
        verified.unwrap().findings
    };
    assert_eq!(verify().await, []);

    for table in ["application_key", "access_state"] {
        restore(&vault, table).await;
    }

    let findings = verify().await;
    assert!(
        matches!(findings[..], [audit::Finding::RolledBackAccess { .. }]),
        "{findings:?}"
    );
    // A later checkpoint does not hide it, nor do later changes.
    let later = vault.second_node().await;
    let status = create_status(&later, &other.key).await;
    assert_eq!(status, StatusCode::CREATED);
    later.vault.audit.checkpoint().await.unwrap();
    creator(&later, &tenant).await;
    creator(&later, &tenant).await;
    assert!(!verify().await.is_empty());
}

#[tokio::test]
async fn a_state_that_is_missing_or_changed_by_sql_is_not_accepted() {
    let attacks = [
        "delete from access_state where bucket = 0",
        "delete from access_state where bucket > 0",
        "update access_state set generation = generation + 1",
        "update access_state set bucket = bucket + 1 where bucket between 2 and 254",
        "update access_state set digest = sha256('x')",
        "update access_state set row_mac = sha256('x')",
    ];
    for attack in attacks {
        let vault = uncached_vault().await;
        let tenant = vault.tenant().await;
        let holder = creator(&vault, &tenant).await;

        run(&vault, attack).await;

        let status = create_status(&vault, &holder.key).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "{attack}");
        assert!(!findings(&vault).await.is_empty(), "{attack}");
    }
}

/// Anyone can compute the digest of restored rows; only its MAC needs the control key.
#[tokio::test]
async fn a_digest_replaced_together_with_rows_needs_the_control_key() {
    let vault = uncached_vault().await;
    let tenant = vault.tenant().await;
    let holder = creator(&vault, &tenant).await;
    save(&vault, "application_key").await;
    let content = "
        select string_agg('\\x00000024'::bytea || row_mac, ''::bytea order by row_mac) as bytes
        from (select row_mac from application union all select row_mac from application_key) granted";
    let digest = "sha256(int8send(10) || 'content.v1'::bytea || int8send(length(bytes)) || bytes)";
    let is_equal = format!(
        "select digest = {digest} from access_state, ({content}) content where bucket between 2 and 255"
    );
    let database = vault.database.connect().await;
    let is_equal: bool = database.query_one(&is_equal, &[]).await.unwrap().get(0);
    assert!(is_equal, "the test computes the digest");
    delete_key(&vault, &tenant, &holder).await;
    restore(&vault, "application_key").await;

    let forge = format!(
        "update access_state set digest = {digest} from ({content}) content where bucket between 2 and 255"
    );
    run(&vault, &forge).await;

    let status = create_status(&vault, &holder.key).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn concurrent_changes_of_one_bucket_and_of_several_all_succeed() {
    let database = TestDatabase::create().await;
    let vault = TestVault::start_with(database, |config| {
        cloakroom_testkit::use_long_timeouts(config);
        config.access.key_cache_ttl = Duration::ZERO;
    })
    .await;
    let tenant = vault.tenant().await;
    let holder = creator(&vault, &tenant).await;
    let node = vault.second_node().await;

    let of_one = (0..8).map(|number| {
        let vault = if number % 2 == 0 { &vault } else { &node };
        let granted = grants(&[Permission::TokenCreate]);
        set_grants(&vault.vault, &tenant, holder.application, granted)
    });
    let of_several = (0..8).map(|number| {
        let vault = if number % 2 == 0 { &vault } else { &node };
        creator(vault, &tenant)
    });
    let requests = (0..8).map(|_| create_status(&vault, &holder.key));
    let (changed, created, statuses) = tokio::join!(
        futures_util::future::join_all(of_one),
        futures_util::future::join_all(of_several),
        futures_util::future::join_all(requests)
    );

    assert!(changed.iter().all(Result::is_ok), "{changed:?}");
    let is_created = |status: &StatusCode| *status == StatusCode::CREATED;
    assert!(statuses.iter().all(is_created), "{statuses:?}");
    for holder in &created {
        let status = create_status(&vault, &holder.key).await;
        assert_eq!(status, StatusCode::CREATED);
    }
    assert_eq!(findings(&vault).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_change_that_is_rolled_back_leaves_rows_and_state_consistent() {
    let vault = uncached_vault().await;
    let tenant = vault.tenant().await;
    let holder = creator(&vault, &tenant).await;
    let bucket = Bucket::of_application(holder.application);

    let mut change = access_change::begin(&vault.vault, tenant.id, &[bucket])
        .await
        .unwrap();
    change.insert(bucket, &[1; 32]).unwrap();
    change.roll_back().await;
    let mut change = access_change::begin(&vault.vault, tenant.id, &[bucket])
        .await
        .unwrap();
    change.insert(bucket, &[1; 32]).unwrap();
    drop(change);

    assert_eq!(
        create_status(&vault, &holder.key).await,
        StatusCode::CREATED
    );
    delete_key(&vault, &tenant, &holder).await;
    assert_eq!(findings(&vault).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_change_outside_its_locked_buckets_is_rejected() {
    let vault = uncached_vault().await;
    let tenant = vault.tenant().await;

    let mut change = access_change::begin(&vault.vault, tenant.id, &[Bucket::TENANT])
        .await
        .unwrap();

    assert!(change.insert(Bucket::RESOURCES, &[1; 32]).is_err());
    assert!(change.remove(Bucket::TENANT, &[1; 32]).is_err());
    change.roll_back().await;
}

#[tokio::test]
async fn re_anchoring_accepts_the_present_rows_on_every_node() {
    let vault = uncached_vault().await;
    let tenant = vault.tenant().await;
    let holder = creator(&vault, &tenant).await;
    for table in ["application_key", "access_state"] {
        save(&vault, table).await;
    }
    delete_key(&vault, &tenant, &holder).await;
    for table in ["application_key", "access_state"] {
        restore(&vault, table).await;
    }
    let other = vault.second_node().await;
    let status = create_status(&vault, &holder.key).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);

    let written = access_change::reanchor(&other.vault, tenant.id, Anchored::Access)
        .await
        .unwrap();

    assert_eq!((written.generations.len(), written.rows), (2, 3));
    for node in [&vault, &other] {
        let status = create_status(node, &holder.key).await;
        assert_eq!(status, StatusCode::CREATED);
    }
    assert_eq!(findings(&vault).await, Vec::<String>::new());
}

/// SQL and Rust compute the same buckets.
#[tokio::test]
async fn buckets_of_ids_are_the_same_in_sql() {
    let vault = TestVault::start().await;
    let database = vault.database.connect().await;
    let sql =
        "select 2 + get_byte(uuid_send($1), 15) % 190, 192 + get_byte(uuid_send($1), 15) % 64";
    for _ in 0..200 {
        let id = ids::new_uuid();
        let row = database.query_one(sql, &[&id]).await.unwrap();
        let (application, proxy): (i32, i32) = (row.get(0), row.get(1));
        assert_eq!(i32::from(Bucket::of_application(id).number()), application);
        assert_eq!(i32::from(Bucket::of_proxy(id).number()), proxy);
    }
}

/// A table with a row MAC is either in a bucket or listed with the reason why not.
#[tokio::test]
async fn every_table_with_a_row_mac_is_in_a_bucket() {
    let exempt = [
        // The state itself.
        "access_state",
        // Chains of the audit log, which is verified as a whole.
        "log_chain",
        // Two versions at most, of which the older grants nothing: decision 27.
        "session",
        // Progress: ids are derived from lines, so that a line is never imported twice (decision 33).
        "import_batch",
    ];
    let vault = TestVault::start().await;
    let database = vault.database.connect().await;
    let sql = "select table_name::text from information_schema.columns
        where table_schema = 'public' and column_name = 'row_mac' order by 1";

    let rows = database.query(sql, &[]).await.unwrap();

    for row in rows {
        let table: String = row.get(0);
        let is_known = TABLES.contains(&table.as_str()) || exempt.contains(&table.as_str());
        assert!(is_known, "{table}");
    }
}
