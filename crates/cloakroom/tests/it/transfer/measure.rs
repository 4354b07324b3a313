//! Measures imports against COPY of the same rows, with a release build:
//! `cargo xtask services run -- cargo nextest run --release --workspace --run-ignored only --no-capture transfer::measure`.

use std::time::Instant;

use cloakroom_testkit::{TestVault, number_or};
use futures_util::SinkExt as _;

use super::{cards, import_with, options};

/// Tables that an import writes.
const TABLES: [&str; 4] = ["token", "term", "log", "import_batch"];

#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures"]
async fn cards_per_second() {
    let count = number_or("IMPORT_CARDS", 200_000) as u64;
    let vault = TestVault::start_with_long_timeouts().await;
    let lines = cards(count);
    for in_flight in [1, 2, 4, 8] {
        let tenant = vault.tenant().await;
        let mut options = options("measured");
        options.in_flight = in_flight;
        let start = Instant::now();
        let (counts, _) = import_with(&vault, &tenant, options, lines.clone())
            .await
            .unwrap();
        let seconds = start.elapsed().as_secs_f64();
        assert_eq!(counts.created, count);
        println!(
            "import, {in_flight} in flight: {:.0} cards/s",
            count as f64 / seconds
        );
    }
    println!(
        "COPY of the same rows: {:.0} cards/s",
        copy(&vault, count).await
    );
}

/// Copies the rows of the last tenant out of the tables and into tables with the same indexes, and measures the latter.
async fn copy(vault: &TestVault, count: u64) -> f64 {
    let database = vault.database.connect().await;
    let mut seconds = 0.0;
    for table in TABLES {
        let run = async |sql: String| database.batch_execute(&sql).await.unwrap();
        run(format!(
            "create table copied_{table} (like {table} including all)"
        ))
        .await;
        let last = "(select max(tenant_id) from token)";
        let sql = format!("copy (select * from {table} where tenant_id = {last}) to stdout binary");
        let rows = database.copy_out(&sql).await.unwrap();
        let rows: Vec<_> = futures_util::TryStreamExt::try_collect(rows).await.unwrap();
        let start = Instant::now();
        let sink = database
            .copy_in::<_, bytes::Bytes>(&format!("copy copied_{table} from stdin binary"))
            .await
            .unwrap();
        let mut sink = std::pin::pin!(sink);
        for chunk in rows {
            sink.feed(chunk).await.unwrap();
        }
        sink.finish().await.unwrap();
        seconds += start.elapsed().as_secs_f64();
    }
    count as f64 / seconds
}
