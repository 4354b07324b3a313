//! Connections to Redis, and what Redis is trusted with.

use std::time::Duration;

use cloakroom::config::Secret;
use cloakroom::doctor::{self, Severity};
use cloakroom::{Node, security_codes};

use super::{Fixture, run_jobs, until};
use crate::support::{LogCapture, TestRedis};

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
