//! Ids in the path: decoded once, and encoded for addresses; and the route that a path meets.

use std::convert::Infallible;

use axum::extract::{FromRequestParts, MatchedPath, Path};
use http::request::Parts;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// The `{id}` segment of the path; empty, and so nobody's id, when it is not percent-encoded UTF-8.
pub struct PathId(pub String);

impl<S: Send + Sync> FromRequestParts<S> for PathId {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Infallible> {
        let id = Path::<String>::from_request_parts(parts, state).await;
        Ok(Self(id.map_or_else(|_| String::new(), |Path(id)| id)))
    }
}

/// Two ids of a path, such as `/applications/{id}/keys/{key_id}`, in order.
pub struct PathIds(pub String, pub String);

impl<S: Send + Sync> FromRequestParts<S> for PathIds {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Infallible> {
        let ids = Path::<(String, String)>::from_request_parts(parts, state).await;
        let (outer, inner) = ids.map_or_else(|_| Default::default(), |Path(ids)| ids);
        Ok(Self(outer, inner))
    }
}

/// Everything but the characters that never need it.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// An id as it stands in a path.
pub fn encode_segment(id: &str) -> String {
    utf8_percent_encode(id, ENCODED).to_string()
}
/// The template of a route, without the path that the whole API is served under; empty for what meets none.
pub fn route_of<'a>(prefix: &str, matched: Option<&'a MatchedPath>) -> &'a str {
    let path = matched.map_or("", MatchedPath::as_str);
    path.strip_prefix(prefix).unwrap_or(path)
}
