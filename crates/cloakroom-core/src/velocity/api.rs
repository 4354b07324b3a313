//! HTTP status of velocity errors.

use cloakroom_platform::api::ApiError;

use super::Error;

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match error {
            Error::Exceeded { retry_after } => Self::too_many(
                "velocity_exceeded",
                "Too many different card numbers were sent; retry later.",
                retry_after,
            ),
            Error::AuditError(error) => error.into(),
            Error::Keys(error) => error.into(),
        }
    }
}
