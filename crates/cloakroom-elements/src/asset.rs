//! Scripts of web elements, with their hashes and caching headers.

use std::collections::BTreeMap;

use axum::Extension;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use cloakroom_platform::api::SharedBody;
use http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY,
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde::Deserialize;

/// Hashes of all scripts, as built.
pub(crate) const HASHES: &str = include_str!("../../../web/elements/dist/assets.json");

/// The URL contains the hash of the content.
const IMMUTABLE: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");
/// The URL contains the version of a client package: an upgrade of the vault takes effect within minutes.
const SHORT: HeaderValue = HeaderValue::from_static("public, max-age=300");
const GZIP: HeaderValue = HeaderValue::from_static("gzip");
const JAVASCRIPT: HeaderValue = HeaderValue::from_static("text/javascript; charset=utf-8");
/// Pages with cross-origin isolation may load the scripts too.
const CROSS_ORIGIN: (HeaderName, HeaderValue) = (
    HeaderName::from_static("cross-origin-resource-policy"),
    HeaderValue::from_static("cross-origin"),
);

/// A script as built, plain and compressed.
pub(crate) struct Script {
    name: &'static str,
    plain: &'static [u8],
    compressed: &'static [u8],
}

macro_rules! script {
    ($name:literal) => {
        Script {
            name: $name,
            plain: include_bytes!(concat!("../../../web/elements/dist/", $name)),
            compressed: include_bytes!(concat!("../../../web/elements/dist/", $name, ".gz")),
        }
    };
}

pub(crate) const CLIENT: Script = script!("client.js");
pub(crate) const COORDINATOR: Script = script!("coordinator.js");
pub(crate) const FIELD: Script = script!("field.js");

#[derive(Deserialize)]
struct Hash {
    /// The beginning of the digest in the integrity value.
    version: String,
}

impl Script {
    /// Responds with the script, or with 304 if the browser has it.
    pub(crate) fn respond(&self, request: &HeaderMap, query: Option<&str>) -> Response {
        let version = self.version();
        let is_exact = query == Some(&format!("v={version}"));
        let caching = if is_exact { IMMUTABLE } else { SHORT };
        let tag = format!("\"{version}\"");
        let headers = [
            (CACHE_CONTROL, caching),
            (
                ETAG,
                HeaderValue::try_from(&tag).unwrap_or(HeaderValue::from_static("\"\"")),
            ),
            (VARY, HeaderValue::from(ACCEPT_ENCODING)),
            CROSS_ORIGIN,
        ];
        if contains(request, &IF_NONE_MATCH, &tag) {
            return (StatusCode::NOT_MODIFIED, headers).into_response();
        }
        let content_type = [(CONTENT_TYPE, JAVASCRIPT)];
        match contains(request, &ACCEPT_ENCODING, "gzip") {
            true => {
                let coding = [(CONTENT_ENCODING, GZIP)];
                let body = Bytes::from_static(self.compressed);
                (headers, content_type, coding, Extension(SharedBody), body).into_response()
            }
            false => {
                let body = Bytes::from_static(self.plain);
                (headers, content_type, Extension(SharedBody), body).into_response()
            }
        }
    }

    fn version(&self) -> String {
        let hashes: BTreeMap<&str, Hash> = serde_json::from_str(HASHES).unwrap_or_default();
        hashes
            .get(self.name)
            .map_or_else(String::new, |hash| hash.version.clone())
    }
}

/// Whether a list in a request header has this member. A coding with `q=0` does not occur in browsers.
fn contains(headers: &HeaderMap, name: &HeaderName, member: &str) -> bool {
    let values = headers
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|listed| {
        listed
            .trim()
            .trim_start_matches("W/")
            .split(';')
            .next()
            .is_some_and(|listed| listed.trim() == member)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_script_has_a_hash_and_is_small() {
        for (script, budget) in [(CLIENT, 25_000), (COORDINATOR, 60_000), (FIELD, 60_000)] {
            assert_eq!(script.version().len(), 16, "{}", script.name);
            assert!(script.compressed.len() <= budget, "{}", script.name);
            // The magic number of gzip.
            assert_eq!(script.compressed[..2], [0x1f, 0x8b], "{}", script.name);
        }
    }

    #[test]
    fn only_urls_with_the_hash_are_immutable() {
        let version = format!("v={}", CLIENT.version());
        for (query, expected) in [
            (None, SHORT),
            (Some("v=1"), SHORT),
            (Some(version.as_str()), IMMUTABLE),
        ] {
            let response = CLIENT.respond(&HeaderMap::new(), query);
            assert_eq!(response.headers()[CACHE_CONTROL], expected, "{query:?}");
        }
    }

    #[test]
    fn browsers_get_compressed_or_no_content_as_they_ask() {
        let tag = format!("\"{}\"", CLIENT.version());
        let cases = [
            (ACCEPT_ENCODING, "gzip, br", StatusCode::OK, true),
            (ACCEPT_ENCODING, "br", StatusCode::OK, false),
            (IF_NONE_MATCH, tag.as_str(), StatusCode::NOT_MODIFIED, false),
            (IF_NONE_MATCH, "\"other\"", StatusCode::OK, false),
        ];
        for (name, value, status, is_compressed) in cases {
            let mut request = HeaderMap::new();
            request.insert(&name, value.parse().unwrap());
            let response = CLIENT.respond(&request, None);
            assert_eq!(response.status(), status, "{name}: {value}");
            let coding = response.headers().contains_key(CONTENT_ENCODING);
            assert_eq!(coding, is_compressed, "{name}: {value}");
        }
    }
}
