//! The throw-away server in its two manners: quick while it is filled, durable while it is measured.

use std::path::Path;

use anyhow::{Result, bail, ensure};
use cloakroom_scratch::PostgresOptions;
use nix::sys::statvfs::statvfs;

use super::super::database::Database;
use super::super::source::Source;

/// As a small machine of its own would be set up. What counts blocks is part of it.
const SETTINGS: [(&str, &str); 8] = [
    ("shared_preload_libraries", "pg_stat_statements"),
    ("max_wal_size", "2GB"),
    ("checkpoint_timeout", "30min"),
    ("effective_cache_size", "8GB"),
    ("maintenance_work_mem", "768MB"),
    ("random_page_cost", "1.1"),
    // A vacuum in the middle of a round would be taken for its cost.
    ("autovacuum", "off"),
    ("wal_compression", "off"),
];
pub(super) const SHARED_BUFFERS_MB: u32 = 2048;

/// What filling switches off, and measuring must find on.
const DURABILITY: [&str; 3] = ["fsync", "synchronous_commit", "full_page_writes"];

/// No more of the disk than this may be in use, by whomever.
const DISK_PERCENT_MAX: u64 = 85;

pub(super) async fn start(source: &Source) -> Result<Database> {
    let options = PostgresOptions {
        shared_buffers_mb: SHARED_BUFFERS_MB,
        settings: SETTINGS
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec(),
        ..PostgresOptions::default()
    };
    let database = Database::start_with(source, options).await?;
    database.run("create extension pg_stat_statements").await?;
    Ok(database)
}

/// Nothing waits for the disk.
pub(super) async fn relax(database: &Database) -> Result<()> {
    switch(database, "off").await
}

/// Everything is on the disk, and from now on nothing is done before it is. What others have in memory is
/// written out too where that is worth waiting for.
pub(super) async fn harden(database: &Database, waits_for_all: bool) -> Result<()> {
    switch(database, "on").await?;
    for setting in DURABILITY {
        let value = database.ask(&format!("show {setting}")).await?;
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
    // The server reads its settings when it gets to it.
    for setting in DURABILITY {
        for _ in 0..100 {
            let now = database.ask(&format!("show {setting}")).await?;
            if now.unwrap_or_default().concat() == value {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    }
    Ok(())
}

/// Refuses to go on when `more` bytes would fill the disk.
pub(super) fn require_room(database: &Database, more: u64) -> Result<()> {
    let disk = Disk::of(&database.folder())?;
    let percent = disk.percent_with(more);
    if percent > DISK_PERCENT_MAX {
        bail!(
            "{} GB more would fill the disk to {percent} %; {DISK_PERCENT_MAX} % is allowed",
            more / 1_000_000_000
        );
    }
    Ok(())
}

struct Disk {
    used: u64,
    free: u64,
}

impl Disk {
    fn of(folder: &Path) -> Result<Self> {
        let told = statvfs(folder)?;
        let bytes = |blocks: u64| blocks * told.fragment_size();
        Ok(Self {
            used: bytes(told.blocks() - told.blocks_free()),
            free: bytes(told.blocks_available()),
        })
    }

    /// As `df` counts: what is kept back for root is not there.
    fn percent_with(&self, more: u64) -> u64 {
        (self.used + more) * 100 / (self.used + self.free).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_as_full_as_df_says() {
        let disk = Disk { used: 29, free: 63 };

        assert_eq!(disk.percent_with(0), 31);
        assert_eq!(disk.percent_with(49), 84);
        assert_eq!(disk.percent_with(63), 100);
    }
}
