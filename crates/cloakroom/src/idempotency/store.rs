//! Every SQL statement about leases and kept answers.

use tokio_postgres::Row;

use crate::ids::TenantId;
use crate::storage::{Db, Error, Params, statements};

/// Keeps an answer (a parameter of the type `text[]`, with one row or none) where the rest of a statement
/// did something, and ends the lease that it was made under. Without that lease the statement fails, and
/// with it everything that it did.
///
/// For the statement that makes the answer true: `replied!("$8", "fresh")` keeps the row of the eighth
/// parameter if the part called `fresh` wrote a row.
macro_rules! replied {
    ($rows:literal, $done:literal) => {
        concat!(
            "ended as (
            delete from reply_lease
            using unnest(",
            $rows,
            "::text[]::reply[]) as kept
            where reply_lease.tenant_id = kept.tenant_id
              and reply_lease.scope = kept.scope
              and reply_lease.fence = kept.fence
              and (select count(*) from ",
            $done,
            ") > 0
            returning reply_lease.tenant_id, reply_lease.scope, reply_lease.fence
        ), replied as (
            insert into reply (tenant_id, scope, fence, status, sealed, request_mac, until)
            select kept.tenant_id, kept.scope, ended.fence, kept.status, kept.sealed,
                   kept.request_mac, least(now() + interval '24 hours', kept.until)
            from unnest(",
            $rows,
            "::text[]::reply[]) as kept
            left join ended
              on ended.tenant_id = kept.tenant_id
             and ended.scope = kept.scope
             and ended.fence = kept.fence
            where (select count(*) from ",
            $done,
            ") > 0
        )"
        )
    };
}
pub(crate) use replied;

/// Whether an answer still counts.
macro_rules! is_fresh {
    () => {
        "until > now()"
    };
}

/// The answer that was kept, if there is one.
///
/// Its row is locked, and a lock is part of a commit: whoever is given the answer is given it only when
/// everything up to here is durable, on the standby as well. A commit whose wait for a standby was
/// interrupted is visible before that.
macro_rules! answered {
    () => {
        concat!(
            "answered as materialized (
            select status, sealed, request_mac
            from reply
            where tenant_id = $1
              and scope = $2
              and ",
            is_fresh!(),
            "
            for update
        )"
        )
    };
}

/// Without an answer, a statement about a lease promises nothing to anyone, and what the lease protects is
/// durable only together with it. So its commit waits for neither disk nor standby.
macro_rules! at_once {
    () => {
        "at_once as materialized (
            select set_config('synchronous_commit', 'off', true)
            where not exists (select from answered)
        )"
    };
}

statements! {
    // The second column of these is read by nobody: it has the part called `at_once` run.
    //
    // A lease that has run out is taken over. The answer that was kept, if there is one, comes along.
    TAKE: "idempotency::take" = concat!(
        "with ", answered!(), ", ", at_once!(), ", taken as (
            insert into reply_lease as held (tenant_id, scope, fence, until)
            select $1, $2, $3, now() + make_interval(secs => $4)
            from at_once
            on conflict (tenant_id, scope) do update
            set fence = excluded.fence,
                until = excluded.until
            where held.until <= now()
            returning true
        ), forgotten as (
            delete from reply
            where tenant_id = $1
              and scope = $2
              and not (", is_fresh!(), ")
              and exists (select from taken)
        )
        select exists (select from taken), exists (select from at_once), status, sealed, request_mac
        from (select) as one
        left join answered on true");
    RELEASE: "idempotency::release" = concat!(
        "with ", answered!(), ", ", at_once!(), ", gone as (
            delete from reply_lease
            where tenant_id = $1
              and scope = $2
              and fence = $3
            returning true
        )
        select exists (select from gone), exists (select from at_once), status, sealed, request_mac
        from (select) as one
        left join answered on true");
    FIND: "idempotency::find" = concat!(
        "with ", answered!(), "
        select false, false, status, sealed, request_mac
        from answered");
    // For requests that changed nothing, whose answer no other statement could carry.
    KEEP: "idempotency::keep" = concat!(
        "with done as (
            select true
        ), ", replied!("$1", "done"), "
        select true");
    SWEEP: "idempotency::sweep" = concat!(
        "with due as (
            select tenant_id, scope
            from reply
            where not (", is_fresh!(), ")
            order by until
            limit $1
            for update skip locked
        )
        delete from reply
        using due
        where reply.tenant_id = due.tenant_id
          and reply.scope = due.scope
        returning true");
    SWEEP_LEASES: "idempotency::sweep_leases" =
        "with due as (
            select tenant_id, scope
            from reply_lease
            where until <= now()
            order by until
            limit $1
            for update skip locked
        )
        delete from reply_lease
        using due
        where reply_lease.tenant_id = due.tenant_id
          and reply_lease.scope = due.scope
        returning true";
}

/// An answer that was kept, still sealed.
pub(super) struct Answered {
    pub status: u16,
    pub sealed: Vec<u8>,
    pub request_mac: Vec<u8>,
}

impl Answered {
    fn of(row: &Row) -> Option<Self> {
        Some(Self {
            status: row.get::<_, Option<i16>>(2)?.unsigned_abs(),
            sealed: row.get(3),
            request_mac: row.get(4),
        })
    }
}

/// Takes the lease, unless somebody has it or the answer is there.
pub(super) async fn take(
    db: &Db,
    (tenant, scope): (TenantId, &[u8; 32]),
    fence: i64,
    seconds: f64,
) -> Result<(bool, Option<Answered>), Error> {
    let params: Params<'_> = &[&tenant.number, &scope.as_slice(), &fence, &seconds];
    Ok(decision(&db.write(&TAKE, params).await?))
}

/// Gives the lease back: whatever was still on its way under it does not count any more.
pub(super) async fn release(
    db: &Db,
    (tenant, scope): (TenantId, &[u8; 32]),
    fence: i64,
) -> Result<(bool, Option<Answered>), Error> {
    let params: Params<'_> = &[&tenant.number, &scope.as_slice(), &fence];
    Ok(decision(&db.write(&RELEASE, params).await?))
}

fn decision(rows: &[Row]) -> (bool, Option<Answered>) {
    match rows.first() {
        Some(row) => (row.get(0), Answered::of(row)),
        None => (false, None),
    }
}

pub(super) async fn find(
    db: &Db,
    (tenant, scope): (TenantId, &[u8; 32]),
) -> Result<Option<Answered>, Error> {
    let params: Params<'_> = &[&tenant.number, &scope.as_slice()];
    Ok(decision(&db.write(&FIND, params).await?).1)
}

/// Keeps an answer by itself, if there is one.
pub(crate) async fn keep(db: &Db, rows: &[String]) -> Result<(), Error> {
    if !rows.is_empty() {
        db.write(&KEEP, &[&rows]).await?;
    }
    Ok(())
}

pub(super) async fn sweep(db: &Db, limit: i64) -> Result<u64, Error> {
    Ok(db.write(&SWEEP, &[&limit]).await?.len() as u64)
}

pub(super) async fn sweep_leases(db: &Db, limit: i64) -> Result<u64, Error> {
    Ok(db.write(&SWEEP_LEASES, &[&limit]).await?.len() as u64)
}
