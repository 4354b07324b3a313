//! Statements that insert tokens with their dependent rows: one token, or those of a batch.

use cloakroom_core::audit::{AuditedStatement, audited};
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{Error, statements};

use super::change::{SealedToken, WriteContext};
use super::columns::{WriteBatch, WriteRow, columns, given, param};
use crate::intents::{all_intents_locked, deleted_intents, locked_intents};

/// Inserts all tokens of `given`, or none if an expiry has passed. The database's clock determines that.
macro_rules! inserted_tokens {
    () => {
        concat!(
            "insert into token
                (",
            columns!(identity),
            columns!(attributes),
            "terms, security_code_until, created_by, created_at)
            select ",
            columns!(identity),
            columns!(attributes),
            "terms, security_code_until, written_by, written_at
            from given
            where not exists (select from given where expires_at <= now())"
        )
    };
}

/// Inserts the rows that depend on the tokens of `given`, if `fresh` inserted these. A claim or an id that is in use
/// fails the statement.
///
/// Counting `fresh` forces all tokens to be inserted before any dependent row, in key order. This fixes the lock order,
/// so that two batches with the same keys cannot deadlock. A client-chosen id is reserved after the token is inserted,
/// because a delete of the same id takes its locks in the same order.
macro_rules! dependent_rows {
    () => {
        "termed as (
            insert into term (tenant_id, term, path, created_at, token_id)
            select tenant_id, term, path, written_at, token_id
            from given, unnest(terms) as term
            where (select count(*) from fresh) > 0
        ), coded as (
            insert into security_code (tenant_id, token_id, key_id, sealed, expires_at)
            select tenant_id, token_id, code_key_id, sealed_code, security_code_until
            from given
            where code_key_id is not null
              and (select count(*) from fresh) > 0
        ), claimed as (
            insert into claim (tenant_id, fingerprint, container_id, token_id)
            select tenant_id, fingerprint, container_id, token_id
            from given
            where claims
              and (select count(*) from fresh) > 0
            order by tenant_id, fingerprint, container_id
        ), reserved as (
            insert into reserved_token_id (tenant_id, token_id)
            select tenant_id, token_id
            from given
            where reserves
              and (select count(*) from fresh) > 0
            order by tenant_id, token_id
        )"
    };
}

statements! {
    INSERT: "tokens::insert" = concat!(
        "with ", locked_intents!(param!(intents)), ", ", given!(single), ", fresh as (
            ", inserted_tokens!(), "
              and ", all_intents_locked!(param!(intents)), "
            returning true
        ), ", dependent_rows!(), ", ", deleted_intents!(param!(intents), "fresh"), ", ",
        audited!("fresh", entries = param!(insert_entries), responses = param!(insert_responses),
            events = param!(insert_events)), "
        select true
        from fresh");
    // Several tokens of several requests and tenants. Intents are converted only by `tokens::insert`.
    INSERT_MANY: "tokens::insert_many" = concat!(
        "with ", given!(batch), ", fresh as (
            ", inserted_tokens!(), "
            returning true
        ), ", dependent_rows!(), ", ", 
        audited!("fresh", entries = param!(batch_entries), responses = param!(batch_responses),
            events = param!(batch_events)), "
        select true
        where (select count(*) from fresh) > 0");
}

/// Inserts a token; false if it was rejected.
pub(super) async fn insert(
    change: AuditedStatement<'_>,
    tenant: TenantId,
    new: &SealedToken,
    context: WriteContext,
) -> Result<bool, Error> {
    let row = WriteRow::encode(tenant, new, context);
    let mut params = row.params();
    params.push(&new.intents);
    Ok(!change.run(&INSERT, &params).await?.is_empty())
}

/// Inserts several tokens; false if any of them was rejected.
pub(super) async fn insert_many(
    change: AuditedStatement<'_>,
    rows: &[WriteRow<'_>],
) -> Result<bool, Error> {
    let mut batch = WriteBatch::default();
    for row in rows {
        batch.push(row);
    }
    Ok(!change.run(&INSERT_MANY, &batch.params()).await?.is_empty())
}

/// Inserts several tokens of one tenant, ordered by key; false if any of them was rejected.
pub(crate) async fn insert_all(
    change: AuditedStatement<'_>,
    tenant: TenantId,
    tokens: &[SealedToken],
    context: WriteContext,
) -> Result<bool, Error> {
    let rows = tokens.iter();
    let rows: Vec<WriteRow<'_>> = rows
        .map(|token| WriteRow::encode(tenant, token, context))
        .collect();
    insert_many(change, &rows).await
}
