//! Creates tokens: validate, authorize, plan, commit.

mod merge;
pub(super) mod plan;
pub(super) mod planned_write;
pub(super) mod validate;

use cloakroom_core::audit::encode_reads;
use cloakroom_core::caller::Caller;
use cloakroom_core::idempotency::{PendingResponse, ResponseTemplate};
use cloakroom_core::velocity;
use cloakroom_platform::storage;

use self::plan::{Planner, replay_entry};
use self::planned_write::{PlannedWrite, take_writes};
use self::validate::{ValidatedToken, intent_not_found, reject_repeated_intents};
use super::commit::commit;
use super::disclosure::creation_transform;
use super::expire::delete_one_expired;
use super::store::{self, WriteResult};
use super::update::expiry_in_past;
use super::written_token::build_results;
use super::{Error, NewToken, WrittenToken, count_rejected_numbers};
use crate::intents;
use crate::tokens::TokenVault;

/// Attempts when concurrent requests take the same id or claim.
const ATTEMPTS: usize = 12;

/// Creates a token, or returns the existing one if deduplication finds it.
///
/// Returns once the token is durable, with the data transformed by the caller's rule for `token:create`.
pub async fn create(
    vault: &TokenVault,
    caller: &Caller,
    new: NewToken<'_>,
    template: &ResponseTemplate<'_, WrittenToken>,
) -> Result<WrittenToken, Error> {
    let validated = new.validate(vault, caller, String::new()).await;
    let validated = count_rejected_numbers(vault, caller, validated).await?;
    let build_response = |written: &[WrittenToken]| template.render_pending(&written[0]);
    let mut written = create_all(vault, caller, &[validated], &build_response).await?;
    written.pop().ok_or(Error::Contended)
}

/// Builds the response that is stored with the tokens for an idempotency key.
pub(super) type BuildResponse<'a, 'k> =
    &'k (dyn Fn(&[WrittenToken]) -> Result<PendingResponse<'a>, storage::Error> + Send + Sync);

/// Creates several tokens atomically.
pub async fn create_all(
    vault: &TokenVault,
    caller: &Caller,
    tokens: &[ValidatedToken],
    build_response: BuildResponse<'_, '_>,
) -> Result<Vec<WrittenToken>, Error> {
    let mut transforms = Vec::with_capacity(tokens.len());
    for new in tokens {
        transforms.push(creation_transform(vault, caller, new)?);
    }
    reject_repeated_intents(tokens)?;
    let mut numbers = Vec::new();
    for new in tokens {
        numbers.extend(new.content.card_numbers()?);
    }
    let comparable = velocity::admits(&vault.velocity, caller, &numbers).await?;
    let (mut rejected_token, mut _lock) = (None, None);
    for attempt in 0..ATTEMPTS {
        // Of this attempt: the keys may have been replaced since the previous one.
        let keys = caller.current_keys(&vault.keys).await?;
        let planner = Planner {
            vault,
            caller,
            keys: &keys,
            comparable,
            // Of this attempt: an expired token may have been deleted since the previous one.
            at: vault.clock.now().await?,
        };
        let mut plans: Vec<PlannedWrite> = Vec::with_capacity(tokens.len());
        for (new, transform) in tokens.iter().zip(&transforms) {
            let plan = planner.plan(new, *transform, attempt, &mut plans).await;
            plans.push(plan.map_err(|error| error.within(&new.path))?);
        }
        let (positions, writes) = take_writes(&mut plans);
        let response = planner.pending_response(tokens, &plans, build_response)?;
        match commit(vault, caller.tenant, writes, response).await? {
            WriteResult::Written => return Ok(build_results(tokens, plans)),
            WriteResult::Conflict => {
                for (new, plan) in tokens.iter().zip(&plans) {
                    planner.check_id(new, plan).await?;
                }
            }
            WriteResult::Rejected(position) => {
                let position = positions[position];
                planner.check_intents(tokens).await?;
                let Some(token) = plans[position].token() else {
                    continue;
                };
                // A new token can be rejected only for its expiry; so can an existing one whose version is
                // unchanged since the last rejection.
                let rejected = (*token.id.key(), token.row_version);
                if token.modified_by.is_none() || rejected_token == Some(rejected) {
                    return Err(expiry_in_past().within(&tokens[position].path));
                }
                rejected_token = Some(rejected);
                // Release the lock first: holding two could deadlock.
                _lock = None;
                _lock = Some(vault.locks.lock(caller.tenant, &rejected.0).await);
            }
        }
    }
    Err(Error::Contended)
}

impl Planner<'_> {
    /// Builds the response before the write if it is stored for an idempotency key.
    fn pending_response<'a>(
        &self,
        tokens: &[ValidatedToken],
        plans: &[PlannedWrite],
        build_response: BuildResponse<'a, '_>,
    ) -> Result<PendingResponse<'a>, Error> {
        if self.caller.lease.is_none() {
            return Ok(PendingResponse::default());
        }
        let plans = plans.iter().map(PlannedWrite::without_write).collect();
        let mut written = build_results(tokens, plans);
        for written in &mut written {
            written.view.mask_revealed();
        }
        let expiries = written
            .iter()
            .filter_map(|written| written.view.token.attributes.expiry);
        let first_expiry = expiries.map(|expiry| expiry.at).min();
        let replayed = written.iter().map(|one| replay_entry(self.caller, one));
        let reads = encode_reads(&replayed.collect::<Vec<_>>());
        let response = build_response(&written)?;
        Ok(response.until(first_expiry).with_reads(reads))
    }

    /// Returns an error if an intent was converted, deleted or expired in the meantime, which rejects the write.
    async fn check_intents(&self, tokens: &[ValidatedToken]) -> Result<(), Error> {
        for new in tokens {
            if let Some(intent) = new.intent_id()
                && !intents::exists(self.vault, self.caller, &intent).await?
            {
                return Err(intent_not_found().within(&new.path));
            }
        }
        Ok(())
    }

    /// Checks whether the id caused the conflict; deletes an expired token that still occupies it.
    async fn check_id(&self, new: &ValidatedToken, plan: &PlannedWrite) -> Result<(), Error> {
        let Some(token) = plan.token() else {
            return Ok(());
        };
        let (db, tenant, key) = (&self.vault.db, self.caller.tenant, token.id.key());
        if store::is_expired(db, tenant, key).await? {
            delete_one_expired(self.vault, tenant, key).await?;
            return Ok(());
        }
        if token.modified_by.is_some() || new.id.is_random() {
            return Ok(());
        }
        // Deduplication precedes the id check: the token that took the id may be the duplicate.
        let is_taken = store::key_is_taken(db, tenant, key).await?;
        if is_taken && self.find_duplicate(plan.claim()).await?.is_none() {
            return Err(Error::IdTaken);
        }
        Ok(())
    }
}
