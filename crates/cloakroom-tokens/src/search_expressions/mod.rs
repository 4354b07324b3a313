//! Domains of search terms: each search expression of a tenant has a sub-key of its own, up to a limit.

mod domain;
mod store;

pub use self::domain::{Domain, SearchExpressions, domain_of, domains};
pub(crate) use self::store::STATEMENTS;
