//! Times and rows of a round.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::super::database::Database;
use super::cost::{Cost, counted, median_us, reset};

/// Times and rows of the executions of one round.
pub(super) struct Watch<'a> {
    database: &'a Database,
    times: Vec<Duration>,
    rows: usize,
}

impl<'a> Watch<'a> {
    pub(super) async fn start(database: &'a Database) -> Result<Self> {
        reset(database).await?;
        Ok(Self {
            database,
            times: Vec::new(),
            rows: 0,
        })
    }

    pub(super) fn count(&mut self, started_at: Instant, rows: usize) {
        self.times.push(started_at.elapsed());
        self.rows += rows;
    }

    /// A few tokens have been deleted as expired. All others must be found.
    pub(super) fn expect_most(&self, rows_each: usize) -> Result<()> {
        let expected = self.times.len() * rows_each;
        ensure!(
            self.rows * 10 >= expected * 9,
            "only {} of {expected} rows were found",
            self.rows
        );
        Ok(())
    }

    pub(super) async fn end(self, names: &[&str]) -> Result<Cost> {
        let units = self.times.len() as u64;
        counted(self.database, names, units, median_us(&self.times)).await
    }
}
