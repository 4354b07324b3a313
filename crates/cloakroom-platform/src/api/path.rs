//! IDs in paths, and the matched route.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::{FromRequestParts, Path};
use http::Extensions;
use http::request::Parts;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// The decoded `{id}` segment of the path. Empty, which matches no resource, if it is not percent-encoded UTF-8.
pub struct PathId(pub String);

impl<S: Send + Sync> FromRequestParts<S> for PathId {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Infallible> {
        let id = Path::<String>::from_request_parts(parts, state).await;
        Ok(Self(id.map_or_else(|_| String::new(), |Path(id)| id)))
    }
}

/// Two decoded IDs of a path such as `/applications/{id}/keys/{key_id}`, in order.
pub struct PathIds(pub String, pub String);

impl<S: Send + Sync> FromRequestParts<S> for PathIds {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Infallible> {
        let ids = Path::<(String, String)>::from_request_parts(parts, state).await;
        let (outer, inner) = ids.map_or_else(|_| Default::default(), |Path(ids)| ids);
        Ok(Self(outer, inner))
    }
}

/// All characters except the unreserved ones of RFC 3986.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Percent-encodes an ID for a path segment.
pub fn encode_segment(id: &str) -> String {
    utf8_percent_encode(id, ENCODED).to_string()
}

/// The template of the matched route, such as `/tokens/{id}`. An extension of the request.
#[derive(Clone, Debug)]
pub struct Route(pub Arc<str>);

impl Route {
    /// The route of a request; empty if none matches.
    pub fn of(extensions: &Extensions) -> &str {
        extensions.get().map_or("", |Self(template)| template)
    }
}
