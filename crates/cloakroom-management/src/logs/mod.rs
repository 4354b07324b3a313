//! The audit log over HTTP.

mod api;

pub use self::api::routes;
