//! Commits the writes of a request: batched with other requests, as one statement, or in a transaction.

use cloakroom_core::audit::{self, AuditedStatement, AuditedTransaction};
use cloakroom_core::idempotency::{self, PendingResponse};
use cloakroom_crypto::Fingerprint;
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{Error, Transaction};
use jiff::Timestamp;
use uuid::Uuid;

use super::expire::delete_one_expired;
use super::store::{
    self, PendingInsert, PreviousState, SealedToken, Write, WriteContext, WriteResult,
};
use crate::fingerprint_pairs;
use crate::tokens::TokenVault;

/// Writes atomically. After a claim conflict, claims of expired tokens are released, so that a retry can succeed.
pub(super) async fn commit(
    vault: &TokenVault,
    tenant: TenantId,
    writes: Vec<Write>,
    response: PendingResponse<'_>,
) -> Result<WriteResult, Error> {
    let claims: Vec<ClaimedFingerprints> = claims(writes.iter().filter_map(Write::token));
    insert_pairs(vault, tenant, writes.iter().filter_map(Write::token)).await?;
    let times: Vec<(Uuid, Timestamp)> = writes.iter().filter_map(Write::written_row).collect();
    match write_all(vault, tenant, writes, response).await {
        Err(error) if error.is_conflict("claim_pkey") => {
            for claim in claims {
                release_claims(vault, tenant, &claim).await?;
            }
            Ok(WriteResult::Conflict)
        }
        Err(error)
            if error.is_conflict("token_pkey") || error.is_conflict("reserved_token_id_pkey") =>
        {
            Ok(WriteResult::Conflict)
        }
        Err(Error::RolledBack) => Ok(WriteResult::Conflict),
        // The next attempt encrypts with current keys.
        Err(Error::StaleKey) => {
            vault.keys.replace_stale(tenant).await;
            Ok(WriteResult::Conflict)
        }
        Ok(WriteResult::Written) => {
            for (key, at) in times {
                vault.latest_writes.remember(tenant, &key, at);
            }
            Ok(WriteResult::Written)
        }
        outcome => outcome,
    }
}

/// The fingerprints of a token with deduplication, under all versions of the key.
pub(super) struct ClaimedFingerprints {
    fingerprints: Vec<Fingerprint>,
    container: i32,
}

/// The claims of writes, by which a conflict is resolved.
pub(super) fn claims<'a>(
    tokens: impl Iterator<Item = (&'a SealedToken, Option<&'a PreviousState>)>,
) -> Vec<ClaimedFingerprints> {
    let claiming = tokens.filter(|(token, _)| token.claims);
    claiming
        .map(|(token, _)| ClaimedFingerprints {
            fingerprints: token.fingerprints().collect(),
            container: token.container_number,
        })
        .collect()
}

/// Stores both fingerprints of each value while the key is replaced, before anything shows one of them.
pub(super) async fn insert_pairs<'a>(
    vault: &TokenVault,
    tenant: TenantId,
    tokens: impl Iterator<Item = (&'a SealedToken, Option<&'a PreviousState>)>,
) -> Result<(), Error> {
    let values = tokens.map(|(token, _)| (token.fingerprint, &token.other_fingerprints[..]));
    fingerprint_pairs::insert(&vault.db, tenant, values).await
}

/// Deletes an expired token that still holds a claim, and claims that outlived their token.
pub(super) async fn release_claims(
    vault: &TokenVault,
    tenant: TenantId,
    claim: &ClaimedFingerprints,
) -> Result<(), Error> {
    let (db, container) = (&vault.db, claim.container);
    for fingerprint in &claim.fingerprints {
        let claimant = store::find_expired_claimant(db, tenant, fingerprint, container).await?;
        if let Some(key) = claimant {
            delete_one_expired(vault, tenant, &key).await?;
        }
    }
    match &claim.fingerprints[..] {
        [] | [_] => Ok(()),
        // The key is being replaced.
        all => store::delete_stale_claims(db, tenant, all, container).await,
    }
}

async fn write_all(
    vault: &TokenVault,
    tenant: TenantId,
    mut writes: Vec<Write>,
    response: PendingResponse<'_>,
) -> Result<WriteResult, Error> {
    let context = WriteContext {
        reserves_ids: vault.config.tokens.reserves_deleted_ids(),
    };
    if writes.is_empty() {
        idempotency::store_response(&vault.db, &response.rows(&[])?).await?;
        response.mark_stored();
        return Ok(WriteResult::Written);
    }
    if let Some(token) = take_batchable(&mut writes) {
        let new = PendingInsert {
            tenant,
            token,
            context,
            response_rows: response.rows(&[])?,
        };
        let is_written = vault.inserts.insert(new).await?;
        if is_written {
            response.mark_stored();
        }
        return Ok(WriteResult::of_one(is_written));
    }
    let needs_transaction = |write: &Write| {
        let token = write.token();
        token.is_some_and(|(token, before)| store::needs_other_claims(token, before))
    };
    if let [write] = &writes[..]
        && !needs_transaction(write)
    {
        let change = audit::begin_statement(&vault.audit, write.entries(), response).await?;
        let is_written = store::write(change, tenant, write, context).await?;
        return Ok(WriteResult::of_one(is_written));
    }
    let transaction = audit::begin(&vault.audit).await?;
    // A fixed order avoids deadlocks between requests that write the same keys.
    let mut order: Vec<usize> = (0..writes.len()).collect();
    order.sort_by_key(|position| writes[*position].unique_keys());
    let outcome = write_within(&transaction, tenant, &writes, &order, context).await;
    if !matches!(outcome, Ok(WriteResult::Written)) {
        transaction.roll_back().await;
        return outcome;
    }
    let entries = order
        .iter()
        .flat_map(|position| writes[*position].entries());
    let entries: Vec<_> = entries.cloned().collect();
    transaction.commit_with(&entries, response).await?;
    outcome
}

/// Takes the insert out if it is the only write and converts no intent. Such inserts are batched across requests.
fn take_batchable(writes: &mut Vec<Write>) -> Option<SealedToken> {
    let is_batchable = matches!(&writes[..], [Write::Insert(new)]
        if new.intents.is_empty() && !store::needs_other_claims(new, None));
    match writes.pop_if(|_| is_batchable)? {
        Write::Insert(token) | Write::Update(_, token) => Some(token),
        Write::Consume(..) => None,
    }
}

/// Runs the writes in this order.
async fn write_within(
    transaction: &AuditedTransaction<'_>,
    tenant: TenantId,
    writes: &[Write],
    order: &[usize],
    context: WriteContext,
) -> Result<WriteResult, Error> {
    let tokens = order
        .iter()
        .filter_map(|position| writes[*position].token());
    claim_others(transaction, tenant, tokens).await?;
    for position in order {
        let statement = AuditedStatement::within(transaction);
        if !store::write(statement, tenant, &writes[*position], context).await? {
            return Ok(WriteResult::Rejected(*position));
        }
    }
    Ok(WriteResult::Written)
}

/// Inserts the claims of tokens under other versions of the fingerprint key, if it is being replaced.
pub(super) async fn claim_others<'a>(
    transaction: &Transaction,
    tenant: TenantId,
    tokens: impl Iterator<Item = (&'a SealedToken, Option<&'a PreviousState>)>,
) -> Result<(), Error> {
    let mut tokens: Vec<_> = tokens
        .filter(|(token, before)| store::needs_other_claims(token, *before))
        .collect();
    // A fixed order avoids deadlocks.
    tokens.sort_by_key(|(token, _)| token.other_claims().next().map(|print| *print.as_bytes()));
    for (token, before) in tokens {
        store::claim_others(transaction, tenant, token, before).await?;
    }
    Ok(())
}
