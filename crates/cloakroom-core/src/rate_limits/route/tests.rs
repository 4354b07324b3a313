//! Tests of templates and invalid routes.

use super::*;

#[test]
fn routes_match_their_template() {
    let cases = [
        ("POST /tokens", "POST", "/tokens", true),
        ("POST /tokens", "GET", "/tokens", false),
        ("POST /tokens", "POST", "/tokens/search", false),
        ("GET /tokens/{id}", "GET", "/tokens/{id}", true),
        ("GET /tokens/{id}", "GET", "/tokens/{token_id}", true),
        ("GET /tokens/{id}", "GET", "/tokens/abc", true),
        ("GET /tokens/{id}", "GET", "/tokens", false),
        ("GET /tokens/{id}", "GET", "/tokens/abc/def", false),
        ("GET /documents/{id}/data", "GET", "/documents/1/data", true),
        (
            "GET /documents/{id}/data",
            "GET",
            "/documents/1/other",
            false,
        ),
        (
            "ANY /account-updater/*",
            "PUT",
            "/account-updater/jobs/{id}",
            true,
        ),
        ("ANY /account-updater/*", "GET", "/account-updater", false),
    ];
    for (route, method, path, matches) in cases {
        let info = RequestInfo {
            method,
            route: path,
            address: [192, 0, 2, 1].into(),
            key: None,
            proxy: None,
        };
        let route: Route = route.parse().unwrap();
        assert_eq!(route.matches(&info), matches, "{route} {method} {path}");
    }
}

#[test]
fn invalid_routes_are_rejected() {
    for text in [
        "/tokens",
        "POST",
        "POST tokens",
        "post /tokens",
        "POST /",
        "POST /a//b",
        "POST /a/*/b",
        "POST /{}",
        "POST /{id",
        "GET /a b",
    ] {
        assert!(text.parse::<Route>().is_err(), "{text}");
    }
}
