//! Pages that the cardholder's browser loads during 3-D Secure.
//!
//! Helper pages connect a merchant's page with the issuer's page, notification pages post a message to their parent
//! windows when the issuer's page is done, and the hosted page runs the whole flow. No page is a source of the outcome:
//! merchants must read it from the API. `cloakroom-pages` has their design, texts and scripts.

mod api;
mod hosted;
mod notification;

pub use self::api::routes;
pub use self::hosted::{Hosted, hosted};
pub use self::notification::{
    challenge_notification, failure_notification, method_notification, neutral,
};
