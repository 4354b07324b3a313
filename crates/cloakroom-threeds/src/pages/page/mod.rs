//! Renders a page and its headers, including the Content-Security-Policy.

use axum::response::{IntoResponse, Response};
use cloakroom_crypto::random_base58;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use serde_json::Value;

const STYLE: &str = include_str!("../page.css");

/// More than 128 bits, as required for CSP nonces.
const NONCE_CHARACTERS: usize = 22;

/// Any issuer may be framed and posted to over HTTPS. Plain HTTP is allowed only for localhost, where a simulated
/// issuer may run, and for the page's own origin.
const ISSUERS: &str = "'self' https: http://127.0.0.1:* http://localhost:*";

/// A page with constant text. Variable values are embedded only as JSON data.
#[derive(Clone, Debug)]
pub struct Page {
    title: &'static str,
    body: &'static str,
    scripts: &'static [&'static str],
    data: Value,
    has_api_access: bool,
}

impl Page {
    pub(super) const fn new(title: &'static str, body: &'static str) -> Self {
        Self {
            title,
            body,
            scripts: &[],
            data: Value::Null,
            has_api_access: false,
        }
    }

    pub(super) const fn with_scripts(mut self, scripts: &'static [&'static str]) -> Self {
        self.scripts = scripts;
        self
    }

    /// Sets the JSON in the `data` element, which the scripts read.
    pub(super) fn with_data(self, data: Value) -> Self {
        Self { data, ..self }
    }

    pub(super) fn with_api_access(self) -> Self {
        Self {
            has_api_access: true,
            ..self
        }
    }

    #[cfg(test)]
    pub(super) fn data(&self) -> &Value {
        &self.data
    }

    fn html(&self, nonce: &str) -> String {
        let Self { title, body, .. } = self;
        let data = embedded(&self.data);
        let scripts: String = self
            .scripts
            .iter()
            .map(|script| format!("<script nonce=\"{nonce}\">\n{script}</script>\n"))
            .collect();
        // The empty icon prevents a request for /favicon.ico.
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>{title}</title>\n<link rel=\"icon\" href=\"data:,\">\n\
             <style nonce=\"{nonce}\">\n{STYLE}</style>\n</head>\n<body>\n<main>{body}</main>\n\
             <script type=\"application/json\" id=\"data\">{data}</script>\n{scripts}</body>\n</html>\n"
        )
    }

    /// Allows only what the pages need. Framing is not restricted, except for the hosted page: helper and notification
    /// pages run in frames of merchants and issuers.
    fn policy(&self, nonce: &str) -> String {
        let connect = if self.has_api_access {
            "'self'"
        } else {
            "'none'"
        };
        // The hosted page, which calls the vault, runs in the top-level window; the others run in frames.
        let ancestors = match self.has_api_access {
            true => "; frame-ancestors 'none'",
            false => "",
        };
        format!(
            "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; img-src data:; \
             connect-src {connect}; frame-src {ISSUERS}; form-action {ISSUERS}; base-uri 'none'{ancestors}"
        )
    }
}

impl IntoResponse for Page {
    fn into_response(self) -> Response {
        let nonce = random_base58(NONCE_CHARACTERS);
        let headers = [
            (CONTENT_TYPE, "text/html; charset=utf-8"),
            (CACHE_CONTROL, "no-store"),
            (REFERRER_POLICY, "no-referrer"),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        ];
        let policy = [(CONTENT_SECURITY_POLICY, self.policy(&nonce))];
        (headers, policy, self.html(&nonce)).into_response()
    }
}

/// Escapes JSON so that it cannot end its script element.
fn embedded(data: &Value) -> String {
    let mut text = String::new();
    for letter in data.to_string().chars() {
        match letter {
            '<' => text.push_str("\\u003c"),
            '>' => text.push_str("\\u003e"),
            '&' => text.push_str("\\u0026"),
            '\u{2028}' => text.push_str("\\u2028"),
            '\u{2029}' => text.push_str("\\u2029"),
            other => text.push(other),
        }
    }
    text
}

#[cfg(test)]
mod tests;
