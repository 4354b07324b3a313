//! Statements for expired tokens and reserved ids.

use std::time::Duration;

use cloakroom_crypto::Fingerprint;
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{Db, Error, Params, Transaction, statements};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::types::TokenKind;

/// Deletes the tokens that `due` selects and their dependent rows.
///
/// Rows of `term` are addressed by their full key: by the term alone, each lookup would scan all tokens that share it.
macro_rules! remove {
    ($due:literal) => {
        concat!(
            "with due as (",
            $due,
            "
        ), gone as (
            delete from token
            using due
            where token.tenant_id = due.tenant_id
              and token.token_id = due.token_id
            returning token.tenant_id, token.token_id, token.alias, token.kind,
                      token.container_id, token.path, token.created_at, token.fingerprint,
                      token.terms
        ), forgotten as (
            delete from term
            using gone
            cross join lateral unnest(gone.terms) as old (term)
            where term.tenant_id = gone.tenant_id
              and term.term = old.term
              and term.path = gone.path
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
        ), released_id as (
            delete from reserved_token_id
            using gone
            where reserved_token_id.tenant_id = gone.tenant_id
              and reserved_token_id.token_id = gone.token_id
              and reserved_token_id.deleted_at is null
        )
        select tenant_id, token_id, alias, kind
        from gone"
        )
    };
}

statements! {
    // An expired token that still occupies an id or a claim. `is true` prevents the use of the expiry index, so that
    // the row is found by its key however many tokens have expired.
    FIND_EXPIRED: "tokens::find_expired" =
        "select token_id
        from token
        where tenant_id = $1
          and token_id = $2
          and (expires_at <= now()) is true";
    KEY_IS_TAKEN: "tokens::key_is_taken" =
        "select true
        where exists (
            select
            from token
            where tenant_id = $1
              and token_id = $2
        ) or exists (
            select
            from reserved_token_id
            where tenant_id = $1
              and token_id = $2
        )";
    FIND_CLAIMANT: "tokens::find_claimant" =
        "select claim.token_id
        from claim
        join token
          on token.tenant_id = $1
         and token.token_id = claim.token_id
        where claim.tenant_id = $1
          and claim.fingerprint = $2
          and claim.container_id = $3
          and (token.expires_at <= now()) is true";
    // Expired tokens, oldest expiry first. Nodes that sweep concurrently skip each other's rows.
    SWEEP: "tokens::sweep" = remove!("
            select tenant_id, token_id
            from token
            where expires_at <= now()
            order by expires_at
            limit $1
            for update skip locked");
    SWEEP_ONE: "tokens::sweep_one" = remove!("
            select tenant_id, token_id
            from token
            where tenant_id = $1
              and token_id = $2
              and (expires_at <= now()) is true
            for update skip locked");
    SWEEP_RESERVED_IDS: "tokens::sweep_reserved_ids" =
        "with due as (
            select tenant_id, token_id
            from reserved_token_id
            where deleted_at <= now() - make_interval(secs => $2)
            order by deleted_at
            limit $1
            for update skip locked
        )
        delete from reserved_token_id
        using due
        where reserved_token_id.tenant_id = due.tenant_id
          and reserved_token_id.token_id = due.token_id
        returning true";
}

/// Whether an expired token still occupies this id.
pub(crate) async fn is_expired(db: &Db, tenant: TenantId, key: &Uuid) -> Result<bool, Error> {
    let row = db
        .read_optional(&FIND_EXPIRED, &[&tenant.number, key])
        .await?;
    Ok(row.is_some())
}

/// Whether a token has this key, expired or not, or the key is reserved by a deleted one.
pub(crate) async fn key_is_taken(db: &Db, tenant: TenantId, key: &Uuid) -> Result<bool, Error> {
    let row = db
        .read_optional(&KEY_IS_TAKEN, &[&tenant.number, key])
        .await?;
    Ok(row.is_some())
}

/// Finds the expired token that still holds the claim on a fingerprint.
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

/// Deletes one expired token whose id or claim is needed.
pub(crate) async fn sweep_one(
    transaction: &Transaction,
    tenant: TenantId,
    key: &Uuid,
) -> Result<Vec<DeletedToken>, Error> {
    let rows = transaction.run(&SWEEP_ONE, &[&tenant.number, key]).await?;
    Ok(rows.iter().map(DeletedToken::decode).collect())
}

/// Deletes up to `limit` expired tokens of all tenants.
pub(crate) async fn sweep(
    transaction: &Transaction,
    limit: i64,
) -> Result<Vec<DeletedToken>, Error> {
    let rows = transaction.run(&SWEEP, &[&limit]).await?;
    Ok(rows.iter().map(DeletedToken::decode).collect())
}

/// A token that a sweep deleted.
pub(crate) struct DeletedToken {
    pub tenant_number: i32,
    pub id: String,
    /// `None` if the type is unknown.
    pub kind: Option<TokenKind>,
}

impl DeletedToken {
    /// Decodes the columns of `remove!`.
    fn decode(row: &Row) -> Self {
        let (key, alias): (Uuid, Option<String>) = (row.get(1), row.get(2));
        Self {
            tenant_number: row.get(0),
            id: alias.unwrap_or_else(|| key.to_string()),
            kind: TokenKind::from_number(row.get(3)),
        }
    }
}

/// Releases up to `limit` ids of tokens deleted longer than `retention` ago.
pub(crate) async fn sweep_reserved_ids(
    db: &Db,
    limit: i64,
    retention: Duration,
) -> Result<u64, Error> {
    let params: Params<'_> = &[&limit, &retention.as_secs_f64()];
    let rows = db.write(&SWEEP_RESERVED_IDS, params).await?;
    Ok(rows.len() as u64)
}
