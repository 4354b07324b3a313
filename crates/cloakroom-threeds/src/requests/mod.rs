//! Authentication requests of merchants, and their conversion to AReq messages.
//!
//! One table ([`FIELDS`]) lists every field of the request: when it is required, its format, and its field in the AReq.
//! Validation, conversion and the reference documentation are all driven by that table.

mod check;
mod date;
mod device;
mod document;
mod field;
mod message;
mod requestor;
mod table;

use serde::{Deserialize, Serialize};

pub use self::check::check;
pub use self::device::DeviceInfo;
pub use self::document::document;
pub use self::field::{Case, Condition, Field, Needed};
pub use self::message::{Card, MessageContext, message};
pub use self::table::FIELDS;

/// Who initiates the authentication.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionKind {
    /// Cardholder-initiated, in a browser or app.
    Customer,
    /// Merchant-initiated (3RI), without the cardholder.
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
