//! SQL statements of leases and stored responses.

use cloakroom_platform::storage::{Db, Error, Params, statements};
use jiff::Timestamp;
use tokio_postgres::Row;

use super::request_key::RequestKey;

/// Stores a response (a parameter of type `text[]` with one row or none) if another part of the
/// statement wrote a row, and ends the lease that it was rendered under. Without that lease the
/// statement fails as a whole.
///
/// For the statement that makes the change: `insert_response!("$8", "fresh")` stores the row of the eighth
/// parameter if the CTE `fresh` is not empty.
#[macro_export]
macro_rules! insert_response {
    ($rows:expr, $done:literal) => {
        concat!(
            "ended as (
            delete from reply_lease
            using unnest(",
            $rows,
            "::text[]::reply[]) as response
            where reply_lease.tenant_id = response.tenant_id
              and reply_lease.scope = response.scope
              and reply_lease.fence = response.fence
              and (select count(*) from ",
            $done,
            ") > 0
            returning reply_lease.tenant_id, reply_lease.scope, reply_lease.fence
        ), replied as (
            insert into reply (tenant_id, scope, fence, status, sealed, request_mac, until)
            select response.tenant_id, response.scope, ended.fence, response.status, ",
            $crate::fenced_response!("response.tenant_id", "response.sealed"),
            ",
                   response.request_mac, response.until
            from unnest(",
            $rows,
            "::text[]::reply[]) as response
            left join ended
              on ended.tenant_id = response.tenant_id
             and ended.scope = response.scope
             and ended.fence = response.fence
            where (select count(*) from ",
            $done,
            ") > 0
        )"
        )
    };
}
pub use crate::insert_response;

/// Whether a stored response has not expired.
macro_rules! is_fresh {
    () => {
        "until > now()"
    };
}

/// The stored response, if there is one.
///
/// Its row is locked, and a lock is part of a commit: the response is returned only once everything
/// up to here is durable, on the standby as well. A commit whose wait for a standby was interrupted
/// is visible before that.
macro_rules! stored_response {
    () => {
        concat!(
            "answered as materialized (
            select status, sealed, request_mac, fence, until
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

/// Commits asynchronously if there is no stored response. Such a statement makes no promise to a
/// client, and what the lease protects becomes durable only together with it, so its commit waits
/// for neither disk nor standby.
macro_rules! async_commit {
    () => {
        "at_once as materialized (
            select set_config('synchronous_commit', 'off', true)
            where not exists (select from answered)
        )"
    };
}

statements! {
    // The second column of these is unused; it forces evaluation of the CTE `at_once`.
    //
    // An expired lease is taken over. The stored response, if there is one, is returned as well.
    TAKE: "idempotency::take" = concat!(
        "with ", stored_response!(), ", ", async_commit!(), ", taken as (
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
        select exists (select from taken), exists (select from at_once), status, sealed, request_mac,
               answered.fence, answered.until
        from (select) as one
        left join answered on true");
    RELEASE: "idempotency::release" = concat!(
        "with ", stored_response!(), ", ", async_commit!(), ", gone as (
            delete from reply_lease
            where tenant_id = $1
              and scope = $2
              and fence = $3
            returning true
        )
        select exists (select from gone), exists (select from at_once), status, sealed, request_mac,
               answered.fence, answered.until
        from (select) as one
        left join answered on true");
    FIND: "idempotency::find" = concat!(
        "with ", stored_response!(), "
        select false, false, status, sealed, request_mac, fence, until
        from answered");
    // For requests that changed nothing, and so have no other statement to carry their response.
    STORE_RESPONSE: "idempotency::keep" = concat!(
        "with done as (
            select true
        ), ", insert_response!("$1", "done"), "
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

/// A stored response, encrypted.
pub(crate) struct SealedResponse {
    pub status: u16,
    pub sealed: Vec<u8>,
    pub request_mac: Vec<u8>,
    /// The fence of the lease that it was stored under.
    pub fence: i64,
    pub until: Timestamp,
}

impl SealedResponse {
    fn of(row: &Row) -> Option<Self> {
        Some(Self {
            status: row.get::<_, Option<i16>>(2)?.unsigned_abs(),
            sealed: row.get(3),
            request_mac: row.get(4),
            fence: row.get(5),
            until: row.get(6),
        })
    }
}

/// Acquires the lease, unless another request holds it or a response is stored.
pub(crate) async fn acquire(
    db: &Db,
    key: &RequestKey,
    fence: i64,
    seconds: f64,
) -> Result<(bool, Option<SealedResponse>), Error> {
    let params: Params<'_> = &[&key.tenant.number, &key.scope.as_slice(), &fence, &seconds];
    Ok(decode(&db.write(&TAKE, params).await?))
}

/// Releases the lease: writes that are still in flight under it will be rejected.
pub(crate) async fn release(
    db: &Db,
    key: &RequestKey,
    fence: i64,
) -> Result<(bool, Option<SealedResponse>), Error> {
    let params: Params<'_> = &[&key.tenant.number, &key.scope.as_slice(), &fence];
    Ok(decode(&db.write(&RELEASE, params).await?))
}

fn decode(rows: &[Row]) -> (bool, Option<SealedResponse>) {
    match rows.first() {
        Some(row) => (row.get(0), SealedResponse::of(row)),
        None => (false, None),
    }
}

pub(crate) async fn find_response(
    db: &Db,
    key: &RequestKey,
) -> Result<Option<SealedResponse>, Error> {
    let params: Params<'_> = &[&key.tenant.number, &key.scope.as_slice()];
    Ok(decode(&db.write(&FIND, params).await?).1)
}

/// Stores a response by itself, if there is one.
pub async fn store_response(db: &Db, rows: &[String]) -> Result<(), Error> {
    if !rows.is_empty() {
        db.write(&STORE_RESPONSE, &[&rows]).await?;
    }
    Ok(())
}

pub(super) async fn sweep(db: &Db, limit: i64) -> Result<u64, Error> {
    Ok(db.write(&SWEEP, &[&limit]).await?.len() as u64)
}

pub(super) async fn sweep_leases(db: &Db, limit: i64) -> Result<u64, Error> {
    Ok(db.write(&SWEEP_LEASES, &[&limit]).await?.len() as u64)
}
