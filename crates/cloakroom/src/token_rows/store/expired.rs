//! Statements about tokens whose time has come.

use cloakroom_crypto::Fingerprint;
use tokio_postgres::Row;
use uuid::Uuid;

use super::super::entity_kind;
use crate::audit::{self, EntityKind, Entry, Operation};
use crate::ids::TenantId;
use crate::storage::{Db, Error, Params, Statement, statements};
use crate::token_types::TokenKind;
use crate::vault::Vault;

/// Removes the tokens that `due` names, with everything that belongs to them.
///
/// Rows of `term` are named by their whole key: by the term alone, each would be looked for among
/// all tokens that share it.
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
        )
        select tenant_id, token_id, alias, kind
        from gone"
        )
    };
}

statements! {
    // An expired token that still occupies an id or a claim which somebody else wants. `is true`
    // keeps the index of expiries out of it: however many are due, one row is found by its key.
    FIND_EXPIRED: "tokens::find_expired" =
        "select token_id
        from token
        where tenant_id = $1
          and token_id = $2
          and (expires_at <= now()) is true";
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
          and (token.expires_at <= now()) is true";
    // Everything that expired, the longest expired first; nodes that sweep at once take turns.
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

/// Removes one expired token that is in somebody's way.
pub(crate) async fn sweep_one(vault: &Vault, tenant: TenantId, key: &Uuid) -> Result<u64, Error> {
    remove(vault, &SWEEP_ONE, &[&tenant.number, key]).await
}

/// Removes up to `limit` expired tokens of all tenants.
pub(crate) async fn sweep(vault: &Vault, limit: i64) -> Result<u64, Error> {
    remove(vault, &SWEEP, &[&limit]).await
}

/// Removes and records, together.
async fn remove(vault: &Vault, statement: &Statement, params: Params<'_>) -> Result<u64, Error> {
    let recorded = audit::begin(vault).await?;
    let rows = recorded.run(statement, params).await?;
    if rows.is_empty() {
        recorded.roll_back().await;
        return Ok(0);
    }
    let entries: Vec<Entry> = rows.iter().map(entry).collect();
    recorded.commit(&entries).await?;
    Ok(rows.len() as u64)
}

fn entry(row: &Row) -> Entry {
    let (key, alias): (Uuid, Option<String>) = (row.get(1), row.get(2));
    let id = alias.unwrap_or_else(|| key.to_string());
    let kind = TokenKind::from_number(row.get(3)).map_or(EntityKind::Token, entity_kind);
    Entry::by_system(row.get(0), Operation::Expire, kind, id)
}
