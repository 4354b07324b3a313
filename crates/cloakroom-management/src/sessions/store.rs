//! SQL statements for sessions, except the lookup for authentication.

use cloakroom_core::access::SessionRow;
use cloakroom_core::audit::{AuditedStatement, audited};
use cloakroom_core::fenced_mac;
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{Db, Error, Params, Transaction, statements};
use tokio_postgres::Row;
use uuid::Uuid;

statements! {
    INSERT: "sessions::insert" = concat!(
        "with fresh as (
            insert into session
                (lookup, tenant_id, application_id, session_id, key_digest, nonce_digest, expires_at,
                 row_mac)
            values ($1, $2, $3, $4, $5, $6, $7, ", fenced_mac!("$8"), ")
            returning true
        ), ", audited!("fresh", entries = "$9", responses = "$10", events = "$11"), "
        select true
        from fresh");
    LOCK: "sessions::lock" =
        "select lookup, tenant_id, application_id, session_id, key_digest, nonce_digest, grants,
               expires_at, row_mac
        from session
        where tenant_id = $1
          and nonce_digest = $2
          and expires_at > now()
        for update";
    AUTHORIZE: "sessions::authorize" = concat!(
        "update session
        set grants = $3,
            expires_at = $4,
            authorized_by = $5,
            row_mac = ", fenced_mac!("$6"), "
        where tenant_id = $1
          and nonce_digest = $2");
    // Rows of all tenants, for the rotation of the control key.
    LIST_AFTER: "sessions::list_after" =
        "select lookup, tenant_id, application_id, session_id, key_digest, nonce_digest, grants,
               expires_at, row_mac
        from session
        where lookup > $1
          and expires_at > now()
        order by lookup
        limit $2";
    RENEW: "sessions::renew" =
        "update session
        set row_mac = renewed.after
        from unnest($1::text[], $2::bytea[], $3::bytea[]) as renewed (lookup, before, after)
        where session.lookup = renewed.lookup
          and session.row_mac = renewed.before
        returning true";
    // The sessions that expired first are deleted first. Concurrent sweeps of several nodes take turns.
    SWEEP: "sessions::sweep" =
        "with due as (
            select lookup
            from session
            where expires_at <= now()
            order by expires_at
            limit $1
            for update skip locked
        )
        delete from session
        using due
        where session.lookup = due.lookup
        returning true";
}

pub(super) async fn insert(
    change: AuditedStatement<'_>,
    row: &SessionRow,
    row_mac: &[u8],
) -> Result<(), Error> {
    let params: Params<'_> = &[
        &row.lookup,
        &row.tenant_number,
        &row.application,
        &row.id,
        &row.key_digest,
        &row.nonce_digest,
        &row.expires_at,
        &row_mac,
    ];
    change.run(&INSERT, params).await?;
    Ok(())
}

/// Finds the unexpired session with this nonce and locks it until the end of the transaction.
pub(super) async fn lock(
    transaction: &Transaction,
    tenant: TenantId,
    nonce_digest: &[u8; 32],
) -> Result<Option<(SessionRow, Vec<u8>)>, Error> {
    let nonce_digest = &nonce_digest[..];
    let rows = transaction
        .run(&LOCK, &[&tenant.number, &nonce_digest])
        .await?;
    Ok(rows.first().map(read))
}

fn read(row: &Row) -> (SessionRow, Vec<u8>) {
    let session = SessionRow {
        lookup: row.get(0),
        tenant_number: row.get(1),
        application: row.get(2),
        id: row.get(3),
        key_digest: row.get(4),
        nonce_digest: row.get(5),
        grants: row.get(6),
        expires_at: row.get(7),
    };
    (session, row.get(8))
}

/// Lists sessions of all tenants after a lookup value, in order, each with its MAC.
pub(super) async fn list_after(
    db: &Db,
    after: &str,
    limit: i64,
) -> Result<Vec<(SessionRow, Vec<u8>)>, Error> {
    let rows = db.read(&LIST_AFTER, &[&after, &limit]).await?;
    Ok(rows.iter().map(read).collect())
}

/// Replaces MACs, each if the row still has the one before; returns how many.
pub(super) async fn renew(db: &Db, renewed: &[(String, Vec<u8>, Vec<u8>)]) -> Result<u64, Error> {
    let lookups: Vec<&str> = renewed.iter().map(|(lookup, ..)| lookup.as_str()).collect();
    let before: Vec<&[u8]> = renewed.iter().map(|(_, before, _)| &before[..]).collect();
    let after: Vec<&[u8]> = renewed.iter().map(|(.., after)| &after[..]).collect();
    let rows = db.write(&RENEW, &[&lookups, &before, &after]).await?;
    Ok(rows.len() as u64)
}

pub(super) async fn authorize(
    transaction: &Transaction,
    row: &SessionRow,
    by: Uuid,
    row_mac: &[u8],
) -> Result<(), Error> {
    let (tenant, nonce) = (&row.tenant_number, &row.nonce_digest);
    transaction
        .run(
            &AUTHORIZE,
            &[tenant, nonce, &row.grants, &row.expires_at, &by, &row_mac],
        )
        .await?;
    Ok(())
}

/// Deletes up to `limit` expired sessions of all tenants.
pub(super) async fn sweep(db: &Db, limit: i64) -> Result<u64, Error> {
    Ok(db.write(&SWEEP, &[&limit]).await?.len() as u64)
}
