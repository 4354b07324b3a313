//! The address under which the caller reached the API, for `Location` headers.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use http::HeaderValue;
use http::header::HOST;
use http::request::Parts;
use http::uri::Authority;

use crate::config::Http;
use crate::vault::Vault;

/// `http.base_url`, or what the request itself says when that is not set.
pub struct BaseUrl(pub String);

impl FromRequestParts<Vault> for BaseUrl {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, vault: &Vault) -> Result<Self, Infallible> {
        let host = parts.headers.get(HOST);
        Ok(Self::of(&vault.config.http, parts.uri.authority(), host))
    }
}

impl BaseUrl {
    /// What the request says is the authority of its address and its header `Host`.
    pub fn of(http: &Http, authority: Option<&Authority>, host: Option<&HeaderValue>) -> Self {
        if let Some(url) = &http.base_url {
            return Self(url.as_str().to_owned());
        }
        let scheme = if http.tls_cert_file.is_some() {
            "https"
        } else {
            "http"
        };
        // HTTP/2 names the host in the URI, HTTP/1.1 in a header.
        let host = host.and_then(|host| host.to_str().ok()?.parse().ok());
        let host: Option<Authority> = authority.cloned().or(host);
        Self(host.map_or_else(String::new, |host| format!("{scheme}://{host}")))
    }
}
