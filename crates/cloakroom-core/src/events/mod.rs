//! Events: what happened, for webhooks. An event is inserted by the statement that makes it true, so that no event of a
//! committed change is lost and none of a rolled back change exists.
//!
//! Operations attach an [`Event`] to the audit log entry of the change (`Entry::with_event`); the module `audit` inserts
//! both. Without a webhook for the event, the statement inserts nothing.

mod event;
mod kind;
mod store;

pub use self::event::{Event, SignedEvent};
pub(crate) use self::event::{Origin, encode};
pub use self::kind::EventKind;
pub(crate) use self::store::STATEMENTS;
pub use self::store::{insert, insert_events};
