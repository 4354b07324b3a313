//! Statements and migrations.

use cloakroom::config::{Database, Secret};
use cloakroom::{Node, storage};
use cloakroom_testkit::{TestDatabase, TestVault};

fn settings(database: &TestDatabase) -> Database {
    Database {
        url: Some(Secret::new(&database.url)),
        ..Database::default()
    }
}

#[tokio::test]
async fn statements_match_the_schema_and_carry_their_names() {
    let database = TestDatabase::create().await;
    let connection = storage::connect_once(&settings(&database)).await.unwrap();

    let mut names = std::collections::HashSet::new();
    for statement in cloakroom::statements() {
        assert!(
            names.insert(statement.name),
            "{} is declared twice",
            statement.name
        );
        let first_line = format!("-- {}\n", statement.name);
        assert!(
            statement.text.starts_with(&first_line),
            "{}",
            statement.name
        );
        let prepared = connection.prepare(&statement).await;
        assert!(prepared.is_ok(), "{}: {:?}", statement.name, prepared.err());
    }

    assert!(names.len() >= 20, "{}", names.len());
}

#[expect(clippy::too_many_lines, reason = "one list of statements")]
#[tokio::test]
async fn statements_filter_by_tenant() {
    // Statements that start from a key, concern the whole vault, or read no row.
    let exceptions = [
        "access::find_credential",
        "access::list_tenants",
        "audit::drop_days",
        "audit::find_newest_checkpoint",
        "audit::find_retention",
        "audit::find_shipment",
        "audit::first_day",
        "audit::insert",
        "audit::insert_checkpoint",
        "audit::insert_key",
        "audit::last_checkpoint_of_day",
        "audit::list_access_states",
        "audit::list_checkpoints",
        "audit::list_entries",
        "audit::list_keys",
        "audit::list_slot",
        "audit::measure",
        "audit::next_key",
        "audit::set_shipment",
        "storage::now",
        "access::list_orphaned_states",
        "applications::list_expired",
        "bins::delete_chunks",
        "bins::delete_older_chunks",
        "bins::delete_older_tables",
        "bins::find_chunk",
        "bins::find_current",
        "bins::insert_chunk",
        "bins::promote",
        "bins::renew_chunk",
        "bins::renew_table",
        "bins::reserve",
        "bins::retire",
        "branding::find_by_id",
        "card_networks::ask_again",
        "card_networks::claim",
        "card_networks::find_place",
        "card_networks::find_ranges",
        "card_networks::keep",
        "card_networks::list",
        "card_networks::renew",
        "checkout::find_by_page",
        "checkout::sweep",
        "client_encryption::sweep",
        "cryptoperiods::count_client_keys",
        "cryptoperiods::count_keys",
        "cryptoperiods::count_roots",
        "idempotency::sweep",
        "idempotency::sweep_leases",
        "keys::bind_environment",
        "keys::any_tenant_keys",
        "keys::find_environment",
        "keys::insert_system_key",
        "keys::count_change",
        "keys::find_generation",
        "keys::list_changed_tenants",
        "rotation::count_api_keys",
        "rotation::count_applications",
        "rotation::count_batches",
        "rotation::count_bin_chunks",
        "rotation::count_bin_tables",
        "rotation::count_brandings",
        "rotation::count_deletions",
        "rotation::count_exports",
        "rotation::count_old_sessions",
        "rotation::count_proxy_macs",
        "rotation::count_ranges",
        "rotation::count_sessions",
        "rotation::count_states",
        "rotation::count_tenants",
        "rotation::count_webhook_macs",
        "rotation::count_unaware",
        "rotation::is_due",
        "rotation::list_due",
        "rotation::list",
        "rotation::list_open",
        "keys::list_system_keys",
        "access::find_session",
        "rate_limits::tell_node",
        "rate_limits::count_nodes",
        "sessions::insert",
        "sessions::list_after",
        "sessions::renew",
        "sessions::sweep",
        "threeds::find_by_id",
        "threeds::find_endless",
        "threeds::find_late",
        "threeds::find_spent",
        "threeds::sweep",
        "token_intents::sweep",
        "token_intents::sweep_codes",
        "tenants::find",
        "tenants::list",
        "tenants::list_deleted",
        "tenants::list_deletions",
        "tenants::list_due_deletions",
        "tenants::next_number",
        "tokens::sweep",
        "tokens::last_tenant",
        "tokens::list_histories",
        "tokens::sample_histories",
        "tokens::sweep_reserved_ids",
        "security_codes::sweep",
        "deliveries::list_due",
        "deliveries::write_outcomes",
        "deliveries::expire",
        "deliveries::sweep",
        "deliveries::sweep_orphans",
        "deliveries::measure",
        "events::insert",
        "keys::insert_signing_key",
        "keys::list_signing_keys",
        "keys::write_system_key",
        "webhooks::any",
        "webhooks::list_failing",
        "proxies::find_by_key",
    ];
    for statement in cloakroom::statements() {
        let names_tenant = statement.text.contains("tenant_id = $1")
            || statement.text.contains("(tenant_id")
            || statement.text.contains("\n            (tenant_id");
        let is_exempt = exceptions.contains(&statement.name);
        assert!(
            names_tenant || is_exempt,
            "{} does not name the tenant",
            statement.name
        );
    }
}

#[tokio::test]
async fn vaults_require_all_migrations() {
    let vault = TestVault::start().await;
    let empty = TestDatabase::create_empty().await;
    let mut config = vault.configuration();
    config.database = settings(&empty);

    let error = Node::open(config.clone()).await.err().unwrap().to_string();
    let connection = storage::connect_once(&settings(&empty)).await.unwrap();
    let applied = storage::migrate(&connection).await.unwrap();
    let again = storage::migrate(&connection).await.unwrap();

    assert!(error.contains("run `cloakroom migrate`"), "{error}");
    assert_eq!(applied.len(), storage::MIGRATIONS.len());
    assert!(again.is_empty());
    assert!(Node::open_or_initialize(config).await.is_ok());
}

#[tokio::test]
async fn concurrent_migrations_apply_each_step_once() {
    let empty = TestDatabase::create_empty().await;
    let run = async || {
        let connection = storage::connect_once(&settings(&empty)).await.unwrap();
        storage::migrate(&connection)
            .await
            .map(|applied| applied.len())
    };

    let (one, two) = tokio::join!(run(), run());

    assert_eq!(one.unwrap() + two.unwrap(), storage::MIGRATIONS.len());
}
