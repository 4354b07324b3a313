//! The attributes of a token other than its data: validation and stored form.

mod attribute;
mod details;
mod digest;
mod expression;
mod fingerprint;
mod id;
mod metadata;

pub use cloakroom_platform::api::{EXPIRY_RULE, Expiry};

pub use self::attribute::{
    NO_MASK, Privacy, container, data_size, expiry, fingerprint_expression, kind, mask,
    ok_or_collect, privacy, search_indexes,
};
pub use self::details::Details;
pub use self::digest::{
    DigestInput, Digests, FingerprintSource, SearchIndex, Term, data_terms, fingerprint_term,
    fingerprint_text, fold_case, folded_metadata_terms, searched_metadata_terms,
};
pub use self::expression::{evaluate_to_text, parse_mask, parse_template, sources};
pub use self::fingerprint::{
    base58, default_text, fingerprint_of, may_compare, normalize, numbers_in_search, numbers_of,
    other_fingerprints_of,
};
pub use self::id::{NewId, TokenId};
pub use self::metadata::validate as metadata;
