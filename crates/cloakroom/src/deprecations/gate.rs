//! Tells clients that they use something deprecated, and counts it for the operator.

use std::sync::Arc;

use axum::extract::Request;
use axum::response::Response;
use http::header::{HOST, LINK};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::{Deprecated, Deprecation};
use crate::api::{BaseUrl, Route};
use crate::caller::Caller;
use crate::vault::Vault;

const DEPRECATION: HeaderName = HeaderName::from_static("deprecation");
const SUNSET: HeaderName = HeaderName::from_static("sunset");

/// What this gate adds to answers.
pub const HEADERS: [HeaderName; 3] = [DEPRECATION, SUNSET, LINK];

/// Stands behind the look-up of the key. Success or failure, an answer tells that its operation is
/// deprecated; whatever else was used is counted.
pub async fn tell_and_count<F>(
    vault: &Vault,
    request: Request,
    next: impl FnOnce(Request) -> F,
) -> Response
where
    F: Future<Output = Response>,
{
    let Some(caller) = request.extensions().get::<Arc<Caller>>().cloned() else {
        return next(request).await;
    };
    if caller.is_legacy {
        caller.uses.note(Deprecated::LegacyRateLimits);
    }
    let http = &vault.config.http;
    let route = Route::of(request.extensions());
    let told = Deprecated::of_operation(request.method(), route).map(|operation| {
        caller.uses.note(operation);
        let (authority, host) = (request.uri().authority(), request.headers().get(HOST));
        (operation.row(), BaseUrl::of(http, authority, host))
    });
    let mut response = next(request).await;
    if let Some((row, base_url)) = told {
        tell(row, &base_url.0, response.headers_mut());
    }
    for used in caller.uses.noted() {
        vault.deprecations.add(&caller, used.row());
    }
    response
}

fn tell(row: &Deprecation, base_url: &str, headers: &mut HeaderMap) {
    let dates = [
        (DEPRECATION, row.since_header()),
        (SUNSET, row.until_header()),
    ];
    for (name, text) in dates {
        if let Some(Ok(text)) = text.map(HeaderValue::try_from) {
            headers.insert(name, text);
        }
    }
    if let Some(path) = row.successor {
        let link = format!("<{base_url}{path}>; rel=\"successor-version\"");
        if let Ok(link) = HeaderValue::try_from(link) {
            headers.insert(LINK, link);
        }
    }
}
