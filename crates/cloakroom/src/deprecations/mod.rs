//! What the interface has left behind: which of it still works, who uses it, and what to use instead.
//!
//! One table says all of it (`table.rs`). Whoever sees a deprecated thing in a request notes it
//! (`caller.uses.note`), and the gate adds the headers and counts.

mod api;
mod count;
mod deprecation;
pub mod gate;
mod list;
mod reference;
mod store;
mod table;
mod uses;

pub use self::api::routes;
pub use self::count::Counts;
pub use self::deprecation::{Deprecation, Treatment};
pub use self::list::{Used, list};
pub use self::reference::reference;
pub(crate) use self::store::STATEMENTS;
pub use self::table::{ALL, Deprecated};
pub use self::uses::Uses;
