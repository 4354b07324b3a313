//! A token as one caller may see it: its data redacted, masked or revealed.

use cloakroom_expressions::Mask;
use serde_json::Value;
use serde_json::value::RawValue;

use super::card::CardDetails;
use super::token::TokenData;
use super::{Token, TokenKind};
use crate::access::Transform;
use crate::keys;

/// A token with what its caller may see of the data.
pub struct TokenView {
    pub token: Token,
    pub shown: Shown,
}

/// What a caller may see of a token's data.
pub struct Shown {
    /// Absent when redacted.
    pub data: Option<Box<RawValue>>,
    pub card: Option<CardDetails>,
}

/// Applies a transform to the data of a token.
pub(super) fn show(
    kind: TokenKind,
    mask: Option<&str>,
    data: &TokenData,
    transform: Transform,
) -> Result<Shown, keys::Error> {
    // Data was checked before it was sealed, so text that is not JSON did not come from here.
    let text = std::str::from_utf8(data.expose()).map_err(|_| keys::Error::Integrity)?;
    let needs_value = transform == Transform::Mask || kind == TokenKind::Card;
    let value = match needs_value {
        true => serde_json::from_str(text).map_err(|_| keys::Error::Integrity)?,
        false => Value::Null,
    };
    let shown = match transform {
        Transform::Redact => None,
        Transform::Mask => masked(kind, mask, &value),
        Transform::Reveal => Some(text.to_owned()),
    };
    let data = shown.map(RawValue::from_string).transpose();
    let card = match kind {
        TokenKind::Card => CardDetails::of(&value),
        TokenKind::Token => None,
    };
    Ok(Shown {
        data: data.map_err(|_| keys::Error::Integrity)?,
        card,
    })
}

/// The evaluated mask; nothing when the token has none, or one that yields nothing.
fn masked(kind: TokenKind, mask: Option<&str>, data: &Value) -> Option<String> {
    let masked = match mask {
        Some(text) => {
            let mask: Value = serde_json::from_str(text).ok()?;
            Mask::parse(&mask).ok()?.apply(data)
        }
        None => kind.default_mask()?.mask.apply(data),
    };
    (!masked.is_null()).then(|| masked.to_string())
}
