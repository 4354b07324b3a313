//! Statements for the claims of tokens while the fingerprint key is replaced: a value then has a claim under each version.

use cloakroom_crypto::Fingerprint;
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{Db, Error, Params, Transaction, statements};

use super::change::{PreviousState, SealedToken};

statements! {
    // In the transaction that writes the token, which claims the active fingerprint. An update whose fingerprint changes
    // only its version (`$5` to `$6`) keeps its claim.
    CLAIM_OTHERS: "tokens::claim_others" =
        "with claimed as (
            insert into claim (tenant_id, fingerprint, container_id, token_id)
            select $1, other, $3, $2
            from unnest($4::bytea[]) as other
            where not exists (
                select
                from claim
                where tenant_id = $1
                  and fingerprint = other
                  and container_id = $3
                  and token_id = $2
            )
            order by other
        )
        insert into claim (tenant_id, fingerprint, container_id, token_id)
        select $1, $6, $3, $2
        from claim
        where tenant_id = $1
          and fingerprint = $5
          and container_id = $3
          and token_id = $2
        on conflict do nothing";
    // Claims of a value that its token no longer has: deleting or changing a token removes only the claim under the
    // version of its fingerprint.
    DELETE_STALE_CLAIMS: "tokens::delete_stale_claims" =
        "delete from claim
        where tenant_id = $1
          and fingerprint = any($2)
          and container_id = $3
          and not exists (
            select
            from token
            where token.tenant_id = $1
              and token.token_id = claim.token_id
              and token.fingerprint = any($2)
          )";
}

/// Whether a write claims, or replaces, a fingerprint under another version of the key. It takes a transaction then.
pub(crate) fn needs_other_claims(new: &SealedToken, before: Option<&PreviousState>) -> bool {
    let is_replaced = |before| new.replaced_fingerprint(before).is_some();
    new.other_claims().next().is_some() || before.is_some_and(is_replaced)
}

/// Inserts the claims of a write under other versions of the key, before the write itself.
pub(crate) async fn claim_others(
    transaction: &Transaction,
    tenant: TenantId,
    new: &SealedToken,
    before: Option<&PreviousState>,
) -> Result<(), Error> {
    let bytes = |print: &Fingerprint| print.as_bytes().to_vec();
    let others: Vec<Vec<u8>> = new.other_claims().map(bytes).collect();
    let replaced = before.and_then(|before| new.replaced_fingerprint(before));
    let replaced = replaced.map(|it| bytes(&it.fingerprint));
    let active = new.fingerprint.as_ref().map(bytes);
    let params: Params<'_> = &[
        &tenant.number,
        new.id.key(),
        &new.container_number,
        &others,
        &replaced,
        &active,
    ];
    transaction.run(&CLAIM_OTHERS, params).await?;
    Ok(())
}

/// Deletes claims on these fingerprints of one value whose token has none of them.
pub(crate) async fn delete_stale_claims(
    db: &Db,
    tenant: TenantId,
    fingerprints: &[Fingerprint],
    container: i32,
) -> Result<(), Error> {
    let bytes = fingerprints.iter().map(|print| &print.as_bytes()[..]);
    let bytes: Vec<&[u8]> = bytes.collect();
    let params: Params<'_> = &[&tenant.number, &bytes, &container];
    db.write(&DELETE_STALE_CLAIMS, params).await?;
    Ok(())
}
