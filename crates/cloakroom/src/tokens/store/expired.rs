//! Statements about tokens whose time has come.

use cloakroom_crypto::Fingerprint;
use jiff::Timestamp;
use uuid::Uuid;

use crate::ids::TenantId;
use crate::storage::{Db, Error, Params, statements};

statements! {
    // An expired token that still occupies an id or a claim which somebody else wants.
    FIND_EXPIRED: "tokens::find_expired" =
        "select token_id
        from token
        where tenant_id = $1
          and token_id = $2
          and expires_at <= now()";
    KEY_IS_TAKEN: "tokens::key_is_taken" =
        "select true
        from token
        where tenant_id = $1
          and token_id = $2";
    FIND_CLAIMANT: "tokens::find_claimant" =
        "select claim.token_id
        from claim
        join token
          on token.tenant_id = $1
         and token.token_id = claim.token_id
        where claim.tenant_id = $1
          and claim.fingerprint = $2
          and claim.container_id = $3
          and token.expires_at <= now()";
    // The database's clock is the only one that counts.
    HAS_PASSED: "tokens::has_passed" =
        "select $1::timestamptz <= now()";
    // Everything that expired, the longest expired first; nodes that sweep at once take turns.
    SWEEP: "tokens::sweep" =
        "with due as (
            select tenant_id, token_id
            from token
            where expires_at <= now()
              and ($2::integer is null or (tenant_id = $2 and token_id = $3))
            order by expires_at
            limit $1
            for update skip locked
        ), gone as (
            delete from token
            using due
            where token.tenant_id = due.tenant_id
              and token.token_id = due.token_id
            returning token.tenant_id, token.token_id, token.container_id, token.created_at,
                      token.fingerprint, token.terms
        ), forgotten as (
            delete from term
            using gone
            join container
              on container.tenant_id = gone.tenant_id
             and container.container_id = gone.container_id
            cross join lateral unnest(gone.terms) as old (term)
            where term.tenant_id = gone.tenant_id
              and term.term = old.term
              and term.path = container.path
              and term.created_at = gone.created_at
              and term.token_id = gone.token_id
        ), released as (
            delete from claim
            using gone
            where claim.tenant_id = gone.tenant_id
              and claim.fingerprint = gone.fingerprint
              and claim.container_id = gone.container_id
              and claim.token_id = gone.token_id
        ), uncoded as (
            delete from security_code
            using gone
            where security_code.tenant_id = gone.tenant_id
              and security_code.token_id = gone.token_id
        )
        select count(*)
        from gone";
}

/// Whether an expired token still occupies this id.
pub(crate) async fn is_expired(db: &Db, tenant: TenantId, key: &Uuid) -> Result<bool, Error> {
    let row = db
        .read_optional(&FIND_EXPIRED, &[&tenant.number, key])
        .await?;
    Ok(row.is_some())
}

/// Whether any token has this key, expired or not.
pub(crate) async fn key_is_taken(db: &Db, tenant: TenantId, key: &Uuid) -> Result<bool, Error> {
    let row = db
        .read_optional(&KEY_IS_TAKEN, &[&tenant.number, key])
        .await?;
    Ok(row.is_some())
}

/// The expired token that still holds the claim on a fingerprint, if that is so.
pub(crate) async fn find_expired_claimant(
    db: &Db,
    tenant: TenantId,
    fingerprint: &Fingerprint,
    container: i32,
) -> Result<Option<Uuid>, Error> {
    let bytes = &fingerprint.as_bytes()[..];
    let params: Params<'_> = &[&tenant.number, &bytes, &container];
    let row = db.read_optional(&FIND_CLAIMANT, params).await?;
    Ok(row.map(|row| row.get(0)))
}

/// Whether an instant has passed.
pub(crate) async fn has_passed(db: &Db, at: Timestamp) -> Result<bool, Error> {
    let row = db.read_optional(&HAS_PASSED, &[&at]).await?;
    Ok(row.is_some_and(|row| row.get(0)))
}

/// Removes one expired token that is in somebody's way.
pub(crate) async fn sweep_one(db: &Db, tenant: TenantId, key: &Uuid) -> Result<u64, Error> {
    sweep_some(db, 1, Some((tenant.number, *key))).await
}

/// Removes up to `limit` expired tokens of all tenants.
pub(crate) async fn sweep(db: &Db, limit: i64) -> Result<u64, Error> {
    sweep_some(db, limit, None).await
}

async fn sweep_some(db: &Db, limit: i64, only: Option<(i32, Uuid)>) -> Result<u64, Error> {
    let (tenant, token) = only.unzip();
    let rows = db.write(&SWEEP, &[&limit, &tenant, &token]).await?;
    let count: i64 = rows.first().map_or(0, |row| row.get(0));
    Ok(count.unsigned_abs())
}
