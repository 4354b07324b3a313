//! Tests of methods, paths and the prefix.

use utoipa::openapi::path::{HttpMethod, OperationBuilder};
use utoipa::openapi::{OpenApiBuilder, PathsBuilder};

use super::*;

const KEYED: Authentication = Authentication::Keyed(KeyLookup::Primary);

fn document(paths: &[(&str, &[HttpMethod])]) -> OpenApi {
    let mut all = PathsBuilder::new();
    for (path, methods) in paths {
        for method in *methods {
            let operation = OperationBuilder::new().build();
            all = all.path(*path, PathItem::new(method.clone(), operation));
        }
    }
    OpenApiBuilder::new().paths(all).build()
}

fn table(prefix: &str) -> RouteTable {
    let open = document(&[("/ping", &[HttpMethod::Get]), ("/both", &[HttpMethod::Get])]);
    let keyed = document(&[
        ("/things/{id}", &[HttpMethod::Get, HttpMethod::Patch]),
        ("/both", &[HttpMethod::Post]),
    ]);
    RouteTable::new(prefix, &[(Authentication::Open, open), (KEYED, keyed)]).unwrap()
}

/// Route, authentication or allowed methods, and the resulting URI.
fn found(table: &RouteTable, method: Method, uri: &str) -> (String, String, String) {
    let mut request = Request::new(());
    *request.method_mut() = method;
    *request.uri_mut() = uri.parse().unwrap();
    let (route, how) = match table.find(&mut request) {
        RouteMatch::Handler(route, authentication) => (&*route.0, format!("{authentication:?}")),
        RouteMatch::MethodNotAllowed(route, allowed) => {
            (&*route.0, allowed.to_str().unwrap().to_owned())
        }
        RouteMatch::NotFound => ("", String::new()),
    };
    (route.to_owned(), how, request.uri().to_string())
}

#[test]
fn each_method_of_a_path_has_its_own_authentication() {
    let table = table("");
    let cases = [
        (Method::GET, "/ping", "/ping", "Open"),
        (Method::GET, "/both", "/both", "Open"),
        (Method::POST, "/both", "/both", "Keyed(Primary)"),
        (
            Method::PATCH,
            "/things/7?a=b",
            "/things/{id}",
            "Keyed(Primary)",
        ),
        (Method::HEAD, "/things/7", "/things/{id}", "Keyed(Primary)"),
        (Method::PUT, "/things/7", "/things/{id}", "GET,HEAD,PATCH"),
        (Method::OPTIONS, "/both", "/both", "GET,HEAD,POST"),
        (Method::GET, "/things", "", ""),
        (Method::GET, "/things/7/8", "", ""),
        (Method::GET, "/ping/", "/ping", "Open"),
        (
            Method::GET,
            "/things/7/?a=b",
            "/things/{id}",
            "Keyed(Primary)",
        ),
        (Method::GET, "//ping", "", ""),
        (Method::GET, "/ping//", "", ""),
        (Method::GET, "/things//7", "", ""),
        (Method::GET, "/things//", "", ""),
    ];
    for (method, uri, route, how) in cases {
        let case = format!("{method} {uri}");
        let (matched, found, _) = found(&table, method, uri);
        assert_eq!((matched.as_str(), found.as_str()), (route, how), "{case}");
    }
}

#[test]
fn the_prefix_is_required_and_removed() {
    let table = table("/v1");
    let matched = |uri| found(&table, Method::GET, uri);

    let (route, how, inside) = matched("/v1/things/7?a=b");
    assert_eq!(
        (route.as_str(), how.as_str()),
        ("/things/{id}", "Keyed(Primary)")
    );
    assert_eq!(inside, "/things/7?a=b");
    assert_eq!(matched("http://h/v1/ping").2, "http://h/ping");
    assert_eq!(matched("/v1/ping/?a=b").2, "/ping?a=b");
    for outside in [
        "/ping",
        "/v1//ping",
        "//v1/ping",
        "/v1/ping//",
        "/v1",
        "/v1?a=b",
        "/v1x/ping",
        "/v1ping",
        "/v/ping",
        "/v1/v1/ping",
    ] {
        assert_eq!(matched(outside).0, "", "{outside}");
    }
}

#[test]
fn everything_below_proxy_is_kept_verbatim() {
    let methods = [HttpMethod::Get, HttpMethod::Post];
    let proxied = document(&[("/proxy", &methods), ("/proxy/{suffix}", &methods)]);
    let table = RouteTable::new("/v1", &[(Authentication::Proxy, proxied)]).unwrap();
    for (uri, route, suffix, query) in [
        ("/v1/proxy", "/proxy", "", None),
        ("/v1/proxy?a=b", "/proxy", "", Some("a=b")),
        ("/v1/proxy/", "/proxy/{suffix}", "/", None),
        ("/v1/proxy//a/", "/proxy/{suffix}", "//a/", None),
        (
            "/v1/proxy/a%2Fb/../c?d=%20",
            "/proxy/{suffix}",
            "/a%2Fb/../c",
            Some("d=%20"),
        ),
    ] {
        let mut request = Request::new(());
        *request.uri_mut() = uri.parse().unwrap();
        let matched = table.find(&mut request);
        assert_eq!(matched.route().map(|it| &*it.0), Some(route), "{uri}");
        let is_proxy = matches!(matched, RouteMatch::Handler(_, Authentication::Proxy));
        assert!(is_proxy, "{uri}: {matched:?}");
        let path = request.extensions().get::<InvocationPath>().unwrap();
        assert_eq!(
            (&*path.suffix, path.query.as_deref()),
            (suffix, query),
            "{uri}"
        );
    }
    for uri in ["/proxy", "/v1//proxy", "/v1/proxy%2Fa", "/v1/proxyx"] {
        assert_eq!(found(&table, Method::GET, uri).0, "", "{uri}");
    }
    let (route, allowed, _) = found(&table, Method::PUT, "/v1/proxy/a");
    assert_eq!((&*route, &*allowed), ("/proxy/{suffix}", "GET,HEAD,POST"));
}
