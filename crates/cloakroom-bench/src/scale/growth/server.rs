//! The temporary server: without durability while it is filled, durable while it is measured.

use anyhow::{Result, ensure};
use cloakroom_devtools::service_sql::ServiceSql;
use cloakroom_scratch::PostgresOptions;
use nix::sys::statvfs::statvfs;

use super::super::database::Database;

/// Settings of a small dedicated machine, with pg_stat_statements.
const SETTINGS: [(&str, &str); 8] = [
    ("shared_preload_libraries", "pg_stat_statements"),
    ("max_wal_size", "2GB"),
    ("checkpoint_timeout", "30min"),
    ("effective_cache_size", "8GB"),
    ("maintenance_work_mem", "768MB"),
    ("random_page_cost", "1.1"),
    // A vacuum during a round would add to its cost.
    ("autovacuum", "off"),
    ("wal_compression", "off"),
];
pub(super) const SHARED_BUFFERS_MB: u32 = 2048;

/// Off while filling, on while measuring.
const DURABILITY: [&str; 3] = ["fsync", "synchronous_commit", "full_page_writes"];

/// What filling leaves free for other processes. In bytes: a percentage rejects a large, well used disk on which the
/// smallest table has room many times over.
const DISK_RESERVE: u64 = 500_000_000;

pub(super) async fn start(sql: &ServiceSql) -> Result<Database> {
    let options = PostgresOptions {
        shared_buffers_mb: SHARED_BUFFERS_MB,
        settings: SETTINGS
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec(),
        ..PostgresOptions::default()
    };
    let database = Database::start_with(sql, options).await?;
    database.run("create extension pg_stat_statements").await?;
    Ok(database)
}

/// Turns durability off.
pub(super) async fn relax(database: &Database) -> Result<()> {
    switch(database, "off").await
}

/// Turns durability on and writes all data to disk, also of other processes if `waits_for_all`.
pub(super) async fn harden(database: &Database, waits_for_all: bool) -> Result<()> {
    switch(database, "on").await?;
    for setting in DURABILITY {
        let value = database.first_row(&format!("show {setting}")).await?;
        let value = value.unwrap_or_default().concat();
        ensure!(
            value == "on",
            "{setting} is {value}: without it the numbers mean nothing"
        );
    }
    database.run("checkpoint").await?;
    if waits_for_all {
        nix::unistd::sync();
    }
    Ok(())
}

async fn switch(database: &Database, value: &str) -> Result<()> {
    for setting in DURABILITY {
        let sql = format!("alter system set {setting} = {value}");
        database.run(&sql).await?;
    }
    database.run("select pg_reload_conf()").await?;
    // Sessions apply settings with a delay.
    for setting in DURABILITY {
        for _ in 0..100 {
            let now = database.first_row(&format!("show {setting}")).await?;
            if now.unwrap_or_default().concat() == value {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    }
    Ok(())
}

/// Returns an error if `more` bytes would fill the disk.
pub(super) fn require_disk_space(database: &Database, more: u64) -> Result<()> {
    let status = statvfs(&database.folder())?;
    let free = status.blocks_available() * status.fragment_size();
    ensure!(
        has_space(free, more),
        "{} MB more would fill the disk: {} MB are free, and {} MB of them stay reserved",
        more / 1_000_000,
        free / 1_000_000,
        DISK_RESERVE / 1_000_000
    );
    Ok(())
}

fn has_space(free: u64, more: u64) -> bool {
    free >= more.saturating_add(DISK_RESERVE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filling_leaves_the_reserve_free() {
        assert!(has_space(DISK_RESERVE, 0));
        assert!(has_space(DISK_RESERVE + 100, 100));
        assert!(!has_space(DISK_RESERVE + 99, 100));
        assert!(!has_space(u64::MAX - 1, u64::MAX));
    }
}
