//! The sweep deletes expired tokens.

use std::time::Instant;

use cloakroom::{ids, jobs};
use cloakroom_testkit::{Client, TestResponse, TestVault};
use http::StatusCode;
use serde_json::{Value, json};

use super::{count, create};

const TOKENS: i32 = 20_000;

/// Covers 8.12.
#[tokio::test]
async fn the_sweep_deletes_expired_tokens_with_their_rows_and_nothing_else() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let other = vault.revealing_client().await;
    let card = |expires_at: Value| {
        json!({
            "type": "card",
            "data": {"number": "4242424242424242", "cvc": "123"},
            "metadata": {"k": "v"},
            "search_indexes": ["{{ data.number }}"],
            "deduplicate_token": true,
            "expires_at": expires_at,
        })
    };
    let expired = client.post("/tokens", card(json!("2040-01-01"))).await;
    let mut elsewhere = card(json!("2050-01-01"));
    elsewhere["containers"] = json!(["/elsewhere/"]);
    let later = client.post("/tokens", elsewhere).await;
    let foreign = other.post("/tokens", card(json!(null))).await;
    let rows = async || {
        let mut rows = Vec::new();
        for table in ["token", "term", "claim", "security_code"] {
            rows.push(count(&vault, table).await);
        }
        rows
    };
    assert_eq!(rows().await, [3, 9, 3, 3]);
    let node = ids::new_uuid();

    assert_eq!(jobs::sweep_once(&vault.vault, node).await.unwrap(), Some(0));
    let sql = "update token set expires_at = now() where expires_at < '2045-01-01'";
    vault
        .database
        .connect()
        .await
        .execute(sql, &[])
        .await
        .unwrap();
    assert_eq!(jobs::sweep_once(&vault.vault, node).await.unwrap(), Some(1));

    assert_eq!(rows().await, [2, 6, 2, 2]);
    let status = async |client: &Client, response: &TestResponse| {
        client
            .get(&format!("/tokens/{}", response.id()))
            .await
            .status
    };
    assert_eq!(status(&client, &expired).await, StatusCode::NOT_FOUND);
    assert_eq!(status(&client, &later).await, StatusCode::OK);
    assert_eq!(status(&other, &foreign).await, StatusCode::OK);
    let fresh = client.post("/tokens", card(json!(null))).await;
    assert_eq!(
        fresh.body["_extras"]["deduplicated"], false,
        "{}",
        fresh.body
    );
}

/// Covers 8.12.
#[tokio::test]
async fn one_node_sweeps_at_a_time_with_failover() {
    let vault = TestVault::start_with_long_timeouts().await;
    let node = vault.second_node().await;
    let (first, second) = (ids::new_uuid(), ids::new_uuid());
    let database = vault.database.connect().await;

    let (one, other) = tokio::join!(
        jobs::sweep_once(&vault.vault, first),
        jobs::sweep_once(&node.vault, second),
    );
    let (one, other) = (one.unwrap(), other.unwrap());
    assert_eq!(
        [one, other].iter().filter(|swept| swept.is_some()).count(),
        1
    );
    // The lease holder can sweep again.
    let (holder, waiting) = match one {
        Some(_) => ((&vault, first), (&node, second)),
        None => ((&node, second), (&vault, first)),
    };
    let sweep = async |(at, node): (&TestVault, uuid::Uuid)| {
        jobs::sweep_once(&at.vault, node).await.unwrap()
    };
    assert_eq!(sweep(holder).await, Some(0));
    assert_eq!(sweep(waiting).await, None);

    // The lease is long enough to be renewed, and short enough that expired tokens are deleted within the hour.
    let sql = "select extract(epoch from until - now())::float8 from lease where name = 'sweep'";
    let remaining: f64 = database.query_one(sql, &[]).await.unwrap().get(0);
    assert!((20.0..900.0).contains(&remaining), "{remaining}");

    database
        .execute("update lease set until = now()", &[])
        .await
        .unwrap();
    assert_eq!(sweep(waiting).await, Some(0));
    assert_eq!(sweep(holder).await, None);
}

/// I05: one sweep deletes many expired tokens.
///
/// Covers 8.12.
#[tokio::test]
async fn one_sweep_deletes_many_expired_tokens() {
    let vault = TestVault::start_with_long_timeouts().await;
    let client = vault.revealing_client().await;
    // The row that is copied, and that must survive.
    let survivor = create(&client, json!(null)).await;
    let database = vault.database.connect().await;
    let inserting = format!(
        "with many as (
            insert into token (tenant_id, token_id, container_id, kind, created_by, sealed, expires_at,
                               path, fingerprint, terms)
            select tenant_id, gen_random_uuid(), container_id, kind, created_by, sealed,
                   now() - interval '1 second', path,
                   sha256(n::text::bytea),
                   array[substring(sha256(n::text::bytea) for 16), substring(sha256('k'::bytea) for 16)]
            from token cross join generate_series(1, {TOKENS}) n
            returning *
        ), termed as (
            insert into term (tenant_id, term, path, created_at, token_id)
            select many.tenant_id, unnest(many.terms), container.path, many.created_at, many.token_id
            from many join container using (tenant_id, container_id)
        )
        insert into claim (tenant_id, fingerprint, container_id, token_id)
        select tenant_id, fingerprint, container_id, token_id from many"
    );
    assert_eq!(
        database.execute(&inserting, &[]).await.unwrap(),
        u64::try_from(TOKENS).unwrap()
    );
    assert_eq!(count(&vault, "term").await, 2 * i64::from(TOKENS) + 1);
    // No expired token is visible before the sweep.
    let listed = client.get("/v2/tokens").await;
    assert_eq!(listed.body["data"].as_array().unwrap().len(), 1);

    let started_at = Instant::now();
    let swept = jobs::sweep_once(&vault.vault, ids::new_uuid())
        .await
        .unwrap();
    let took = started_at.elapsed();

    assert_eq!(swept, Some(u64::try_from(TOKENS).unwrap()));
    for (table, remaining) in [("token", 1), ("term", 1), ("claim", 0)] {
        assert_eq!(count(&vault, table).await, remaining, "{table}");
    }
    let per_second = f64::from(TOKENS) / took.as_secs_f64();
    println!(
        "{TOKENS} expired tokens swept in {} ms, {per_second:.0} a second",
        took.as_millis()
    );
    // An idle machine deletes over 1,100 per second, a million within 15 minutes. A busy one may take 20 times as long.
    assert!(per_second > 1_000_000.0 / 900.0 / 20.0, "{took:?}");
    assert_eq!(
        client
            .get(&format!("/tokens/{}", survivor.id()))
            .await
            .status,
        StatusCode::OK
    );
}
