//! Deprecated features of the interface: which still work, which applications use them, and what
//! replaces them.
//!
//! `table.rs` defines all of them. Code that detects a deprecated feature in a request marks it
//! (`caller.deprecated_features.mark`), and the middleware adds the headers and counts.

mod count;
mod deprecation;
mod feature_marks;
mod list;
mod reference;
mod store;
mod table;

pub use self::count::Counts;
pub use self::deprecation::{Deprecation, DeprecationTreatment};
pub use self::feature_marks::FeatureMarks;
pub use self::list::{FeatureUsage, list};
pub use self::reference::reference;
pub(crate) use self::store::STATEMENTS;
pub use self::table::{ALL, DeprecatedFeature};
