//! Merges a create into the existing token that deduplication found.

use cloakroom_core::caller::Caller;
use cloakroom_core::keys;

use crate::tokens::Error;
use crate::tokens::content::Content;
use crate::tokens::disclosure::Rights;
use crate::tokens::request::{Change, TokenPatch};
use crate::tokens::update::patch::patch_content;
use crate::tokens::view::OpenedToken;

/// Merges the content of a create into the existing token.
///
/// Mask, fingerprint expression and search indexes change only if the caller may reveal the data. A create never
/// shortens the lifetime of a token.
pub(in crate::tokens) fn merge_content(
    opened: &OpenedToken,
    content: &Content,
    caller: &Caller,
    rights: &Rights,
) -> Result<Content, Error> {
    let given = content.data_value()?;
    let attributes = &content.attributes;
    let patch = TokenPatch {
        data: Change::Set(given),
        mask: match &attributes.mask {
            Some(text) if rights.reveal() => {
                Change::Set(serde_json::from_str(text).map_err(|_| keys::Error::Integrity)?)
            }
            _ => Change::Keep,
        },
        metadata: attributes.metadata_map().map_or(Change::Keep, Change::Set),
        ..TokenPatch::default()
    };
    let mut merged = patch_content(opened, &patch, caller)
        .map_err(Error::Invalid)?
        .content;
    merged.attributes.expiry = match (merged.attributes.expiry, attributes.expiry) {
        (Some(before), Some(given)) if before.at < given.at => Some(given),
        (before, _) => before,
    };
    if rights.reveal() {
        merged.attributes.replace_expressions(attributes);
    }
    Ok(merged)
}
