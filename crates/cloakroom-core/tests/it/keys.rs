//! Encrypted values and wrapped keys: bound to their row and to this vault.

use cloakroom::Node;
use cloakroom::config::Environment;
use cloakroom::keys::{self, RootKey, RootKeys};
use cloakroom_testkit::{Client, TestVault};
use http::StatusCode;
use serde_json::json;

async fn create_token(client: &Client, container: &str) -> String {
    let new = json!({"type": "token", "data": "secret", "containers": [container]});
    client.post("/tokens", new).await.id()
}

#[tokio::test]
async fn altered_rows_cannot_be_decrypted() {
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
        let victim = create_token(&client, "/a/").await;
        let other = create_token(&client, "/b/").await;
        let ids: [uuid::Uuid; 2] = [victim.parse().unwrap(), other.parse().unwrap()];

        let changed = database.execute(attack, &[&ids[0], &ids[1]]).await.unwrap();

        assert_eq!(changed, 1, "{attack}");
        let response = client.get(&format!("/tokens/{victim}")).await;
        assert_eq!(
            response.status,
            StatusCode::INTERNAL_SERVER_ERROR,
            "{attack}"
        );
        assert_eq!(response.body["code"], "integrity_error", "{attack}");
        assert_eq!(
            client.get(&format!("/tokens/{other}")).await.status,
            StatusCode::OK
        );
    }
}

#[tokio::test]
async fn values_moved_to_another_tenant_cannot_be_decrypted() {
    let vault = TestVault::start().await;
    let (one, two) = (
        vault.revealing_client().await,
        vault.revealing_client().await,
    );
    let id = create_token(&one, "/a/").await;
    create_token(&two, "/a/").await;

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
    let response = two.get(&format!("/tokens/{id}")).await;
    assert_eq!(response.body["code"], "integrity_error");
}

#[tokio::test]
async fn every_flipped_bit_is_detected() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let id = create_token(&client, "/a/").await;
    let database = vault.database.connect().await;
    let row = database
        .query_one("select length(sealed) * 8 from token", &[])
        .await
        .unwrap();
    let bits: i32 = row.get(0);
    let flip = "update token set sealed = set_bit(sealed, $1::int, 1 - get_bit(sealed, $1::int))";

    for bit in 0..bits {
        database.execute(flip, &[&bit]).await.unwrap();
        let response = client.get(&format!("/tokens/{id}")).await;
        assert_eq!(response.body["code"], "integrity_error", "bit {bit}");
        database.execute(flip, &[&bit]).await.unwrap();
    }

    assert_eq!(
        client.get(&format!("/tokens/{id}")).await.status,
        StatusCode::OK
    );
}

#[tokio::test]
async fn vaults_open_only_with_their_root_key_and_environment() {
    let vault = TestVault::start().await;
    let folder = tempfile::tempdir().unwrap();
    let another_key = folder.path().join("another.key");
    keys::create_file(&another_key).unwrap();

    let mut wrong_key = vault.configuration();
    wrong_key.root_key.file = Some(another_key);
    let mut wrong_environment = vault.configuration();
    wrong_environment.vault.environment = Environment::Production;

    let error = Node::open(wrong_key).await.err().unwrap().to_string();
    assert!(error.contains("another root key"), "{error}");
    let error = Node::open(wrong_environment)
        .await
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.contains("belongs to the environment `test`"),
        "{error}"
    );
    assert!(Node::open(vault.configuration()).await.is_ok());
}

#[tokio::test]
async fn key_verification_reports_every_broken_key() {
    let vault = TestVault::start().await;
    let tenants = [vault.tenant().await.id, vault.tenant().await.id];
    let root = RootKeys::new(RootKey::load(&vault.configuration().root_key).unwrap());
    let examine = async || {
        keys::inspect(&vault.vault.db, &root, "test", &tenants)
            .await
            .unwrap()
    };

    let intact = examine().await;
    let database = vault.database.connect().await;
    // Swapped wrapped keys, a flipped bit, and a wrong check value.
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
            "update system_key set check_value = '\\x00' where purpose = 11",
            3,
        ),
        // A broken key-encryption key makes the keys it wraps unusable too.
        (
            "update tenant_key set version = 2 where tenant_id = 2 and purpose = 2",
            8,
        ),
    ];

    assert_eq!((intact.keys, intact.broken), (15, vec![]));
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
async fn corrupt_tenant_keys_are_rejected_and_not_replaced() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let database = vault.database.connect().await;
    let corrupt = "update tenant_key set wrapped = set_bit(wrapped, 200, 1 - get_bit(wrapped, 200))
        where purpose = 3";
    database.execute(corrupt, &[]).await.unwrap();

    let response = client
        .post("/tokens", json!({"type": "token", "data": 1}))
        .await;

    assert_eq!(response.status, StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(response.body["code"], "wrong_key");
}

#[tokio::test]
async fn other_nodes_decrypt_encrypted_values() {
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

    let second = Node::open(vault.configuration()).await.unwrap();
    let opened = second.keys.open(tenant.id, &record, &sealed).await.unwrap();

    assert_eq!(opened.expose(), b"secret");
}

#[tokio::test]
async fn unwrapped_keys_are_evicted_after_their_ttl() {
    let vault = TestVault::start_with(cloakroom_testkit::TestDatabase::create().await, |config| {
        config.root_key.cache_ttl = std::time::Duration::from_secs(3);
    })
    .await;
    let client = vault.revealing_client().await;
    let path = format!("/tokens/{}", create_token(&client, "/a/").await);
    let database = vault.database.connect().await;

    // The stored keys are deleted; only the cache of the node still has them.
    database
        .execute("delete from tenant_key", &[])
        .await
        .unwrap();
    let cached = client.get(&path).await;
    tokio::time::sleep(std::time::Duration::from_millis(3_100)).await;
    let evicted = client.get(&path).await;

    assert_eq!(cached.status, StatusCode::OK);
    assert_eq!(evicted.body["code"], "missing_key", "{}", evicted.body);
}

#[tokio::test]
async fn lost_system_keys_are_not_replaced_when_tenants_exist() {
    let vault = TestVault::start().await;
    vault.tenant().await;
    let database = vault.database.connect().await;
    // Losing one of them is as bad as losing all.
    let lose = "delete from system_key where purpose = 7";
    assert_eq!(database.execute(lose, &[]).await.unwrap(), 1);

    let opened = Node::open(vault.configuration())
        .await
        .err()
        .unwrap()
        .to_string();
    let initialized = Node::open_or_initialize(vault.configuration())
        .await
        .err()
        .unwrap()
        .to_string();

    for error in [opened, initialized] {
        assert!(error.contains("restore it from a backup"), "{error}");
    }
    let stored = database
        .query_one("select count(*) from system_key", &[])
        .await
        .unwrap();
    assert_eq!(stored.get::<_, i64>(0), 2);
}

#[tokio::test]
async fn opening_an_empty_vault_changes_nothing() {
    let vault = TestVault::start().await;
    let mut config = vault.configuration();
    let empty = cloakroom_testkit::TestDatabase::create().await;
    config.database.url = Some(cloakroom::config::Secret::new(&empty.url));

    let error = Node::open(config).await.err().unwrap().to_string();

    assert!(error.contains("`cloakroom tenant create`"), "{error}");
    let count = "select (select count(*) from vault) + (select count(*) from system_key)";
    let stored = empty.connect().await.query_one(count, &[]).await.unwrap();
    assert_eq!(stored.get::<_, i64>(0), 0);
}

#[tokio::test]
async fn concurrent_key_misses_share_one_load() {
    use std::time::{Duration, Instant};
    let vault = TestVault::start_with(cloakroom_testkit::TestDatabase::create().await, |config| {
        config.database.read_deadline = Duration::from_millis(500);
    })
    .await;
    let client = vault.revealing_client().await;
    // The key of the caller is cached; the keys of the tenant have not been loaded yet.
    client
        .get("/tokens/c06d0789-0a38-40be-b7cc-c28a718f76f1")
        .await;
    let mut blocker = vault.database.connect().await;
    let lock = blocker.transaction().await.unwrap();
    lock.execute("lock table tenant_key in access exclusive mode", &[])
        .await
        .unwrap();

    let started = Instant::now();
    let mut requests = tokio::task::JoinSet::new();
    for _ in 0..6 {
        let client = client.clone();
        requests.spawn(async move {
            client
                .post("/tokens", json!({"type": "token", "data": 1}))
                .await
                .status
        });
    }
    let statuses = requests.join_all().await;

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
