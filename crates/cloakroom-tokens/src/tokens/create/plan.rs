//! Plans what a create writes: deduplicate, encrypt, and render what the caller sees.

use cloakroom_core::access::{DeduplicationBehavior, Permission, Resource, Transform};
use cloakroom_core::audit::{EntityKind, Entry, Operation};
use cloakroom_core::caller::Caller;
use cloakroom_core::events::{Event, EventKind};
use cloakroom_core::keys::{self, TenantKeys};
use jiff::Timestamp;
use serde_json::{Value, json};
use uuid::Uuid;

use super::merge::merge_content;
use super::planned_write::{Claim, PlannedWrite};
use super::validate::ValidatedToken;
use crate::attributes::{Digests, NewId, TokenId};
use crate::containers;
use crate::security_codes::{self, Retention};
use crate::tokens::content::Content;
use crate::tokens::disclosure::{Rights, sees_data};
use crate::tokens::find::record_reads;
use crate::tokens::store::{self, CodeChange, SealedToken, TokenRow, Write};
use crate::tokens::token::entry;
use crate::tokens::update::{TokenUpdate, expiry_in_past};
use crate::tokens::view::{OpenedToken, Plaintext, VisibleData, open, view_duplicate};
use crate::tokens::{Error, Token, TokenVault, TokenView, WrittenToken};
use crate::types::{SecurityCode, TokenKind, truncate_to_zeros};

/// The version of a new row; each update increments it.
const FIRST_VERSION: u32 = 1;

/// Attempts with a random alias before falling back to a UUID.
const ALIAS_ATTEMPTS: usize = 10;

/// What a new token is found by.
struct TokenIdentity {
    id: TokenId,
    digests: Digests,
    claim: Option<Claim>,
}

/// Plans the writes of a create, with the caller's rights and the tenant's keys.
pub(in crate::tokens) struct Planner<'a> {
    pub vault: &'a TokenVault,
    pub caller: &'a Caller,
    pub keys: &'a TenantKeys,
    /// Whether the velocity limit admits the numbers. Without a fingerprint they are neither compared nor deduplicated.
    pub comparable: bool,
    /// When tokens are created or updated.
    pub at: Timestamp,
}

impl Planner<'_> {
    /// Plans the write for one token. Everything that can fail happens here, because the response after the write must
    /// be a success.
    pub(in crate::tokens) async fn plan(
        &self,
        new: &ValidatedToken,
        transform: Transform,
        attempt: usize,
        earlier: &mut [PlannedWrite],
    ) -> Result<PlannedWrite, Error> {
        let content = &new.content;
        let wants_fingerprint = new.deduplicate
            || self.caller.settings.fingerprint_tokens
            || content.attributes.has_own_fingerprint();
        let has_fingerprint = self.comparable && wants_fingerprint;
        let digests = self.digests(content, has_fingerprint).await?;
        let claim = match new.deduplicate {
            true => Claim::of(&digests, &content.container),
            false => None,
        };
        if claim.is_some()
            && let Some(index) = earlier
                .iter()
                .position(|plan| plan.claim() == claim.as_ref())
            && earlier[index].add_intent(new.intent_id(), self.caller)
        {
            return Ok(PlannedWrite::Duplicate { index });
        }
        if let Some(opened) = self.find_duplicate(claim.as_ref()).await? {
            return self.plan_duplicate(new, opened, claim).await;
        }
        let identity = TokenIdentity {
            id: self.resolve_id(new, attempt)?,
            digests,
            claim,
        };
        let plan = self.plan_insert(new, transform, identity).await?;
        let has_same_id = |other: &PlannedWrite| {
            let tokens = (other.token(), plan.token());
            matches!(tokens, (Some(one), Some(other)) if one.id == other.id)
        };
        if !new.id.is_random() && earlier.iter().any(has_same_id) {
            return Err(Error::IdTaken);
        }
        Ok(plan)
    }

    /// Finds the existing token that a new one duplicates.
    pub(in crate::tokens) async fn find_duplicate(
        &self,
        claim: Option<&Claim>,
    ) -> Result<Option<OpenedToken>, Error> {
        let Some(claim) = claim else {
            return Ok(None);
        };
        let (db, tenant) = (&self.vault.db, self.caller.tenant);
        let prints = (&claim.fingerprint, &claim.other_fingerprints[..]);
        let (container, no_token) = (&claim.container, Uuid::nil());
        match store::find_duplicate(db, tenant, prints, container, &no_token).await? {
            Some(row) => open_duplicate(self.vault, self.caller, row, claim).await,
            None => Ok(None),
        }
    }

    /// Plans to return the existing token. The new one is merged into it if the tenant's settings say so and the
    /// caller may update it.
    async fn plan_duplicate(
        &self,
        new: &ValidatedToken,
        opened: OpenedToken,
        claim: Option<Claim>,
    ) -> Result<PlannedWrite, Error> {
        // The data of an intent is always merged: the intent is deleted, so the data would be lost.
        let behavior = match new.intent {
            Some(_) => DeduplicationBehavior::UpdateExisting,
            None => self.caller.settings.token_deduplication_behavior,
        };
        let rights = match behavior {
            DeduplicationBehavior::ReadExisting => None,
            DeduplicationBehavior::UpdateExisting => {
                Rights::to_update(self.caller, &opened.token).ok()
            }
        };
        let Some(rights) = rights else {
            return self.read_existing(new, opened, claim).await;
        };
        self.require_future(new).await?;
        let content = merge_content(&opened, &new.content, self.caller, &rights)?;
        let digests = self.digests(&content, true).await?;
        let id = opened.token.id.text();
        let subject = Resource {
            container: &content.container,
            id: Some(&id),
        };
        let read = self.caller.require_on(Permission::TokenRead, subject);
        let shown = match read {
            Ok(transform) => Some(self.show(&content, &new.code, transform)?),
            Err(_) => None,
        };
        // The existing token may lack a claim, and another token may hold it. Another version of the fingerprint is the same
        // value.
        let before = opened.token.fingerprint;
        let mut others = digests.other_fingerprints.iter();
        let claims =
            digests.fingerprint != before && !others.any(|other| before == Some(other.fingerprint));
        let update = TokenUpdate {
            opened: &opened,
            content,
            digests,
            code: &new.code,
            claims,
            shown: shown.as_ref(),
            intent: new.intent_id(),
            at: opened.next_write(self.at),
        };
        let (write, token) = update
            .into_write(self.vault, self.caller, self.keys)
            .await?;
        Ok(PlannedWrite::Write {
            write: Some(Box::new(write)),
            token: Box::new(token),
            shown: shown.map(Box::new),
            deduplication: Some(behavior),
            claim,
        })
    }

    /// Rejects an expiry in the past. The statement checks only the expiry after the merge.
    async fn require_future(&self, new: &ValidatedToken) -> Result<(), Error> {
        match new.content.attributes.expiry {
            Some(expiry) if expiry.at <= self.vault.clock.now().await? => Err(expiry_in_past()),
            _ => Ok(()),
        }
    }

    /// Plans to return the existing token unchanged. The intent is still consumed.
    async fn read_existing(
        &self,
        new: &ValidatedToken,
        opened: OpenedToken,
        claim: Option<Claim>,
    ) -> Result<PlannedWrite, Error> {
        let view = Box::new(view_duplicate(self.vault, self.caller, opened).await?);
        let read = std::slice::from_ref(&*view);
        record_reads(self.vault, self.caller, Operation::Read, read).await?;
        let consume = |intent| {
            let token = &view.token;
            let mut entry = conversion_entry(self.caller, intent, &token.id, token.kind);
            entry.set_time(self.at);
            Write::Consume(intent, entry)
        };
        let write = new.intent_id().map(consume).map(Box::new);
        Ok(PlannedWrite::ReadExisting { view, write, claim })
    }

    /// Plans an insert.
    async fn plan_insert(
        &self,
        new: &ValidatedToken,
        transform: Transform,
        identity: TokenIdentity,
    ) -> Result<PlannedWrite, Error> {
        let TokenIdentity { id, digests, claim } = identity;
        let (content, caller) = (&new.content, self.caller);
        let shown = match sees_data(caller, new) {
            true => self.show(content, &new.code, transform)?,
            false => self.show_with_default_mask(content, transform)?,
        };
        let fingerprint = digests.fingerprint;
        let code = code_change(self.vault, caller, &id, &new.code, self.at).await?;
        let security_code_until = code.until(None);
        let token = Token {
            id: id.clone(),
            kind: content.kind,
            container: content.container.clone(),
            attributes: content.attributes.clone(),
            row_version: FIRST_VERSION,
            fingerprint,
            has_security_code: matches!(new.code, SecurityCode::Given(_)),
            security_code_until,
            created_by: caller.application,
            created_at: self.at,
            modified_by: None,
            modified_at: None,
        };
        let created = entry(caller, Operation::Create, &id, content.kind, Some(&shown))
            .with_event(token.event(EventKind::TokenCreated));
        let conversion = new.intent_id();
        let conversion =
            conversion.map(|intent| conversion_entry(caller, intent, &id, content.kind));
        let sealed = SealedToken {
            container_number: self.container_number(content).await?,
            sealed: content.seal(self.keys, &token, &digests.terms)?,
            id,
            has_chosen_id: !matches!(new.id, NewId::Random),
            kind: content.kind,
            container: content.container.clone(),
            attributes: content.attributes.clone(),
            fingerprint,
            other_fingerprints: digests.other_fingerprints,
            terms: digests.terms,
            digest_epoch: self.keys.digest_epoch(),
            by: caller.application,
            at: self.at,
            code,
            security_code_until,
            claims: claim.is_some(),
            entries: entries(created, conversion, self.at),
            intents: new.intent_id().into_iter().collect(),
        };
        Ok(PlannedWrite::Write {
            write: Some(Box::new(Write::Insert(sealed))),
            token: Box::new(token),
            shown: Some(Box::new(shown)),
            deduplication: None,
            claim,
        })
    }

    async fn digests(&self, content: &Content, has_fingerprint: bool) -> Result<Digests, Error> {
        let (vault, tenant) = (self.vault, self.caller.tenant);
        content
            .digests(vault, tenant, self.keys, has_fingerprint)
            .await
    }

    async fn container_number(&self, content: &Content) -> Result<i32, Error> {
        let (vault, tenant) = (self.vault, self.caller.tenant);
        Ok(containers::number_of(&vault.container_numbers, tenant, &content.container).await?)
    }

    /// Applies the default mask of the type, ignoring the token's own mask.
    fn show_with_default_mask(
        &self,
        content: &Content,
        transform: Transform,
    ) -> Result<VisibleData, Error> {
        let visible = Plaintext {
            kind: content.kind,
            mask: None,
            data: &content.data,
            code: None,
        };
        Ok(visible.show(self.vault, self.caller, transform)?)
    }

    fn show(
        &self,
        content: &Content,
        code: &SecurityCode,
        transform: Transform,
    ) -> Result<VisibleData, Error> {
        let visible = Plaintext {
            kind: content.kind,
            mask: content.attributes.mask.as_deref(),
            data: &content.data,
            code: match code {
                SecurityCode::Given(code) => Some(code),
                SecurityCode::Absent | SecurityCode::Removed => None,
            },
        };
        Ok(visible.show(self.vault, self.caller, transform)?)
    }

    /// Resolves the id. A random alias can violate the id rules by chance, so it is retried.
    fn resolve_id(&self, new: &ValidatedToken, attempt: usize) -> Result<TokenId, Error> {
        if attempt >= ALIAS_ATTEMPTS && new.id.is_random() {
            return Ok(TokenId::random());
        }
        let data = match new.id.is_expression() {
            true => new.content.data_value()?,
            false => Value::Null,
        };
        // Ids appear in plaintext in URLs and logs.
        let data = truncate_to_zeros(new.content.kind, &data);
        let mut resolved = new.id.resolve(self.caller.tenant, &data);
        for _ in 1..ALIAS_ATTEMPTS {
            if resolved.is_ok() || !new.id.is_random() {
                break;
            }
            resolved = new.id.resolve(self.caller.tenant, &data);
        }
        resolved.map_err(Error::Invalid)
    }
}

/// Opens the token that deduplication found; `None` if it was deleted or changed after it was found.
pub(in crate::tokens) async fn open_duplicate(
    vault: &TokenVault,
    caller: &Caller,
    row: TokenRow,
    claim: &Claim,
) -> Result<Option<OpenedToken>, Error> {
    let row_version = row.row_version;
    let opened = match open(vault, caller, row).await {
        Err(Error::NotFound) => return Ok(None),
        opened => opened?,
    };
    match (opened.has(claim), opened.token.row_version == row_version) {
        (true, _) => Ok(Some(opened)),
        (false, true) => Err(keys::Error::Integrity.into()),
        (false, false) => Ok(None),
    }
}

/// The audit log entry that is appended when a stored response with this token is replayed.
pub(in crate::tokens) fn replay_entry(caller: &Caller, written: &WrittenToken) -> Entry {
    let TokenView { token, shown } = &written.view;
    entry(
        caller,
        Operation::Read,
        &token.id,
        token.kind,
        shown.as_ref(),
    )
}

/// Encrypts a security code for its own table. It expires after its retention from `at`.
pub(in crate::tokens) async fn code_change(
    vault: &TokenVault,
    caller: &Caller,
    id: &TokenId,
    code: &SecurityCode,
    at: Timestamp,
) -> Result<CodeChange, Error> {
    Ok(match code {
        SecurityCode::Absent => CodeChange::Keep,
        SecurityCode::Removed => CodeChange::Remove,
        SecurityCode::Given(code) => {
            let retention = Retention {
                from: at,
                duration: caller.quotas.cvc_retention,
            };
            let (codes, code) = (&vault.security_codes, code.expose());
            let sealed = security_codes::seal(codes, caller.tenant, id.key(), code, retention);
            CodeChange::Set(sealed.await?)
        }
    })
}

/// The audit log entry of an intent's conversion into a token of the same type, with its event.
pub(in crate::tokens) fn conversion_entry(
    caller: &Caller,
    intent: Uuid,
    token: &TokenId,
    kind: TokenKind,
) -> Entry {
    let kind = kind.name();
    let data = json!({
        "token_intent": {"id": intent, "type": kind},
        "token": {"id": token.text(), "type": kind},
    });
    let event = Event::new(EventKind::TokenIntentConverted, intent, data);
    Entry::new(caller, Operation::Convert, EntityKind::TokenIntent, intent).with_event(event)
}

/// The entries of a write at this time.
pub(in crate::tokens) fn entries(
    entry: Entry,
    conversion: Option<Entry>,
    at: Timestamp,
) -> Vec<Entry> {
    let mut entries: Vec<Entry> = std::iter::once(entry).chain(conversion).collect();
    entries.iter_mut().for_each(|entry| entry.set_time(at));
    entries
}
