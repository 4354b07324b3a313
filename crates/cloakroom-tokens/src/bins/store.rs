//! SQL statements for the BIN table, which belongs to the vault and not to a tenant.

use cloakroom_core::fenced_mac;
use cloakroom_platform::storage::{Db, Error, Params, Transaction, statements};
use jiff::Timestamp;

use super::chunk::ChunkPosition;

statements! {
    RESERVE: "bins::reserve" =
        "insert into bin_table (version, source)
        select coalesce(max(version), 0) + 1, $1
        from bin_table
        returning version";
    INSERT_CHUNK: "bins::insert_chunk" = concat!(
        "insert into bin_chunk (version, position, content, digest)
        values ($1, $2, $3, ", fenced_mac!("$4"), ")");
    RETIRE: "bins::retire" =
        "update bin_table
        set is_current = false
        where is_current";
    PROMOTE: "bins::promote" = concat!(
        "update bin_table
        set is_current = true, row_count = $2, chunk_count = $3, byte_count = $4, digest = $5,
            imported_at = now()
        where version = $1
          and ", fenced_mac!("$5"), " is not null
        returning version");
    RENEW_CHUNK: "bins::renew_chunk" =
        "update bin_chunk
        set digest = $4
        where version = $1
          and position = $2
          and digest = $3
        returning true";
    RENEW_TABLE: "bins::renew_table" =
        "update bin_table
        set digest = $3
        where version = $1
          and digest = $2
        returning true";
    DELETE_OLDER_CHUNKS: "bins::delete_older_chunks" =
        "delete from bin_chunk
        where version < $1";
    DELETE_OLDER_TABLES: "bins::delete_older_tables" =
        "delete from bin_table
        where version < $1";
    DELETE_CHUNKS: "bins::delete_chunks" =
        "delete from bin_chunk
        where version = $1";
    FIND_CURRENT: "bins::find_current" =
        "select version, source, row_count, chunk_count, byte_count, digest, imported_at
        from bin_table
        where is_current";
    FIND_CHUNK: "bins::find_chunk" =
        "select content, digest
        from bin_chunk
        where version = $1
          and position = $2";
}

/// The row of the current table.
#[derive(Clone, Debug)]
pub(super) struct Current {
    pub(super) version: i32,
    pub(super) source: String,
    pub(super) counts: Counts,
    pub(super) digest: Vec<u8>,
    pub(super) imported_at: Timestamp,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) rows: i64,
    pub(super) chunks: i32,
    pub(super) bytes: i64,
}

/// Reserves the next version, which is invisible until it is promoted.
pub(super) async fn reserve(db: &Db, source: &str) -> Result<i32, Error> {
    let rows = db.write(&RESERVE, &[&source]).await?;
    let row = rows.first().ok_or(Error::OutcomeUnknown(RESERVE.name))?;
    Ok(row.get(0))
}

pub(super) async fn insert_chunk(
    db: &Db,
    position: ChunkPosition,
    content: &[u8],
    digest: &[u8],
) -> Result<(), Error> {
    let ChunkPosition { version, position } = position;
    db.write(&INSERT_CHUNK, &[&version, &position, &content, &digest])
        .await?;
    Ok(())
}

/// Makes a version the current one; false if it was deleted concurrently.
pub(super) async fn promote(
    tx: &Transaction,
    version: i32,
    counts: Counts,
    digest: &[u8],
) -> Result<bool, Error> {
    tx.run(&RETIRE, &[]).await?;
    let Counts {
        rows,
        chunks,
        bytes,
    } = counts;
    let promoted = tx
        .run(&PROMOTE, &[&version, &rows, &chunks, &bytes, &digest])
        .await?;
    Ok(!promoted.is_empty())
}

pub(super) async fn delete_older(db: &Db, version: i32) -> Result<(), Error> {
    db.write(&DELETE_OLDER_TABLES, &[&version]).await?;
    db.write(&DELETE_OLDER_CHUNKS, &[&version]).await?;
    Ok(())
}

pub(super) async fn delete_chunks(db: &Db, version: i32) -> Result<(), Error> {
    db.write(&DELETE_CHUNKS, &[&version]).await?;
    Ok(())
}

pub(super) async fn find_current(db: &Db) -> Result<Option<Current>, Error> {
    let row = db.read_optional(&FIND_CURRENT, &[]).await?;
    Ok(row.map(|row| Current {
        version: row.get(0),
        source: row.get(1),
        counts: Counts {
            rows: row.get(2),
            chunks: row.get(3),
            bytes: row.get(4),
        },
        digest: row.get::<_, Option<_>>(5).unwrap_or_default(),
        imported_at: row.get(6),
    }))
}

/// Replaces the MAC of a chunk, if it still is the one before; returns how many were replaced.
pub(super) async fn renew_chunk(
    db: &Db,
    position: ChunkPosition,
    (before, after): (&[u8], &[u8]),
) -> Result<u64, Error> {
    let ChunkPosition { version, position } = position;
    let params: Params<'_> = &[&version, &position, &before, &after];
    Ok(db.write(&RENEW_CHUNK, params).await?.len() as u64)
}

/// Replaces the MAC of a table, if it still is the one before; returns how many were replaced.
pub(super) async fn renew_table(
    db: &Db,
    version: i32,
    (before, after): (&[u8], &[u8]),
) -> Result<u64, Error> {
    let params: Params<'_> = &[&version, &before, &after];
    Ok(db.write(&RENEW_TABLE, params).await?.len() as u64)
}

/// Finds a chunk and its MAC.
pub(super) async fn find_chunk(
    db: &Db,
    position: ChunkPosition,
) -> Result<Option<(Vec<u8>, Vec<u8>)>, Error> {
    let ChunkPosition { version, position } = position;
    let row = db
        .read_optional(&FIND_CHUNK, &[&version, &position])
        .await?;
    Ok(row.map(|row| (row.get(0), row.get(1))))
}
