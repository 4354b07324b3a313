//! Every SQL statement about sessions, except the one that finds who is asking.

use tokio_postgres::Row;
use uuid::Uuid;

use crate::access::SessionRow;
use crate::audit::{Entry, logged, told_again};
use crate::idempotency::{Kept, replied};
use crate::ids::TenantId;
use crate::storage::{Db, Error, Transaction, statements};
use crate::vault::Vault;

statements! {
    INSERT: "sessions::insert" = concat!(
        "with fresh as (
            insert into session
                (lookup, tenant_id, application_id, session_id, secret_mac, nonce_mac, expires_at,
                 row_mac)
            values ($1, $2, $3, $4, $5, $6, $7, $8)
            returning true
        ), ", replied!("$10", "fresh"), ", ", logged!("$9", "fresh"), "
        select true
        from fresh");
    LOCK: "sessions::lock" =
        "select lookup, tenant_id, application_id, session_id, secret_mac, nonce_mac, grants,
               expires_at, row_mac
        from session
        where tenant_id = $1
          and nonce_mac = $2
          and expires_at > now()
        for update";
    AUTHORIZE: "sessions::authorize" =
        "update session
        set grants = $3,
            expires_at = $4,
            authorized_by = $5,
            row_mac = $6
        where tenant_id = $1
          and nonce_mac = $2";
    // Everything that expired, the longest expired first; nodes that sweep at once take turns.
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
    vault: &Vault,
    row: &SessionRow,
    row_mac: &[u8],
    entry: Entry,
    kept: Kept<'_>,
) -> Result<(), Error> {
    let kept_rows = kept.rows(&told_again(std::slice::from_ref(&entry)))?;
    let mut pen = vault.audit.pen().await?;
    let signed = pen.sign(&[entry]);
    let written = vault
        .db
        .write(
            &INSERT,
            &[
                &row.lookup,
                &row.tenant_number,
                &row.application,
                &row.id,
                &row.secret_mac,
                &row.nonce_mac,
                &row.expires_at,
                &row_mac,
                &signed,
                &kept_rows,
            ],
        )
        .await;
    pen.settle(&written, |rows| !rows.is_empty());
    written?;
    kept.done();
    Ok(())
}

/// The session with this nonce that has not expired, kept from others until the end of the transaction.
pub(super) async fn lock(
    transaction: &Transaction,
    tenant: TenantId,
    nonce_mac: &[u8; 32],
) -> Result<Option<(SessionRow, Vec<u8>)>, Error> {
    let nonce_mac = &nonce_mac[..];
    let rows = transaction
        .run(&LOCK, &[&tenant.number, &nonce_mac])
        .await?;
    let session = |row: &Row| {
        let session = SessionRow {
            lookup: row.get(0),
            tenant_number: row.get(1),
            application: row.get(2),
            id: row.get(3),
            secret_mac: row.get(4),
            nonce_mac: row.get(5),
            grants: row.get(6),
            expires_at: row.get(7),
        };
        (session, row.get(8))
    };
    Ok(rows.first().map(session))
}

pub(super) async fn authorize(
    transaction: &Transaction,
    row: &SessionRow,
    by: Uuid,
    row_mac: &[u8],
) -> Result<(), Error> {
    let (tenant, nonce) = (&row.tenant_number, &row.nonce_mac);
    transaction
        .run(
            &AUTHORIZE,
            &[tenant, nonce, &row.grants, &row.expires_at, &by, &row_mac],
        )
        .await?;
    Ok(())
}

/// Removes up to `limit` expired sessions of all tenants.
pub(super) async fn sweep(db: &Db, limit: i64) -> Result<u64, Error> {
    Ok(db.write(&SWEEP, &[&limit]).await?.len() as u64)
}
