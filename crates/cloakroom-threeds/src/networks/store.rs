//! SQL statements for card ranges, which belong to directory servers, not to tenants.

use std::time::Duration;

use cloakroom_core::fenced_mac;
use cloakroom_platform::storage::{Db, Error, Params, statements};
use tokio_postgres::Row;

statements! {
    FIND_VERSION: "card_networks::find_place" =
        "select version, extract(epoch from now() - refreshed_at)::float8
        from card_range_table
        where directory = $1
          and version > 0";
    FIND_RANGES: "card_networks::find_ranges" =
        "select ranges, digest
        from card_range_table
        where directory = $1
          and version = $2";
    // The node that updates `asked_at` holds the lease to refresh the ranges.
    CLAIM: "card_networks::claim" =
        "insert into card_range_table
            (directory, version, ranges, digest, refreshed_at, asked_at)
        values ($1, 0, '', '', now(), now() - make_interval(secs => $2::float8 - $3::float8))
        on conflict (directory) do update
        set asked_at = excluded.asked_at
        where card_range_table.asked_at <= now() - make_interval(secs => $2)
        returning true";
    SET_LAST_REQUEST: "card_networks::ask_again" =
        "update card_range_table
        set asked_at = now() - make_interval(secs => $2)
        where directory = $1";
    KEEP: "card_networks::keep" = concat!(
        "update card_range_table
        set version = $2,
            ranges = $3,
            digest = ", fenced_mac!("$4"), ",
            refreshed_at = now(),
            asked_at = now()
        where directory = $1
          and version = $2 - 1
        returning true");
    LIST: "card_networks::list" =
        "select directory, version, ranges, digest
        from card_range_table
        where version > 0";
    RENEW: "card_networks::renew" =
        "update card_range_table
        set digest = $3
        where directory = $1
          and digest = $2
        returning true";
}

/// Version and age of the stored ranges.
pub(super) struct StoredVersion {
    pub version: i32,
    pub age_seconds: f64,
}

pub(super) async fn find_version(db: &Db, directory: &str) -> Result<Option<StoredVersion>, Error> {
    let row = db.read_optional(&FIND_VERSION, &[&directory]).await?;
    Ok(row.map(|row| StoredVersion {
        version: row.get(0),
        age_seconds: row.get(1),
    }))
}

/// Returns the ranges of one version as JSON, and their MAC.
pub(super) async fn find_ranges(
    db: &Db,
    directory: &str,
    version: i32,
) -> Result<Option<(String, Vec<u8>)>, Error> {
    let row = db
        .read_optional(&FIND_RANGES, &[&directory, &version])
        .await?;
    Ok(row.map(|row| (row.get(0), row.get(1))))
}

/// Stored ranges of a directory server. Not verified yet.
pub(super) struct StoredRanges {
    pub directory: String,
    pub version: i32,
    pub ranges: String,
    pub digest: Vec<u8>,
}

pub(super) async fn list(db: &Db) -> Result<Vec<StoredRanges>, Error> {
    let rows = db.read(&LIST, &[]).await?;
    let stored = |row: &Row| StoredRanges {
        directory: row.get(0),
        version: row.get(1),
        ranges: row.get(2),
        digest: row.get(3),
    };
    Ok(rows.iter().map(stored).collect())
}

/// Replaces the MAC of ranges, if it still is the one before; returns how many were replaced.
pub(super) async fn renew(db: &Db, stored: &StoredRanges, digest: &[u8]) -> Result<u64, Error> {
    let params: Params<'_> = &[&stored.directory, &stored.digest, &digest];
    Ok(db.write(&RENEW, params).await?.len() as u64)
}

/// Acquires the lease to refresh the ranges, unless they were requested within `period`.
pub(super) async fn claim(
    db: &Db,
    directory: &str,
    period: Duration,
    lease: Duration,
) -> Result<bool, Error> {
    let (period, lease) = (period.as_secs_f64(), lease.as_secs_f64());
    let rows = db.write(&CLAIM, &[&directory, &period, &lease]).await?;
    Ok(!rows.is_empty())
}

/// Sets the time of the last request to `ago` before now, to schedule the next one.
pub(super) async fn set_last_request(db: &Db, directory: &str, ago: Duration) -> Result<(), Error> {
    db.write(&SET_LAST_REQUEST, &[&directory, &ago.as_secs_f64()])
        .await?;
    Ok(())
}

/// Stores ranges as `version`; returns false if another node stored that version first.
pub(super) async fn update_ranges(
    db: &Db,
    directory: &str,
    version: i32,
    ranges: &str,
    digest: &[u8],
) -> Result<bool, Error> {
    let rows = db
        .write(&KEEP, &[&directory, &version, &ranges, &digest])
        .await?;
    Ok(!rows.is_empty())
}
