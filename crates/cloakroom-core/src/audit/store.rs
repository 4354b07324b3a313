//! SQL statements of the audit log.

use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{Connection, Db, Error, Statement, Transaction, statements};
use futures_util::{Stream, TryStreamExt as _};
use jiff::Timestamp;
use tokio_postgres::Row;
use uuid::Uuid;

use super::chain::{ChainEntry, Mac, day_of};
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
               outcome, origin, trace_id, chain, seq, mac"
    };
}

statements! {
    // Chains belong to nodes, not to tenants.
    NEXT_CHAIN: "audit::next_chain" =
        "select coalesce(max(chain), 0) + 1
        from log_chain
        where day = $1";
    INSERT_CHAIN: "audit::insert_chain" =
        "insert into log_chain (day, chain, node, head_seq, head_mac, is_closed, row_mac)
        values ($1, $2, $3, $4, $5, $6, $7)
        on conflict (day, chain) do nothing
        returning true";
    UPDATE_HEAD: "audit::update_head" =
        "update log_chain
        set head_seq = $3,
            head_mac = $4,
            is_closed = $5,
            row_mac = $6
        where day = $1
          and chain = $2";
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
    LIST_DAYS: "audit::list_days" =
        "select distinct day
        from log_chain
        order by day";
    LIST_CHAINS: "audit::list_chains" =
        "select day, chain, node, head_seq, head_mac, is_closed, row_mac
        from log_chain
        order by day, chain";
    LIST_SLOT: "audit::list_slot" = concat!(
        "select ", record_columns!(), "
        from log
        where slot = $1
        order by floor(extract(epoch from created_at) / 86400), chain, seq");
    DELETE_CHAINS: "audit::delete_chains" =
        "delete from log_chain
        where day = any($1::integer[])";
}

/// A row of `log_chain`.
pub(super) struct ChainRow {
    pub day: i32,
    pub number: i32,
    pub node: Uuid,
    pub head_seq: i32,
    pub head_mac: Vec<u8>,
    pub is_closed: bool,
}

impl ChainRow {
    /// Everything that the row's MAC covers.
    pub(super) fn parts(&self) -> [Vec<u8>; 6] {
        [
            self.day.to_be_bytes().to_vec(),
            self.number.to_be_bytes().to_vec(),
            self.node.as_bytes().to_vec(),
            self.head_seq.to_be_bytes().to_vec(),
            self.head_mac.clone(),
            vec![u8::from(self.is_closed)],
        ]
    }
}

/// A stored entry and its signature; `None` if the signature does not have the right length.
pub(super) type StoredEntry = (ChainEntry, Option<Mac>);

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

pub(super) async fn next_chain(db: &Db, day: i32) -> Result<i32, Error> {
    let row = db.read_optional(&NEXT_CHAIN, &[&day]).await?;
    Ok(row.map_or(1, |row| row.get(0)))
}

/// Inserts a new chain; returns false if another node has taken the number.
pub(super) async fn insert_chain(db: &Db, row: &ChainRow, mac: &[u8]) -> Result<bool, Error> {
    let rows = db
        .write(
            &INSERT_CHAIN,
            &[
                &row.day,
                &row.number,
                &row.node,
                &row.head_seq,
                &row.head_mac,
                &row.is_closed,
                &mac,
            ],
        )
        .await?;
    Ok(!rows.is_empty())
}

pub(super) async fn update_head(db: &Db, row: &ChainRow, mac: &[u8]) -> Result<(), Error> {
    let (day, number, seq) = (row.day, row.number, row.head_seq);
    db.write(
        &UPDATE_HEAD,
        &[&day, &number, &seq, &row.head_mac, &row.is_closed, &mac],
    )
    .await?;
    Ok(())
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
    let mac: Vec<u8> = row.get(13);
    (record, mac.try_into().ok())
}

pub(super) async fn list_days(db: &Db) -> Result<Vec<i32>, Error> {
    let rows = db.read(&LIST_DAYS, &[]).await?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

/// Starts a read-only snapshot.
pub(super) async fn begin_snapshot(connection: &Connection) -> Result<(), Error> {
    let begin = "begin transaction isolation level repeatable read read only";
    let started = connection.run(begin).await;
    started.map_err(|_| Error::Unavailable("no snapshot could be started".into()))
}

/// Lists every chain in order, each with its MAC.
pub(super) async fn list_all_chains(
    connection: &Connection,
) -> Result<Vec<(ChainRow, Vec<u8>)>, Error> {
    let rows = connection.stream(&LIST_CHAINS, &[]).await?;
    let chain = |row: Row| {
        let chain = ChainRow {
            day: row.get(0),
            number: row.get(1),
            node: row.get(2),
            head_seq: row.get(3),
            head_mac: row.get(4),
            is_closed: row.get(5),
        };
        (chain, row.get(6))
    };
    rows.map_ok(chain).try_collect().await
}

/// Streams the entries of a partition by day, chain and sequence number.
pub(super) async fn stream_slot(
    connection: &Connection,
    slot: i16,
) -> Result<impl Stream<Item = Result<StoredEntry, Error>> + use<>, Error> {
    let rows = connection.stream(&LIST_SLOT, &[&slot]).await?;
    Ok(rows.map_ok(|row| decode_row(&row)))
}

pub(super) async fn delete_chains(db: &Db, days: &[i32]) -> Result<(), Error> {
    db.write(&DELETE_CHAINS, &[&days]).await?;
    Ok(())
}
