//! SQL statements of the audit log.

use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{Connection, Db, Error, Statement, Transaction, statements};
use futures_util::{Stream, TryStreamExt as _};
use jiff::Timestamp;
use tokio_postgres::Row;

use super::chain_entry::ChainEntry;
use super::day::day_of;
use super::link::CertifiedKey;
use crate::events::insert_events;
use crate::idempotency::insert_response;

/// Inserts signed rows (a parameter of type `text[]`) if another part of the statement wrote a row.
///
/// For the statement that makes the recorded change: `logged!("$7", "fresh")` inserts the rows of
/// the seventh parameter if the CTE `fresh` is not empty.
#[macro_export]
macro_rules! logged {
    ($rows:expr, $done:literal) => {
        concat!(
            "logged as (
            insert into log
            select entry.*
            from unnest(",
            $rows,
            "::text[]::log[]) as entry
            where (select count(*) from ",
            $done,
            ") > 0
        )"
        )
    };
}
pub use crate::logged;

macro_rules! record_columns {
    () => {
        "created_at, tenant_id, actor_kind, actor_id, key_id, entity_kind, entity_id, operation,
               outcome, origin, trace_id, chain, seq, commit"
    };
}

statements! {
    // Keys and checkpoints belong to nodes, not to tenants.
    NEXT_KEY: "audit::next_key" =
        "select coalesce(max(number), 0) + 1
        from log_key
        where day = $1";
    INSERT_KEY: "audit::insert_key" =
        "insert into log_key (day, number, node, public_key, certificate)
        values ($1, $2, $3, $4, $5)
        on conflict (day, number) do nothing
        returning true";
    LIST_KEYS: "audit::list_keys" =
        "select day, number, node, public_key, certificate
        from log_key
        where day between $1 and $2
        order by day, number";
    INSERT_CHECKPOINT: "audit::insert_checkpoint" =
        "insert into log_checkpoint (number, day, note, state)
        values ($1, $2, $3, $4)
        on conflict (number) do nothing
        returning true";
    FIND_NEWEST_CHECKPOINT: "audit::find_newest_checkpoint" =
        "select number, note, state
        from log_checkpoint
        order by number desc
        limit 1";
    LIST_CHECKPOINTS: "audit::list_checkpoints" =
        "select number, note, state
        from log_checkpoint
        where number between $1 and $2
        order by number";
    LAST_CHECKPOINT_OF_DAY: "audit::last_checkpoint_of_day" =
        "select coalesce(max(number), 0)
        from log_checkpoint
        where day <= $1";
    FIND_SHIPMENT: "audit::find_shipment" =
        "select number
        from log_shipment
        where sink = $1";
    SET_SHIPMENT: "audit::set_shipment" =
        "insert into log_shipment (sink, number)
        values ($1, $2)
        on conflict (sink) do update
        set number = greatest(log_shipment.number, excluded.number)";
    FIND_RETENTION: "audit::find_retention" =
        "select keep_days
        from log_retention";
    FIRST_DAY: "audit::first_day" =
        "select min(day)
        from log_key";
    // Reads the sizes of files, not rows.
    MEASURE: "audit::measure" =
        "select coalesce(sum(pg_total_relation_size(inhrelid)), 0)::bigint,
               pg_database_size(current_database())
        from pg_inherits
        where inhparent = 'log'::regclass";
    DROP_DAYS: "audit::drop_days" =
        "select drop_log_days($1)";
    LIST_ACCESS_STATES: "audit::list_access_states" =
        "select tenant_id, bucket, generation, digest
        from access_state
        order by tenant_id, bucket";
    // The rows of one insert may belong to several tenants.
    INSERT: "audit::insert" = concat!(
        "with done as (
            select true
        ), ", insert_events!("$2", "done"), "
        insert into log
        select entry.*
        from unnest($1::text[]::log[]) as entry");
    // Inserts the events and stores the response for an idempotency key together with the entries.
    INSERT_WITHIN: "audit::insert_within" = concat!(
        "with done as (
            select true
        ), ", insert_response!("$2", "done"), ", ", logged!("$1", "done"), ", ",
        insert_events!("$3", "done"), "
        select true");
    LIST: "audit::list" = concat!(
        "select ", record_columns!(), "
        from log
        where tenant_id = $1
          and slot = any($2::smallint[])
          and created_at >= $3
          and created_at < $4
          and ($5::smallint[] is null or entity_kind = any($5))
          and ($6::timestamptz is null or (created_at, chain, seq) < ($6, $7::integer, $8::integer))
        order by created_at desc, chain desc, seq desc
        limit $9
        offset $10");
    LIST_OF_ENTITY: "audit::list_of_entity" = concat!(
        "select ", record_columns!(), "
        from log
        where tenant_id = $1
          and slot = any($2::smallint[])
          and created_at >= $3
          and created_at < $4
          and ($5::smallint[] is null or entity_kind = any($5))
          and ($6::timestamptz is null or (created_at, chain, seq) < ($6, $7::integer, $8::integer))
          and entity_id = $11
        order by created_at desc, chain desc, seq desc
        limit $9
        offset $10");
    COUNT_ENTITIES: "audit::count_entities" =
        "select count(distinct entity_id)
        from log
        where tenant_id = $1
          and slot = any($2::smallint[])
          and created_at >= $3
          and entity_kind = any($4::smallint[])
          and operation = any($5::smallint[])";
    // Verification covers the chains of all tenants.
    LIST_SLOT: "audit::list_slot" = concat!(
        "select ", record_columns!(), "
        from log
        where slot = $1
        order by floor(extract(epoch from created_at) / 86400), chain, seq");
    // A sink receives the entries of all tenants.
    LIST_ENTRIES: "audit::list_entries" = concat!(
        "select ", record_columns!(), "
        from log
        left join unnest($4::integer[], $5::integer[]) as received (number, last)
          on received.number = log.chain
        where slot = $1
          and created_at >= $2
          and created_at < $3
          and seq > coalesce(received.last, 0)
        order by chain, seq");
}

/// A checkpoint as stored.
pub struct CheckpointRow {
    pub number: i64,
    pub note: String,
    /// `None` if retention removed it.
    pub state: Option<Vec<u8>>,
}

/// A row of `access_state`.
pub(super) struct AccessStateRow {
    pub tenant_number: i32,
    pub bucket: i16,
    pub generation: i64,
    pub digest: Vec<u8>,
}

/// A stored entry and, if it is the last of its batch, the commit of the batch.
pub(super) type StoredEntry = (ChainEntry, Option<Vec<u8>>);

/// A query for entries, newest first.
pub(super) struct LogQuery<'a> {
    pub slots: &'a [i16],
    pub from: Timestamp,
    pub to: Timestamp,
    pub kinds: Option<Vec<i16>>,
    pub entity_id: Option<&'a str>,
    /// Only entries older than this one.
    pub before: Option<(Timestamp, i32, i32)>,
    pub limit: i64,
    pub offset: i64,
}

/// Entries of a day that a sink has not received.
pub(super) struct EntryWindow {
    pub slot: i16,
    pub from: Timestamp,
    pub to: Timestamp,
    /// Chains and their last received entries.
    pub received: (Vec<i32>, Vec<i32>),
}

pub(super) async fn next_key(db: &Db, day: i32) -> Result<i32, Error> {
    let row = db.read_optional(&NEXT_KEY, &[&day]).await?;
    Ok(row.map_or(1, |row| row.get(0)))
}

/// Inserts a node's key; returns false if another node has taken the number.
pub(super) async fn insert_key(db: &Db, key: &CertifiedKey) -> Result<bool, Error> {
    let (public_key, certificate) = (&key.public_key[..], &key.certificate[..]);
    let rows = db
        .write(
            &INSERT_KEY,
            &[&key.day, &key.number, &key.node, &public_key, &certificate],
        )
        .await?;
    Ok(!rows.is_empty())
}

/// Lists the keys of some days. A key of the wrong length is replaced by zeros, which nothing certifies.
pub(super) async fn list_keys(
    connection: &Connection,
    first: i32,
    last: i32,
) -> Result<Vec<CertifiedKey>, Error> {
    let rows = connection.stream(&LIST_KEYS, &[&first, &last]).await?;
    rows.map_ok(|row| decode_key(&row)).try_collect().await
}

/// The same on a connection of the pool.
pub(super) async fn list_node_keys(
    db: &Db,
    first: i32,
    last: i32,
) -> Result<Vec<CertifiedKey>, Error> {
    let rows = db.read(&LIST_KEYS, &[&first, &last]).await?;
    Ok(rows.iter().map(decode_key).collect())
}

fn decode_key(row: &Row) -> CertifiedKey {
    CertifiedKey {
        day: row.get(0),
        number: row.get(1),
        node: row.get(2),
        public_key: row.get::<_, Vec<u8>>(3).try_into().unwrap_or([0; 32]),
        certificate: row.get::<_, Vec<u8>>(4).try_into().unwrap_or([0; 64]),
    }
}

/// Inserts the checkpoint after the newest; returns false if another node has written it.
pub(super) async fn insert_checkpoint(
    db: &Db,
    row: &CheckpointRow,
    day: i32,
) -> Result<bool, Error> {
    let rows = db
        .write(
            &INSERT_CHECKPOINT,
            &[&row.number, &day, &row.note, &row.state],
        )
        .await?;
    Ok(!rows.is_empty())
}

pub(super) async fn find_newest_checkpoint(db: &Db) -> Result<Option<CheckpointRow>, Error> {
    let row = db.read_optional(&FIND_NEWEST_CHECKPOINT, &[]).await?;
    Ok(row.as_ref().map(decode_checkpoint))
}

pub(super) async fn list_checkpoints(
    db: &Db,
    first: i64,
    last: i64,
) -> Result<Vec<CheckpointRow>, Error> {
    let rows = db.read(&LIST_CHECKPOINTS, &[&first, &last]).await?;
    Ok(rows.iter().map(decode_checkpoint).collect())
}

pub(super) async fn stream_checkpoints(
    connection: &Connection,
    first: i64,
    last: i64,
) -> Result<impl Stream<Item = Result<CheckpointRow, Error>> + use<>, Error> {
    let rows = connection
        .stream(&LIST_CHECKPOINTS, &[&first, &last])
        .await?;
    Ok(rows.map_ok(|row| decode_checkpoint(&row)))
}

/// Number of the last checkpoint of all days up to this one.
pub(super) async fn last_checkpoint_of_day(
    connection: &Connection,
    day: i32,
) -> Result<i64, Error> {
    let rows = connection.stream(&LAST_CHECKPOINT_OF_DAY, &[&day]).await?;
    let rows: Vec<Row> = rows.try_collect().await?;
    Ok(rows.first().map_or(0, |row| row.get(0)))
}

fn decode_checkpoint(row: &Row) -> CheckpointRow {
    CheckpointRow {
        number: row.get(0),
        note: row.get(1),
        state: row.get(2),
    }
}

/// Number of the last checkpoint that a sink has received.
pub(super) async fn find_shipment(db: &Db, sink: &str) -> Result<Option<i64>, Error> {
    let row = db.read_optional(&FIND_SHIPMENT, &[&sink]).await?;
    Ok(row.map(|row| row.get(0)))
}

pub(super) async fn set_shipment(db: &Db, sink: &str, number: i64) -> Result<(), Error> {
    db.write(&SET_SHIPMENT, &[&sink, &number]).await?;
    Ok(())
}

/// The retention that the owner of the database set, in days.
pub(super) async fn find_retention(db: &Db) -> Result<Option<i32>, Error> {
    let row = db.read_optional(&FIND_RETENTION, &[]).await?;
    Ok(row.map(|row| row.get(0)))
}

/// The first day that has entries.
pub(super) async fn first_day(db: &Db) -> Result<Option<i32>, Error> {
    let row = db.read_optional(&FIRST_DAY, &[]).await?;
    Ok(row.and_then(|row| row.get(0)))
}

/// The sizes of the log and of the whole database, in bytes.
pub(super) async fn measure(db: &Db) -> Result<(i64, i64), Error> {
    let row = db.read_optional(&MEASURE, &[]).await?;
    Ok(row.map_or((0, 0), |row| (row.get(0), row.get(1))))
}

/// Drops the days before the retention, which is at least `keep_days`; returns the dropped days.
pub(super) async fn drop_days(db: &Db, keep_days: i32) -> Result<Vec<i32>, Error> {
    let rows = db.write(&DROP_DAYS, &[&keep_days]).await?;
    Ok(rows.first().map_or_else(Vec::new, |row| row.get(0)))
}

pub(super) async fn stream_access_states(
    connection: &Connection,
) -> Result<impl Stream<Item = Result<AccessStateRow, Error>> + use<>, Error> {
    let rows = connection.stream(&LIST_ACCESS_STATES, &[]).await?;
    Ok(rows.map_ok(|row| AccessStateRow {
        tenant_number: row.get(0),
        bucket: row.get(1),
        generation: row.get(2),
        digest: row.get(3),
    }))
}

/// Inserts signed rows and their events in a commit of their own.
pub(super) async fn insert(db: &Db, rows: &[String], events: &[String]) -> Result<(), Error> {
    db.write(&INSERT, &[&rows, &events]).await?;
    Ok(())
}

/// Inserts signed rows in the transaction of the change that they record.
pub(super) async fn insert_within(
    transaction: &Transaction,
    rows: &[String],
    responses: &[String],
    events: &[String],
) -> Result<(), Error> {
    transaction
        .run(&INSERT_WITHIN, &[&rows, &responses, &events])
        .await?;
    Ok(())
}

pub(super) async fn list(
    db: &Db,
    tenant: TenantId,
    query: &LogQuery<'_>,
) -> Result<Vec<StoredEntry>, Error> {
    let (at, chain, seq) = match query.before {
        Some((at, chain, seq)) => (Some(at), Some(chain), Some(seq)),
        None => (None, None, None),
    };
    let mut params: Vec<&(dyn tokio_postgres::types::ToSql + Sync)> = vec![
        &tenant.number,
        &query.slots,
        &query.from,
        &query.to,
        &query.kinds,
        &at,
        &chain,
        &seq,
        &query.limit,
        &query.offset,
    ];
    let statement: &Statement = match &query.entity_id {
        Some(id) => {
            params.push(id);
            &LIST_OF_ENTITY
        }
        None => &LIST,
    };
    let rows = db.read(statement, &params).await?;
    Ok(rows.iter().map(decode_row).collect())
}

/// Lists the entries of a window by chain and sequence number.
pub(super) async fn list_entries(db: &Db, window: &EntryWindow) -> Result<Vec<StoredEntry>, Error> {
    let (chains, last) = &window.received;
    let rows = db
        .read(
            &LIST_ENTRIES,
            &[&window.slot, &window.from, &window.to, chains, last],
        )
        .await?;
    Ok(rows.iter().map(decode_row).collect())
}

/// Which entries to count the entities of.
pub(super) struct EntityCount<'a> {
    pub(super) slots: &'a [i16],
    pub(super) from: Timestamp,
    pub(super) kinds: &'a [i16],
    pub(super) operations: &'a [i16],
}

/// Counts the distinct entities of some kinds with one of `operations` since `from`.
pub(super) async fn count_entities(
    db: &Db,
    tenant: TenantId,
    count: &EntityCount<'_>,
) -> Result<i64, Error> {
    let row = db
        .read_optional(
            &COUNT_ENTITIES,
            &[
                &tenant.number,
                &count.slots,
                &count.from,
                &count.kinds,
                &count.operations,
            ],
        )
        .await?;
    Ok(row.map_or(0, |row| row.get(0)))
}

fn decode_row(row: &Row) -> StoredEntry {
    let created_at: Timestamp = row.get(0);
    let record = ChainEntry {
        day: day_of(created_at),
        chain: row.get(11),
        seq: row.get(12),
        created_at,
        tenant_number: row.get(1),
        actor_kind: row.get(2),
        actor: row.get(3),
        key: row.get(4),
        entity: row.get(5),
        entity_id: row.get(6),
        operation: row.get(7),
        outcome: row.get(8),
        origin: row.get(9),
        trace_id: row.get(10),
    };
    (record, row.get(13))
}

/// Starts a read-only snapshot.
pub(super) async fn begin_snapshot(connection: &Connection) -> Result<(), Error> {
    let begin = "begin transaction isolation level repeatable read read only";
    let started = connection.run(begin).await;
    started.map_err(|_| Error::Unavailable("no snapshot could be started".into()))
}

/// Streams the entries of a partition by day, chain and sequence number.
pub(super) async fn stream_slot(
    connection: &Connection,
    slot: i16,
) -> Result<impl Stream<Item = Result<StoredEntry, Error>> + use<>, Error> {
    let rows = connection.stream(&LIST_SLOT, &[&slot]).await?;
    Ok(rows.map_ok(|row| decode_row(&row)))
}
