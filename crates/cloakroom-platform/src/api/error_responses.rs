//! Error responses that many operations share, for their OpenAPI descriptions.
//!
//! An operation names the sets that apply to it, then its own responses. Of two responses with the same status, the
//! last one counts: `responses(ReadErrors, (status = 403, ...))`.

use utoipa::IntoResponses;

use super::Problem;

/// Errors of an operation that requires an API key, but no permission.
#[derive(IntoResponses)]
pub enum KeyErrors {
    /// The API key is missing or invalid.
    #[response(status = 401)]
    Unauthenticated(Problem),
}

/// Errors of an operation that requires a permission.
#[derive(IntoResponses)]
pub enum AccessErrors {
    /// The API key is missing or invalid.
    #[response(status = 401)]
    Unauthenticated(Problem),
    /// The key lacks the permission.
    #[response(status = 403)]
    Forbidden(Problem),
}

/// Errors of an operation that requires a permission and reads from the database.
#[derive(IntoResponses)]
pub enum ReadErrors {
    /// The API key is missing or invalid.
    #[response(status = 401)]
    Unauthenticated(Problem),
    /// The key lacks the permission.
    #[response(status = 403)]
    Forbidden(Problem),
    /// The database is unavailable.
    #[response(status = 503)]
    Unavailable(Problem),
}

/// Errors of an operation that requires a permission and writes to the database.
#[derive(IntoResponses)]
pub enum WriteErrors {
    /// The API key is missing or invalid.
    #[response(status = 401)]
    Unauthenticated(Problem),
    /// The key lacks the permission.
    #[response(status = 403)]
    Forbidden(Problem),
    /// The database is unavailable, or the outcome is unknown.
    #[response(status = 503)]
    OutcomeUnknown(Problem),
}

/// Errors of an operation that parses query parameters.
#[derive(IntoResponses)]
pub enum QueryErrors {
    /// A parameter is invalid.
    #[response(status = 400)]
    Invalid(Problem),
}

/// Errors of an operation with a JSON body.
#[derive(IntoResponses)]
pub enum BodyErrors {
    /// An attribute is invalid.
    #[response(status = 400)]
    Invalid(Problem),
    /// The body did not arrive in time.
    #[response(status = 408)]
    Timeout(Problem),
    /// The body is too large.
    #[response(status = 413)]
    TooLarge(Problem),
    /// The body is not JSON.
    #[response(status = 415)]
    NotJson(Problem),
}
