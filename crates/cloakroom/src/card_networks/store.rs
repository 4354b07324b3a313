//! Every SQL statement about card ranges. They belong to directory servers, not to tenants.

use std::time::Duration;

use crate::storage::{Db, Error, statements};

statements! {
    FIND_PLACE: "card_networks::find_place" =
        "select version, extract(epoch from now() - refreshed_at)::float8
        from card_range_table
        where directory = $1
          and version > 0";
    FIND_RANGES: "card_networks::find_ranges" =
        "select ranges, digest
        from card_range_table
        where directory = $1
          and version = $2";
    // Whoever changes `asked_at` asks, and has some time for it; then another one may.
    CLAIM: "card_networks::claim" =
        "insert into card_range_table
            (directory, version, ranges, digest, refreshed_at, asked_at)
        values ($1, 0, '', '', now(), now() - make_interval(secs => $2::float8 - $3::float8))
        on conflict (directory) do update
        set asked_at = excluded.asked_at
        where card_range_table.asked_at <= now() - make_interval(secs => $2)
        returning true";
    ASK_AGAIN: "card_networks::ask_again" =
        "update card_range_table
        set asked_at = now() - make_interval(secs => $2)
        where directory = $1";
    KEEP: "card_networks::keep" =
        "update card_range_table
        set version = $2,
            ranges = $3,
            digest = $4,
            refreshed_at = now(),
            asked_at = now()
        where directory = $1
          and version = $2 - 1
        returning true";
}

/// Which ranges there are, and since when.
pub(super) struct Place {
    pub version: i32,
    pub age_seconds: f64,
}

pub(super) async fn find_place(db: &Db, directory: &str) -> Result<Option<Place>, Error> {
    let row = db.read_optional(&FIND_PLACE, &[&directory]).await?;
    Ok(row.map(|row| Place {
        version: row.get(0),
        age_seconds: row.get(1),
    }))
}

/// The ranges of one version as text, and what authenticates them.
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

/// Takes the right to ask for the time of the lease, unless somebody asked within the period.
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

/// Makes it look as if the last question was this long ago.
pub(super) async fn ask_again(db: &Db, directory: &str, ago: Duration) -> Result<(), Error> {
    db.write(&ASK_AGAIN, &[&directory, &ago.as_secs_f64()])
        .await?;
    Ok(())
}

/// Keeps ranges as the version after the known one; false when somebody else was faster.
pub(super) async fn keep(
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
