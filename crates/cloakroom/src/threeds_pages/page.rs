//! A page as it is sent: its parts put together, and the headers that say what it may do.

use axum::response::{IntoResponse, Response};
use cloakroom_crypto::random_base58;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use serde_json::Value;

const STYLE: &str = include_str!("page.css");

/// More than 128 bits, as the rules for such nonces ask.
const NONCE_CHARACTERS: usize = 22;

/// Any issuer may be framed and posted to. Plain HTTP only goes to this machine, where a simulated issuer
/// may be, and to ourselves, wherever that is.
const ISSUERS: &str = "'self' https: http://127.0.0.1:* http://localhost:*";

/// A page of constant text. What varies stands in it as data only.
#[derive(Clone, Debug)]
pub struct Page {
    title: &'static str,
    body: &'static str,
    scripts: &'static [&'static str],
    data: Value,
    calls_the_vault: bool,
}

impl Page {
    pub(super) const fn new(title: &'static str, body: &'static str) -> Self {
        Self {
            title,
            body,
            scripts: &[],
            data: Value::Null,
            calls_the_vault: false,
        }
    }

    pub(super) const fn with_scripts(mut self, scripts: &'static [&'static str]) -> Self {
        self.scripts = scripts;
        self
    }

    /// What the scripts find in the element `data`.
    pub(super) fn with_data(self, data: Value) -> Self {
        Self { data, ..self }
    }

    pub(super) fn calling_the_vault(self) -> Self {
        Self {
            calls_the_vault: true,
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
        // The empty icon keeps browsers from asking for one.
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>{title}</title>\n<link rel=\"icon\" href=\"data:,\">\n\
             <style nonce=\"{nonce}\">\n{STYLE}</style>\n</head>\n<body>\n<main>{body}</main>\n\
             <script type=\"application/json\" id=\"data\">{data}</script>\n{scripts}</body>\n</html>\n"
        )
    }

    /// Nothing is allowed but what these pages do. Whoever frames a page is not restricted: that is
    /// what they are for.
    fn policy(&self, nonce: &str) -> String {
        let connect = if self.calls_the_vault {
            "'self'"
        } else {
            "'none'"
        };
        // The page that calls the vault is the whole window; the others stand in frames.
        let ancestors = match self.calls_the_vault {
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

/// JSON that stays inside of the element it stands in, whatever its texts hold.
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
mod tests {
    use http_body_util::BodyExt as _;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const SCRIPTS: &[&str] = &["one();\n", "two();\n"];

    async fn sent(page: Page) -> (http::HeaderMap, String) {
        let (parts, body) = page.into_response().into_parts();
        assert_eq!(parts.status, 200);
        let body = body.collect().await.unwrap().to_bytes();
        (parts.headers, String::from_utf8(body.to_vec()).unwrap())
    }

    fn header(headers: &http::HeaderMap, name: &str) -> String {
        headers[name].to_str().unwrap().to_owned()
    }

    /// The one text between two others.
    fn between<'a>(text: &'a str, before: &str, after: &str) -> &'a str {
        let (_, rest) = text.split_once(before).unwrap();
        rest.split_once(after).unwrap().0
    }

    #[tokio::test]
    async fn a_page_is_not_stored_not_guessed_at_and_may_be_framed() {
        let (headers, _) = sent(Page::new("Title", "")).await;

        let expected = [
            ("content-type", "text/html; charset=utf-8"),
            ("cache-control", "no-store"),
            ("referrer-policy", "no-referrer"),
            ("x-content-type-options", "nosniff"),
        ];
        for (name, value) in expected {
            assert_eq!(header(&headers, name), value, "{name}");
        }
        assert!(!headers.contains_key("x-frame-options"));
        assert!(!headers.contains_key("cross-origin-opener-policy"));
        assert!(!header(&headers, "content-security-policy").contains("frame-ancestors"));
    }

    #[tokio::test]
    async fn only_the_scripts_and_styles_of_this_answer_run() {
        let page = Page::new("Title", "").with_scripts(SCRIPTS);

        let (headers, html) = sent(page.clone()).await;
        let (other_headers, _) = sent(page).await;

        let policy = header(&headers, "content-security-policy");
        let nonce = between(&policy, "script-src 'nonce-", "';").to_owned();
        assert_eq!(nonce.len(), NONCE_CHARACTERS);
        assert!(policy.starts_with("default-src 'none'; "));
        assert!(policy.contains(&format!("style-src 'nonce-{nonce}';")));
        assert!(policy.contains("base-uri 'none'"));
        assert!(policy.contains("connect-src 'none';"));
        assert!(!policy.contains("unsafe"));
        for script in SCRIPTS {
            let element = format!("<script nonce=\"{nonce}\">\n{script}</script>");
            assert!(html.contains(&element), "{script}");
        }
        assert!(html.contains(&format!("<style nonce=\"{nonce}\">")));
        // Besides these there is only the data, which does not run.
        assert_eq!(html.matches("<script").count(), SCRIPTS.len() + 1);
        assert_ne!(header(&other_headers, "content-security-policy"), policy);
    }

    #[tokio::test]
    async fn any_issuer_on_https_and_a_simulated_one_on_this_machine_may_be_opened() {
        let (headers, _) = sent(Page::new("Title", "")).await;

        let policy = header(&headers, "content-security-policy");
        for directive in ["frame-src ", "form-action "] {
            let sources: Vec<&str> = between(&policy, directive, ";").split(' ').collect();
            let expected = [
                "'self'",
                "https:",
                "http://127.0.0.1:*",
                "http://localhost:*",
            ];
            assert_eq!(sources, expected, "{directive}");
        }
    }

    #[tokio::test]
    async fn a_page_that_calls_the_vault_calls_nobody_else() {
        let (headers, _) = sent(Page::new("Title", "").calling_the_vault()).await;

        let policy = header(&headers, "content-security-policy");
        assert!(policy.contains("connect-src 'self';"));
    }

    /// What a script would find in the data of a page, which must end where it is meant to.
    fn found(html: &str) -> Value {
        let data = between(html, "id=\"data\">", "<");
        assert!(!data.contains(['>', '&', '\u{2028}', '\u{2029}']));
        assert_eq!(html.matches("</script>").count(), 1);
        serde_json::from_str(data).unwrap()
    }

    #[test]
    fn data_cannot_leave_its_element() {
        let hostile = [
            "</script><script>alert(1)</script>",
            "<!--<script>",
            "]]>",
            "&lt;&quot;&#x3c;",
            "\u{2028}\u{2029}",
            "\"},\"closes\":true,\"x\":{\"",
            "\\u003c/script>",
            "javascript:alert(1)//\n\r\t\0",
        ];
        for text in hostile {
            let data = json!({ text: text, "list": [text] });
            let html = Page::new("Title", "").with_data(data.clone()).html("n");
            assert_eq!(found(&html), data, "{text}");
        }
    }

    proptest! {
        #[test]
        fn data_arrives_as_it_was_whatever_it_is(text in any::<String>()) {
            let html = Page::new("Title", "").with_data(json!([text])).html("n");
            prop_assert_eq!(found(&html), json!([text]));
        }
    }
}
