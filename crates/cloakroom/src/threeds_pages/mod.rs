//! What a cardholder's browser is shown during 3-D Secure, and nothing of what is decided about it.
//!
//! Helper pages stand between a merchant's page and the issuer's, notification pages tell the pages
//! around them that the issuer is done, and the hosted page does all of it by itself. None of them
//! knows a result: a browser is told how it went, and the merchant asks the vault.

mod api;
mod hosted;
mod notified;
mod page;

pub use self::api::routes;
pub use self::hosted::{Hosted, hosted};
pub use self::notified::{challenge_notified, failed, method_notified, neutral};
pub use self::page::Page;
