//! Statements that update a token with its dependent rows, and the one that only consumes an intent.

use cloakroom_core::audit::{AuditedStatement, audited};
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{Error, Params, statements};
use uuid::Uuid;

use super::change::{CodeChange, PreviousState, SealedToken, WriteContext};
use super::columns::{WriteRow, as_slices, columns, given, param};
use crate::attributes::Term;
use crate::intents::{all_intents_locked, deleted_intents, locked_intents};

statements! {
    // The row version detects concurrent updates. Rows of `term` and `claim` are addressed by key, and none is both
    // deleted and inserted.
    UPDATE: "tokens::update" = concat!(
        "with ", locked_intents!(param!(intents)), ", ", given!(single), ", changed as (
            update token
            set row_version = ", param!(version_before), " + 1,
                (", columns!(attributes), "terms) = (
                    select ", columns!(attributes), "terms
                    from given
                ),
                modified_by = given.written_by,
                modified_at = given.written_at,
                security_code_until = given.security_code_until
            from given
            where token.tenant_id = $1
              and token.token_id = $2
              and token.row_version = ", param!(version_before), "
              and (token.expires_at is null or token.expires_at > now())
              and (given.expires_at is null or given.expires_at > now())
              and ", all_intents_locked!(param!(intents)), "
            returning token.created_at
        ), forgotten as (
            delete from term
            using changed, unnest(", param!(removed_terms), "::bytea[]) as gone (term)
            where term.tenant_id = $1
              and term.term = gone.term
              and term.path = ", param!(path_before), "
              and term.created_at = changed.created_at
              and term.token_id = $2
        ), termed as (
            insert into term (tenant_id, term, path, created_at, token_id)
            select $1, unnest(", param!(added_terms), "::bytea[]), given.path, changed.created_at, $2
            from changed, given
        ), released as (
            delete from claim
            using changed
            where claim.tenant_id = $1
              and claim.fingerprint = ", param!(released_fingerprint), "
              and claim.container_id = ", param!(container_before), "
              and claim.token_id = $2
        ), claimed as (
            insert into claim (tenant_id, fingerprint, container_id, token_id)
            select given.tenant_id, given.fingerprint, given.container_id, given.token_id
            from changed, given
            where given.claims
              and not exists (
                select
                from claim
                where tenant_id = $1
                  and fingerprint = (select fingerprint from given)
                  and container_id = (select container_id from given)
                  and token_id = $2
              )
        ), uncoded as (
            delete from security_code
            using changed
            where security_code.tenant_id = $1
              and security_code.token_id = $2
              and ", param!(removes_code), "
        ), coded as (
            insert into security_code (tenant_id, token_id, key_id, sealed, expires_at)
            select given.tenant_id, given.token_id, given.code_key_id, given.sealed_code,
                   given.security_code_until
            from changed, given
            where given.code_key_id is not null
            on conflict (tenant_id, token_id) do update
            set key_id = excluded.key_id,
                sealed = excluded.sealed,
                expires_at = excluded.expires_at
        ), ", deleted_intents!(param!(intents), "changed"), ", ",
        audited!("changed", entries = param!(update_entries), responses = param!(update_responses),
            events = param!(update_events)), "
        select true
        from changed");
    // For an intent whose data is already stored in a token.
    CONSUME: "tokens::consume" = concat!(
        "with ", locked_intents!("$2"), ", gone as (
            delete from token_intent
            using held
            where token_intent.tenant_id = $1
              and token_intent.intent_id = held.intent_id
            returning true
        ), ", audited!("gone", entries = "$3", responses = "$4", events = "$5"), "
        select true
        from gone");
}

/// Updates a token; false if it was rejected.
pub(super) async fn update(
    change: AuditedStatement<'_>,
    tenant: TenantId,
    before: &PreviousState,
    new: &SealedToken,
    context: WriteContext,
) -> Result<bool, Error> {
    let moves = before.container != new.container;
    let without = |all: &[Term], others: &[Term]| -> Vec<Term> {
        let differs = |term: &&Term| moves || !others.contains(term);
        all.iter().filter(differs).copied().collect()
    };
    let removed_terms = without(&before.terms, &new.terms);
    let added_terms = without(&new.terms, &before.terms);
    // Nodes that do not know the new version of the key yet rely on a claim under the old one.
    let is_claimed = new
        .replaced_fingerprint(before)
        .is_some_and(|it| it.is_claimed);
    let releases = moves || (before.fingerprint != new.fingerprint && !is_claimed);
    let released = before.fingerprint.filter(|_| releases);
    let row = WriteRow::encode(tenant, new, context);
    let mut params = row.params();
    let row_version = before.row_version.cast_signed();
    let path_before = before.container.as_str();
    let (removed_terms, added_terms) = (as_slices(&removed_terms), as_slices(&added_terms));
    let released = released.as_ref().map(|print| &print.as_bytes()[..]);
    let removes_code = matches!(new.code, CodeChange::Remove);
    params.extend_from_slice(&[
        &new.intents,
        &row_version,
        &before.container_number,
        &path_before,
        &removed_terms,
        &added_terms,
        &released,
        &removes_code,
    ]);
    Ok(!change.run(&UPDATE, &params).await?.is_empty())
}

/// Deletes an intent; false if it is gone.
pub(super) async fn consume(
    change: AuditedStatement<'_>,
    tenant: TenantId,
    intent: Uuid,
) -> Result<bool, Error> {
    let params: Params<'_> = &[&tenant.number, &vec![intent]];
    Ok(!change.run(&CONSUME, params).await?.is_empty())
}
