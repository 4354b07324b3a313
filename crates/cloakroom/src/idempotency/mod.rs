//! The same request twice: requests with an idempotency key are done once and answered as often as asked.
//!
//! [`answer_once`] takes a lease on the request before it is handled, or answers what was answered before. The
//! verb that does what was asked for hands over its answer ([`Reply::keep`]) with the change itself, and
//! one commit carries both (`replied!`). A lease that was lost refuses that commit, so a request is done
//! at most once however many nodes try, and a node that dies holds it up no longer than its lease.
//!
//! Nothing here costs a request without a key anything.

mod gate;
mod lease;
mod reply;
mod request_key;
mod store;
mod sweep;

pub use self::gate::{answer_once, carry_through};
pub use self::lease::Lease;
pub use self::reply::{Kept, Reply};
pub use self::request_key::counts_at;
pub(crate) use self::store::{STATEMENTS, keep, replied};
pub use self::sweep::sweep;
