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
pub use self::security_code::{SecurityCode, is_security_code_alone, refers_to_security_code};
pub use self::truncation::{evaluate_fingerprint, evaluate_index, truncate, truncate_to_zeros};
pub use self::validate::{ValidatedData, validate_data, validate_patched};
