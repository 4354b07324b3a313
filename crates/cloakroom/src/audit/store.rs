//! Every SQL statement about the record of what was done.

use futures_util::{Stream, TryStreamExt as _};
use jiff::Timestamp;
use tokio_postgres::Row;
use uuid::Uuid;

use super::chain::{Mac, Record, day_of};
use crate::idempotency::replied;
use crate::ids::TenantId;
use crate::storage::{Connection, Db, Error, Params, Statement, Transaction, statements};

/// Adds signed rows (a parameter of the type `text[]`) where the rest of a statement did something.
///
/// For the statement that makes the recorded thing true: `logged!("$7", "fresh")` keeps the rows of the
/// seventh parameter if the part called `fresh` wrote a row.
macro_rules! logged {
    ($rows:literal, $done:literal) => {
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
pub(crate) use logged;

macro_rules! record_columns {
    () => {
        "created_at, tenant_id, actor_kind, actor_id, key_id, entity_kind, entity_id, operation,
               outcome, origin, trace_id, chain, seq, mac"
    };
}

statements! {
    NOW: "audit::now" =
        "select clock_timestamp()";
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
    // Rows name their tenants, which may be several.
    INSERT: "audit::insert" =
        "insert into log
        select entry.*
        from unnest($1::text[]::log[]) as entry";
    // The answer to the request goes with the record of it.
    INSERT_WITHIN: "audit::insert_within" = concat!(
        "with done as (
            select true
        ), ", replied!("$2", "done"), ", ", logged!("$1", "done"), "
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
    // For the ledger of all tenants.
    LIST_DELETED: "audit::list_deleted" =
        "select created_at, tenant_id, entity_kind, entity_id, chain, seq
        from log
        where slot = any($1::smallint[])
          and created_at >= $2
          and created_at < $3
          and operation = $4
          and entity_kind = any($5::smallint[])
          and (created_at, chain, seq) > ($6, $7::integer, $8::integer)
        order by created_at, chain, seq
        limit $9";
    // For the examination of all chains, whoever they tell of.
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

/// A row of the table of chains.
pub(super) struct ChainRow {
    pub day: i32,
    pub number: i32,
    pub node: Uuid,
    pub head_seq: i32,
    pub head_mac: Vec<u8>,
    pub is_closed: bool,
}

impl ChainRow {
    /// Everything that its digest covers.
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

/// A kept record and its signature; `None` where the row has no signature of the right length.
pub(super) type Kept = (Record, Option<Mac>);

/// Which records are asked for, newest first.
pub(super) struct Wanted<'a> {
    pub slots: &'a [i16],
    pub from: Timestamp,
    pub to: Timestamp,
    pub kinds: Option<Vec<i16>>,
    pub entity_id: Option<&'a str>,
    /// Only records older than this one.
    pub before: Option<(Timestamp, i32, i32)>,
    pub limit: i64,
    pub offset: i64,
}

pub(super) async fn now(db: &Db) -> Result<Timestamp, Error> {
    let row = db.read_optional(&NOW, &[]).await?;
    row.map(|row| row.get(0))
        .ok_or(Error::TooSlow("audit::now"))
}

pub(super) async fn next_chain(db: &Db, day: i32) -> Result<i32, Error> {
    let row = db.read_optional(&NEXT_CHAIN, &[&day]).await?;
    Ok(row.map_or(1, |row| row.get(0)))
}

/// Keeps a new chain; false when another node took the number meanwhile.
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

/// Keeps signed rows in a commit of their own.
pub(super) async fn insert(db: &Db, rows: &[String]) -> Result<(), Error> {
    db.write(&INSERT, &[&rows]).await?;
    Ok(())
}

/// Keeps signed rows together with what they tell of.
pub(super) async fn insert_within(
    transaction: &Transaction,
    rows: &[String],
    kept: &[String],
) -> Result<(), Error> {
    transaction.run(&INSERT_WITHIN, &[&rows, &kept]).await?;
    Ok(())
}

pub(super) async fn list(
    db: &Db,
    tenant: TenantId,
    wanted: &Wanted<'_>,
) -> Result<Vec<Kept>, Error> {
    let (at, chain, seq) = match wanted.before {
        Some((at, chain, seq)) => (Some(at), Some(chain), Some(seq)),
        None => (None, None, None),
    };
    let mut params: Vec<&(dyn tokio_postgres::types::ToSql + Sync)> = vec![
        &tenant.number,
        &wanted.slots,
        &wanted.from,
        &wanted.to,
        &wanted.kinds,
        &at,
        &chain,
        &seq,
        &wanted.limit,
        &wanted.offset,
    ];
    let statement: &Statement = match &wanted.entity_id {
        Some(id) => {
            params.push(id);
            &LIST_OF_ENTITY
        }
        None => &LIST,
    };
    let rows = db.read(statement, &params).await?;
    Ok(rows.iter().map(kept).collect())
}

/// How many different things of some kinds had something done to them since a moment.
pub(super) async fn count_entities(
    db: &Db,
    tenant: TenantId,
    (slots, from): (&[i16], Timestamp),
    (kinds, operations): (&[i16], &[i16]),
) -> Result<i64, Error> {
    let row = db
        .read_optional(
            &COUNT_ENTITIES,
            &[&tenant.number, &slots, &from, &kinds, &operations],
        )
        .await?;
    Ok(row.map_or(0, |row| row.get(0)))
}

/// A record that something was deleted, and its place.
pub(super) struct DeletedRow {
    pub at: Timestamp,
    pub tenant_number: i32,
    pub kind: i16,
    pub id: String,
    pub place: (Timestamp, i32, i32),
}

/// Deletions of a span of time, oldest first, after a place.
pub(super) async fn list_deleted(
    db: &Db,
    (slots, from, to): (&[i16], Timestamp, Timestamp),
    (operation, kinds): (i16, &[i16]),
    (at, chain, seq): (Timestamp, i32, i32),
    limit: i64,
) -> Result<Vec<DeletedRow>, Error> {
    let params: Params<'_> = &[
        &slots, &from, &to, &operation, &kinds, &at, &chain, &seq, &limit,
    ];
    let rows = db.read(&LIST_DELETED, params).await?;
    let deleted = |row: &Row| DeletedRow {
        at: row.get(0),
        tenant_number: row.get(1),
        kind: row.get(2),
        id: row.get(3),
        place: (row.get(0), row.get(4), row.get(5)),
    };
    Ok(rows.iter().map(deleted).collect())
}

fn kept(row: &Row) -> Kept {
    let created_at: Timestamp = row.get(0);
    let record = Record {
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

/// Everything that is read from here on is of one moment.
pub(super) async fn begin_snapshot(connection: &Connection) -> Result<(), Error> {
    let begin = "begin transaction isolation level repeatable read read only";
    let begun = connection.run(begin).await;
    begun.map_err(|_| Error::Unavailable("a snapshot did not start".into()))
}

/// Every chain in order, each with its digest.
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

/// The records of a partition by day, chain and number.
pub(super) async fn stream_slot(
    connection: &Connection,
    slot: i16,
) -> Result<impl Stream<Item = Result<Kept, Error>> + use<>, Error> {
    let rows = connection.stream(&LIST_SLOT, &[&slot]).await?;
    Ok(rows.map_ok(|row| kept(&row)))
}

pub(super) async fn delete_chains(db: &Db, days: &[i32]) -> Result<(), Error> {
    db.write(&DELETE_CHAINS, &[&days]).await?;
    Ok(())
}
