//! The attributes of a token beside its data: what clients may write, and the form that is kept.

mod attribute;
mod expiry;
mod expression;
mod id;
mod metadata;

pub use self::attribute::Privacy;
pub(crate) use self::attribute::{
    NO_MASK, container, expiry, fingerprint_expression, keep, kind, mask, privacy, search_indexes,
};
pub use self::expiry::Expiry;
pub(crate) use self::expiry::RULE as EXPIRY_RULE;
pub(crate) use self::expression::{evaluate_to_text, parse_mask, parse_template, sources};
pub(crate) use self::id::NewId;
pub use self::id::TokenId;
pub(crate) use self::metadata::settle as metadata;
