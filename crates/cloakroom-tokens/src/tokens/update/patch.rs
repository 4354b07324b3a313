//! Validates a merge patch and applies it to a token's content.

use std::borrow::Cow;

use cloakroom_core::access::TenantSettings;
use cloakroom_core::caller::Caller;
use cloakroom_crypto::Sensitive;
use cloakroom_platform::api::{FieldError, merge_patch};
use serde_json::{Map, Value};

use crate::attributes::{self as attributes, NO_MASK, ok_or_collect};
use crate::tokens::Token;
use crate::tokens::attributes::TokenAttributes;
use crate::tokens::content::Content;
use crate::tokens::request::{Change, TokenPatch};
use crate::tokens::view::OpenedToken;
use crate::types::{SecurityCode, ValidatedData, validate_patched};

impl TokenPatch {
    /// Whether the fingerprint of a token may differ after this patch; `patched` are its attributes by then.
    pub(in crate::tokens) fn may_change_fingerprint(&self, patched: &TokenAttributes) -> bool {
        !matches!(self.data, Change::Keep)
            || !matches!(self.fingerprint_expression, Change::Keep)
            || (patched.has_own_fingerprint() && !matches!(self.metadata, Change::Keep))
    }

    /// Validates the parts of the patch that do not depend on the token.
    pub(in crate::tokens) fn check(
        &self,
        settings: &TenantSettings,
    ) -> Result<(), Vec<FieldError>> {
        let mut broken = Vec::new();
        if matches!(self.data, Change::Remove) {
            broken.push(FieldError::new("data", "must not be null"));
        }
        if let Change::Set(mask) = &self.mask {
            ok_or_collect(attributes::mask(mask), &mut broken);
        }
        if let Change::Set(metadata) = &self.metadata {
            ok_or_collect(
                attributes::metadata(metadata.clone(), settings),
                &mut broken,
            );
        }
        if let Change::Set(containers) = &self.containers {
            ok_or_collect(attributes::container(containers), &mut broken);
        }
        if let Change::Set(list) = &self.search_indexes {
            ok_or_collect(attributes::search_indexes(list, None), &mut broken);
        }
        if let Change::Set(text) = &self.fingerprint_expression {
            let checked = attributes::fingerprint_expression(text.clone(), None);
            ok_or_collect(checked, &mut broken);
        }
        if let Change::Set(text) = &self.expires_at {
            ok_or_collect(attributes::expiry(text), &mut broken);
        }
        if broken.is_empty() {
            return Ok(());
        }
        Err(broken)
    }
}

/// The content of a token after a patch, and the change of its security code.
pub(in crate::tokens) struct PatchedContent {
    pub content: Content,
    pub code: SecurityCode,
}

/// Applies a patch to a token and validates the result.
pub(in crate::tokens) fn patch_content(
    opened: &OpenedToken,
    patch: &TokenPatch,
    caller: &Caller,
) -> Result<PatchedContent, Vec<FieldError>> {
    let token = &opened.token;
    let (kind, stored) = (token.kind, &token.attributes);
    let mut broken = Vec::new();
    let data = ok_or_collect(patch_data(opened, &patch.data, caller), &mut broken);
    let mask = ok_or_collect(patch_mask(token, &patch.mask), &mut broken);
    let metadata = patch_metadata(stored, &patch.metadata, &caller.settings);
    let metadata = ok_or_collect(metadata, &mut broken);
    let container = match &patch.containers {
        Change::Keep => Some(token.container.clone()),
        Change::Remove => Some(kind.default_container()),
        Change::Set(containers) => ok_or_collect(attributes::container(containers), &mut broken),
    };
    let search_indexes = match &patch.search_indexes {
        Change::Keep => stored.search_indexes.clone(),
        Change::Remove => Some("[]".to_owned()),
        Change::Set(list) => {
            ok_or_collect(attributes::search_indexes(list, Some(kind)), &mut broken)
        }
    };
    let fingerprint_expression = match &patch.fingerprint_expression {
        Change::Keep => stored.fingerprint_expression.clone(),
        Change::Remove => None,
        Change::Set(text) => {
            let checked = attributes::fingerprint_expression(text.clone(), Some(kind));
            ok_or_collect(checked, &mut broken)
        }
    };
    let expiry = match &patch.expires_at {
        Change::Keep => stored.expiry,
        Change::Remove => None,
        Change::Set(text) => ok_or_collect(attributes::expiry(text), &mut broken),
    };
    match (data, container) {
        (Some(data), Some(container)) if broken.is_empty() => Ok(PatchedContent {
            content: Content {
                kind,
                data: data.data,
                container,
                attributes: TokenAttributes {
                    expiry,
                    mask: mask.flatten(),
                    metadata: metadata.flatten(),
                    fingerprint_expression,
                    search_indexes,
                },
            },
            code: data.security_code,
        }),
        _ => Err(broken),
    }
}

fn patch_data(
    opened: &OpenedToken,
    patch: &Change<Value>,
    caller: &Caller,
) -> Result<ValidatedData, Vec<FieldError>> {
    let (kind, stored) = (opened.token.kind, opened.data.expose());
    let patch = match patch {
        Change::Remove => return Err(vec![FieldError::new("data", "must not be null")]),
        Change::Keep => {
            return Ok(ValidatedData {
                data: Sensitive::new(stored.clone()),
                security_code: SecurityCode::Absent,
            });
        }
        Change::Set(patch) => patch.clone(),
    };
    let unreadable = |_| vec![FieldError::new("data", "must be expressible as JSON")];
    let stored: Value = serde_json::from_slice(stored).map_err(unreadable)?;
    let validated = validate_patched(kind, stored, patch, caller.tenant_kind)?;
    attributes::data_size(validated.data.expose())?;
    Ok(validated)
}

fn patch_mask(token: &Token, patch: &Change<Value>) -> Result<Option<String>, Vec<FieldError>> {
    match patch {
        Change::Keep => Ok(token.attributes.mask.clone()),
        Change::Remove => Ok(Some(NO_MASK.to_owned())),
        Change::Set(patch) => {
            let mask = token.attributes.shown_mask(token.kind);
            let mut mask = mask.map_or(Value::Null, Cow::into_owned);
            merge_patch(&mut mask, patch.clone());
            attributes::mask(&mask).map(Some)
        }
    }
}

fn patch_metadata(
    stored: &TokenAttributes,
    patch: &Change<Map<String, Value>>,
    settings: &TenantSettings,
) -> Result<Option<String>, Vec<FieldError>> {
    match patch {
        Change::Keep => Ok(stored.metadata.clone()),
        Change::Remove => Ok(None),
        Change::Set(patch) => {
            let mut merged = stored.metadata_map().unwrap_or_default();
            for (key, value) in patch {
                // `attributes::metadata` drops null values.
                merged.insert(key.clone(), value.clone());
            }
            attributes::metadata(merged, settings)
        }
    }
}
