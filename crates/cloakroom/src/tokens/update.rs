//! Changing a token: merge, check again, seal again.

use std::borrow::Cow;

use cloakroom_crypto::{Fingerprint, Sensitive};
use jiff::Timestamp;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::content::{Content, shown_mask};
use super::create::{code_change, converted, entries, read_again};
use super::find::record_reads;
use super::token::{Change, entry};
use super::view::{Opened, Shown, Visible, find_code, open, open_named, view_met};
use super::{Error, Placed, Token, TokenView, noticed};
use crate::access::{Container, DeduplicationBehavior, Permission, Subject, Transform};
use crate::api::{Broken, merge_patch};
use crate::audit::Operation;
use crate::caller::Caller;
use crate::idempotency::Reply;
use crate::keys::{self, TenantKeys};
use crate::token_attributes::Digests;
use crate::token_attributes::{self as attributes, NO_MASK, TokenId, keep};
use crate::token_rows::{self, Before, Outcome, Told, Values, Write};
use crate::token_types::{SecurityCode, settle_patched};
use crate::vault::Vault;
use crate::{containers, velocity};

/// How many times to start over when other nodes change the token at the same moment.
const ATTEMPTS: usize = 20;

/// A merge patch; nothing in it is checked yet.
#[derive(Default)]
pub struct TokenPatch {
    pub data: Change<Value>,
    pub mask: Change<Value>,
    pub metadata: Change<Map<String, Value>>,
    pub containers: Change<Vec<String>>,
    pub search_indexes: Change<Vec<String>>,
    pub fingerprint_expression: Change<String>,
    pub deduplicate_token: Option<bool>,
    pub expires_at: Change<String>,
}

impl TokenPatch {
    /// Checks what is wrong whatever the token is.
    fn check(&self) -> Result<(), Vec<Broken>> {
        let mut broken = Vec::new();
        if matches!(self.data, Change::Goes) {
            broken.push(Broken::new("data", "must not be null"));
        }
        if let Change::Becomes(mask) = &self.mask {
            keep(attributes::mask(mask), &mut broken);
        }
        if let Change::Becomes(metadata) = &self.metadata {
            keep(attributes::metadata(metadata.clone()), &mut broken);
        }
        if let Change::Becomes(containers) = &self.containers {
            keep(attributes::container(containers), &mut broken);
        }
        if let Change::Becomes(list) = &self.search_indexes {
            keep(attributes::search_indexes(list, None), &mut broken);
        }
        if let Change::Becomes(text) = &self.fingerprint_expression {
            let checked = attributes::fingerprint_expression(text.clone(), None);
            keep(checked, &mut broken);
        }
        if let Change::Becomes(text) = &self.expires_at {
            keep(attributes::expiry(text), &mut broken);
        }
        if broken.is_empty() {
            return Ok(());
        }
        Err(broken)
    }

    /// Counts the card numbers that are tried if the token may get another fingerprint than it had.
    async fn admit(&self, vault: &Vault, caller: &Caller, content: &Content) -> Result<(), Error> {
        let has_expression = content.fingerprint_expression.is_some();
        let compares_anew = !matches!(self.data, Change::Stays)
            || !matches!(self.fingerprint_expression, Change::Stays)
            || (has_expression && !matches!(self.metadata, Change::Stays));
        if compares_anew {
            velocity::admit(vault, caller, &content.card_numbers()?).await?;
        }
        Ok(())
    }
}

/// Changes a token that the caller may change where it lies and where it goes.
///
/// Returns once the change is durable, with the data as the caller's grant for updating shows it.
pub async fn update(
    vault: &Vault,
    caller: &Caller,
    id: &str,
    patch: &TokenPatch,
    reply: &Reply<'_, Placed>,
) -> Result<Placed, Error> {
    let id = TokenId::of(caller.tenant, id);
    let updated = merge(vault, caller, (&id, patch), reply).await;
    // Whoever has no token to change learns first what is wrong with the patch itself.
    if matches!(updated, Err(Error::NotFound | Error::Denied(_))) {
        patch.check().map_err(Error::Invalid)?;
    }
    noticed(vault, caller, updated).await
}

async fn merge(
    vault: &Vault,
    caller: &Caller,
    (id, patch): (&TokenId, &TokenPatch),
    reply: &Reply<'_, Placed>,
) -> Result<Placed, Error> {
    let keys = vault.keys.of(caller.tenant).await?;
    let _turn = vault.turns.take(caller.tenant, id.key()).await;
    let mut refused_version = None;
    for _ in 0..ATTEMPTS {
        let opened = open_named(vault, caller, id).await?;
        // Nobody was faster, and still nothing was written: only the expiry can be the reason.
        if refused_version == Some(opened.token.row_version) {
            return Err(past_expiry());
        }
        let id_text = id.text();
        caller.require_on(Permission::TokenUpdate, opened.token.subject(&id_text))?;
        let (content, code) = patched(&opened, patch, caller).map_err(Error::Invalid)?;
        let destination = Subject {
            container: &content.container,
            id: Some(&id_text),
        };
        let transform = caller.require_on(Permission::TokenUpdate, destination)?;

        patch.admit(vault, caller, &content).await?;
        let settings = &caller.settings;
        let deduplicate = patch.deduplicate_token;
        let deduplicate = deduplicate.unwrap_or(settings.deduplicate_tokens);
        let wants_fingerprint =
            deduplicate || settings.fingerprint_tokens || opened.token.fingerprint.is_some();
        let digests = content.digests(&keys, wants_fingerprint)?;
        let claim = digests.fingerprint.filter(|_| deduplicate);
        if let Some(fingerprint) = &claim
            && let Some(met) = met(vault, caller, id, &content.container, fingerprint).await?
        {
            let told = tell(caller, &met, None, reply)?;
            token_rows::write(vault, caller.tenant, Vec::new(), told).await?;
            return Ok(met);
        }

        let shown = show(vault, caller, &opened.token, (&content, &code), transform).await?;
        let rewriting = Rewriting {
            opened: &opened,
            content,
            digests,
            code: &code,
            claims: claim.is_some(),
            shown: Some(&shown),
            intent: None,
        };
        let (write, token) = rewriting.write(vault, caller, &keys).await?;
        let mut placed = Placed {
            view: TokenView {
                token,
                shown: Some(shown),
            },
            deduplication: None,
            was_encrypted: false,
        };
        // What the database told when the token was made may be ahead of what is known here.
        let at = vault.audit.now().await?.max(opened.token.created_at);
        let told = tell(caller, &placed, Some(at), reply)?;
        match token_rows::write(vault, caller.tenant, vec![write], told).await? {
            Outcome::Refused(_) => refused_version = Some(opened.token.row_version),
            Outcome::Outrun => {}
            Outcome::Written(times) => {
                placed.view.token.modified_at = times.first().copied();
                return Ok(placed);
            }
        }
    }
    Err(Error::Contended)
}

/// The changed data as the caller may see it, with the security code that stays or comes.
async fn show(
    vault: &Vault,
    caller: &Caller,
    token: &Token,
    (content, code): (&Content, &SecurityCode),
    transform: Transform,
) -> Result<Shown, Error> {
    let kept_code = match code {
        SecurityCode::Absent => find_code(vault, caller, token, transform).await?,
        SecurityCode::Given(_) | SecurityCode::Removed => None,
    };
    let visible = Visible {
        kind: content.kind,
        mask: content.mask.as_deref(),
        data: &content.data,
        code: match code {
            SecurityCode::Given(code) => Some(code),
            SecurityCode::Absent | SecurityCode::Removed => kept_code.as_ref(),
        },
    };
    Ok(visible.show(vault, caller, transform)?)
}

/// The answer, where it has to be known before anything is written: what is changed, is so `at` then.
fn tell<'a>(
    caller: &Caller,
    placed: &Placed,
    at: Option<Timestamp>,
    reply: &Reply<'a, Placed>,
) -> Result<Told<'a>, Error> {
    if !reply.is_kept() {
        return Ok(Told::default());
    }
    let mut placed = placed.clone();
    placed.view.forget_code();
    placed.view.token.modified_at = at.or(placed.view.token.modified_at);
    let end = placed.view.token.expiry.map(|expiry| expiry.at);
    Ok(Told {
        at,
        kept: reply.keep(&placed)?.until(end),
        reads: vec![read_again(caller, &placed)],
    })
}

pub(super) fn past_expiry() -> Error {
    Error::Invalid(vec![Broken::new("expires_at", attributes::EXPIRY_RULE)])
}

/// The other token with this fingerprint in this container; a token never meets itself.
async fn met(
    vault: &Vault,
    caller: &Caller,
    own: &TokenId,
    container: &Container,
    fingerprint: &Fingerprint,
) -> Result<Option<Placed>, Error> {
    let (db, tenant) = (&vault.db, caller.tenant);
    let equal = token_rows::find_equal(db, tenant, fingerprint, container, own.key()).await?;
    let Some(row) = equal else { return Ok(None) };
    let other = open(vault, caller, row).await?;
    let view = view_met(vault, caller, other).await?;
    record_reads(vault, caller, Operation::Read, std::slice::from_ref(&view)).await?;
    Ok(Some(Placed {
        view,
        deduplication: Some(DeduplicationBehavior::ReadExisting),
        was_encrypted: false,
    }))
}

/// What the patch makes of a token.
fn patched(
    opened: &Opened,
    patch: &TokenPatch,
    caller: &Caller,
) -> Result<(Content, SecurityCode), Vec<Broken>> {
    let token = &opened.token;
    let mut broken = Vec::new();
    let data = keep(patched_data(opened, &patch.data, caller), &mut broken);
    let mask = keep(patched_mask(token, &patch.mask), &mut broken);
    let metadata = keep(patched_metadata(token, &patch.metadata), &mut broken);
    let container = match &patch.containers {
        Change::Stays => Some(token.container.clone()),
        Change::Goes => Some(token.kind.default_container()),
        Change::Becomes(containers) => keep(attributes::container(containers), &mut broken),
    };
    let search_indexes = match &patch.search_indexes {
        Change::Stays => Some(token.search_indexes.clone()),
        Change::Goes => Some(Some("[]".to_owned())),
        Change::Becomes(list) => keep(
            attributes::search_indexes(list, Some(token.kind)),
            &mut broken,
        )
        .map(Some),
    };
    let fingerprint_expression = match &patch.fingerprint_expression {
        Change::Stays => Some(token.fingerprint_expression.clone()),
        Change::Goes => Some(None),
        Change::Becomes(text) => keep(
            attributes::fingerprint_expression(text.clone(), Some(token.kind)),
            &mut broken,
        )
        .map(Some),
    };
    let expiry = match &patch.expires_at {
        Change::Stays => Some(token.expiry),
        Change::Goes => Some(None),
        Change::Becomes(text) => keep(attributes::expiry(text), &mut broken).map(Some),
    };
    match (data, container) {
        (Some((data, code)), Some(container)) if broken.is_empty() => {
            let content = Content {
                kind: token.kind,
                data,
                container,
                mask: mask.flatten(),
                metadata: metadata.flatten(),
                expiry: expiry.flatten(),
                fingerprint_expression: fingerprint_expression.flatten(),
                search_indexes: search_indexes.flatten(),
            };
            Ok((content, code))
        }
        _ => Err(broken),
    }
}

type PatchedData = (super::token::TokenData, SecurityCode);

fn patched_data(
    opened: &Opened,
    patch: &Change<Value>,
    caller: &Caller,
) -> Result<PatchedData, Vec<Broken>> {
    let (kind, kept) = (opened.token.kind, opened.data.expose());
    let patch = match patch {
        Change::Goes => return Err(vec![Broken::new("data", "must not be null")]),
        Change::Stays => return Ok((Sensitive::new(kept.clone()), SecurityCode::Absent)),
        Change::Becomes(patch) => patch.clone(),
    };
    let unreadable = |_| vec![Broken::new("data", "must be expressible as JSON")];
    let kept: Value = serde_json::from_slice(kept).map_err(unreadable)?;
    let settled = settle_patched(kind, kept, patch, caller.tenant_kind)?;
    attributes::data_size(settled.data.expose())?;
    Ok((settled.data, settled.security_code))
}

fn patched_mask(token: &Token, patch: &Change<Value>) -> Result<Option<String>, Vec<Broken>> {
    match patch {
        Change::Stays => Ok(token.mask.clone()),
        Change::Goes => Ok(Some(NO_MASK.to_owned())),
        Change::Becomes(patch) => {
            let mask = shown_mask(token.kind, token.mask.as_deref());
            let mut mask = mask.map_or(Value::Null, Cow::into_owned);
            merge_patch(&mut mask, patch.clone());
            attributes::mask(&mask).map(Some)
        }
    }
}

fn patched_metadata(
    token: &Token,
    patch: &Change<Map<String, Value>>,
) -> Result<Option<String>, Vec<Broken>> {
    match patch {
        Change::Stays => Ok(token.metadata.clone()),
        Change::Goes => Ok(None),
        Change::Becomes(patch) => {
            let kept = token.metadata.as_deref();
            let mut merged: Map<String, Value> = kept
                .and_then(|text| serde_json::from_str(text).ok())
                .unwrap_or_default();
            for (key, value) in patch {
                // Null values are dropped when metadata is settled.
                merged.insert(key.clone(), value.clone());
            }
            attributes::metadata(merged)
        }
    }
}

/// A token on its way from one state to the next.
pub(super) struct Rewriting<'a> {
    pub opened: &'a Opened,
    pub content: Content,
    pub digests: Digests,
    pub code: &'a SecurityCode,
    pub claims: bool,
    /// What its caller gets to see of it.
    pub shown: Option<&'a Shown>,
    /// The intent whose data it takes up.
    pub intent: Option<Uuid>,
}

impl Rewriting<'_> {
    /// The write, and the token as it will be, except for the time.
    pub(super) async fn write(
        self,
        vault: &Vault,
        caller: &Caller,
        keys: &TenantKeys,
    ) -> Result<(Write, Token), Error> {
        let Opened {
            token: old,
            container_number,
            terms,
            ..
        } = self.opened;
        let (content, row_version) = (self.content, old.row_version + 1);
        let values = Values {
            container_number: containers::number_of(vault, caller.tenant, &content.container)
                .await?,
            sealed: content.seal(
                keys,
                (&old.id, row_version),
                self.digests.fingerprint.as_ref(),
            )?,
            id: old.id.clone(),
            is_named: true,
            container: content.container.clone(),
            kind: content.kind,
            expiry: content.expiry,
            mask: content.mask.clone(),
            metadata: content.metadata.clone(),
            fingerprint: self.digests.fingerprint,
            fingerprint_expression: content.fingerprint_expression.clone(),
            search_indexes: content.search_indexes.clone(),
            terms: self.digests.terms,
            by: caller.application,
            code: code_change(vault, caller, &old.id, self.code).await?,
            claims: self.claims,
            entries: entries(
                entry(
                    caller,
                    Operation::Update,
                    (&old.id, content.kind),
                    self.shown,
                ),
                self.intent.map(|intent| converted(caller, intent)),
            ),
            intents: self.intent.into_iter().collect(),
        };
        let before = Before {
            row_version: old.row_version,
            container: old.container.clone(),
            container_number: *container_number,
            fingerprint: old.fingerprint,
            terms: terms.clone(),
        };
        let token = Token {
            id: old.id.clone(),
            kind: content.kind,
            container: content.container,
            row_version,
            expiry: content.expiry,
            mask: content.mask,
            metadata: content.metadata,
            fingerprint: self.digests.fingerprint,
            fingerprint_expression: content.fingerprint_expression,
            search_indexes: content.search_indexes,
            has_security_code: old.has_security_code,
            created_by: old.created_by,
            created_at: old.created_at,
            modified_by: Some(caller.application),
            modified_at: None,
        };
        Ok((Write::Update(before, values), token))
    }
}

/// Merges what a create brings into the token that it met.
pub(super) fn merged(
    opened: &Opened,
    content: &Content,
    caller: &Caller,
) -> Result<Content, Error> {
    let given = content.data_value()?;
    let becomes = |text: &Option<String>| match text.as_deref().map(serde_json::from_str) {
        Some(Ok(value)) => Change::Becomes(value),
        _ => Change::Stays,
    };
    let patch = TokenPatch {
        data: Change::Becomes(given),
        mask: match &content.mask {
            None => Change::Stays,
            Some(text) => {
                Change::Becomes(serde_json::from_str(text).map_err(|_| keys::Error::Integrity)?)
            }
        },
        metadata: match becomes(&content.metadata) {
            Change::Becomes(Value::Object(map)) => Change::Becomes(map),
            _ => Change::Stays,
        },
        ..TokenPatch::default()
    };
    let (mut merged, _) = patched(opened, &patch, caller).map_err(Error::Invalid)?;
    merged.expiry = content.expiry.or(merged.expiry);
    let replaces = |given: &Option<String>, kept: &mut Option<String>| {
        if given.is_some() {
            kept.clone_from(given);
        }
    };
    replaces(
        &content.fingerprint_expression,
        &mut merged.fingerprint_expression,
    );
    replaces(&content.search_indexes, &mut merged.search_indexes);
    Ok(merged)
}
