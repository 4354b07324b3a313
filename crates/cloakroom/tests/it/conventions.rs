//! What holds for every route: bodies, headers, limits, statuses.

use std::time::Duration;

use http::{Method, StatusCode};
use serde_json::json;

use crate::support::{TestDatabase, TestVault};

#[tokio::test]
async fn failures_are_problems_with_all_members() {
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
    for answer in [unknown_path, wrong_method, invalid] {
        assert_eq!(
            answer.header("content-type"),
            "application/problem+json; charset=utf-8"
        );
        assert_eq!(answer.header("cache-control"), "no-store");
    }
}

#[tokio::test]
async fn the_trace_id_comes_back_or_is_made() {
    let vault = TestVault::start().await;
    let client = vault.client_with(None);
    let ask = async |trace: &str| {
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
    for (trace, kept) in cases {
        let told = ask(trace).await;
        assert_eq!(told == trace, kept, "{trace:?} became {told:?}");
        assert!(!told.is_empty());
    }
    // A card number in a trace id would end in the log.
    assert_ne!(
        ask("order 4242424242424242").await,
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
        format!(
            r#"{{"type":"token","data":{}1{}}}"#,
            "[".repeat(levels),
            "]".repeat(levels)
        )
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
        // An array of all members in order is no object either.
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
    for (body, media, status, refused) in cases {
        let answer = client.post_text("/tokens", &body, media).await;
        let case = format!("{media} {}", &body[..body.len().min(60)]);
        assert_eq!(answer.status.as_u16(), status, "{case}: {}", answer.body);
        if !refused.is_empty() {
            assert_eq!(answer.refused(), [refused], "{case}");
        }
    }
}

#[tokio::test]
async fn a_wrong_type_is_named_in_the_words_of_json() {
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
        let answer = client.post_text("/tokens", body, "application/json").await;
        assert_eq!(answer.body["errors"], json!({ path: [rule] }), "{body}");
    }
}

#[tokio::test]
async fn a_compressed_body_is_refused() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;

    let request = client
        .request(Method::POST, "/tokens")
        .header("content-type", "application/json")
        .header("content-encoding", "gzip")
        .body("{}");
    let answer = client.send(request).await;

    assert_eq!(answer.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
}

#[tokio::test]
async fn a_body_that_does_not_arrive_is_not_waited_for() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let vault = TestVault::start_with(TestDatabase::create().await, |config| {
        config.http.body_timeout = Duration::from_millis(200);
    })
    .await;
    let tenant = vault.tenant().await;
    let granted = crate::support::grants(&[cloakroom::access::Permission::TokenCreate]);
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
    let mut answer = vec![0; 1024];
    let reading = stream.read(&mut answer);
    let length = tokio::time::timeout(Duration::from_secs(5), reading)
        .await
        .unwrap()
        .unwrap();

    let answer = String::from_utf8_lossy(&answer[..length]).into_owned();
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
}

#[tokio::test]
async fn a_trailing_slash_and_a_prefix_change_nothing() {
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
async fn browsers_on_any_site_may_ask() {
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
    let answer = client.send(request).await;
    let elsewhere = client.get("/ping").await;
    let bare = client.send(client.request(Method::OPTIONS, "/ping")).await;

    // Whoever is no browser learns nothing about sites.
    assert!(
        !elsewhere
            .headers
            .contains_key("access-control-allow-origin")
    );
    assert_eq!(bare.status, StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(preflight.status, StatusCode::OK);
    assert_eq!(preflight.header("access-control-allow-origin"), "*");
    let allowed = preflight.header("access-control-allow-headers").to_owned();
    assert_eq!(allowed, "bt-api-key,content-type,x-fern-language");
    assert!(
        preflight
            .header("access-control-allow-methods")
            .contains("PATCH")
    );
    let exposed = answer.header("access-control-expose-headers").to_owned();
    let limits =
        "x-ratelimit-limit,x-ratelimit-remaining,x-ratelimit-reset,ratelimit-policy,ratelimit";
    assert_eq!(
        exposed,
        format!("bt-trace-id,etag,location,retry-after,{limits},deprecation,sunset,link")
    );
}

#[tokio::test]
async fn the_parsers_own_marks_are_not_taken_from_clients() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    // Each round hides the last one in a string that the parser would read anew.
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
        let answer = client.post_text("/tokens", &body, "application/json").await;
        assert_eq!(answer.refused(), ["body"], "{}", &body[..60]);
    }
    assert_eq!(client.get("/ping").await.status, StatusCode::OK);
}

#[tokio::test]
async fn an_undecodable_id_is_nobodys_id() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;

    for id in ["%FF", "%00", "%2F", "..%2f..", "%F0%9F%98%80", "x%"] {
        let answer = client.get(&format!("/tokens/{id}")).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{id}");
        assert_eq!(answer.body["detail"], "Token not found.", "{id}");
    }
}
