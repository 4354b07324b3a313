//! Updates a token: merge, validate, encrypt again.

pub(super) mod patch;
mod redigest;
mod reseal;

use cloakroom_core::access::{DeduplicationBehavior, Transform};
use cloakroom_core::audit::{Operation, encode_reads};
use cloakroom_core::caller::Caller;
use cloakroom_core::events::EventKind;
use cloakroom_core::idempotency::{PendingResponse, ResponseTemplate};
use cloakroom_core::keys::TenantKeys;
use cloakroom_core::velocity;
use cloakroom_platform::api::FieldError;
use jiff::Timestamp;
use uuid::Uuid;

use self::patch::{PatchedContent, patch_content};
pub use self::redigest::{count_former, redigest, remove_unnamed_rows};
pub use self::reseal::reseal;
use super::commit::commit;
use super::content::Content;
use super::create::plan::{code_change, conversion_entry, entries, open_duplicate, replay_entry};
use super::create::planned_write::Claim;
use super::disclosure::Rights;
use super::find::record_reads;
use super::request::{Change, TokenPatch};
use super::store::{self, PreviousState, SealedToken, Write, WriteResult};
use super::token::entry;
use super::view::{OpenedToken, Plaintext, VisibleData, find_code, open_by_id, view_duplicate};
use super::{Error, Token, TokenView, WrittenToken, count_rejected_numbers};
use crate::attributes::{self as attributes, Digests, TokenId, may_compare, numbers_of};
use crate::containers;
use crate::tokens::TokenVault;
use crate::types::{SecurityCode, is_security_code_alone};

/// Attempts when other nodes change the token concurrently.
const ATTEMPTS: usize = 20;

impl TokenPatch {
    /// Rejects an expiry in the past. The statement checks it too, but does not run if a duplicate is returned.
    async fn require_future(&self, vault: &TokenVault, content: &Content) -> Result<(), Error> {
        match content.attributes.expiry {
            Some(expiry)
                if matches!(self.expires_at, Change::Set(_))
                    && expiry.at <= vault.clock.now().await? =>
            {
                Err(expiry_in_past())
            }
            _ => Ok(()),
        }
    }

    fn deduplicates(&self, caller: &Caller, content: &Content) -> bool {
        let has_own = content.attributes.has_own_fingerprint();
        let wanted = self.deduplicate_token;
        wanted.unwrap_or(caller.settings.deduplicate_tokens)
            && may_compare(caller, content.kind, has_own)
    }

    /// Counts the token's numbers toward the velocity limit if the fingerprint may change; returns whether the token may
    /// have one.
    ///
    /// Numbers that the patch writes count, equal to the stored one or not: the difference would tell whether a guess is
    /// right. Numbers of a token without a fingerprint count too, which it may lack because of the limit. Others do not: a
    /// number that the caller cannot see would count as one that it sent.
    async fn admits(
        &self,
        vault: &TokenVault,
        caller: &Caller,
        opened: &OpenedToken,
        content: &Content,
    ) -> Result<bool, Error> {
        let has_fingerprint = opened.token.fingerprint.is_some();
        if has_fingerprint && !self.may_change_fingerprint(&content.attributes) {
            return Ok(true);
        }
        let mut numbers = content.card_numbers()?;
        let writes_numbers = match &self.data {
            Change::Set(patch) => !is_security_code_alone(content.kind, patch),
            _ => false,
        };
        if has_fingerprint && !writes_numbers {
            let before = numbers_of(opened.token.kind, &opened.data_value()?, None);
            numbers.retain(|number| !before.contains(number));
        }
        let velocity = &vault.velocity;
        let changes_expression = !matches!(self.fingerprint_expression, Change::Keep);
        if changes_expression && matches!(self.data, Change::Keep) {
            // Without the comparison, nothing is left of the request.
            velocity::admit(velocity, caller, &numbers).await?;
            return Ok(true);
        }
        Ok(velocity::admits(velocity, caller, &numbers).await?)
    }
}

/// Whether a token has a fingerprint even if it is not deduplicated, unless the velocity limit is exceeded.
fn wants_fingerprint(caller: &Caller, opened: &OpenedToken, content: &Content) -> bool {
    caller.settings.fingerprint_tokens
        || content.attributes.has_own_fingerprint()
        || opened.token.fingerprint.is_some()
}

/// Updates a token if the caller has `token:update` in its container and in the one that it moves to.
///
/// Returns once the change is durable, with the data transformed by the caller's rule for `token:update`.
pub async fn update(
    vault: &TokenVault,
    caller: &Caller,
    id: &str,
    patch: &TokenPatch,
    template: &ResponseTemplate<'_, WrittenToken>,
) -> Result<WrittenToken, Error> {
    let id = TokenId::of(caller.tenant, id);
    let updated = apply(vault, caller, &id, patch, template).await;
    // An invalid patch is reported in preference to a missing or inaccessible token.
    if matches!(updated, Err(Error::NotFound | Error::PermissionDenied(_))) {
        patch.check(&caller.settings).map_err(Error::Invalid)?;
    }
    count_rejected_numbers(vault, caller, updated).await
}

async fn apply(
    vault: &TokenVault,
    caller: &Caller,
    id: &TokenId,
    patch: &TokenPatch,
    template: &ResponseTemplate<'_, WrittenToken>,
) -> Result<WrittenToken, Error> {
    let _lock = vault.locks.lock(caller.tenant, id.key()).await;
    let mut rejected_version = None;
    for _ in 0..ATTEMPTS {
        // Of this attempt: the keys may have been replaced since the previous one.
        let keys = caller.current_keys(&vault.keys).await?;
        let opened = open_by_id(vault, caller, id).await?;
        // The version is unchanged since the rejection, so the expiry caused it.
        if rejected_version == Some(opened.token.row_version) {
            return Err(expiry_in_past());
        }
        let rights = Rights::to_update(caller, &opened.token)?;
        rights.to_patch(vault, caller, &opened, &patch.data)?;
        let patched = patch_content(&opened, patch, caller).map_err(Error::Invalid)?;
        let PatchedContent { content, code } = patched;
        let transform = rights.to_change(vault, caller, &opened.token, &content)?;

        let deduplicate = patch.deduplicates(caller, &content);
        let has_fingerprint = (deduplicate || wants_fingerprint(caller, &opened, &content))
            && patch.admits(vault, caller, &opened, &content).await?;
        patch.require_future(vault, &content).await?;
        let digests = content
            .digests(vault, caller.tenant, &keys, has_fingerprint)
            .await?;
        let claim = match deduplicate {
            true => Claim::of(&digests, &content.container),
            false => None,
        };
        if let Some(claim) = &claim
            && let Some(duplicate) = find_duplicate(vault, caller, id, claim).await?
        {
            let response = pending_response(caller, &duplicate, template)?;
            commit(vault, caller.tenant, Vec::new(), response).await?;
            return Ok(duplicate);
        }

        let changed = ChangedData {
            content: &content,
            code: &code,
            mask: rights.mask(&opened.token, &content),
        };
        let shown = show(vault, caller, &opened.token, changed, transform).await?;
        let update = TokenUpdate {
            opened: &opened,
            content,
            digests,
            code: &code,
            claims: claim.is_some(),
            shown: Some(&shown),
            intent: None,
            at: opened.next_write(vault.clock.now().await?),
        };
        let (write, token) = update.into_write(vault, caller, &keys).await?;
        let written = WrittenToken {
            view: TokenView {
                token,
                shown: Some(shown),
            },
            deduplication: None,
            was_encrypted: false,
        };
        let response = pending_response(caller, &written, template)?;
        match commit(vault, caller.tenant, vec![write], response).await? {
            WriteResult::Rejected(_) => rejected_version = Some(opened.token.row_version),
            WriteResult::Conflict => {}
            WriteResult::Written => return Ok(written),
        }
    }
    Err(Error::Contended)
}

/// The changed data, and the mask for the response.
struct ChangedData<'a> {
    content: &'a Content,
    code: &'a SecurityCode,
    mask: Option<&'a str>,
}

/// Transforms the changed data for the response, with the stored or the new security code.
async fn show(
    vault: &TokenVault,
    caller: &Caller,
    token: &Token,
    changed: ChangedData<'_>,
    transform: Transform,
) -> Result<VisibleData, Error> {
    let ChangedData {
        content,
        code,
        mask,
    } = changed;
    let stored_code = match code {
        SecurityCode::Absent => find_code(vault, caller, token, transform).await?,
        SecurityCode::Given(_) | SecurityCode::Removed => None,
    };
    let visible = Plaintext {
        kind: content.kind,
        mask,
        data: &content.data,
        code: match code {
            SecurityCode::Given(code) => Some(code),
            SecurityCode::Absent | SecurityCode::Removed => stored_code.as_ref(),
        },
    };
    Ok(visible.show(vault, caller, transform)?)
}

/// Builds the response before the write if it is stored for an idempotency key.
fn pending_response<'a>(
    caller: &Caller,
    written: &WrittenToken,
    template: &ResponseTemplate<'a, WrittenToken>,
) -> Result<PendingResponse<'a>, Error> {
    if !template.needs_storing() {
        return Ok(PendingResponse::default());
    }
    let mut written = written.clone();
    written.view.mask_revealed();
    let expiry = written.view.token.attributes.expiry.map(|expiry| expiry.at);
    let reads = encode_reads(&[replay_entry(caller, &written)]);
    let response = template.render_pending(&written)?;
    Ok(response.until(expiry).with_reads(reads))
}

pub(super) fn expiry_in_past() -> Error {
    Error::Invalid(vec![FieldError::new("expires_at", attributes::EXPIRY_RULE)])
}

/// Finds another token with this fingerprint in this container.
async fn find_duplicate(
    vault: &TokenVault,
    caller: &Caller,
    own: &TokenId,
    claim: &Claim,
) -> Result<Option<WrittenToken>, Error> {
    let (db, tenant, container) = (&vault.db, caller.tenant, &claim.container);
    let prints = (&claim.fingerprint, &claim.other_fingerprints[..]);
    let duplicate = store::find_duplicate(db, tenant, prints, container, own.key()).await?;
    let Some(row) = duplicate else {
        return Ok(None);
    };
    let Some(other) = open_duplicate(vault, caller, row, claim).await? else {
        return Ok(None);
    };
    let view = view_duplicate(vault, caller, other).await?;
    record_reads(vault, caller, Operation::Read, std::slice::from_ref(&view)).await?;
    Ok(Some(WrittenToken {
        view,
        deduplication: Some(DeduplicationBehavior::ReadExisting),
        was_encrypted: false,
    }))
}

/// An update of a token.
pub(super) struct TokenUpdate<'a> {
    pub opened: &'a OpenedToken,
    pub content: Content,
    pub digests: Digests,
    pub code: &'a SecurityCode,
    pub claims: bool,
    /// The data in the response.
    pub shown: Option<&'a VisibleData>,
    /// The intent that supplies the data.
    pub intent: Option<Uuid>,
    /// When the token is updated.
    pub at: Timestamp,
}

impl TokenUpdate<'_> {
    /// Builds the write and the updated token.
    pub(super) async fn into_write(
        self,
        vault: &TokenVault,
        caller: &Caller,
        keys: &TenantKeys,
    ) -> Result<(Write, Token), Error> {
        let OpenedToken {
            token: old,
            container_number,
            terms,
            ..
        } = self.opened;
        let (content, row_version) = (self.content, old.row_version + 1);
        let code = code_change(vault, caller, &old.id, self.code, self.at).await?;
        let security_code_until = code.until(old.security_code_until);
        let updated = Token {
            id: old.id.clone(),
            kind: content.kind,
            container: content.container.clone(),
            attributes: content.attributes.clone(),
            row_version,
            fingerprint: self.digests.fingerprint,
            has_security_code: old.has_security_code,
            security_code_until,
            created_by: old.created_by,
            created_at: old.created_at,
            modified_by: Some(caller.application),
            modified_at: Some(self.at),
        };
        let entry = entry(caller, Operation::Update, &old.id, content.kind, self.shown)
            .with_event(updated.event(EventKind::TokenUpdated));
        let conversion = self
            .intent
            .map(|intent| conversion_entry(caller, intent, &old.id, content.kind));
        let token = SealedToken {
            container_number: containers::number_of(
                &vault.container_numbers,
                caller.tenant,
                &content.container,
            )
            .await?,
            sealed: content.seal(keys, &updated, &self.digests.terms)?,
            id: old.id.clone(),
            has_chosen_id: true,
            kind: content.kind,
            container: content.container.clone(),
            attributes: content.attributes.clone(),
            fingerprint: self.digests.fingerprint,
            other_fingerprints: self.digests.other_fingerprints,
            terms: self.digests.terms,
            digest_epoch: keys.digest_epoch(),
            by: caller.application,
            at: self.at,
            code,
            security_code_until,
            claims: self.claims,
            entries: entries(entry, conversion, self.at),
            intents: self.intent.into_iter().collect(),
        };
        let before = PreviousState {
            row_version: old.row_version,
            container: old.container.clone(),
            container_number: *container_number,
            fingerprint: old.fingerprint,
            terms: terms.clone(),
        };
        Ok((Write::Update(before, token), updated))
    }
}
