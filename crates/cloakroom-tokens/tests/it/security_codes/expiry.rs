//! Expiry and sweeping of codes.

use std::time::{Duration, Instant};

use cloakroom::security_codes;
use cloakroom_testkit::LogCapture;

use super::{Fixture, run_concurrently, run_jobs, until};

#[tokio::test]
async fn codes_expire_by_the_database_clock() {
    let fixture = Fixture::alone().await;
    let node = &fixture.vault.vault;
    let minutes = |count: u64| Duration::from_secs(60 * count);
    let young = fixture.store_aged(node, "123", minutes(59)).await;
    let old = fixture.store_aged(node, "456", minutes(61)).await;

    let before = fixture.read(node, &young).await;
    let after = fixture.read(node, &old).await;

    assert_eq!(before.as_deref(), Some("123"));
    assert_eq!(after, None);
    assert_eq!(node.security_codes.live_keys(), 1);
    // The code is bound to its expiry, which SQL cannot postpone, although the key still exists.
    let lines = LogCapture::start();
    fixture
        .sql("update security_code set expires_at = now() + interval '1 minute'")
        .await;
    assert_eq!(fixture.read(node, &young).await, None);
    assert_eq!(fixture.read(node, &old).await, None);
    assert_eq!(lines.count("integrity_error"), 2, "{}", lines.text());
}

/// I06 in seconds: the same rules with a retention of three seconds and an epoch of two.
#[tokio::test]
async fn no_copy_of_an_expired_code_can_be_decrypted() {
    let fixture = Fixture::with_settings(|config| {
        config.security_codes.retention = Duration::from_secs(3);
        config.security_codes.epoch = Duration::from_secs(2);
    })
    .await;
    let (node, other) = (&fixture.vault.vault, fixture.another_node().await);
    let _jobs = (run_jobs(node), run_jobs(&other));

    let sealed_at = Instant::now();
    let token = fixture.store(node, "123").await;
    let alive = fixture.read(&other, &token).await;
    let restored_alive = fixture.read(&fixture.another_node().await, &token).await;
    let backup = fixture.vault.database.dump(&["--data-only"]);
    until("keys expire", async || {
        node.security_codes.live_keys() + other.security_codes.live_keys() == 0
            && fixture.redis().keys().await.is_empty()
    })
    .await;
    let expired_after = sealed_at.elapsed();

    println!("keys expired after {expired_after:?}");
    assert_eq!(alive.as_deref(), Some("123"));
    assert_eq!(restored_alive.as_deref(), Some("123"));
    assert!(expired_after > Duration::from_secs(4), "too early");
    assert!(expired_after < Duration::from_secs(9), "too late");
    fixture.sql("delete from security_code").await;
    fixture.sql(&insert_from_dump(&backup)).await;
    fixture
        .sql("update security_code set expires_at = now() + interval '1 day'")
        .await;
    assert_eq!(fixture.read(node, &token).await, None);
    assert_eq!(fixture.read(&other, &token).await, None);
    assert_eq!(
        fixture.read(&fixture.another_node().await, &token).await,
        None
    );
}

#[tokio::test]
async fn sweeps_remove_each_expired_code_once() {
    let fixture = Fixture::alone().await;
    let fill = |count: u32, expiry: &str| {
        format!(
            "insert into security_code (tenant_id, token_id, key_id, sealed, expires_at)
             select 1, gen_random_uuid(), '', '', now() {expiry}
             from generate_series(1, {count})"
        )
    };
    fixture.sql(&fill(2_500, "- interval '1 second'")).await;
    fixture.sql(&fill(7, "+ interval '1 hour'")).await;

    let sweeps = run_concurrently(3, |_| security_codes::sweep(&fixture.vault.vault)).await;

    let removed: u64 = sweeps.into_iter().map(Result::unwrap).sum();
    let left = fixture
        .database
        .query_one("select count(*) from security_code", &[])
        .await
        .unwrap();
    assert_eq!(removed, 2_500);
    assert_eq!(left.get::<_, i64>(0), 7);
}

#[tokio::test]
async fn node_jobs_sweep_expired_codes() {
    let fixture = Fixture::alone().await;
    let token = fixture.store(&fixture.vault.vault, "123").await;
    fixture
        .sql("update security_code set expires_at = now()")
        .await;

    let _jobs = run_jobs(&fixture.vault.vault);

    let row = "select from security_code where token_id = $1";
    until("codes are swept", async || {
        fixture
            .database
            .query_opt(row, &[&token])
            .await
            .unwrap()
            .is_none()
    })
    .await;
}

/// An `insert` statement for the codes in a dump.
fn insert_from_dump(dump: &str) -> String {
    let (_, rest) = dump.split_once("COPY public.security_code ").unwrap();
    let (head, rest) = rest.split_once(" FROM stdin;\n").unwrap();
    let (rows, _) = rest.split_once("\\.\n").unwrap();
    let values: Vec<String> = rows
        .lines()
        .map(|row| {
            let columns = row.split('\t').map(|text| text.replace("\\\\", "\\"));
            let quoted: Vec<String> = columns.map(|text| format!("'{text}'")).collect();
            format!("({})", quoted.join(", "))
        })
        .collect();
    assert_eq!(values.len(), 1, "{rows}");
    format!(
        "insert into security_code {head} values {}",
        values.join(", ")
    )
}
