//! Tells clients that they use something deprecated, and counts it for the operator.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::header::{HOST, LINK};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::{Deprecated, Deprecation};
use crate::api::BaseUrl;
use crate::caller::Caller;
use crate::vault::Vault;

const DEPRECATION: HeaderName = HeaderName::from_static("deprecation");
const SUNSET: HeaderName = HeaderName::from_static("sunset");

/// What this gate adds to answers.
pub const HEADERS: [HeaderName; 3] = [DEPRECATION, SUNSET, LINK];

/// Stands behind the look-up of the key. Success or failure, the answer tells what was used.
pub async fn tell_and_count(State(vault): State<Vault>, request: Request, next: Next) -> Response {
    let Some(caller) = request.extensions().get::<Arc<Caller>>().cloned() else {
        return next.run(request).await;
    };
    if caller.is_legacy {
        caller.uses.note(Deprecated::LegacyRateLimits);
    }
    let authority = request.uri().authority().cloned();
    let host = request.headers().get(HOST).cloned();
    let mut response = next.run(request).await;
    for used in caller.uses.noted() {
        let row = used.row();
        let base_url = BaseUrl::of(&vault.config.http, authority.as_ref(), host.as_ref());
        tell(row, &base_url.0, response.headers_mut());
        vault.deprecations.add(&caller, row);
    }
    response
}

/// Of several things, each has its link; the dates are those of the first.
fn tell(row: &Deprecation, base_url: &str, headers: &mut HeaderMap) {
    let dates = [
        (DEPRECATION, row.since_header()),
        (SUNSET, row.until_header()),
    ];
    for (name, text) in dates {
        if let Some(Ok(text)) = text.map(HeaderValue::try_from) {
            headers.entry(name).or_insert(text);
        }
    }
    if let Some(path) = row.successor {
        let link = format!("<{base_url}{path}>; rel=\"successor-version\"");
        if let Ok(link) = HeaderValue::try_from(link) {
            headers.append(LINK, link);
        }
    }
}
