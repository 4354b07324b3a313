//! Detection of card data in text: primary account numbers (PANs) and sensitive authentication data (SAD).
//!
//! All data that is stored or logged in clear is checked with [`contains_card_number`].

mod authentication_data;
mod detect;
mod exempt;
mod luhn;
mod scheme;
mod stream;

#[cfg(test)]
mod corpus;

use cloakroom_crypto::Sensitive;
use unicode_normalization::UnicodeNormalization as _;

pub use self::authentication_data::{
    AuthenticationData, NO_AUTHENTICATION_DATA, find_authentication_data, holds_track_data,
    named_authentication_data,
};
pub use self::detect::{card_numbers_in, contains_card_number};
pub use self::luhn::passes_luhn;
pub use self::scheme::{PREFIXES, Scheme};
pub use self::stream::StreamDetector;

/// Error message for attributes that contain a card number.
pub const NO_CARD_NUMBER: &str = "must not contain a card number: it is stored in clear";

/// Examines text in its compatibility form (NFKC): styled, circled, superscript and full-width characters are the digits and
/// letters that a person reads.
fn in_compatibility_form<T>(text: &str, examine: impl FnOnce(&str) -> T) -> T {
    match text.is_ascii() {
        true => examine(text),
        false => examine(Sensitive::new(text.nfkc().collect::<String>()).expose()),
    }
}
