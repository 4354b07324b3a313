//! The attributes of a token beside its data: what clients may write, and the form that is kept.

mod attribute;
mod details;
mod digest;
mod expression;
mod fingerprint;
mod id;
mod metadata;

pub use self::attribute::Privacy;
pub(crate) use self::attribute::{
    NO_MASK, container, data_size, expiry, fingerprint_expression, keep, kind, mask, privacy,
    search_indexes,
};
pub use self::details::Details;
pub(crate) use self::digest::{
    Digests, Findable, FingerprintBy, Term, data_term, fingerprint_term, fold,
    folded_metadata_terms, metadata_term,
};
pub(crate) use self::expression::{evaluate_to_text, parse_mask, parse_template, sources};
pub(crate) use self::fingerprint::{
    base58, card_numbers_of, fingerprint_by_type, fingerprint_of, normal,
};
pub(crate) use self::id::NewId;
pub use self::id::TokenId;
pub(crate) use self::metadata::settle as metadata;
pub(crate) use crate::api::EXPIRY_RULE;
pub use crate::api::Expiry;
