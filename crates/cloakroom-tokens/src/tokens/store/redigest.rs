//! Statements that replace fingerprints and search terms after their key was replaced.

use cloakroom_core::fenced_digests;
use cloakroom_crypto::Fingerprint;
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{Db, Error, Params, statements};
use jiff::Timestamp;
use uuid::Uuid;

use super::columns::{array_text, as_slices};
use crate::attributes::Term;

statements! {
    // Replaces the digests of tokens and the value that is bound to them, each only if it is still the one that was opened.
    // Row versions and times do not change. A token keeps its claim under the new fingerprint, unless another token has it.
    //
    // Locks tokens first, as every other write does. Commits asynchronously, as `tokens::replace_sealed` does.
    REPLACE_DIGESTS: "tokens::replace_digests" = concat!(
        "with at_once as materialized (
            select set_config('synchronous_commit', 'off', true)
        ), given as materialized (
            select source.id, source.opened, source.fingerprint, source.terms::bytea[] as terms, ",
        fenced_digests!("$1", "source.sealed", "$7"), " as sealed
            from at_once, unnest($2::uuid[], $3::bytea[], $4::bytea[], $5::bytea[], $6::text[])
                as source (id, opened, sealed, fingerprint, terms)
        ), before as materialized (
            select token.token_id, token.path, token.created_at, token.container_id,
                   token.fingerprint as old_fingerprint, token.terms as old_terms, given.fingerprint, given.terms
            from token
            join given on given.id = token.token_id
            where token.tenant_id = $1
              and substring(token.sealed from 3 for 20) = given.opened
            order by token.token_id
            for update of token
        ), changed as (
            update token
            set sealed = given.sealed,
                fingerprint = given.fingerprint,
                terms = given.terms
            from given, before
            where token.tenant_id = $1
              and token.token_id = given.id
              and token.token_id = before.token_id
              and substring(token.sealed from 3 for 20) = given.opened
            returning token.token_id
        ), forgotten as (
            delete from term
            using before, unnest(before.old_terms) as gone (term)
            where term.tenant_id = $1
              and term.term = gone.term
              and term.path = before.path
              and term.created_at = before.created_at
              and term.token_id = before.token_id
              and gone.term <> all(before.terms)
        ), termed as (
            insert into term (tenant_id, term, path, created_at, token_id)
            select $1, added.term, before.path, before.created_at, before.token_id
            from before, unnest(before.terms) as added (term)
            where added.term <> all(before.old_terms)
            on conflict do nothing
        ), held as materialized (
            select before.old_fingerprint, before.fingerprint, before.container_id, before.token_id
            from before
            join claim
              on claim.tenant_id = $1
             and claim.fingerprint = before.old_fingerprint
             and claim.container_id = before.container_id
             and claim.token_id = before.token_id
            where before.fingerprint is not null
              and before.fingerprint <> before.old_fingerprint
        ), claimed as (
            insert into claim (tenant_id, fingerprint, container_id, token_id)
            select $1, fingerprint, container_id, token_id
            from held
            order by fingerprint, container_id
            on conflict do nothing
        ), released as (
            delete from claim
            using held
            where claim.tenant_id = $1
              and claim.fingerprint = held.old_fingerprint
              and claim.container_id = held.container_id
              and claim.token_id = held.token_id
        )
        select true
        from changed");
    // Deletes terms that their token does not have. Only SQL leaves such rows.
    REMOVE_UNNAMED_TERMS: "tokens::remove_unnamed_terms" =
        "with page as materialized (
            select term, path, created_at, token_id
            from term
            where tenant_id = $1
              and (term, path, created_at, token_id) > ($2, $3, $4, $5)
            order by term, path, created_at, token_id
            limit $6
        ), removed as (
            delete from term
            using page
            where term.tenant_id = $1
              and term.term = page.term
              and term.path = page.path
              and term.created_at = page.created_at
              and term.token_id = page.token_id
              and not exists (
                select
                from token
                where token.tenant_id = $1
                  and token.token_id = page.token_id
                  and token.path = page.path
                  and token.created_at = page.created_at
                  and page.term = any(token.terms)
              )
            returning true
        )
        select term, path, created_at, token_id, (select count(*) from page), (select count(*) from removed)
        from page
        order by term desc, path desc, created_at desc, token_id desc
        limit 1";
    // Deletes claims on a fingerprint that their token does not have.
    REMOVE_UNNAMED_CLAIMS: "tokens::remove_unnamed_claims" =
        "with page as materialized (
            select fingerprint, container_id, token_id
            from claim
            where tenant_id = $1
              and (fingerprint, container_id) > ($2, $3)
            order by fingerprint, container_id
            limit $4
        ), removed as (
            delete from claim
            using page
            where claim.tenant_id = $1
              and claim.fingerprint = page.fingerprint
              and claim.container_id = page.container_id
              and claim.token_id = page.token_id
              and not exists (
                select
                from token
                where token.tenant_id = $1
                  and token.token_id = page.token_id
                  and token.container_id = page.container_id
                  and token.fingerprint = page.fingerprint
              )
            returning true
        )
        select fingerprint, container_id, (select count(*) from page), (select count(*) from removed)
        from page
        order by fingerprint desc, container_id desc
        limit 1";
}

/// Tokens with new digests, as parameters.
#[derive(Default)]
pub(crate) struct RedigestedTokens {
    ids: Vec<Uuid>,
    opened: Vec<Vec<u8>>,
    sealed: Vec<Vec<u8>>,
    fingerprints: Vec<Option<Vec<u8>>>,
    terms: Vec<String>,
}

impl RedigestedTokens {
    /// Adds a token; `opened` identifies the value that was opened.
    pub(crate) fn push(
        &mut self,
        id: Uuid,
        (opened, sealed): (Vec<u8>, Vec<u8>),
        fingerprint: Option<&Fingerprint>,
        terms: &[Term],
    ) {
        self.ids.push(id);
        self.opened.push(opened);
        self.sealed.push(sealed);
        let bytes = fingerprint.map(|print| print.as_bytes().to_vec());
        self.fingerprints.push(bytes);
        self.terms.push(array_text(&as_slices(terms)));
    }
}

/// Writes new digests, computed with keys of this epoch; returns how many tokens were still the same.
pub(crate) async fn replace_digests(
    db: &Db,
    tenant: TenantId,
    tokens: &RedigestedTokens,
    digest_epoch: i32,
) -> Result<u64, Error> {
    if tokens.ids.is_empty() {
        return Ok(0);
    }
    let params: Params<'_> = &[
        &tenant.number,
        &tokens.ids,
        &tokens.opened,
        &tokens.sealed,
        &tokens.fingerprints,
        &tokens.terms,
        &digest_epoch,
    ];
    let rows = db.write(&REPLACE_DIGESTS, params).await?;
    Ok(rows.len() as u64)
}

/// Deletes all terms of a tenant that no token has; returns how many rows there were, and how many were deleted.
pub(crate) async fn remove_unnamed_terms(
    db: &Db,
    tenant: TenantId,
    limit: i64,
) -> Result<(u64, u64), Error> {
    let (mut rows, mut removed) = (0, 0);
    let (mut term, mut path) = (Vec::<u8>::new(), String::new());
    let (mut created_at, mut token) = (Timestamp::UNIX_EPOCH, Uuid::nil());
    loop {
        let params: Params<'_> = &[&tenant.number, &term, &path, &created_at, &token, &limit];
        let page = db.write(&REMOVE_UNNAMED_TERMS, params).await?;
        let Some(last) = page.first() else {
            return Ok((rows, removed));
        };
        (term, path) = (last.get(0), last.get(1));
        (created_at, token) = (last.get(2), last.get(3));
        rows += last.get::<_, i64>(4).unsigned_abs();
        removed += last.get::<_, i64>(5).unsigned_abs();
    }
}

/// The same for claims.
pub(crate) async fn remove_unnamed_claims(
    db: &Db,
    tenant: TenantId,
    limit: i64,
) -> Result<(u64, u64), Error> {
    let (mut rows, mut removed) = (0, 0);
    let (mut fingerprint, mut container) = (Vec::<u8>::new(), 0);
    loop {
        let params: Params<'_> = &[&tenant.number, &fingerprint, &container, &limit];
        let page = db.write(&REMOVE_UNNAMED_CLAIMS, params).await?;
        let Some(last) = page.first() else {
            return Ok((rows, removed));
        };
        (fingerprint, container) = (last.get(0), last.get(1));
        rows += last.get::<_, i64>(2).unsigned_abs();
        removed += last.get::<_, i64>(3).unsigned_abs();
    }
}
