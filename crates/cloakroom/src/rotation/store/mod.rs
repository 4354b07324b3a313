//! SQL statements for rotations of keys and their proofs.

mod macs;
mod scan;

use cloakroom_crypto::KeyPurpose;
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{Db, Error, Params, Transaction, statements};
use jiff::Timestamp;
use tokio_postgres::Row;
use uuid::Uuid;

pub(crate) use self::macs::STATEMENTS as MAC_STATEMENTS;
pub(super) use self::macs::{count_events, count_macs};
pub(crate) use self::scan::STATEMENTS as SCAN_STATEMENTS;
pub(super) use self::scan::{TABLES, any_requests, count_page, count_responses};
use super::{Phase, Proof, Rotation};

/// Columns in the order that `Rotation::read` expects. Keys of the vault belong to no tenant.
macro_rules! rotations {
    () => {
        "select key_rotation.tenant_id, coalesce(tenant.public_id, '00000000-0000-0000-0000-000000000000'), key_rotation.purpose, from_version, to_version, phase,
               step, position, scanned, rewritten, unreadable, closed_xid, generation, requested_by, started_at,
               phase_at, now()
        from key_rotation
        left join tenant on tenant.tenant_id = key_rotation.tenant_id"
    };
}

statements! {
    INSERT: "rotation::insert" =
        "insert into key_rotation
            (tenant_id, purpose, to_version, from_version, phase, generation, requested_by)
        values ($1, $2, $3, $4, $5, $6, $7)";
    LIST: "rotation::list" = concat!(rotations!(), "
        order by key_rotation.started_at, key_rotation.tenant_id, key_rotation.purpose");
    LIST_OPEN: "rotation::list_open" = concat!(rotations!(), "
        where phase < 6
          and tenant.deleted_at is null
        order by key_rotation.started_at, key_rotation.tenant_id
        limit $1");
    FIND: "rotation::find" = concat!(rotations!(), "
        where key_rotation.tenant_id = $1
          and key_rotation.purpose = $2
          and key_rotation.to_version = $3");
    // The phase before is compared, so that of two nodes that make a transition only one commits it.
    SET_PHASE: "rotation::set_phase" =
        "update key_rotation
        set phase = $5,
            phase_at = now(),
            step = 0,
            position = '00000000-0000-0000-0000-000000000000',
            generation = coalesce($6, generation),
            closed_xid = null
        where tenant_id = $1
          and purpose = $2
          and to_version = $3
          and phase = $4
        returning true";
    // Commits asynchronously: what is lost is repeated, without effect.
    SAVE_PROGRESS: "rotation::save_progress" =
        "with at_once as materialized (
            select set_config('synchronous_commit', 'off', true)
        )
        update key_rotation
        set step = $4,
            position = $5,
            scanned = scanned + $6,
            rewritten = rewritten + $7,
            unreadable = unreadable + $8
        from at_once
        where tenant_id = $1
          and purpose = $2
          and to_version = $3
          and phase = 4";
    RESTART: "rotation::restart" =
        "update key_rotation
        set phase = 4,
            phase_at = now(),
            step = 0,
            position = '00000000-0000-0000-0000-000000000000',
            scanned = 0,
            unreadable = 0
        where tenant_id = $1
          and purpose = $2
          and to_version = $3
          and phase = 5";
    // All rotations of fingerprint (4) and index keys (5) share one fence.
    FORGET_CLOSED: "rotation::forget_closed" =
        "update key_rotation
        set closed_xid = null
        where tenant_id = $1
          and purpose in (4, 5)
          and phase < 6";
    // The number of this transaction, which is taken after the one that closed the old version has committed: any that
    // may have read the old state has a lower one.
    MARK_CLOSED: "rotation::mark_closed" =
        "update key_rotation
        set closed_xid = pg_current_xact_id()::text::bigint
        where tenant_id = $1
          and purpose = $2
          and to_version = $3
        returning closed_xid";
    // Nodes that have written a heartbeat recently and have not loaded the keys of a generation yet.
    COUNT_UNAWARE: "rotation::count_unaware" =
        "select count(*)
        from node
        where seen_at > now() - make_interval(secs => $2)
          and keys_generation < $1";
    // Other sessions whose snapshot, or whose transaction, is older than a transaction: a session may have neither between
    // statements, but a transaction that has written has its number until it ends. Sessions of other roles are visible only
    // to members of pg_read_all_stats; nodes share one role.
    COUNT_OLD_SESSIONS: "rotation::count_old_sessions" =
        "select count(*)
        from pg_stat_activity
        where datname = current_database()
          and backend_type = 'client backend'
          and pid <> pg_backend_pid()
          and greatest(age(backend_xmin), age(backend_xid))
              >= age(($1::bigint % 4294967296)::text::xid)";
    // Active keys that are older than an age and are not being replaced: the oldest first.
    LIST_DUE: "rotation::list_due" =
        "select tenant.tenant_id, tenant.public_id
        from tenant_key
        join tenant on tenant.tenant_id = tenant_key.tenant_id
        where tenant_key.purpose = $1
          and tenant_key.state = 2
          and tenant_key.created_at < now() - make_interval(secs => $2)
          and tenant.deleted_at is null
          and not exists (
              select
              from key_rotation
              where key_rotation.tenant_id = tenant_key.tenant_id
                and key_rotation.purpose = tenant_key.purpose
                and key_rotation.phase < 7
          )
        order by tenant_key.created_at
        limit $3";
    // The same for a key of the vault.
    IS_DUE: "rotation::is_due" =
        "select true
        from system_key
        where purpose = $1
          and state = 2
          and created_at < now() - make_interval(secs => $2)
          and not exists (
              select
              from key_rotation
              where key_rotation.tenant_id = 0
                and key_rotation.purpose = system_key.purpose
                and key_rotation.phase < 7
          )";
    INSERT_PROOF: "rotation::insert_proof" =
        "insert into key_proof (tenant_id, purpose, version, statement, signature)
        values ($1, $2, $3, $4, $5)
        on conflict (tenant_id, purpose, version) do update
        set statement = excluded.statement,
            signature = excluded.signature";
    NEXT_PROOF: "rotation::next_proof" =
        "select coalesce(max(version), 0) + 1
        from key_proof
        where tenant_id = $1
          and purpose = $2";
}

/// A rotation to insert.
pub(super) struct NewRotation<'a> {
    pub tenant: TenantId,
    pub purpose: KeyPurpose,
    pub from: u32,
    pub to: u32,
    pub generation: i64,
    pub requested_by: &'a str,
    pub phase: Phase,
}

pub(super) async fn insert(transaction: &Transaction, new: &NewRotation<'_>) -> Result<(), Error> {
    let params: Params<'_> = &[
        &new.tenant.number,
        &new.purpose.number(),
        &new.to.cast_signed(),
        &new.from.cast_signed(),
        &(new.phase as i16),
        &new.generation,
        &new.requested_by,
    ];
    transaction.run(&INSERT, params).await?;
    Ok(())
}

/// Lists all rotations, oldest first.
pub(super) async fn list(db: &Db) -> Result<Vec<Rotation>, Error> {
    let rows = db.read(&LIST, &[]).await?;
    Ok(rows.iter().filter_map(Rotation::read).collect())
}

/// Lists up to `limit` rotations that nodes can advance.
pub(super) async fn list_open(db: &Db, limit: i64) -> Result<Vec<Rotation>, Error> {
    let rows = db.read(&LIST_OPEN, &[&limit]).await?;
    Ok(rows.iter().filter_map(Rotation::read).collect())
}

/// Reads a rotation again.
pub(super) async fn find(db: &Db, rotation: &Rotation) -> Result<Option<Rotation>, Error> {
    let params: Params<'_> = &[
        &rotation.tenant.number,
        &rotation.purpose.number(),
        &rotation.to.cast_signed(),
    ];
    let row = db.read_optional(&FIND, params).await?;
    Ok(row.as_ref().and_then(Rotation::read))
}

/// Sets the next phase; false if another node has.
pub(super) async fn set_phase(
    transaction: &Transaction,
    rotation: &Rotation,
    next: Phase,
    generation: Option<i64>,
) -> Result<bool, Error> {
    let params: Params<'_> = &[
        &rotation.tenant.number,
        &rotation.purpose.number(),
        &rotation.to.cast_signed(),
        &(rotation.phase as i16),
        &(next as i16),
        &generation,
    ];
    Ok(!transaction.run(&SET_PHASE, params).await?.is_empty())
}

/// Sets the next phase, if nothing else changes with it.
pub(super) async fn move_to(db: &Db, rotation: &Rotation, next: Phase) -> Result<bool, Error> {
    let params: Params<'_> = &[
        &rotation.tenant.number,
        &rotation.purpose.number(),
        &rotation.to.cast_signed(),
        &(rotation.phase as i16),
        &(next as i16),
        &None::<i64>,
    ];
    Ok(!db.write(&SET_PHASE, params).await?.is_empty())
}

/// Rows of a page, by outcome.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub scanned: u64,
    pub rewritten: u64,
    pub unreadable: u64,
}

/// Saves how far a table is rewritten.
pub(super) async fn save_progress(
    db: &Db,
    rotation: &Rotation,
    (step, position): (i16, Uuid),
    counts: Counts,
) -> Result<(), Error> {
    let params: Params<'_> = &[
        &rotation.tenant.number,
        &rotation.purpose.number(),
        &rotation.to.cast_signed(),
        &step,
        &position,
        &counts.scanned.cast_signed(),
        &counts.rewritten.cast_signed(),
        &counts.unreadable.cast_signed(),
    ];
    db.write(&SAVE_PROGRESS, params).await?;
    Ok(())
}

/// Starts the rewriting again from the first row.
pub(super) async fn restart(db: &Db, rotation: &Rotation) -> Result<(), Error> {
    let params: Params<'_> = &[
        &rotation.tenant.number,
        &rotation.purpose.number(),
        &rotation.to.cast_signed(),
    ];
    db.write(&RESTART, params).await?;
    Ok(())
}

/// Forgets the transaction after which nothing is written with older keys of digests, because their fence was raised.
pub(super) async fn forget_closed(
    transaction: &Transaction,
    tenant: TenantId,
) -> Result<(), Error> {
    transaction.run(&FORGET_CLOSED, &[&tenant.number]).await?;
    Ok(())
}

/// Saves the transaction after which nothing is written with older keys.
pub(super) async fn mark_closed(db: &Db, rotation: &Rotation) -> Result<Option<i64>, Error> {
    let params: Params<'_> = &[
        &rotation.tenant.number,
        &rotation.purpose.number(),
        &rotation.to.cast_signed(),
    ];
    let rows = db.write(&MARK_CLOSED, params).await?;
    Ok(rows.first().map(|row| row.get(0)))
}

/// Counts running nodes that have not loaded the keys of a generation.
pub(super) async fn count_unaware(
    db: &Db,
    generation: i64,
    timeout_seconds: f64,
) -> Result<i64, Error> {
    let params: Params<'_> = &[&generation, &timeout_seconds];
    let row = db.read_optional(&COUNT_UNAWARE, params).await?;
    Ok(row.map_or(0, |row| row.get(0)))
}

/// Lists up to `limit` tenants whose active key of a purpose is older than an age.
pub(super) async fn list_due(
    db: &Db,
    purpose: KeyPurpose,
    age_seconds: f64,
    limit: i64,
) -> Result<Vec<TenantId>, Error> {
    let params: Params<'_> = &[&purpose.number(), &age_seconds, &limit];
    let rows = db.read(&LIST_DUE, params).await?;
    let tenant = |row: &Row| TenantId {
        number: row.get(0),
        uuid: row.get(1),
    };
    Ok(rows.iter().map(tenant).collect())
}

/// Whether the active key of the vault of a purpose is older than an age.
pub(super) async fn is_due(db: &Db, purpose: KeyPurpose, age_seconds: f64) -> Result<bool, Error> {
    let params: Params<'_> = &[&purpose.number(), &age_seconds];
    Ok(db.read_optional(&IS_DUE, params).await?.is_some())
}

/// Counts sessions whose snapshot or transaction is older than a transaction.
pub(super) async fn count_old_sessions(db: &Db, xid: i64) -> Result<i64, Error> {
    let row = db.read_optional(&COUNT_OLD_SESSIONS, &[&xid]).await?;
    Ok(row.map_or(0, |row| row.get(0)))
}

pub(super) async fn insert_proof(
    transaction: &Transaction,
    (tenant, purpose, version): (TenantId, KeyPurpose, u32),
    proof: &Proof,
) -> Result<(), Error> {
    let params: Params<'_> = &[
        &tenant.number,
        &purpose.number(),
        &version.cast_signed(),
        &proof.statement,
        &proof.signature,
    ];
    transaction.run(&INSERT_PROOF, params).await?;
    Ok(())
}

/// The number of the next statement about keys without versions.
pub(super) async fn next_proof(
    db: &Db,
    tenant: TenantId,
    purpose: KeyPurpose,
) -> Result<u32, Error> {
    let params: Params<'_> = &[&tenant.number, &purpose.number()];
    let row = db.read_optional(&NEXT_PROOF, params).await?;
    Ok(row.map_or(1, |row| row.get::<_, i32>(0).cast_unsigned()))
}

impl Rotation {
    /// Decodes the columns of `rotations!`; `None` if SQL wrote an unknown purpose or phase.
    fn read(row: &Row) -> Option<Self> {
        let count = |index| row.get::<_, i64>(index).unsigned_abs();
        let version = |index| row.get::<_, i32>(index).cast_unsigned();
        Some(Self {
            tenant: TenantId {
                number: row.get(0),
                uuid: row.get(1),
            },
            purpose: row.get::<_, i16>(2).try_into().ok()?,
            from: version(3),
            to: version(4),
            phase: Phase::from_number(row.get(5))?,
            step: row.get(6),
            position: row.get(7),
            scanned: count(8),
            rewritten: count(9),
            unreadable: count(10),
            closed_xid: row.get(11),
            generation: row.get(12),
            requested_by: row.get(13),
            started_at: row.get(14),
            phase_at: row.get(15),
            read_at: row.get::<_, Timestamp>(16),
        })
    }
}
