//! Containers by number: rows and indexes repeat them, so paths are kept once.

mod number;
mod store;

pub use self::number::{ContainerNumbers, container_of, number_of};
pub(crate) use self::store::STATEMENTS;
