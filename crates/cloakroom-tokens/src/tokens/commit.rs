//! Commits the writes of a request: batched with other requests, as one statement, or in a transaction.

use cloakroom_core::audit::{self, AuditedStatement, AuditedTransaction};
use cloakroom_core::idempotency::{self, PendingResponse};
use cloakroom_crypto::Fingerprint;
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::Error;
use jiff::Timestamp;
use uuid::Uuid;

use super::expire::delete_one_expired;
use super::store::{self, ClaimKey, PendingInsert, SealedToken, Write, WriteContext, WriteResult};
use crate::tokens::TokenVault;

/// Writes atomically. After a claim conflict, claims of expired tokens are released, so that a retry can succeed.
pub(super) async fn commit(
    vault: &TokenVault,
    tenant: TenantId,
    writes: Vec<Write>,
    response: PendingResponse<'_>,
) -> Result<WriteResult, Error> {
    let claims: Vec<ClaimKey> = writes
        .iter()
        .filter_map(|write| write.unique_keys().claim)
        .collect();
    let times: Vec<(Uuid, Timestamp)> = writes.iter().filter_map(Write::written_row).collect();
    match write_all(vault, tenant, writes, response).await {
        Err(error) if error.is_conflict("claim_pkey") => {
            for claim in claims {
                release_expired(vault, tenant, claim).await?;
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

/// Deletes an expired token that still holds a claim.
pub(super) async fn release_expired(
    vault: &TokenVault,
    tenant: TenantId,
    claim: ClaimKey,
) -> Result<(), Error> {
    let fingerprint = Fingerprint::from(claim.fingerprint);
    let container = claim.container_number;
    let claimant = store::find_expired_claimant(&vault.db, tenant, &fingerprint, container).await?;
    if let Some(key) = claimant {
        delete_one_expired(vault, tenant, &key).await?;
    }
    Ok(())
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
    if let [write] = &writes[..] {
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
    let is_batchable = matches!(&writes[..], [Write::Insert(new)] if new.intents.is_empty());
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
    for position in order {
        let statement = AuditedStatement::within(transaction);
        if !store::write(statement, tenant, &writes[*position], context).await? {
            return Ok(WriteResult::Rejected(*position));
        }
    }
    Ok(WriteResult::Written)
}
