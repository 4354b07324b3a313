//! Settings and rows that change how a vault works, written by someone with SQL.

use std::time::Duration;

use cloakroom::ids::new_uuid;
use cloakroom::storage::{connect_once, hold_lease, settings};
use cloakroom_testkit::TestVault;
use http::StatusCode;
use serde_json::json;

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "test and database share a clock")]
async fn settings_of_the_database_change_neither_time_nor_durability() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let soon = jiff::Timestamp::now() + Duration::from_secs(2);
    let new = json!({"type": "token", "data": 1, "expires_at": soon.to_string()});
    let created = client.post("/tokens", new).await;
    assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
    let admin = vault.database.connect().await;
    admin
        .batch_execute(
            "create schema evil;
             create function evil.now() returns timestamptz language sql stable
             as $$ select pg_catalog.now() - interval '30 days' $$;
             grant usage on schema evil to public;
             do $$ begin
                 execute format('alter database %I set search_path = evil, public, pg_catalog', current_database());
                 execute format('alter database %I set synchronous_commit = off', current_database());
             end $$",
        )
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_secs(3)).await;

    let node = vault.second_node().await;
    let read = client
        .at(&node.base_url)
        .get(&format!("/tokens/{}", created.id()))
        .await;

    assert_eq!(read.status, StatusCode::NOT_FOUND, "{}", read.body);
    let session = connect_once(&vault.vault.config.database).await.unwrap();
    let names = ["search_path", "synchronous_commit"];
    let found = settings(&session, &names).await.unwrap();
    let expected = [
        ("search_path", "public,pg_temp"),
        ("synchronous_commit", "on"),
    ];
    assert_eq!(
        found,
        expected.map(|(name, value)| (name.into(), value.into()))
    );
}

#[tokio::test]
async fn a_lease_without_end_stops_no_job() {
    let vault = TestVault::start().await;
    let (one, other) = (new_uuid(), new_uuid());
    let minute = Duration::from_secs(60);
    let hold = async |holder| {
        hold_lease(&vault.vault.db, "sweep", holder, minute)
            .await
            .unwrap()
    };
    assert!(hold(one).await);
    assert!(!hold(other).await, "one job has two holders");
    let admin = vault.database.connect().await;
    let forever = "update lease set until = 'infinity' where name = 'sweep'";
    admin.batch_execute(forever).await.unwrap();

    assert!(hold(other).await);

    assert!(!hold(one).await, "one job has two holders");
}
