//! Middleware in front of the handlers: authentication, deprecations, rate limits and idempotency.

pub mod authentication;
pub mod deprecations;
pub mod idempotency;
pub mod rate_limits;
