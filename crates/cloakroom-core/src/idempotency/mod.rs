//! Idempotency keys: a request with a key is executed once, and its response is replayed to
//! retries.
//!
//! The middleware `gates::idempotency` acquires a lease on the request before it is handled, or replays the stored
//! response. The operation renders its response before the change ([`ResponseTemplate::render_pending`]), and one
//! commit carries both (`insert_response!`). A commit under a lost lease fails, so a request is executed at most once
//! however many nodes try, and a node that crashes blocks retries no longer than its lease.
//!
//! A request without a key pays no cost.

pub(crate) mod lease;
pub(crate) mod request_key;
mod response_template;
mod store;
mod sweep;

pub use self::lease::Lease;
pub use self::request_key::applies_to_path;
pub use self::response_template::{PendingResponse, ResponseTemplate};
pub(crate) use self::store::{STATEMENTS, SealedResponse, acquire, find_response, release};
pub use self::store::{insert_response, store_response};
pub use self::sweep::sweep;
