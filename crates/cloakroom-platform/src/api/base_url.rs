//! The base URL of the API, for `Location` headers.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use http::HeaderValue;
use http::header::HOST;
use http::request::Parts;
use http::uri::Authority;

use crate::config::Http;

/// `http.base_url`, or the scheme and host of the request when it is not set.
pub struct BaseUrl(pub String);

/// Router state with access to the settings of the HTTP server.
pub trait HasHttpConfig {
    fn http_config(&self) -> &Http;
}

impl<S: HasHttpConfig + Send + Sync> FromRequestParts<S> for BaseUrl {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Infallible> {
        let host = parts.headers.get(HOST);
        Ok(Self::of(state.http_config(), parts.uri.authority(), host))
    }
}

impl BaseUrl {
    /// The base URL of a request with this URI authority and `Host` header.
    pub fn of(http: &Http, authority: Option<&Authority>, host: Option<&HeaderValue>) -> Self {
        if let Some(url) = &http.base_url {
            return Self(url.as_str().to_owned());
        }
        let scheme = if http.tls_cert_file.is_some() {
            "https"
        } else {
            "http"
        };
        // HTTP/2 has the host in the URI, HTTP/1.1 in the `Host` header.
        let host = host.and_then(|host| host.to_str().ok()?.parse().ok());
        let host: Option<Authority> = authority.cloned().or(host);
        Self(host.map_or_else(String::new, |host| format!("{scheme}://{host}")))
    }
}
