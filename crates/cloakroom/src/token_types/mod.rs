//! Token types: what each is called, what it brings along, and what its data must look like.

mod bank;
mod card;
mod digits;
mod kind;
mod members;
mod security_code;
mod settle;

pub use self::bank::BankDetails;
pub use self::kind::{DefaultMask, TokenKind};
pub use self::security_code::{SecurityCode, refers_to_security_code};
pub use self::settle::{Settled, settle, settle_patched};
