//! Connections to Redis, and what Redis is trusted with.

use std::time::Duration;

use cloakroom::Node;
use cloakroom::config::{Config, Environment, Secret};
use cloakroom::doctor::{self, Severity};
use cloakroom::security_codes::{self, SealedCode};
use cloakroom_testkit::{LogCapture, TestDatabase, TestRedis};

use super::{Fixture, run_jobs, until};

#[tokio::test]
async fn stale_redis_connections_are_reopened() {
    let fixture = Fixture::with_redis().await;
    let (node, other) = (&fixture.vault.vault, fixture.another_node().await);
    security_codes::tend(&other.security_codes).await;
    let token = fixture.store(node, "123").await;

    fixture.redis().run("CLIENT KILL TYPE normal").await;

    assert_eq!(fixture.read(&other, &token).await.as_deref(), Some("123"));
}

#[tokio::test]
async fn published_keys_require_their_name_and_a_ttl() {
    let fixture = Fixture::with_redis().await;
    let (left, right) = (fixture.another_node().await, fixture.another_node().await);
    let (one, two) = (
        fixture.store(&left, "1").await,
        fixture.store(&right, "2").await,
    );
    let names = fixture.redis().keys().await;
    let [first, second] = &names[..] else {
        panic!("{names:?}")
    };

    let lines = LogCapture::start();
    fixture.redis().run(&format!("RENAME {first} aside")).await;
    fixture
        .redis()
        .run(&format!("RENAME {second} {first}"))
        .await;
    fixture.redis().run(&format!("RENAME aside {second}")).await;
    let node = &fixture.vault.vault;
    let swapped = (
        fixture.read(node, &one).await,
        fixture.read(node, &two).await,
    );
    fixture.redis().run(&format!("RENAME {first} aside")).await;
    fixture
        .redis()
        .run(&format!("RENAME {second} {first}"))
        .await;
    fixture.redis().run(&format!("RENAME aside {second}")).await;
    for name in &names {
        fixture.redis().run(&format!("PERSIST {name}")).await;
    }
    let endless = fixture.read(node, &one).await;
    for name in &names {
        fixture.redis().run(&format!("PEXPIRE {name} 60000")).await;
    }

    assert_eq!(swapped, (None, None));
    assert_eq!(lines.count("integrity_error"), 2, "{}", lines.text());
    assert_eq!(endless, None);
    assert_eq!(fixture.read(node, &one).await.as_deref(), Some("1"));
}

#[tokio::test]
async fn redis_cannot_extend_the_lifetime_of_a_fetched_key() {
    let fixture = Fixture::with_settings(|config| {
        config.security_codes.retention = Duration::from_secs(3);
        config.security_codes.epoch = Duration::from_secs(1);
    })
    .await;
    let other = fixture.another_node().await;
    let _jobs = run_jobs(&other);
    let token = fixture.store(&fixture.vault.vault, "123").await;
    let name = &fixture.redis().keys().await[0];
    fixture
        .redis()
        .run(&format!("PEXPIRE {name} 3600000"))
        .await;

    let read = fixture.read(&other, &token).await;
    let held = other.security_codes.live_keys();

    assert_eq!((read.as_deref(), held), (Some("123"), 1));
    until("keys expire", async || {
        other.security_codes.live_keys() == 0
    })
    .await;
}

/// A writer of Redis who saved a published key sets it again after its end, with a new TTL, and postpones the expiry of
/// the code by SQL.
#[tokio::test]
async fn a_key_that_is_published_again_after_its_end_opens_nothing() {
    let fixture = Fixture::with_settings(|config| {
        config.security_codes.retention = Duration::from_secs(2);
        config.security_codes.epoch = Duration::from_secs(1);
    })
    .await;
    let token = fixture.store(&fixture.vault.vault, "123").await;
    let name = &fixture.redis().keys().await[0];
    // RENAME keeps the value; PERSIST keeps it beyond its TTL.
    fixture.redis().run(&format!("RENAME {name} saved")).await;
    fixture.redis().run("PERSIST saved").await;
    let backup = "create temp table saved as select * from security_code";
    fixture.sql(backup).await;
    let over = "select pg_sleep_until((select expires_at + interval '1100 ms' from saved))";
    fixture.sql(over).await;

    fixture.redis().run(&format!("RENAME saved {name}")).await;
    fixture
        .redis()
        .run(&format!("PEXPIRE {name} 3600000"))
        .await;
    // A node that never had the key, which ignores the expiry of the row.
    let other = fixture.another_node().await;
    let row = "select key_id, sealed, expires_at from saved";
    let row = fixture.database.query_one(row, &[]).await.unwrap();
    let stored = SealedCode {
        key_id: row.get(0),
        sealed: row.get(1),
        until: row.get(2),
    };
    let tenant = fixture.tenant.id;
    let opened = security_codes::open(&other.security_codes, tenant, &token, &stored).await;

    assert!(opened.is_none());
    assert_eq!(other.security_codes.live_keys(), 0);
}

#[tokio::test]
async fn doctor_checks_redis_persistence() {
    let fixture = Fixture::alone().await;
    let on_disk = TestRedis::start(&[("save", "60 1")]).await;
    let append_only = TestRedis::start(&[("appendonly", "yes")]).await;
    let volatile = TestRedis::start(&[]).await;
    let restricted = TestRedis::start(&[("rename-command", "CONFIG\" \"")]).await;
    let unreachable = TestRedis::start(&[]).await;
    let unreachable_url = unreachable.url();
    unreachable.kill().await;
    let cases = [
        (None, Severity::Good, "redis.url is not set"),
        (Some(volatile.url()), Severity::Good, "it writes nothing"),
        (Some(on_disk.url()), Severity::Bad, "it writes to disk"),
        (Some(append_only.url()), Severity::Bad, "it writes to disk"),
        (
            Some(restricted.url()),
            Severity::Warning,
            "could not be checked",
        ),
        (Some(unreachable_url), Severity::Bad, "it does not answer"),
        (
            Some("redis://".to_owned()),
            Severity::Bad,
            "the Redis URL is invalid",
        ),
    ];
    for (url, severity, words) in cases {
        let mut config = fixture.configuration();
        config.redis.url = url.map(Secret::new);
        let findings = doctor::diagnose(&config, None).await;
        let found = findings.iter().any(|finding| {
            finding.area == "redis" && finding.severity == severity && finding.what.contains(words)
        });
        assert!(found, "{words}: {findings:?}");
    }
}

fn in_production(config: &mut Config) {
    config.vault.environment = Environment::Production;
    config.root_key.allow_file_in_production = true;
}

/// A production node shares keys only through a Redis that keeps nothing; a test node warns.
#[tokio::test]
async fn keys_are_not_published_to_a_redis_that_persists() {
    let cases: [(&[(&str, &str)], &str); 4] = [
        (&[("save", "60 1")], "`save`"),
        (&[("appendonly", "yes")], "`appendonly`"),
        (&[("repl-diskless-sync", "no")], "`repl-diskless-sync`"),
        (&[("rename-command", "CONFIG\" \"")], "refuses CONFIG GET"),
    ];
    for (settings, words) in cases {
        for environment in [Environment::Production, Environment::Test] {
            let redis = TestRedis::start(settings).await;
            let change: fn(&mut Config) = match environment {
                Environment::Production => in_production,
                Environment::Test => |_| {},
            };
            let fixture = Fixture::start(TestDatabase::create().await, Some(redis), change).await;
            let (lines, node) = (LogCapture::start(), &fixture.vault.vault);

            let checked = security_codes::check_redis(&node.security_codes).await;
            let token = fixture.store(node, "123").await;
            security_codes::tend(&node.security_codes).await;

            let is_published = !fixture.redis().keys().await.is_empty();
            assert_eq!(
                fixture.read(node, &token).await.as_deref(),
                Some("123"),
                "{words}"
            );
            assert_eq!(lines.count("redis_persists"), 1, "{}", lines.text());
            match environment {
                Environment::Production => {
                    assert!(checked.unwrap_err().to_string().contains(words), "{words}");
                    assert!(!is_published, "{words}");
                }
                Environment::Test => assert!(checked.is_ok() && is_published, "{words}"),
            }
        }
    }
}

#[tokio::test]
async fn a_job_notices_that_redis_begins_to_persist_and_stops() {
    let redis = TestRedis::start(&[]).await;
    let fixture = Fixture::start(TestDatabase::create().await, Some(redis), in_production).await;
    let node = &fixture.vault.vault;
    let codes = &node.security_codes;
    fixture.store(node, "1").await;
    let before_check = fixture.redis().keys().await.len();
    security_codes::check_redis(codes).await.unwrap();
    security_codes::tend(codes).await;
    let volatile = fixture.redis().keys().await.len();

    fixture.redis().run("CONFIG SET appendonly yes").await;
    let other = fixture.another_node().await;
    let found = security_codes::check_redis(&other.security_codes).await;
    fixture.store(&other, "2").await;
    let persistent = fixture.redis().keys().await.len();
    fixture.redis().run("CONFIG SET appendonly no").await;
    security_codes::check_redis(&other.security_codes)
        .await
        .unwrap();
    security_codes::tend(&other.security_codes).await;
    let again = fixture.redis().keys().await.len();

    assert!(found.is_err());
    assert_eq!((before_check, volatile, persistent, again), (0, 1, 1, 2));
}

#[tokio::test]
async fn documented_redis_permissions_are_sufficient() {
    let fixture = Fixture::with_redis().await;
    let rights = "~cloakroom:* +time +set +get +pttl +ping";
    let user = format!("ACL SETUSER limited on >secret {rights}");
    fixture.redis().run(&user).await;
    let mut config = fixture.configuration();
    let address = fixture.redis().url();
    let (_, host) = address.split_once('@').unwrap();
    config.redis.url = Some(Secret::new(format!("redis://limited:secret@{host}")));
    let one = Node::open(config.clone()).await.unwrap();
    let two = Node::open(config.clone()).await.unwrap();

    let token = fixture.store(&one, "123").await;

    assert_eq!(fixture.read(&two, &token).await.as_deref(), Some("123"));
    let findings = doctor::diagnose(&config, None).await;
    let has_finding = |words: &str| findings.iter().any(|found| found.what.contains(words));
    assert!(has_finding("because it refuses CONFIG GET"), "{findings:?}");
}

#[tokio::test]
async fn redis_tls_certificates_are_verified() {
    let folder = tempfile::tempdir().unwrap();
    let redis = TestRedis::start_tls(folder.path()).await;
    let other_certificate = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let wrong_ca = folder.path().join("wrong.crt");
    std::fs::write(&wrong_ca, other_certificate.cert.pem()).unwrap();
    let fixture = Fixture::alone().await;
    let node = async |ca_file: std::path::PathBuf| {
        let mut config = fixture.configuration();
        config.redis.url = Some(Secret::new(redis.tls_url()));
        config.redis.ca_file = Some(ca_file);
        let node = Node::open(config).await.unwrap();
        // The job of a node has time for the handshake; a request of an unoptimized build may not.
        security_codes::tend(&node.security_codes).await;
        node
    };
    let (one, two) = (node(redis.ca_file()).await, node(redis.ca_file()).await);

    let token = fixture.store(&one, "123").await;

    assert_eq!(fixture.read(&two, &token).await.as_deref(), Some("123"));
    assert_eq!(fixture.read(&node(wrong_ca).await, &token).await, None);
}
