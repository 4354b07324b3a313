//! HTTP conventions of all routes: bodies, headers, limits, statuses.

use std::collections::BTreeSet;
use std::time::Duration;

use cloakroom_testkit::{TestDatabase, TestVault};
use http::{Method, StatusCode};
use serde_json::{Value, json};

#[tokio::test]
async fn errors_are_problem_details_with_all_members() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;

    let unknown_path = client.get("/nowhere").await;
    let wrong_method = client.send(client.request(Method::PUT, "/tokens")).await;
    let invalid = client
        .post("/tokens", json!({"type": "card", "data": {"number": "1"}}))
        .await;

    assert_eq!(unknown_path.status, StatusCode::NOT_FOUND);
    assert_eq!(wrong_method.status, StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(wrong_method.header("allow"), "GET,HEAD,POST");
    assert_eq!(invalid.status, StatusCode::BAD_REQUEST);
    insta::assert_snapshot!(invalid.told(&[]), @r#"
    {
      "title": "One or more validation errors occurred.",
      "status": 400,
      "detail": "1 attribute is invalid.",
      "code": "invalid",
      "errors": {
        "data.number": [
          "must be 13 to 19 digits without separators that pass the Luhn check"
        ]
      }
    }
    "#);
    assert_eq!(
        wrong_method.body["detail"],
        "This path supports only GET, HEAD, POST."
    );
    assert_eq!(invalid.body["type"], "/errors#invalid");
    for response in [unknown_path, wrong_method, invalid] {
        assert_eq!(
            response.header("content-type"),
            "application/problem+json; charset=utf-8"
        );
        assert_eq!(response.header("cache-control"), "no-store");
    }
}

#[tokio::test]
async fn types_of_errors_lead_to_the_catalog_of_the_node() {
    let vault = TestVault::start_with(TestDatabase::create().await, |config| {
        config.http.base_url = Some("https://vault.example.com/v1".parse().unwrap());
    })
    .await;
    let client = vault.client_with(None);
    let page = |path: &'static str| client.send(client.request(Method::GET, path));

    let refused = page("/tokens").await;
    let catalog = page("/errors").await;
    let start = page("/").await;

    assert_eq!(
        refused.body["type"],
        "https://vault.example.com/v1/errors#unauthorized"
    );
    assert!(catalog.header("content-type").starts_with("text/html"));
    let text = String::from_utf8(catalog.bytes).unwrap();
    for code in ["unauthorized", "invalid", "database_unavailable"] {
        assert!(text.contains(&format!("<h2 id=\"{code}\">")), "{code}");
    }
    let start = String::from_utf8(start.bytes).unwrap();
    assert!(start.contains("href=\"/v1/errors\""), "{start}");
}

#[tokio::test]
async fn errors_say_what_to_correct() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let without_key = vault.client_with(None);

    let broken = "{\n  \"type\": \"token\",\n  \"data\" 1}";
    let broken = client.post_text("/tokens", broken, "application/json");
    let missing = without_key.get("/tokens");
    let bearer = without_key.request(Method::GET, "/tokens");
    let bearer = without_key.send(bearer.bearer_auth("key"));
    let unknown = without_key.with_key("key_test_us_pvt_2222222222222222222222");
    let unknown = unknown.get("/tokens");
    let production = without_key.with_key("key_prod_us_pvt_2222222222222222222222");
    let production = production.get("/tokens");
    let cases = [
        (
            production.await,
            "The API key is one of a production vault; this is a test vault.",
        ),
        (missing.await, "The BT-API-KEY header is missing."),
        (
            bearer.await,
            "Send the API key in the BT-API-KEY header, not in Authorization.",
        ),
        (
            unknown.await,
            "The API key in the BT-API-KEY header is unknown, deleted or expired.",
        ),
    ];

    let broken = broken.await;
    assert_eq!(
        broken.body["errors"]["body"][0],
        "must be well-formed JSON; the error is at line 3, column 10"
    );
    for (response, detail) in cases {
        assert_eq!(response.status, StatusCode::UNAUTHORIZED);
        assert_eq!(response.body["detail"], detail);
    }
}

/// A path with one name for all parameters.
fn anonymous(path: &str) -> String {
    let segments = path
        .split('/')
        .map(|segment| match segment.starts_with('{') {
            true => "{}",
            false => segment,
        });
    segments.collect::<Vec<_>>().join("/")
}

/// The requests of official clients that no route of the vault serves.
fn requests_without_route() -> BTreeSet<(String, String)> {
    let document: Value =
        serde_json::from_str(cloakroom::router::document_text().as_str()).unwrap();
    let mut routes = BTreeSet::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for method in operations.as_object().unwrap().keys() {
            routes.insert((method.to_uppercase(), anonymous(path)));
        }
    }
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/api/sdk-methods.md");
    let page = std::fs::read_to_string(page).unwrap();
    let rows = page.lines().filter(|line| line.contains("| unsupported: "));
    let requests = rows.map(|row| {
        let request = row.split('`').nth(3).unwrap();
        let (method, path) = request.split_once(' ').unwrap();
        (method.to_owned(), anonymous(path))
    });
    requests
        .filter(|request| !routes.contains(request))
        .collect()
}

#[tokio::test]
async fn features_of_the_hosted_service_that_are_missing_say_so() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;

    let mut requests = requests_without_route();
    assert!(requests.len() > 50, "{requests:?}");
    requests.insert(("GET".to_owned(), "/orchestration/connections".to_owned()));
    for (method, path) in &requests {
        let path = path.replace("{}", "1");
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let response = client.send(client.request(method.clone(), &path)).await;
        assert_eq!(
            response.status,
            StatusCode::NOT_IMPLEMENTED,
            "{method} {path}"
        );
        assert_eq!(response.body["code"], "not_built");
    }
    let other = client.post("/document", json!({})).await;
    assert_eq!(other.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn the_trace_id_is_echoed_or_generated() {
    let vault = TestVault::start().await;
    let client = vault.client_with(None);
    let trace_id_for = async |trace: &str| {
        let request = client
            .request(Method::GET, "/ping")
            .header("BT-TRACE-ID", trace);
        client.send(request).await.header("bt-trace-id").to_owned()
    };

    let long = "x".repeat(201);
    let cases = [
        ("my trace", true),
        (&"x".repeat(200), true),
        (&long, false),
        ("", false),
    ];
    for (trace, is_echoed) in cases {
        let returned = trace_id_for(trace).await;
        assert_eq!(
            returned == trace,
            is_echoed,
            "{trace:?} became {returned:?}"
        );
        assert!(!returned.is_empty());
    }
    // A card number in a trace id would be logged.
    assert_ne!(
        trace_id_for("order 4242424242424242").await,
        "order 4242424242424242"
    );
}

#[tokio::test]
async fn bodies_are_json_within_limits() {
    let vault = TestVault::start_with(TestDatabase::create().await, |config| {
        config.http.max_body_bytes = 2 * 1024 * 1024;
    })
    .await;
    let client = vault.revealing_client().await;
    let ok = r#"{"type":"token","data":"x"}"#;
    let sized = |bytes: usize| format!(r#"{{"type":"token","data":"{}"}}"#, "x".repeat(bytes - 2));
    let nested = |levels: usize| {
        let (open, close) = ("[".repeat(levels), "]".repeat(levels));
        format!(r#"{{"type":"token","data":{open}1{close}}}"#)
    };

    let mebibyte = 1024 * 1024;
    let cases = [
        (ok.to_owned(), "application/json", 201, ""),
        (ok.to_owned(), "application/json; charset=utf-8", 201, ""),
        (ok.to_owned(), "text/json", 201, ""),
        (ok.to_owned(), "Application/JSON-Patch+JSON", 201, ""),
        (ok.to_owned(), "text/plain", 415, ""),
        (ok.to_owned(), "application/xml", 415, ""),
        (String::new(), "application/json", 400, "body"),
        ("{".to_owned(), "application/json", 400, "body"),
        (format!("{ok} {ok}"), "application/json", 400, "body"),
        ("[]".to_owned(), "application/json", 400, "body"),
        // An array with all members in order is not an object.
        (
            format!(r#"[null,"token","x"{}]"#, ",null".repeat(10)),
            "application/json",
            400,
            "body",
        ),
        (
            r#"{"type":"token","data":1,"data":2}"#.to_owned(),
            "application/json",
            400,
            "body",
        ),
        (
            r#"{"type":"token","data":"\ud800"}"#.to_owned(),
            "application/json",
            400,
            "body",
        ),
        (
            r#"{"type":7,"data":1}"#.to_owned(),
            "application/json",
            400,
            "type",
        ),
        (
            r#"{"type":"token","data":1,"containers":[1]}"#.to_owned(),
            "application/json",
            400,
            "containers[0]",
        ),
        (sized(mebibyte), "application/json", 201, ""),
        (sized(mebibyte + 1), "application/json", 400, "data"),
        (sized(2 * mebibyte), "application/json", 413, ""),
        (nested(31), "application/json", 201, ""),
        (nested(32), "application/json", 400, "body"),
    ];
    for (body, media, status, rejected) in cases {
        let response = client.post_text("/tokens", &body, media).await;
        let case = format!("{media} {}", &body[..body.len().min(60)]);
        let actual = response.status.as_u16();
        assert_eq!(actual, status, "{case}: {}", response.body);
        if !rejected.is_empty() {
            assert_eq!(response.refused(), [rejected], "{case}");
        }
    }
}

#[tokio::test]
async fn type_errors_name_the_expected_json_type() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;

    let cases = [
        ("[]", "body", "must be an object"),
        (r#"{"type":1}"#, "type", "must be a string"),
        (r#"{"containers":"/a/"}"#, "containers", "must be an array"),
        (r#"{"metadata":[]}"#, "metadata", "must be an object"),
        (
            r#"{"deduplicate_token":"4242424242424242"}"#,
            "deduplicate_token",
            "must be true or false",
        ),
        (r#"{"privacy":7}"#, "privacy", "must be an object"),
    ];
    for (body, path, rule) in cases {
        let response = client.post_text("/tokens", body, "application/json").await;
        assert_eq!(response.body["errors"], json!({ path: [rule] }), "{body}");
    }
}

#[tokio::test]
async fn compressed_bodies_are_rejected() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;

    let request = client
        .request(Method::POST, "/tokens")
        .header("content-type", "application/json")
        .header("content-encoding", "gzip")
        .body("{}");
    let response = client.send(request).await;

    assert_eq!(response.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
}

#[tokio::test]
async fn incomplete_bodies_time_out() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let vault = TestVault::start_with(TestDatabase::create().await, |config| {
        config.http.body_timeout = Duration::from_millis(200);
    })
    .await;
    let tenant = vault.tenant().await;
    let granted = cloakroom_testkit::grants(&[cloakroom::access::Permission::TokenCreate]);
    let holder = vault
        .holder(
            &tenant,
            cloakroom::access::ApplicationKind::Private,
            granted,
        )
        .await;
    let address = vault.base_url.strip_prefix("http://").unwrap();

    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST /tokens HTTP/1.1\r\nhost: vault\r\nbt-api-key: {}\r\n\
         content-type: application/json\r\ncontent-length: 100\r\n\r\n{{",
        holder.key
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut response = vec![0; 1024];
    let reading = stream.read(&mut response);
    let length = tokio::time::timeout(Duration::from_secs(5), reading)
        .await
        .unwrap()
        .unwrap();

    let response = String::from_utf8_lossy(&response[..length]).into_owned();
    assert!(response.starts_with("HTTP/1.1 408"), "{response}");
}

#[tokio::test]
async fn trailing_slashes_and_path_prefixes_are_accepted() {
    let vault = TestVault::start_with(TestDatabase::create().await, |config| {
        config.http.base_url = Some("https://vault.example/cards".parse().unwrap());
    })
    .await;
    let client = vault.revealing_client().await;
    assert!(vault.base_url.ends_with("/cards"));

    let created = client
        .post("/tokens/", json!({"type": "token", "data": 1}))
        .await;
    let found = client.get(&format!("/tokens/{}/", created.id())).await;

    assert_eq!(created.status, StatusCode::CREATED);
    let location = format!("https://vault.example/cards/tokens/{}", created.id());
    assert_eq!(created.header("location"), location);
    assert_eq!(found.status, StatusCode::OK);
}

#[tokio::test]
async fn cross_origin_requests_are_allowed() {
    let vault = TestVault::start().await;
    let client = vault.client_with(None);

    let preflight = client
        .request(Method::OPTIONS, "/tokens")
        .header("origin", "https://shop.example")
        .header("access-control-request-method", "POST")
        .header(
            "access-control-request-headers",
            "bt-api-key,content-type,x-fern-language",
        );
    let preflight = client.send(preflight).await;
    let request = client
        .request(Method::GET, "/ping")
        .header("origin", "https://shop.example");
    let response = client.send(request).await;
    let without_origin = client.get("/ping").await;
    let plain_options = client.send(client.request(Method::OPTIONS, "/ping")).await;

    // Requests without an `Origin` get no CORS headers.
    assert!(
        !without_origin
            .headers
            .contains_key("access-control-allow-origin")
    );
    assert_eq!(plain_options.status, StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(preflight.status, StatusCode::OK);
    assert_eq!(preflight.header("access-control-allow-origin"), "*");
    let allowed = preflight.header("access-control-allow-headers").to_owned();
    assert_eq!(allowed, "bt-api-key,content-type,x-fern-language");
    assert!(
        preflight
            .header("access-control-allow-methods")
            .contains("PATCH")
    );
    let exposed = response.header("access-control-expose-headers").to_owned();
    let limits =
        "x-ratelimit-limit,x-ratelimit-remaining,x-ratelimit-reset,ratelimit-policy,ratelimit";
    assert_eq!(
        exposed,
        format!(
            "bt-trace-id,etag,location,retry-after,bt-proxy-destination-status,{limits},deprecation,sunset,link"
        )
    );
}

#[tokio::test]
async fn private_markers_of_the_json_parser_are_rejected() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    // Each round nests the previous one in a string that the parser would parse again.
    let mut bomb = "1".to_owned();
    for _ in 0..60 {
        let hidden = bomb.replace('\\', "\\u005c").replace('"', "\\u0022");
        let mark = format!("{{\"$serde_json::private::RawValue\":\"{hidden}\"}}");
        bomb = format!("{}{mark}{}", "[".repeat(20), "]".repeat(20));
    }
    let number = r#"{"$serde_json::private::Number":"abc"}"#;

    let cases = [
        format!(r#"{{"type":"token","data":1,"mask":{bomb}}}"#),
        format!(r#"{{"type":"token","data":{bomb}}}"#),
        format!(r#"{{"type":"card","data":{{"number":"4242424242424242","x":{number}}}}}"#),
        format!(r#"{{"type":"token","data":1,"metadata":{number}}}"#),
    ];
    for body in cases {
        let response = client.post_text("/tokens", &body, "application/json").await;
        assert_eq!(response.refused(), ["body"], "{}", &body[..60]);
    }
    assert_eq!(client.get("/ping").await.status, StatusCode::OK);
}

#[tokio::test]
async fn undecodable_ids_are_not_found() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;

    for id in ["%FF", "%00", "%2F", "..%2f..", "%F0%9F%98%80", "x%"] {
        let response = client.get(&format!("/tokens/{id}")).await;
        assert_eq!(response.status, StatusCode::NOT_FOUND, "{id}");
        assert_eq!(response.body["detail"], "Token not found.", "{id}");
    }
}
