//! Reading codes on one node and on others.

use std::time::{Duration, Instant};

use cloakroom::access::Anchored;
use cloakroom::keys::VAULT;
use cloakroom::rotation::{self, Phase};
use cloakroom::security_codes;
use cloakroom::{Node, access_change, ids};
use cloakroom_crypto::KeyPurpose;
use cloakroom_testkit::LogCapture;
use metrics_exporter_prometheus::PrometheusBuilder;
use uuid::Uuid;

use super::{Fixture, retention, run_concurrently, run_jobs, until};

#[tokio::test]
async fn a_single_node_reads_its_own_codes() {
    let fixture = Fixture::alone().await;
    let node = &fixture.vault.vault;

    let token = fixture.store(node, "123").await;

    assert_eq!(fixture.read(node, &token).await.as_deref(), Some("123"));
    assert_eq!(fixture.read(node, &ids::new_uuid()).await, None);
    assert_eq!(
        fixture.read(&fixture.another_node().await, &token).await,
        None
    );
}

#[tokio::test]
async fn other_nodes_read_codes_through_redis_at_once() {
    let fixture = Fixture::with_redis().await;
    let (node, other) = (&fixture.vault.vault, fixture.another_node().await);

    let token = fixture.store(node, "1234").await;
    let read = fixture.read(&other, &token).await;
    fixture.redis().run("FLUSHALL").await;
    let read_from_memory = fixture.read(&other, &token).await;

    assert_eq!(read.as_deref(), Some("1234"));
    assert_eq!(read_from_memory.as_deref(), Some("1234"));
}

#[tokio::test]
async fn concurrent_requests_share_one_key_and_one_lookup() {
    let fixture = Fixture::with_redis().await;
    let (node, other) = (&fixture.vault.vault, fixture.another_node().await);
    let (tenant, token) = (fixture.tenant.id, ids::new_uuid());
    security_codes::tend(&other.security_codes).await;

    let retention = retention(node).await;
    let seal = |_| security_codes::seal(&node.security_codes, tenant, &token, "123", retention);
    let sealed = run_concurrently(50, seal).await;
    let sealed: Vec<_> = sealed.into_iter().map(Result::unwrap).collect();
    let keys = fixture.redis().keys().await;
    let opened = run_concurrently(50, |n| {
        security_codes::open(&other.security_codes, tenant, &token, &sealed[n])
    })
    .await;

    assert_eq!(keys.len(), 1, "{keys:?}");
    assert!(opened.iter().flatten().all(|code| code.expose() == "123"));
    assert_eq!(opened.iter().flatten().count(), 50);
    assert_eq!(fixture.redis().calls_of("get").await, 1);
    assert_eq!(node.security_codes.live_keys(), 1);
    assert_eq!(other.security_codes.live_keys(), 1);
}

#[tokio::test]
async fn keys_that_redis_lost_are_published_again() {
    let fixture = Fixture::with_redis().await;
    let token = fixture.store(&fixture.vault.vault, "123").await;
    fixture.redis().run("FLUSHALL").await;
    let new_node = fixture.another_node().await;

    let evicted = fixture.read(&new_node, &token).await;
    let _jobs = run_jobs(&fixture.vault.vault);
    until("keys are published", async || {
        fixture.redis().keys().await.len() == 1
    })
    .await;

    assert_eq!(evicted, None);
    assert_eq!(
        fixture.read(&new_node, &token).await.as_deref(),
        Some("123")
    );
}

#[tokio::test]
async fn without_redis_a_node_reads_only_its_own_codes() {
    let lines = LogCapture::start();
    let mut fixture = Fixture::with_redis().await;
    let (node, other) = (fixture.vault.vault.clone(), fixture.another_node().await);
    let others = fixture.store(&other, "456").await;
    let _jobs = run_jobs(&node);
    fixture.redis.take().unwrap().kill().await;

    let mut slowest = Duration::ZERO;
    for _ in 0..20 {
        let started = Instant::now();
        let own = fixture.store(&node, "123").await;
        assert_eq!(fixture.read(&node, &own).await.as_deref(), Some("123"));
        assert_eq!(fixture.read(&node, &others).await, None);
        slowest = slowest.max(started.elapsed());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }

    println!("slowest round without Redis: {slowest:?}");
    assert!(slowest < Duration::from_secs(1), "{slowest:?}");
    assert_eq!(fixture.read(&other, &others).await.as_deref(), Some("456"));
    assert_eq!(lines.count("Redis is unavailable"), 1, "{}", lines.text());
}

#[tokio::test]
async fn a_paused_redis_delays_requests_briefly_and_is_updated_later() {
    let fixture = Fixture::with_redis().await;
    let (node, other) = (&fixture.vault.vault, fixture.another_node().await);
    let others = fixture.store(&other, "456").await;
    let _jobs = run_jobs(node);
    let stopped = fixture.redis().pause();

    let mut delays = Vec::new();
    for _ in 0..10 {
        let started = Instant::now();
        assert_eq!(fixture.read(node, &others).await, None);
        delays.push(started.elapsed());
    }
    let started = Instant::now();
    let own = fixture.store(node, "123").await;
    let sealing = started.elapsed();
    drop(stopped);
    until("keys are published", async || {
        fixture.read(&other, &own).await.as_deref() == Some("123")
    })
    .await;

    delays.sort();
    println!("reading a code of another node: {delays:?}; sealing: {sealing:?}");
    assert!(delays[9] < Duration::from_secs(1), "{delays:?}");
    assert!(delays[5] < Duration::from_millis(200), "{delays:?}");
    assert!(sealing < Duration::from_secs(1), "{sealing:?}");
}

#[tokio::test]
async fn outcomes_are_counted_in_metrics() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let _counting = metrics::set_default_local_recorder(&recorder);
    let fixture = Fixture::with_redis().await;
    let (node, other) = (&fixture.vault.vault, fixture.another_node().await);

    let token = fixture.store(node, "123").await;
    fixture.read(node, &token).await;
    fixture.read(node, &ids::new_uuid()).await;
    fixture.redis().run("FLUSHALL").await;
    fixture.read(&other, &token).await;
    let stopped = fixture.redis().pause();
    fixture.read(&other, &token).await;
    drop(stopped);
    fixture.sql("update security_code set sealed = ''").await;
    fixture.read(node, &token).await;
    security_codes::tend(&node.security_codes).await;

    let text = recorder.handle().render();
    for line in [
        "cloakroom_security_codes_total{outcome=\"sealed\"} 1",
        "cloakroom_security_codes_total{outcome=\"opened\"} 1",
        "cloakroom_security_codes_total{outcome=\"absent\"} 1",
        "cloakroom_security_codes_total{outcome=\"key_gone\"} 1",
        "cloakroom_security_codes_total{outcome=\"key_unreachable\"} 1",
        "cloakroom_security_codes_total{outcome=\"altered\"} 1",
        "cloakroom_integrity_errors_total 1",
        "cloakroom_security_code_keys 1",
        "cloakroom_redis_up 1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in {text}");
    }
}

#[tokio::test]
async fn sealing_and_reading_are_fast() {
    let fixture = Fixture::with_redis().await;
    let (node, other) = (&fixture.vault.vault, fixture.another_node().await);
    let (token, rounds) = (fixture.store(node, "123").await, 2_000_u32);
    let (tenant, started) = (fixture.tenant.id, Instant::now());
    let retention = retention(node).await;
    for _ in 0..rounds {
        security_codes::seal(&node.security_codes, tenant, &token, "123", retention)
            .await
            .unwrap();
    }
    let seal = started.elapsed() / rounds;

    let started = Instant::now();
    assert!(fixture.read(&other, &token).await.is_some());
    let first_read = started.elapsed();
    let started = Instant::now();
    for _ in 0..200 {
        assert!(fixture.read(&other, &token).await.is_some());
    }
    let read = started.elapsed() / 200;

    println!("seal {seal:?}, first read on another node {first_read:?}, then {read:?}");
    assert!(seal < Duration::from_millis(5), "{seal:?}");
}

/// Advances the rotation of the wrapping key until it reaches a phase.
async fn advance_to(node: &Node, holder: Uuid, phase: Phase) {
    for _ in 0..100 {
        let status = rotation::status(node).await.unwrap();
        if status.last().unwrap().rotation.phase >= phase {
            return;
        }
        rotation::work(node, holder).await.unwrap();
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("the rotation does not reach {phase:?}");
}

#[tokio::test]
async fn codes_are_readable_for_their_retention_while_the_wrapping_key_is_rotated() {
    let fixture = Fixture::with_redis().await;
    let node = &fixture.vault.vault;
    // One that has loaded its keys before, and learns of nothing by heartbeats.
    let unaware = fixture.another_node().await;
    let purpose = KeyPurpose::SecurityCodeWrap;
    let before = fixture.store(node, "111").await;
    rotation::start(node, VAULT, purpose, "tests")
        .await
        .unwrap();
    let holder = ids::new_uuid();
    advance_to(node, holder, Phase::Proving).await;
    // A node that starts now wraps with the new version only.
    let new = fixture.another_node().await;
    let after = fixture.store(&new, "222").await;
    for reader in [&unaware, &new, node] {
        assert_eq!(fixture.read(reader, &before).await.as_deref(), Some("111"));
        assert_eq!(fixture.read(reader, &after).await.as_deref(), Some("222"));
    }
    let early = rotation::retire(node, VAULT, purpose).await.unwrap_err();
    assert!(
        early.to_string().contains("the scan is not complete"),
        "{early}"
    );

    // Just before the last key of the longest retention can have ended, and after it.
    for (ago, is_proved) in [("49 hours 9 minutes", false), ("49 hours 11 minutes", true)] {
        let sql = format!(
            "update system_key set activated_at = now() - interval '{ago}' where purpose = 13 and version = 2;
            update key_rotation set phase_at = now()"
        );
        fixture.sql(&sql).await;
        access_change::reanchor(node, VAULT, Anchored::Keys)
            .await
            .unwrap();
        for _ in 0..3 {
            rotation::work(node, holder).await.unwrap();
        }
        let status = rotation::status(node).await.unwrap();
        let phase = status.last().unwrap().rotation.phase;
        assert_eq!(phase == Phase::Proved, is_proved, "{ago}: {phase:?}");
    }
    let (version, _) = rotation::retire(node, VAULT, purpose).await.unwrap();
    assert_eq!(version, 1);
    // A node without them in memory reads what the new version wrapped, and nothing that the old one did.
    let fresh = fixture.another_node().await;
    assert_eq!(fixture.read(&fresh, &after).await.as_deref(), Some("222"));
    assert_eq!(fixture.read(&fresh, &before).await, None);
}
