//! The statement that deletes a token and its dependent rows.

use cloakroom_core::access::Container;
use cloakroom_core::audit::{AuditedStatement, audited};
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{Error, Params, statements};

use crate::attributes::TokenId;

statements! {
    DELETE: "tokens::delete" = concat!(
        "with gone as (
            delete from token
            where tenant_id = $1
              and token_id = $2
              and container_id = $3
            returning created_at, fingerprint, terms
        ), forgotten as (
            delete from term
            using gone, unnest(gone.terms) as old (term)
            where term.tenant_id = $1
              and term.term = old.term
              and term.path = $4
              and term.created_at = gone.created_at
              and term.token_id = $2
        ), released as (
            delete from claim
            using gone
            where claim.tenant_id = $1
              and claim.fingerprint = gone.fingerprint
              and claim.container_id = $3
              and claim.token_id = $2
        ), uncoded as (
            delete from security_code
            using gone
            where security_code.tenant_id = $1
              and security_code.token_id = $2
        ), reserved as (
            insert into reserved_token_id (tenant_id, token_id, deleted_at)
            select $1, $2, now()
            from gone
            on conflict (tenant_id, token_id) do update
            set deleted_at = excluded.deleted_at
        ), unauthenticated as (
            delete from threeds_session
            using gone
            where threeds_session.tenant_id = $1
              and threeds_session.token_id = $2
        ), ", audited!("gone", entries = "$5", responses = "$6", events = "$7"), "
        select true
        from gone");
}

/// The container of a token, by number and by path.
pub(crate) struct TokenPlace<'a> {
    pub container_number: i32,
    pub container: &'a Container,
}

/// Deletes a token from the given container and reserves its id; false if it is not in that container.
pub(crate) async fn delete(
    change: AuditedStatement<'_>,
    tenant: TenantId,
    id: &TokenId,
    place: TokenPlace<'_>,
) -> Result<bool, Error> {
    let path = place.container.as_str();
    let params: Params<'_> = &[&tenant.number, &id.key(), &place.container_number, &path];
    Ok(!change.run(&DELETE, params).await?.is_empty())
}
