//! What a merchant asks for when it asks to authenticate, and how that is told to a network.
//!
//! One table ([`FIELDS`]) names every field of the request: when it is needed, what it may hold, and
//! where it goes in the message to the network. Checking a request, making the message and the page
//! about it in the documentation all go by that table.

mod check;
mod device;
mod document;
mod field;
mod message;
mod requestor;
mod table;

use serde::{Deserialize, Serialize};

pub(crate) use self::check::check;
pub use self::device::DeviceInfo;
pub use self::document::document;
pub use self::field::{Case, Condition, Field, Needed};
pub(crate) use self::message::{About, Card, message};
pub use self::table::FIELDS;

/// Who started a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionKind {
    /// A cardholder who is there.
    Customer,
    /// The merchant alone.
    Merchant,
}

impl SessionKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Customer => "customer",
            Self::Merchant => "merchant",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        [Self::Customer, Self::Merchant]
            .into_iter()
            .find(|kind| kind.name() == name)
    }
}
