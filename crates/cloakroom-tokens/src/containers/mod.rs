//! Container numbers: each path is stored once, and rows and indexes refer to it by number.

mod number;
mod store;

pub use self::number::{ContainerNumbers, container_of, number_of};
pub(crate) use self::store::STATEMENTS;
