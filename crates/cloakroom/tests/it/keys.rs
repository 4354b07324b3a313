//! Sealed values and wrapped keys: bound to their place, and to this vault.

use cloakroom::Vault;
use cloakroom::config::Environment;
use cloakroom::keys::{self, RootKey};
use http::StatusCode;
use serde_json::json;

use crate::support::{Client, TestVault};

async fn token_of(client: &Client, container: &str) -> String {
    let new = json!({"type": "token", "data": "secret", "containers": [container]});
    client.post("/tokens", new).await.id()
}

#[tokio::test]
async fn a_row_changed_by_sql_does_not_open() {
    let attacks = [
        "update token set row_version = 2 where token_id = $1 or $2::uuid is null",
        "update token set kind = 2 where token_id = $1 or $2::uuid is null",
        "update token set expires_at = now() + interval '1 year' where token_id = $1 or $2::uuid is null",
        "update token set container_id = (select container_id from token where token_id = $2)
         where token_id = $1",
        "update token set sealed = (select sealed from token where token_id = $2) where token_id = $1",
        "update token set sealed = substr(sealed, 1, 20) where token_id = $1 or $2::uuid is null",
        "update token set mask = '\"{{ data }}\"' where token_id = $1 or $2::uuid is null",
        "update token set sealed = ''::bytea where token_id = $1 or $2::uuid is null",
        "update token set sealed = set_byte(sealed, 0, 2) where token_id = $1 or $2::uuid is null",
        "update token set sealed = set_byte(sealed, 5, 9) where token_id = $1 or $2::uuid is null",
    ];
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let database = vault.database.connect().await;
    for attack in attacks {
        let victim = token_of(&client, "/a/").await;
        let other = token_of(&client, "/b/").await;
        let ids: [uuid::Uuid; 2] = [victim.parse().unwrap(), other.parse().unwrap()];

        let changed = database.execute(attack, &[&ids[0], &ids[1]]).await.unwrap();

        assert_eq!(changed, 1, "{attack}");
        let answer = client.get(&format!("/tokens/{victim}")).await;
        assert_eq!(answer.status, StatusCode::INTERNAL_SERVER_ERROR, "{attack}");
        assert_eq!(answer.body["code"], "integrity_error", "{attack}");
        assert_eq!(
            client.get(&format!("/tokens/{other}")).await.status,
            StatusCode::OK
        );
    }
}

#[tokio::test]
async fn a_value_moved_to_another_tenant_does_not_open() {
    let vault = TestVault::start().await;
    let (one, two) = (
        vault.revealing_client().await,
        vault.revealing_client().await,
    );
    let id = token_of(&one, "/a/").await;
    token_of(&two, "/a/").await;

    let database = vault.database.connect().await;
    let uuid: uuid::Uuid = id.parse().unwrap();
    let moved = database
        .execute(
            "update token set tenant_id = 2 where token_id = $1",
            &[&uuid],
        )
        .await
        .unwrap();

    assert_eq!(moved, 1);
    assert_eq!(
        one.get(&format!("/tokens/{id}")).await.status,
        StatusCode::NOT_FOUND
    );
    let answer = two.get(&format!("/tokens/{id}")).await;
    assert_eq!(answer.body["code"], "integrity_error");
}

#[tokio::test]
async fn every_flipped_bit_is_noticed() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let id = token_of(&client, "/a/").await;
    let database = vault.database.connect().await;
    let row = database
        .query_one("select length(sealed) * 8 from token", &[])
        .await
        .unwrap();
    let bits: i32 = row.get(0);
    let flip = "update token set sealed = set_bit(sealed, $1::int, 1 - get_bit(sealed, $1::int))";

    for bit in 0..bits {
        database.execute(flip, &[&bit]).await.unwrap();
        let answer = client.get(&format!("/tokens/{id}")).await;
        assert_eq!(answer.body["code"], "integrity_error", "bit {bit}");
        database.execute(flip, &[&bit]).await.unwrap();
    }

    assert_eq!(
        client.get(&format!("/tokens/{id}")).await.status,
        StatusCode::OK
    );
}

#[tokio::test]
async fn a_vault_opens_only_with_its_own_root_key_and_environment() {
    let vault = TestVault::start().await;
    let folder = tempfile::tempdir().unwrap();
    let another_key = folder.path().join("another.key");
    keys::create_file(&another_key).unwrap();

    let mut wrong_key = vault.configuration();
    wrong_key.root_key.file = Some(another_key);
    let mut wrong_environment = vault.configuration();
    wrong_environment.vault.environment = Environment::Production;

    let error = Vault::open(wrong_key).await.err().unwrap().to_string();
    assert!(error.contains("another root key"), "{error}");
    let error = Vault::open(wrong_environment)
        .await
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.contains("belongs to the environment `test`"),
        "{error}"
    );
    assert!(Vault::open(vault.configuration()).await.is_ok());
}

#[tokio::test]
async fn examining_finds_each_key_and_each_broken_one() {
    let vault = TestVault::start().await;
    let tenants = [vault.tenant().await.id, vault.tenant().await.id];
    let root = RootKey::load(&vault.configuration().root_key).unwrap();
    let examine = async || {
        keys::examine(&vault.vault.db, &root, "test", &tenants)
            .await
            .unwrap()
    };

    let intact = examine().await;
    let database = vault.database.connect().await;
    // Wrapped keys that change places, a bit that flips, and a check value that lies.
    let attacks = [
        (
            "update tenant_key set wrapped = (select wrapped from tenant_key
          where tenant_id = 2 and purpose = 3) where tenant_id = 1 and purpose = 3",
            1,
        ),
        (
            "update tenant_key set wrapped = set_bit(wrapped, 100, 1 - get_bit(wrapped, 100))
          where tenant_id = 2 and purpose = 4",
            2,
        ),
        (
            "update system_key set check_value = '\\x00' where purpose = 8",
            3,
        ),
        // A broken key-encryption key takes what it wraps along.
        (
            "update tenant_key set version = 2 where tenant_id = 2 and purpose = 2",
            7,
        ),
    ];

    assert_eq!((intact.keys, intact.broken), (12, vec![]));
    for (attack, broken) in attacks {
        assert_eq!(database.execute(attack, &[]).await.unwrap(), 1, "{attack}");
        let examined = examine().await;
        assert_eq!(
            examined.broken.len(),
            broken,
            "{attack}: {:?}",
            examined.broken
        );
    }
}

#[tokio::test]
async fn a_tenant_with_a_foreign_key_gets_nothing_rather_than_another_key() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let database = vault.database.connect().await;
    let corrupt = "update tenant_key set wrapped = set_bit(wrapped, 200, 1 - get_bit(wrapped, 200))
        where purpose = 3";
    database.execute(corrupt, &[]).await.unwrap();

    let answer = client
        .post("/tokens", json!({"type": "token", "data": 1}))
        .await;

    assert_eq!(answer.status, StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(answer.body["code"], "wrong_key");
}

#[tokio::test]
async fn a_second_node_opens_what_the_first_one_sealed() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let keys = vault.vault.keys.of(tenant.id).await.unwrap();
    let record = keys::Record {
        kind: "token",
        id: b"id",
        column: "data",
        row_version: 1,
        policy: cloakroom_crypto::PolicyDigest::new::<&str>("token", &[], None),
    };
    let sealed = keys.seal(&record, b"secret").unwrap();

    let second = Vault::open(vault.configuration()).await.unwrap();
    let opened = second.keys.open(tenant.id, &record, &sealed).await.unwrap();

    assert_eq!(opened.expose(), b"secret");
}

#[tokio::test]
async fn unwrapped_keys_are_forgotten_in_time() {
    let vault = TestVault::start_with(crate::support::TestDatabase::create().await, |config| {
        config.root_key.cache_ttl = std::time::Duration::from_secs(3);
    })
    .await;
    let client = vault.revealing_client().await;
    let path = format!("/tokens/{}", token_of(&client, "/a/").await);
    let database = vault.database.connect().await;

    // Destroyed for good; only the node's memory still knows the keys.
    database
        .execute("delete from tenant_key", &[])
        .await
        .unwrap();
    let remembered = client.get(&path).await;
    tokio::time::sleep(std::time::Duration::from_millis(3_100)).await;
    let forgotten = client.get(&path).await;

    assert_eq!(remembered.status, StatusCode::OK);
    assert_eq!(forgotten.body["code"], "missing_key", "{}", forgotten.body);
}

#[tokio::test]
async fn lost_system_keys_are_not_replaced_under_existing_tenants() {
    let vault = TestVault::start().await;
    vault.tenant().await;
    let database = vault.database.connect().await;
    // Losing one of them is as bad as losing all.
    let lose = "delete from system_key where purpose = 7";
    assert_eq!(database.execute(lose, &[]).await.unwrap(), 1);

    let opened = Vault::open(vault.configuration())
        .await
        .err()
        .unwrap()
        .to_string();
    let initialized = Vault::open_or_initialize(vault.configuration())
        .await
        .err()
        .unwrap()
        .to_string();

    for refusal in [opened, initialized] {
        assert!(refusal.contains("restore it from a backup"), "{refusal}");
    }
    let kept = database
        .query_one("select count(*) from system_key", &[])
        .await
        .unwrap();
    assert_eq!(kept.get::<_, i64>(0), 1);
}

#[tokio::test]
async fn opening_an_empty_vault_changes_nothing() {
    let vault = TestVault::start().await;
    let mut config = vault.configuration();
    let empty = crate::support::TestDatabase::create().await;
    config.database.url = Some(cloakroom::config::Secret::new(&empty.url));

    let error = Vault::open(config).await.err().unwrap().to_string();

    assert!(error.contains("`cloakroom tenant create`"), "{error}");
    let count = "select (select count(*) from vault) + (select count(*) from system_key)";
    let kept = empty.connect().await.query_one(count, &[]).await.unwrap();
    assert_eq!(kept.get::<_, i64>(0), 0);
}

#[tokio::test]
async fn requests_that_miss_a_key_together_wait_once() {
    use std::time::{Duration, Instant};
    let vault = TestVault::start_with(crate::support::TestDatabase::create().await, |config| {
        config.database.read_deadline = Duration::from_millis(500);
    })
    .await;
    let client = vault.revealing_client().await;
    // The caller is remembered; the tenant's keys were not needed yet.
    client
        .get("/tokens/c06d0789-0a38-40be-b7cc-c28a718f76f1")
        .await;
    let mut locker = vault.database.connect().await;
    let lock = locker.transaction().await.unwrap();
    lock.execute("lock table tenant_key in access exclusive mode", &[])
        .await
        .unwrap();

    let started = Instant::now();
    let mut waiting = tokio::task::JoinSet::new();
    for _ in 0..6 {
        let client = client.clone();
        waiting.spawn(async move {
            client
                .post("/tokens", json!({"type": "token", "data": 1}))
                .await
                .status
        });
    }
    let statuses = waiting.join_all().await;

    assert!(
        statuses
            .iter()
            .all(|status| *status == StatusCode::SERVICE_UNAVAILABLE)
    );
    assert!(
        started.elapsed() < Duration::from_millis(2_500),
        "{:?}",
        started.elapsed()
    );
}
