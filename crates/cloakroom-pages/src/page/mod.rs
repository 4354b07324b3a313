//! Renders pages and their headers, including the Content-Security-Policy.

mod context;
mod error_page;
mod markup;
mod summary;

use axum::response::{IntoResponse, Response};
use cloakroom_crypto::random_base58;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use http::{HeaderName, HeaderValue, StatusCode};
use serde_json::Value;

pub use self::context::PageContext;
pub use self::error_page::ErrorPages;
pub use self::markup::escape;
pub use self::summary::Summary;
use crate::asset::{Asset, STYLE};

/// More than 128 bits, as required for CSP nonces.
const NONCE_CHARACTERS: usize = 22;

/// Any issuer may be framed and posted to over HTTPS. Plain HTTP is allowed only for localhost, where a simulated
/// issuer may run, and for the page's own origin.
const ISSUERS: &str = "'self' https: http://127.0.0.1:* http://localhost:*";

/// Features that no page uses. Issuers' pages may use others, such as passkeys.
const PERMISSIONS: HeaderValue = HeaderValue::from_static(
    "browsing-topics=(), camera=(), display-capture=(), geolocation=(), microphone=(), midi=(), payment=(), usb=()",
);

/// A page. Values of callers are part of `body` only after [`escape`].
#[derive(Clone, Debug)]
pub struct Page {
    context: PageContext,
    status: StatusCode,
    title: String,
    /// Markup of the whole body, except for data and scripts.
    body: String,
    scripts: &'static [Asset],
    data: Value,
    /// The path of the tenant's colors.
    colors: Option<String>,
    access: Access,
}

/// What a page may do, and where it may be shown.
#[derive(Clone, Copy, Debug, Default)]
struct Access {
    /// Whether merchants and issuers show it in a frame.
    is_framed: bool,
    calls_api: bool,
    opens_issuers: bool,
}

impl Page {
    /// A page for a window of its own.
    pub fn new(context: &PageContext, title: impl Into<String>, body: impl Into<String>) -> Self {
        Self {
            context: context.clone(),
            status: StatusCode::OK,
            title: title.into(),
            body: body.into(),
            scripts: &[],
            data: Value::Null,
            colors: None,
            access: Access::default(),
        }
    }

    /// A page for a frame of a merchant's or an issuer's page.
    pub fn framed(context: &PageContext, title: &str, body: &str) -> Self {
        let mut page = Self::new(context, title, body);
        page.access.is_framed = true;
        page
    }

    #[must_use]
    pub fn with_status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    #[must_use]
    pub fn with_scripts(self, scripts: &'static [Asset]) -> Self {
        Self { scripts, ..self }
    }

    /// Sets the JSON in the `data` element, which the scripts read.
    #[must_use]
    pub fn with_data(self, data: Value) -> Self {
        Self { data, ..self }
    }

    /// Shows merchant and purchase at the top, in the tenant's colors.
    #[must_use]
    pub fn with_summary(mut self, summary: &Summary<'_>) -> Self {
        self.body = format!("{}{}", summary.header(&self.context), self.body);
        self.colors = summary.colors_path();
        self
    }

    /// Allows calls to the vault.
    #[must_use]
    pub fn with_api_access(mut self) -> Self {
        self.access.calls_api = true;
        self
    }

    /// Allows frames of issuers, and forms that are posted to them.
    #[must_use]
    pub fn with_issuers(mut self) -> Self {
        self.access.opens_issuers = true;
        self
    }

    /// The data of the page's scripts.
    pub fn data(&self) -> &Value {
        &self.data
    }

    fn html(&self, nonce: &str) -> String {
        let (title, body) = (escape(&self.title), &self.body);
        let (prefix, language) = (&self.context.prefix, self.context.language.tag());
        let stylesheet = |path: &str| {
            format!("<link rel=\"stylesheet\" nonce=\"{nonce}\" href=\"{prefix}{path}\">\n")
        };
        let mut stylesheets = stylesheet(&STYLE.path());
        stylesheets.extend(self.colors.as_deref().map(stylesheet));
        let scripts: String = self
            .scripts
            .iter()
            .map(|script| {
                let path = script.path();
                format!("<script nonce=\"{nonce}\" src=\"{prefix}{path}\"></script>\n")
            })
            .collect();
        let layout = match self.access.is_framed {
            true => "framed",
            false => "window",
        };
        let data = embedded(&self.data);
        // The empty icon prevents a request for /favicon.ico.
        format!(
            "<!doctype html>\n<html lang=\"{language}\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"robots\" content=\"noindex\">\n\
             <title>{title}</title>\n<link rel=\"icon\" href=\"data:,\">\n{stylesheets}</head>\n\
             <body class=\"{layout}\">\n{body}\n\
             <script type=\"application/json\" id=\"data\">{data}</script>\n{scripts}</body>\n</html>\n"
        )
    }

    /// Allows only what the page needs. Scripts and styles are files of the vault, and need the nonce as well.
    fn policy(&self, nonce: &str) -> String {
        let Access {
            is_framed,
            calls_api,
            opens_issuers,
        } = self.access;
        let connect = if calls_api { "'self'" } else { "'none'" };
        let issuers = if opens_issuers { ISSUERS } else { "'none'" };
        // Helper and notification pages run in frames of merchants and issuers; the others must not be framed.
        let ancestors = match is_framed {
            true => "",
            false => "; frame-ancestors 'none'",
        };
        format!(
            "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; img-src 'self' data:; \
             connect-src {connect}; frame-src {issuers}; form-action {issuers}; base-uri 'none'; \
             require-trusted-types-for 'script'; trusted-types 'none'{ancestors}"
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
        let permissions = [(HeaderName::from_static("permissions-policy"), PERMISSIONS)];
        let html = self.html(&nonce);
        let mut response = (self.status, headers, policy, permissions, html).into_response();
        if !self.access.is_framed {
            let deny = HeaderValue::from_static("DENY");
            response.headers_mut().insert(X_FRAME_OPTIONS, deny);
            // A site that opens the page in a window gets no reference to it.
            let name = HeaderName::from_static("cross-origin-opener-policy");
            let same_origin = HeaderValue::from_static("same-origin");
            response.headers_mut().insert(name, same_origin);
        }
        response
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
