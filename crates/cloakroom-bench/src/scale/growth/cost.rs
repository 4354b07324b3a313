//! Cost of an operation: time measured by the client, blocks and WAL counted by the server.

use std::time::Duration;

use anyhow::{Context, Result};
use serde::Serialize;

use super::super::database::Database;

/// Cost of one execution, or of one row for batch operations.
#[derive(Clone, Copy, Default, Serialize)]
pub(super) struct Cost {
    pub(super) microseconds: f64,
    /// Blocks in shared buffers.
    pub(super) blocks_hit: f64,
    /// Blocks read from the operating system.
    pub(super) blocks_read: f64,
    pub(super) wal_bytes: f64,
    /// Full-page images in the WAL.
    pub(super) wal_pages: f64,
}

impl Cost {
    pub(super) fn blocks(&self) -> f64 {
        self.blocks_hit + self.blocks_read
    }

    fn each(values: [f64; 5]) -> Self {
        let [microseconds, blocks_hit, blocks_read, wal_bytes, wal_pages] = values;
        Self {
            microseconds,
            blocks_hit,
            blocks_read,
            wal_bytes,
            wal_pages,
        }
    }

    fn values(&self) -> [f64; 5] {
        [
            self.microseconds,
            self.blocks_hit,
            self.blocks_read,
            self.wal_bytes,
            self.wal_pages,
        ]
    }
}

/// The median of several rounds, for each number separately.
pub(super) fn median_cost(rounds: &[Cost]) -> Cost {
    Cost::each(std::array::from_fn(|index| {
        median(rounds.iter().map(|cost| cost.values()[index]).collect())
    }))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// The median of times, in microseconds.
pub(super) fn median_us(times: &[Duration]) -> f64 {
    median(times.iter().map(|time| time.as_secs_f64() * 1e6).collect())
}

/// Resets the statistics.
pub(super) async fn reset(database: &Database) -> Result<()> {
    database.run("select pg_stat_statements_reset()").await
}

/// Cost of the statements with these names since the reset, per unit.
pub(super) async fn counted(
    database: &Database,
    names: &[&str],
    units: u64,
    microseconds: f64,
) -> Result<Cost> {
    let patterns: Vec<String> = names
        .iter()
        .map(|name| format!("'-- {name}' || chr(10) || '%'"))
        .collect();
    let sql = format!(
        "select coalesce(sum(shared_blks_hit), 0), coalesce(sum(shared_blks_read), 0),
                coalesce(sum(wal_bytes), 0), coalesce(sum(wal_fpi), 0), coalesce(sum(calls), 0)
        from pg_stat_statements
        where query like any (array[{}])",
        patterns.join(", ")
    );
    let row = database.first_row(&sql).await?.unwrap_or_default();
    let figures: Vec<f64> = row.iter().filter_map(|text| text.parse().ok()).collect();
    let &[hit, read, bytes, pages, calls] = figures.as_slice() else {
        anyhow::bail!("expected five columns: {row:?}");
    };
    anyhow::ensure!(calls > 0.0, "no statistics for {names:?}");
    let units = units as f64;
    Some(Cost::each([
        microseconds,
        hit / units,
        read / units,
        bytes / units,
        pages / units,
    ]))
    .filter(|_| units > 0.0)
    .context("nothing was measured")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slow_round_does_not_change_the_median() {
        let round = |microseconds, read| Cost::each([microseconds, 4.0, read, 900.0, 0.5]);

        let cost = median_cost(&[round(90.0, 1.0), round(5_000.0, 2.0), round(100.0, 9.0)]);

        assert_eq!(cost.values(), [100.0, 4.0, 2.0, 900.0, 0.5]);
        assert_eq!(cost.blocks(), 6.0);
        let times = [30, 10, 20].map(Duration::from_micros);
        assert_eq!(median_us(&times).round(), 20.0);
    }
}
