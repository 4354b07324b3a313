//! Velocity over HTTP: the status of each failure.

use super::Error;
use crate::api::ApiError;

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match error {
            Error::Exceeded { retry_after } => Self::too_many(
                "velocity_exceeded",
                "Too many card numbers were tried: wait before you send another one.",
                retry_after,
            ),
            Error::Unrecorded(error) => error.into(),
            Error::Keys(error) => error.into(),
        }
    }
}
