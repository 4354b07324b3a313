//! What all pages have in common: files, languages, and errors as pages.

use cloakroom_testkit::TestVault;
use http::{Method, StatusCode};

use super::{navigate, text};

/// Covers 31.7.
#[tokio::test]
async fn errors_are_pages_for_browsers_and_problems_for_others() {
    let vault = TestVault::start().await;
    let unknown = "/checkout/2222222222222222222222222222222B";
    let redirect = "/3ds/redirect/c06d0789-0a38-40be-b7cc-c28a718f76f1?apiKey=x";
    let cases = [
        (
            unknown,
            "en",
            StatusCode::NOT_FOUND,
            "This page cannot be shown",
        ),
        (
            unknown,
            "de-CH",
            StatusCode::NOT_FOUND,
            "Diese Seite kann nicht angezeigt werden",
        ),
        (
            redirect,
            "fr",
            StatusCode::UNAUTHORIZED,
            "Cette page ne peut pas être affichée",
        ),
        (
            redirect,
            "pt-BR",
            StatusCode::UNAUTHORIZED,
            "Não é possível mostrar esta página",
        ),
    ];
    for (path, language, status, title) in cases {
        let page = navigate(&vault, path, language).await;
        assert_eq!(page.status, status, "{path}");
        assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
        assert!(
            page.header("content-security-policy")
                .contains("frame-ancestors 'none'")
        );
        let trace = page.header("bt-trace-id");
        assert!(!trace.is_empty());
        let html = text(&page);
        assert!(html.contains(title) && html.contains(trace), "{html}");
        assert!(!html.contains("BT-API-KEY"), "{html}");
    }
    let problem = vault.client_with(None).get(unknown).await;
    assert_eq!(problem.body["code"], "not_found");
}

/// The trace id comes from the client.
#[tokio::test]
async fn trace_ids_are_escaped_in_error_pages() {
    let vault = TestVault::start().await;
    let client = vault.client_with(None);
    let request = client
        .request(Method::GET, "/checkout/unknown")
        .header("accept", "text/html")
        .header("bt-trace-id", "<script>alert(1)</script>");
    let page = client.send(request).await;
    assert!(text(&page).contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert!(!text(&page).contains("<script>alert"));
}

/// Covers 31.7.
#[tokio::test]
async fn pages_load_files_of_the_vault_only() {
    let vault = TestVault::start().await;
    let client = vault.client_with(None);
    let page = navigate(&vault, "/pages/challenge.html", "de").await;
    let html = text(&page).to_owned();
    assert!(html.contains("Die Seite Ihrer Bank wird geöffnet"));
    let mut paths: Vec<&str> = Vec::new();
    for attribute in ["src=\"", "href=\""] {
        let values = html.split(attribute).skip(1);
        paths.extend(values.filter_map(|rest| rest.split('"').next()));
    }
    paths.retain(|path| *path != "data:,");
    assert_eq!(paths.len(), 4, "{html}");
    for path in paths {
        assert!(path.starts_with("/pages/assets/"), "{path}");
        let file = client.get(path).await;
        assert_eq!(file.status, StatusCode::OK, "{path}");
        assert_eq!(
            file.header("cache-control"),
            "public, max-age=31536000, immutable"
        );
        assert_eq!(file.header("x-content-type-options"), "nosniff");
        let stale = client.get(&path.replace("?v=", "?v=0")).await;
        assert_eq!(stale.header("cache-control"), "public, max-age=300");
    }
    assert_eq!(
        client
            .get("/pages/assets/..%2f..%2fCargo.toml")
            .await
            .status,
        StatusCode::NOT_FOUND
    );
}
