//! Tests of headers, nonces and hostile data.

use http_body_util::BodyExt as _;
use proptest::prelude::*;
use serde_json::json;

use super::*;

const SCRIPTS: &[&str] = &["one();\n", "two();\n"];

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
async fn pages_send_security_headers_and_allow_framing() {
    let (headers, _) = render(Page::new("Title", "")).await;

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
    let page = Page::new("Title", "").with_scripts(SCRIPTS);

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
        let element = format!("<script nonce=\"{nonce}\">\n{script}</script>");
        assert!(html.contains(&element), "{script}");
    }
    assert!(html.contains(&format!("<style nonce=\"{nonce}\">")));
    // The only other script element is the data, which is not executed.
    assert_eq!(html.matches("<script").count(), SCRIPTS.len() + 1);
    assert_ne!(header(&other_headers, "content-security-policy"), policy);
}

#[tokio::test]
async fn issuers_may_be_framed_over_https_or_on_localhost() {
    let (headers, _) = render(Page::new("Title", "")).await;

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
    let (headers, _) = render(Page::new("Title", "").with_api_access()).await;

    let policy = header(&headers, "content-security-policy");
    assert!(policy.contains("connect-src 'self';"));
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
        let html = Page::new("Title", "").with_data(data.clone()).html("n");
        assert_eq!(parse_data(&html), data, "{text}");
    }
}

proptest! {
    #[test]
    fn arbitrary_data_round_trips(text in any::<String>()) {
        let html = Page::new("Title", "").with_data(json!([text])).html("n");
        prop_assert_eq!(parse_data(&html), json!([text]));
    }
}
