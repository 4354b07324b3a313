//! Middleware that adds deprecation headers to responses and counts the use of deprecated features.

use std::sync::Arc;

use axum::extract::Request;
use axum::response::Response;
use cloakroom_platform::api::{BaseUrl, Route};
use http::header::{HOST, LINK};
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::caller::Caller;
use crate::deprecations::{Counts, DeprecatedFeature, Deprecation};
use crate::vault::Vault;

const DEPRECATION: HeaderName = HeaderName::from_static("deprecation");
const SUNSET: HeaderName = HeaderName::from_static("sunset");

/// Headers that this middleware adds to responses, which CORS must expose to browsers.
pub const HEADERS: [HeaderName; 3] = [DEPRECATION, SUNSET, LINK];

/// Adds headers to every response of a deprecated operation, including errors, and counts all
/// deprecated features that the request used.
///
/// Runs after authentication, because uses are counted per application.
pub async fn add_headers_and_count<F>(
    vault: &Vault,
    counts: &Counts,
    request: Request,
    next: impl FnOnce(Request) -> F,
) -> Response
where
    F: Future<Output = Response>,
{
    let Some(caller) = request.extensions().get::<Arc<Caller>>().cloned() else {
        return next(request).await;
    };
    // Every route accepts legacy keys, so no handler marks them.
    if caller.is_legacy {
        caller
            .deprecated_features
            .mark(DeprecatedFeature::LegacyRateLimits);
    }
    let http = &vault.config.http;
    let route = Route::of(request.extensions());
    let operation = DeprecatedFeature::of_operation(request.method(), route).map(|feature| {
        caller.deprecated_features.mark(feature);
        let (authority, host) = (request.uri().authority(), request.headers().get(HOST));
        (feature.row(), BaseUrl::of(http, authority, host))
    });
    let mut response = next(request).await;
    if let Some((row, base_url)) = operation {
        add_headers(row, &base_url.0, response.headers_mut());
    }
    for feature in caller.deprecated_features.marked() {
        counts.add(&caller, feature.row());
    }
    response
}

/// Adds `Deprecation`, `Sunset` and `Link`, as far as the table has their values.
fn add_headers(row: &Deprecation, base_url: &str, headers: &mut HeaderMap) {
    let dates = [
        (DEPRECATION, row.since_header()),
        (SUNSET, row.until_header()),
    ];
    for (name, date) in dates {
        if let Some(Ok(value)) = date.map(HeaderValue::try_from) {
            headers.insert(name, value);
        }
    }
    if let Some(path) = row.successor {
        let link = format!("<{base_url}{path}>; rel=\"successor-version\"");
        if let Ok(link) = HeaderValue::try_from(link) {
            headers.insert(LINK, link);
        }
    }
}
