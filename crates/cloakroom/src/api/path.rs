//! An id in the path, decoded once.

use std::convert::Infallible;

use axum::extract::{FromRequestParts, Path};
use http::request::Parts;

/// The `{id}` segment of the path; empty, and so nobody's id, when it is not percent-encoded UTF-8.
pub struct PathId(pub String);

impl<S: Send + Sync> FromRequestParts<S> for PathId {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Infallible> {
        let id = Path::<String>::from_request_parts(parts, state).await;
        Ok(Self(id.map_or_else(|_| String::new(), |Path(id)| id)))
    }
}
