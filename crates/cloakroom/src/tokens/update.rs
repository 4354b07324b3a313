//! Changing a token: merge, check again, seal again.

use cloakroom_crypto::{Fingerprint, Sensitive};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::content::{Content, shown_mask};
use super::create::{code_change, place_write};
use super::digest::Digests;
use super::store::{self, Before, Values, Write};
use super::view::{Opened, Visible, find_code, open, view_met};
use super::{Error, Placed, Token, TokenView};
use crate::access::{DeduplicationBehavior, Permission};
use crate::api::{Broken, merge_patch};
use crate::caller::Caller;
use crate::containers;
use crate::keys::{self, TenantKeys};
use crate::token_attributes::{self as attributes, Expiry, NO_MASK, TokenId, keep};
use crate::token_types::{SecurityCode, settle_patched};
use crate::vault::Vault;

/// How many times to start over when others change the token at the same moment.
const ATTEMPTS: usize = 10;

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

/// What a patch does to an attribute: absent, null, or a value.
#[derive(Clone, Default)]
pub enum Change<T> {
    #[default]
    Stays,
    Goes,
    Becomes(T),
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Change<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let given = Option::<T>::deserialize(deserializer)?;
        Ok(given.map_or(Self::Goes, Self::Becomes))
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
) -> Result<Placed, Error> {
    let id = TokenId::of(caller.tenant, id);
    let keys = vault.keys.of(caller.tenant).await?;
    for _ in 0..ATTEMPTS {
        let row = store::find(&vault.db, caller.tenant, &id)
            .await?
            .ok_or(Error::NotFound)?;
        let opened = open(vault, caller, row).await?;
        caller.require(Permission::TokenUpdate, &opened.token.container)?;
        let (content, code) = patched(&opened, patch, caller).map_err(Error::Invalid)?;
        let transform = caller.require(Permission::TokenUpdate, &content.container)?;

        let settings = &caller.settings;
        let deduplicate = patch
            .deduplicate_token
            .unwrap_or(settings.deduplicate_tokens);
        let wants_fingerprint =
            deduplicate || settings.fingerprint_tokens || opened.token.fingerprint.is_some();
        let digests = content.digests(&keys, wants_fingerprint)?;
        let claim = digests.fingerprint.filter(|_| deduplicate);
        if let Some(fingerprint) = claim
            && let Some(placed) = met(vault, caller, &fingerprint, (&opened, &content)).await?
        {
            return Ok(placed);
        }

        let kept_code = match &code {
            SecurityCode::Absent => find_code(vault, caller, &opened.token, transform).await?,
            SecurityCode::Given(_) | SecurityCode::Removed => None,
        };
        let visible = Visible {
            kind: content.kind,
            mask: content.mask.as_deref(),
            data: &content.data,
            code: match &code {
                SecurityCode::Given(code) => Some(code),
                SecurityCode::Absent | SecurityCode::Removed => kept_code.as_ref(),
            },
        };
        let shown = visible.show(vault, caller, transform)?;
        let rewriting = Rewriting {
            opened: &opened,
            content,
            digests,
            code: &code,
            claims: claim.is_some(),
        };
        let (write, mut token) = rewriting.write(vault, caller, &keys).await?;
        let expiry = token.expiry;
        if let Some(times) = place_write(vault, caller, &[write]).await? {
            token.modified_at = times.first().copied();
            let view = TokenView {
                token,
                shown: Some(shown),
            };
            return Ok(Placed {
                view,
                deduplication: None,
            });
        }
        refuse_past_expiry(vault, expiry).await?;
    }
    Err(Error::Contended)
}

/// After nothing was written: the database's clock tells whether the expiry was the reason.
pub(super) async fn refuse_past_expiry(vault: &Vault, expiry: Option<Expiry>) -> Result<(), Error> {
    match expiry {
        Some(expiry) if store::has_passed(&vault.db, expiry.at).await? => {
            let broken = Broken::new("expires_at", attributes::EXPIRY_RULE);
            Err(Error::Invalid(vec![broken]))
        }
        _ => Ok(()),
    }
}

/// The other token that deduplication finds; a token never meets itself.
async fn met(
    vault: &Vault,
    caller: &Caller,
    fingerprint: &Fingerprint,
    change: (&Opened, &Content),
) -> Result<Option<Placed>, Error> {
    let (opened, content) = change;
    let (db, own) = (&vault.db, opened.token.id.key());
    let equal = store::find_equal(db, caller.tenant, fingerprint, &content.container, own).await?;
    let Some(row) = equal else { return Ok(None) };
    let other = open(vault, caller, row).await?;
    Ok(Some(Placed {
        view: view_met(vault, caller, other).await?,
        deduplication: Some(DeduplicationBehavior::ReadExisting),
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
    let patch = match patch {
        Change::Goes => return Err(vec![Broken::new("data", "must not be null")]),
        Change::Stays => {
            let data = Sensitive::new(opened.data.expose().clone());
            return Ok((data, SecurityCode::Absent));
        }
        Change::Becomes(patch) => patch.clone(),
    };
    let unreadable = |_| vec![Broken::new("data", "must be expressible as JSON")];
    let kept: Value = serde_json::from_slice(opened.data.expose()).map_err(unreadable)?;
    let settled = settle_patched(opened.token.kind, kept, patch, caller.tenant_kind)?;
    super::create::check_size(settled.data.expose())?;
    Ok((settled.data, settled.security_code))
}

fn patched_mask(token: &Token, patch: &Change<Value>) -> Result<Option<String>, Vec<Broken>> {
    match patch {
        Change::Stays => Ok(token.mask.clone()),
        Change::Goes => Ok(Some(NO_MASK.to_owned())),
        Change::Becomes(patch) => {
            let mut mask = shown_mask(token.kind, token.mask.as_deref()).unwrap_or(Value::Null);
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
