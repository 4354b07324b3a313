//! Batch operations: deletion of expired tokens, and a key rotation.

use std::time::Instant;

use anyhow::{Result, ensure};
use tokio_postgres::Statement;
use uuid::Uuid;

use super::super::shape::TENANT;
use super::bench::Bench;
use super::cost::{Cost, counted, reset};

pub(super) const BATCH: i64 = 1_000;

/// As the rotation of a data key: read a batch in key order, and write the sealed values again unless they changed
/// concurrently.
pub(super) const ROTATION: [(&str, &str); 2] = [
    (
        "growth::batch",
        "-- growth::batch
        select token_id, row_version, sealed
        from token
        where tenant_id = $1
          and token_id > $2
        order by tenant_id, token_id
        limit $3",
    ),
    (
        "growth::seal_again",
        "-- growth::seal_again
        update token
        set sealed = again.sealed
        from unnest($2::uuid[], $3::integer[], $4::bytea[]) as again (token_id, row_version, sealed)
        where token.tenant_id = $1
          and token.token_id = again.token_id
          and token.row_version = again.row_version",
    ),
];

/// Deletes expired tokens in batches, one commit each.
pub(super) async fn sweep(bench: &Bench<'_>, sweep: &Statement, batches: usize) -> Result<Cost> {
    bench.database.run("checkpoint").await?;
    reset(bench.database).await?;
    let started_at = Instant::now();
    let mut rows = 0;
    for _ in 0..batches {
        let removed = bench.session.client.query(sweep, &[&BATCH]).await?.len();
        ensure!(removed > 0, "no token has expired");
        rows += removed;
    }
    let each = started_at.elapsed().as_secs_f64() * 1e6 / rows as f64;
    counted(bench.database, &["tokens::sweep"], rows as u64, each).await
}

/// The order of a rotation.
#[derive(Clone, Copy)]
pub(super) enum Order {
    Key,
    /// The order of lists: by type, path and time.
    List,
}

const BATCH_OF_LIST: (&str, &str) = (
    "growth::batch_of_list",
    "-- growth::batch_of_list
        select token_id, row_version, sealed
        from token
        where tenant_id = $1
          and (kind, path, created_at, token_id) > (
            select kind, path, created_at, token_id
            from token
            where tenant_id = $1
              and token_id = $2
          )
        order by kind, path, created_at, token_id
        limit $3",
);

/// Rewrites the sealed values of batches that start at random tokens, one commit each.
pub(super) async fn rotate(bench: &Bench<'_>, batches: usize, order: Order) -> Result<Cost> {
    let client = &bench.session.client;
    let [by_key, (again_name, again)] = ROTATION;
    let (batch_name, batch) = match order {
        Order::Key => by_key,
        Order::List => BATCH_OF_LIST,
    };
    let (batch, again) = (client.prepare(batch).await?, client.prepare(again).await?);
    let starts = bench.draw(batches).await?;
    bench.database.run("checkpoint").await?;
    reset(bench.database).await?;
    let started_at = Instant::now();
    let mut rows = 0;
    for (start, _) in starts {
        let old = client.query(&batch, &[&TENANT, &start, &BATCH]).await?;
        let ids: Vec<Uuid> = old.iter().map(|row| row.get(0)).collect();
        let versions: Vec<i32> = old.iter().map(|row| row.get(1)).collect();
        let sealed: Vec<Vec<u8>> = old.iter().map(|row| row.get(2)).collect();
        rows += client
            .execute(&again, &[&TENANT, &ids, &versions, &sealed])
            .await?;
    }
    let each = started_at.elapsed().as_secs_f64() * 1e6 / rows as f64;
    counted(bench.database, &[batch_name, again_name], rows, each).await
}
