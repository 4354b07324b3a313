//! An id in the path, decoded once.

use axum::extract::{FromRequestParts, Path};
use http::request::Parts;

use super::ApiError;

/// The `{id}` segment of the path.
pub struct PathId(pub String);

impl<S: Send + Sync> FromRequestParts<S> for PathId {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        match Path::<String>::from_request_parts(parts, state).await {
            Ok(Path(id)) => Ok(Self(id)),
            Err(_) => Err(ApiError::invalid("id", "must be percent-encoded UTF-8")),
        }
    }
}
