//! The status of each failure of a key.

use super::Error;
use crate::api::ApiError;

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match error {
            Error::Storage(error) => error.into(),
            Error::ProviderUnavailable => Self::unavailable(
                "key_provider_unavailable",
                "The key provider did not answer in time.",
            ),
            Error::Integrity => {
                metrics::counter!("integrity_errors_total").increment(1);
                tracing::error!(
                    error.kind = "integrity_error",
                    "a sealed value does not open"
                );
                Self::internal("integrity_error")
            }
            Error::WrongKey(_) => key_failure("wrong_key"),
            Error::Missing(_) => key_failure("missing_key"),
            Error::RootKey(_)
            | Error::WrongEnvironment { .. }
            | Error::NotInitialized
            | Error::SystemKeysLost
            | Error::Seal => key_failure("key_error"),
        }
    }
}

fn key_failure(code: &'static str) -> ApiError {
    tracing::error!(
        error.kind = code,
        "a key is not usable; `cloakroom doctor` says more"
    );
    ApiError::internal(code)
}
