//! HTTP responses for key errors.

use cloakroom_platform::api::ApiError;
use cloakroom_platform::telemetry::catalog;

use super::Error;

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match error {
            Error::Storage(error) => error.into(),
            Error::Provider(_) => Self::unavailable(
                "key_provider_unavailable",
                "The key provider is unavailable; retry the request later.",
            ),
            Error::Integrity => {
                catalog::INTEGRITY_ERRORS.increment(1);
                tracing::error!(
                    error.kind = "integrity_error",
                    "an encrypted value cannot be decrypted"
                );
                Self::internal("integrity_error")
            }
            Error::WrongKey(_) => key_failure("wrong_key"),
            Error::Missing(_) => key_failure("missing_key"),
            Error::AlteredKeyset(_) => key_failure("altered_keyset"),
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
        "a key is not usable; run `cloakroom doctor` for details"
    );
    ApiError::internal(code)
}
