//! Token types: names, defaults and data validation.

mod bank;
mod card;
mod digits;
mod kind;
mod members;
mod security_code;
mod truncation;
mod validate;

pub use self::bank::BankDetails;
pub use self::kind::{DefaultMask, TokenKind};
pub use self::members::with_security_code;
pub use self::security_code::{SecurityCode, refers_to_security_code};
pub use self::truncation::{evaluate_truncated, randomize_hidden, truncate};
pub use self::validate::{ValidatedData, validate_data, validate_patched};
