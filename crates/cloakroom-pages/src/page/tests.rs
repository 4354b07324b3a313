//! Tests of headers, nonces and hostile data.

use http_body_util::BodyExt as _;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::asset::{FRAME, HOSTED};

const SCRIPTS: &[Asset] = &[FRAME, HOSTED];

fn context() -> PageContext {
    PageContext::new("/vault", &http::HeaderMap::new())
}

fn page() -> Page {
    Page::new(&context(), "Title", "")
}

fn framed() -> Page {
    Page::framed(&context(), "Title", "")
}

async fn render(page: Page) -> (http::HeaderMap, String) {
    let (parts, body) = page.into_response().into_parts();
    assert_eq!(parts.status, 200);
    let body = body.collect().await.unwrap().to_bytes();
    (parts.headers, String::from_utf8(body.to_vec()).unwrap())
}

fn header(headers: &http::HeaderMap, name: &str) -> String {
    headers[name].to_str().unwrap().to_owned()
}

/// The text between `before` and `after`.
fn between<'a>(text: &'a str, before: &str, after: &str) -> &'a str {
    let (_, rest) = text.split_once(before).unwrap();
    rest.split_once(after).unwrap().0
}

#[tokio::test]
async fn pages_in_frames_send_security_headers() {
    let (headers, _) = render(framed().with_issuers()).await;

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
async fn only_scripts_and_styles_with_the_nonce_run() {
    let page = framed().with_scripts(SCRIPTS);

    let (headers, html) = render(page.clone()).await;
    let (other_headers, _) = render(page).await;

    let policy = header(&headers, "content-security-policy");
    let nonce = between(&policy, "script-src 'nonce-", "';").to_owned();
    assert_eq!(nonce.len(), NONCE_CHARACTERS);
    assert!(policy.starts_with("default-src 'none'; "));
    assert!(policy.contains(&format!("style-src 'nonce-{nonce}';")));
    assert!(policy.contains("base-uri 'none'"));
    assert!(policy.contains("connect-src 'none';"));
    assert!(!policy.contains("unsafe"));
    for script in SCRIPTS {
        let path = script.path();
        let element = format!("<script nonce=\"{nonce}\" src=\"/vault{path}\"></script>");
        assert!(html.contains(&element), "{path}");
    }
    let style = format!(
        "<link rel=\"stylesheet\" nonce=\"{nonce}\" href=\"/vault/pages/assets/page.css?v="
    );
    assert!(html.contains(&style));
    assert!(!html.contains("<style") && !html.contains("style=") && !html.contains(" on"));
    // The only other script element is the data, which is not executed.
    assert_eq!(html.matches("<script").count(), SCRIPTS.len() + 1);
    assert_ne!(header(&other_headers, "content-security-policy"), policy);
}

#[tokio::test]
async fn issuers_may_be_framed_over_https_or_on_localhost() {
    let (headers, _) = render(framed().with_issuers()).await;

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
async fn pages_connect_only_to_their_own_origin() {
    let (headers, _) = render(page().with_api_access()).await;

    let policy = header(&headers, "content-security-policy");
    assert!(policy.contains("connect-src 'self';"));
}

#[tokio::test]
async fn pages_in_windows_cannot_be_framed_and_open_nothing_unless_allowed() {
    let (headers, _) = render(page()).await;

    let policy = header(&headers, "content-security-policy");
    assert!(policy.ends_with("; frame-ancestors 'none'"), "{policy}");
    assert_eq!(header(&headers, "x-frame-options"), "DENY");
    let opener = header(&headers, "cross-origin-opener-policy");
    assert_eq!(opener, "same-origin");
    for directive in ["connect-src", "frame-src", "form-action"] {
        assert!(policy.contains(&format!("{directive} 'none';")), "{policy}");
    }
}

#[test]
fn values_are_escaped() {
    let hostile = "</title><script>alert(1)</script>\"'&";
    let summary = Summary {
        merchant: hostile,
        amount: None,
        reference: Some(hostile),
        branding: None,
    };
    let html = Page::new(&context(), hostile, "")
        .with_summary(&summary)
        .html("n");
    assert_eq!(html.matches("<script").count(), 1, "{html}");
    let escaped = "&lt;/title&gt;&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;";
    assert_eq!(html.matches(escaped).count(), 3, "{html}");
}

/// Parses the data of a page as a script would, and checks that it does not leave its element.
fn parse_data(html: &str) -> Value {
    let data = between(html, "id=\"data\">", "<");
    assert!(!data.contains(['>', '&', '\u{2028}', '\u{2029}']));
    assert_eq!(html.matches("</script>").count(), 1);
    serde_json::from_str(data).unwrap()
}

#[test]
fn hostile_data_cannot_leave_its_element() {
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
        let html = page().with_data(data.clone()).html("n");
        assert_eq!(parse_data(&html), data, "{text}");
    }
}

proptest! {
    #[test]
    fn arbitrary_data_round_trips(text in any::<String>()) {
        let html = page().with_data(json!([text])).html("n");
        prop_assert_eq!(parse_data(&html), json!([text]));
    }
}
