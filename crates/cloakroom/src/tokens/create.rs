//! Creating tokens: check, authorize, find equals, seal, keep.

use jiff::Timestamp;
use serde_json::Value;
use uuid::Uuid;

use super::content::Content;
use super::draft::{
    Claim, Draft, Planned, draft, finish, no_intent, refuse_intents_twice, take_writes,
};
use super::find::record_reads;
use super::token::entry;
use super::update::{Rewriting, merged, past_expiry};
use super::view::{Opened, Shown, Visible, open, view_met};
use super::{Error, NewToken, Placed, Token, TokenView, noticed};
use crate::access::{DeduplicationBehavior, Permission, Subject, Transform};
use crate::audit::{EntityKind, Entry, Operation};
use crate::caller::Caller;
use crate::idempotency::{Kept, Reply};
use crate::keys::TenantKeys;
use crate::token_attributes::Digests;
use crate::token_attributes::{NewId, TokenId};
use crate::token_rows::{self, CodeChange, Outcome, Told, Values, Write};
use crate::token_types::SecurityCode;
use crate::vault::Vault;
use crate::{containers, security_codes, storage, token_intents, velocity};

/// A fresh row's version; updates count on from here.
const FIRST_VERSION: u32 = 1;

/// How many times to start over when others take the same id or claim at the same moment.
const ATTEMPTS: usize = 12;
/// How many names with chance in them are tried before a UUID is taken.
const ALIAS_ATTEMPTS: usize = 10;

/// Seals the data and keeps it in the caller's tenant, unless deduplication finds it there.
///
/// Returns once the token is durable, with the data as the caller's grant for creating shows it.
pub async fn create(
    vault: &Vault,
    caller: &Caller,
    new: NewToken<'_>,
    reply: &Reply<'_, Placed>,
) -> Result<Placed, Error> {
    let draft = draft(vault, caller, new, String::new()).await;
    let draft = noticed(vault, caller, draft).await?;
    let keep = |placed: &[Placed]| reply.keep(&placed[0]);
    let mut placed = create_all(vault, caller, &[draft], &keep).await?;
    placed.pop().ok_or(Error::Contended)
}

/// Makes the answer that is kept with the tokens which it shows.
pub(crate) type Keep<'a, 'k> =
    &'k (dyn Fn(&[Placed]) -> Result<Kept<'a>, storage::Error> + Send + Sync);

/// Creates several tokens, all of them or none.
pub(crate) async fn create_all(
    vault: &Vault,
    caller: &Caller,
    drafts: &[Draft],
    keep: Keep<'_, '_>,
) -> Result<Vec<Placed>, Error> {
    let mut transforms = Vec::with_capacity(drafts.len());
    for draft in drafts {
        transforms.push(caller.require(Permission::TokenCreate, &draft.content.container)?);
    }
    refuse_intents_twice(drafts)?;
    let mut numbers = Vec::new();
    for draft in drafts {
        numbers.extend(draft.content.card_numbers()?);
    }
    velocity::admit(vault, caller, &numbers).await?;
    let creating = Creating {
        vault,
        caller,
        keys: &*vault.keys.of(caller.tenant).await?,
    };
    let (mut refused_token, mut _turn) = (None, None);
    for attempt in 0..ATTEMPTS {
        let mut planned: Vec<Planned> = Vec::with_capacity(drafts.len());
        for (draft, transform) in drafts.iter().zip(&transforms) {
            let plan = creating.plan(draft, *transform, attempt, &mut planned);
            let plan = plan.await;
            planned.push(plan.map_err(|error| error.within(&draft.place))?);
        }
        let (positions, writes) = take_writes(&mut planned);
        let told = creating.tell(drafts, &planned, writes.len(), keep).await?;
        match token_rows::write(vault, caller.tenant, writes, told).await? {
            Outcome::Written(times) => return Ok(finish(drafts, planned, times)),
            Outcome::Outrun => {
                for (draft, plan) in drafts.iter().zip(&planned) {
                    creating.examine_id(draft, plan).await?;
                }
            }
            Outcome::Refused(position) => {
                let position = positions[position];
                let Some(token) = planned[position].token() else {
                    continue;
                };
                creating.examine_intents(drafts).await?;
                // A new token has only its expiry to be refused for, and so has one that nobody
                // changed since it was refused before.
                let refused = (*token.id.key(), token.row_version);
                if token.modified_by.is_none() || refused_token == Some(refused) {
                    return Err(past_expiry().within(&drafts[position].place));
                }
                refused_token = Some(refused);
                // One turn at a time: nobody waits for others while others wait for them.
                _turn = None;
                _turn = Some(vault.turns.take(caller.tenant, &refused.0).await);
            }
        }
    }
    Err(Error::Contended)
}

/// Who creates, and with which keys.
struct Creating<'a> {
    vault: &'a Vault,
    caller: &'a Caller,
    keys: &'a TenantKeys,
}

impl Creating<'_> {
    /// The answer, where it has to be known before anything is written.
    async fn tell<'a>(
        &self,
        drafts: &[Draft],
        planned: &[Planned],
        writes: usize,
        keep: Keep<'a, '_>,
    ) -> Result<Told<'a>, Error> {
        if self.caller.lease.is_none() {
            return Ok(Told::default());
        }
        let at = self.vault.audit.now().await?;
        let planned = planned.iter().map(Planned::told).collect();
        let mut placed = finish(drafts, planned, vec![at; writes]);
        for placed in &mut placed {
            placed.view.forget_code();
        }
        let ends = placed.iter().filter_map(|placed| placed.view.token.expiry);
        let end = ends.map(|expiry| expiry.at).min();
        Ok(Told {
            at: Some(at),
            kept: keep(&placed)?.until(end),
            reads: placed
                .iter()
                .map(|one| read_again(self.caller, one))
                .collect(),
        })
    }

    async fn plan(
        &self,
        draft: &Draft,
        transform: Transform,
        attempt: usize,
        earlier: &mut [Planned],
    ) -> Result<Planned, Error> {
        let content = &draft.content;
        let wants_fingerprint = draft.deduplicate || self.caller.settings.fingerprint_tokens;
        let digests = content.digests(self.keys, wants_fingerprint)?;
        let claim: Claim = digests
            .fingerprint
            .filter(|_| draft.deduplicate)
            .map(|fingerprint| (fingerprint, content.container.clone()));
        if claim.is_some()
            && let Some(index) = earlier.iter().position(|plan| *plan.claim() == claim)
            && earlier[index].takes(draft.intent, self.caller)
        {
            return Ok(Planned::Same { index });
        }
        if let Some(opened) = self.find_equal(&claim).await? {
            return self.meet(draft, opened, claim).await;
        }
        let added = self
            .add(draft, transform, attempt, (digests, claim))
            .await?;
        let wants_same_id = |plan: &Planned| {
            let tokens = (plan.token(), added.token());
            matches!(tokens, (Some(one), Some(other)) if one.id == other.id)
        };
        if !draft.id.is_chance() && earlier.iter().any(wants_same_id) {
            return Err(Error::IdTaken);
        }
        Ok(added)
    }

    async fn find_equal(&self, claim: &Claim) -> Result<Option<Opened>, Error> {
        let Some((fingerprint, container)) = claim else {
            return Ok(None);
        };
        let (db, tenant) = (&self.vault.db, self.caller.tenant);
        let nobody = uuid::Uuid::nil();
        match token_rows::find_equal(db, tenant, fingerprint, container, &nobody).await? {
            Some(row) => Ok(Some(open(self.vault, self.caller, row).await?)),
            None => Ok(None),
        }
    }

    /// Returns the token that is there, after merging the new one into it if the tenant wants that.
    async fn meet(&self, draft: &Draft, opened: Opened, claim: Claim) -> Result<Planned, Error> {
        // What an intent brings is always merged: it would be lost otherwise.
        let behavior = match draft.intent {
            Some(_) => DeduplicationBehavior::UpdateExisting,
            None => self.caller.settings.token_deduplication_behavior,
        };
        if behavior == DeduplicationBehavior::ReadExisting {
            let view = Box::new(view_met(self.vault, self.caller, opened).await?);
            let read = std::slice::from_ref(&*view);
            record_reads(self.vault, self.caller, Operation::Read, read).await?;
            return Ok(Planned::Met { view, claim });
        }
        let content = merged(&opened, &draft.content, self.caller)?;
        let digests = content.digests(self.keys, true)?;
        let id = opened.token.id.text();
        let subject = Subject {
            container: &content.container,
            id: Some(&id),
        };
        let read = self.caller.require_on(Permission::TokenRead, subject);
        let shown = match read {
            Ok(transform) => Some(self.show(&content, &draft.code, transform)?),
            Err(_) => None,
        };
        // It is met with or without a claim of its own, and another may hold the claim.
        let claims = digests.fingerprint != opened.token.fingerprint;
        let rewriting = Rewriting {
            opened: &opened,
            content,
            digests,
            code: &draft.code,
            claims,
            shown: shown.as_ref(),
            intent: draft.intent,
        };
        let (write, token) = rewriting.write(self.vault, self.caller, self.keys).await?;
        Ok(Planned::Written {
            write: Some(Box::new(write)),
            token: Box::new(token),
            shown: shown.map(Box::new),
            deduplication: Some(behavior),
            claim,
        })
    }

    /// Everything that can fail comes before the write: after it, the answer must be a success.
    async fn add(
        &self,
        draft: &Draft,
        transform: Transform,
        attempt: usize,
        found_by: (Digests, Claim),
    ) -> Result<Planned, Error> {
        let (digests, claim) = found_by;
        let content = &draft.content;
        let id = self.settle_id(draft, attempt)?;
        let shown = self.show(content, &draft.code, transform)?;
        let values = Values {
            container_number: self.container_number(content).await?,
            sealed: content.seal(
                self.keys,
                (&id, FIRST_VERSION),
                digests.fingerprint.as_ref(),
            )?,
            id: id.clone(),
            is_named: !matches!(draft.id, NewId::Random),
            container: content.container.clone(),
            kind: content.kind,
            expiry: content.expiry,
            mask: content.mask.clone(),
            metadata: content.metadata.clone(),
            fingerprint: digests.fingerprint,
            fingerprint_expression: content.fingerprint_expression.clone(),
            search_indexes: content.search_indexes.clone(),
            terms: digests.terms,
            by: self.caller.application,
            code: code_change(self.vault, self.caller, &id, &draft.code).await?,
            claims: claim.is_some(),
            entries: entries(
                entry(
                    self.caller,
                    Operation::Create,
                    (&id, content.kind),
                    Some(&shown),
                ),
                draft.intent.map(|intent| converted(self.caller, intent)),
            ),
            intents: draft.intent.into_iter().collect(),
        };
        let token = Token {
            id,
            kind: content.kind,
            container: content.container.clone(),
            row_version: FIRST_VERSION,
            expiry: content.expiry,
            mask: content.mask.clone(),
            metadata: content.metadata.clone(),
            fingerprint: digests.fingerprint,
            fingerprint_expression: content.fingerprint_expression.clone(),
            search_indexes: content.search_indexes.clone(),
            has_security_code: matches!(draft.code, SecurityCode::Given(_)),
            created_by: self.caller.application,
            created_at: Timestamp::UNIX_EPOCH,
            modified_by: None,
            modified_at: None,
        };
        Ok(Planned::Written {
            write: Some(Box::new(Write::Insert(values))),
            token: Box::new(token),
            shown: Some(Box::new(shown)),
            deduplication: None,
            claim,
        })
    }

    async fn container_number(&self, content: &Content) -> Result<i32, Error> {
        let (vault, tenant) = (self.vault, self.caller.tenant);
        Ok(containers::number_of(vault, tenant, &content.container).await?)
    }

    fn show(
        &self,
        content: &Content,
        code: &SecurityCode,
        transform: Transform,
    ) -> Result<Shown, Error> {
        let visible = Visible {
            kind: content.kind,
            mask: content.mask.as_deref(),
            data: &content.data,
            code: match code {
                SecurityCode::Given(code) => Some(code),
                SecurityCode::Absent | SecurityCode::Removed => None,
            },
        };
        Ok(visible.show(self.vault, self.caller, transform)?)
    }

    /// A name with chance in it may come out as one that is forbidden; another attempt may not.
    fn settle_id(&self, draft: &Draft, attempt: usize) -> Result<TokenId, Error> {
        if attempt >= ALIAS_ATTEMPTS && draft.id.is_chance() {
            return Ok(TokenId::random());
        }
        let data = match &draft.id {
            NewId::Alias(_) => draft.content.data_value()?,
            NewId::Random | NewId::Given(_) => Value::Null,
        };
        let mut settled = draft.id.settle(self.caller.tenant, &data);
        for _ in 1..ALIAS_ATTEMPTS {
            if settled.is_ok() || !draft.id.is_chance() {
                break;
            }
            settled = draft.id.settle(self.caller.tenant, &data);
        }
        settled.map_err(Error::Invalid)
    }

    /// A write with an intent is refused when that is gone: converted, deleted or expired meanwhile.
    async fn examine_intents(&self, drafts: &[Draft]) -> Result<(), Error> {
        for draft in drafts {
            if let Some(intent) = &draft.intent
                && !token_intents::exists(self.vault, self.caller, intent).await?
            {
                return Err(no_intent().within(&draft.place));
            }
        }
        Ok(())
    }

    /// Finds out whether an id was in the way, and clears it where that is possible.
    async fn examine_id(&self, draft: &Draft, planned: &Planned) -> Result<(), Error> {
        let Some(token) = planned.token() else {
            return Ok(());
        };
        let (db, tenant, key) = (&self.vault.db, self.caller.tenant, token.id.key());
        if token_rows::is_expired(db, tenant, key).await? {
            token_rows::sweep_one(self.vault, tenant, key).await?;
            return Ok(());
        }
        if token.modified_by.is_some() || draft.id.is_chance() {
            return Ok(());
        }
        // Deduplication comes before the id: what took it may be the one to meet.
        let is_taken = token_rows::key_is_taken(db, tenant, key).await?;
        if is_taken && self.find_equal(planned.claim()).await?.is_none() {
            return Err(Error::IdTaken);
        }
        Ok(())
    }
}

/// What is recorded when an answer that shows this token is given again.
pub(super) fn read_again(caller: &Caller, placed: &Placed) -> Entry {
    let TokenView { token, shown } = &placed.view;
    let token = (&token.id, token.kind);
    entry(caller, Operation::Read, token, shown.as_ref())
}

/// Seals a security code for its own table.
pub(super) async fn code_change(
    vault: &Vault,
    caller: &Caller,
    id: &TokenId,
    code: &SecurityCode,
) -> Result<CodeChange, Error> {
    Ok(match code {
        SecurityCode::Absent => CodeChange::Stays,
        SecurityCode::Removed => CodeChange::Goes,
        SecurityCode::Given(code) => {
            let code = (code.expose().as_str(), caller.quotas.cvc_retention);
            let sealed = security_codes::seal(vault, caller.tenant, id.key(), code).await?;
            CodeChange::Comes(sealed)
        }
    })
}

/// What is recorded of an intent that becomes a token.
pub(super) fn converted(caller: &Caller, intent: Uuid) -> Entry {
    Entry::of(caller, Operation::Convert, EntityKind::TokenIntent, intent)
}

pub(super) fn entries(entry: Entry, converted: Option<Entry>) -> Vec<Entry> {
    std::iter::once(entry).chain(converted).collect()
}
