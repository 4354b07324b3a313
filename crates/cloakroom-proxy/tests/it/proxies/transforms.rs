//! Transforms of requests and responses, with a destination over TLS.

use cloakroom::access::Permission;
use cloakroom_testkit::{LogCapture, Reply, TestResponse, encrypt, grants};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::{CARD_NUMBER, Fixture};

fn tokenize(identifier: &str, token: Value) -> Value {
    json!({"type": "tokenize", "options": {"identifier": identifier, "token": token}})
}

fn append_json(value: &str, location: &str) -> Value {
    json!({"type": "append_json", "options": {"value": value, "location": location}})
}

fn card_of_response() -> Value {
    json!({"type": "card", "data": {"number": "{{ res.card.number }}", "expiration_month": "{{ res.card.month }}",
        "expiration_year": 2040}})
}

fn charge() -> Reply {
    Reply::json(json!({"id": "ch_1", "card": {"number": CARD_NUMBER, "month": 12}}))
}

fn assert_not_transformed(response: &TestResponse) {
    assert_eq!(
        response.status,
        StatusCode::BAD_GATEWAY,
        "{}",
        response.body
    );
    assert_eq!(
        response.body["proxy_error"]["code"],
        "response_not_transformed"
    );
    assert_eq!(response.header("bt-proxy-destination-status"), "");
    let text = String::from_utf8_lossy(&response.bytes);
    assert!(
        !text.contains(CARD_NUMBER) && !text.contains("4242"),
        "{text}"
    );
}

/// Covers 29.26, 29.27.
#[tokio::test]
async fn a_card_number_in_a_response_becomes_a_token_before_the_caller_sees_it() {
    let logs = LogCapture::start();
    let fixture = Fixture::start().await;
    let id = "{{ transform_identifier: 'card' | json: '$.id' }}";
    let proxy = fixture
        .create_with_application(json!({"response_transforms": [
            tokenize("card", card_of_response()),
            append_json(id, "$.card.number"),
            {"type": "append_header", "options": {"value": id, "location": "X-Card-Token"}},
        ]}))
        .await;
    let mut reply = charge();
    reply.headers.push(("etag", "\"4242\"".to_owned()));
    fixture.destination.reply(reply);

    let response = fixture.invoke(&fixture.caller, &proxy, json!({})).await;

    assert_eq!(response.status, StatusCode::OK, "{}", response.body);
    assert_eq!(response.header("bt-proxy-destination-status"), "200");
    assert_eq!(response.header("etag"), "");
    let token = response.body["card"]["number"].as_str().unwrap();
    assert_eq!(
        response.body,
        json!({"id": "ch_1", "card": {"number": token, "month": 12}})
    );
    assert_eq!(response.header("x-card-token"), token);
    let read = fixture.caller.get(&format!("/tokens/{token}")).await;
    assert_eq!(read.body["type"], "card");
    assert_eq!(read.body["card"]["last4"], "4242");
    assert_eq!(
        read.body["created_by"],
        fixture.application.application.to_string()
    );
    assert!(!logs.text().contains(CARD_NUMBER));
    let database = fixture.vault.database.connect().await;
    for table in ["token", "proxy", "log", "term"] {
        let rows = database
            .query(&format!("select {table}::text from {table}"), &[])
            .await
            .unwrap();
        assert!(
            rows.iter()
                .all(|row| !row.get::<_, String>(0).contains(CARD_NUMBER)),
            "{table}"
        );
    }
}

/// Covers 29.28.
#[tokio::test]
async fn a_response_that_cannot_be_transformed_is_not_returned() {
    let fixture = Fixture::start().await;
    let id = "{{ transform_identifier: 'card' | json: '$.id' }}";
    let proxy = fixture
        .create_with_application(json!({"response_transforms": [
            tokenize("card", card_of_response()),
            append_json(id, "$.card.number"),
        ]}))
        .await;
    let with = |body: Value| Reply::json(body);
    let large = "a".repeat(1024 * 1024 + 1);
    let compressed = Reply {
        headers: vec![
            ("content-type", "application/json".into()),
            ("content-encoding", "gzip".into()),
        ],
        ..charge()
    };
    let partial = Reply {
        status: StatusCode::PARTIAL_CONTENT,
        ..charge()
    };
    let text = Reply {
        headers: vec![("content-type", "text/plain".into())],
        body: CARD_NUMBER.into(),
        ..charge()
    };
    let escaped = format!(
        r#"{{"card": {{"number": "{CARD_NUMBER}", "month": 12}}, "echo": "\u0034242424242424242"}}"#
    );
    let escaped = Reply::json(escaped);
    let invalid = Reply {
        body: format!("{{\"card\": {{\"number\": \"{CARD_NUMBER}\"").into_bytes(),
        ..charge()
    };
    let replies = [
        with(json!({"card": {"number": "4242424242424241", "month": 12}})),
        with(json!({"card": {"month": 12}})),
        with(json!({"card": {"number": CARD_NUMBER, "month": 13}})),
        // With separators, and with escaped digits.
        with(json!({"card": {"number": CARD_NUMBER, "month": 12}, "echo": "4242 4242 4242 4242"})),
        escaped,
        // The number is in the response a second time, where no transform replaces it.
        with(
            json!({"card": {"number": CARD_NUMBER, "month": 12}, "echo": format!("card {CARD_NUMBER}")}),
        ),
        with(json!({"card": {"number": CARD_NUMBER, "month": 12}, "padding": large})),
        with(json!([CARD_NUMBER])),
        compressed,
        partial,
        text,
        invalid,
    ];
    for reply in replies {
        let sent = String::from_utf8_lossy(&reply.body)
            .chars()
            .take(80)
            .collect::<String>();
        fixture.destination.reply(reply);
        let response = fixture.invoke(&fixture.caller, &proxy, json!({})).await;
        println!("{sent}: {}", response.body["proxy_error"]["detail"]);
        assert_not_transformed(&response);
    }
}

/// Covers 29.29.
#[tokio::test]
async fn responses_that_are_not_successful_are_not_transformed() {
    let fixture = Fixture::start().await;
    let proxy = fixture
        .create(json!({"response_transform": {"type": "append_text", "options": {"value": "appended"}}}))
        .await;
    for status in [
        StatusCode::PAYMENT_REQUIRED,
        StatusCode::FOUND,
        StatusCode::INTERNAL_SERVER_ERROR,
    ] {
        fixture.destination.reply(Reply {
            status,
            body: b"declined".to_vec(),
            ..Reply::default()
        });
        let response = fixture.invoke(&fixture.caller, &proxy, json!({})).await;
        assert_eq!(response.status, status);
        assert_eq!(response.bytes, b"declined");
    }
}

/// Covers 29.30.
#[tokio::test]
async fn masks_replace_captured_values_and_card_numbers() {
    let fixture = Fixture::start().await;
    let mask = json!({"type": "mask", "matcher": "regex", "expression": "\"number\":\"([0-9]{12})", "replacement": "*"});
    let regex = fixture.create(json!({"response_transforms": [mask]})).await;
    let stratus = json!({"type": "mask", "matcher": "chase_stratus_pan", "replacement": "X"});
    let numbers = fixture.create(json!({"response_transform": stratus})).await;
    fixture.destination.reply(charge());

    let response = fixture.invoke(&fixture.caller, &regex, json!({})).await;
    assert_eq!(
        response.body["card"]["number"], "************4242",
        "{}",
        response.body
    );
    let response = fixture.invoke(&fixture.caller, &numbers, json!({})).await;
    assert_eq!(response.body["card"]["number"], "X".repeat(16));

    // Larger than a mask may search: not returned rather than not masked.
    let large = json!({"card": {"number": CARD_NUMBER}, "padding": "a".repeat(64 * 1024)});
    fixture.destination.reply(Reply::json(large));
    assert_not_transformed(&fixture.invoke(&fixture.caller, &regex, json!({})).await);

    // The caller cannot ask for a part of the response, or for a compressed one, that a mask would miss.
    let request = fixture
        .caller
        .request(Method::GET, "/proxy")
        .header("bt-proxy-key", regex["key"].as_str().unwrap())
        .header("range", "bytes=0-30")
        .header("accept-encoding", "gzip");
    fixture.caller.send(request).await;
    let received = fixture.destination.last();
    assert!(!received.headers.contains_key("range"));
    assert_eq!(received.headers["accept-encoding"], "identity");
}

/// What a transform returns to the caller contains the request as the caller sent it, not the values that the vault sent
/// to the destination.
///
/// Covers 29.31.
#[tokio::test]
async fn transforms_do_not_return_revealed_values_to_the_caller() {
    let fixture = Fixture::start().await;
    let card = json!({"type": "card", "data": {"number": CARD_NUMBER, "expiration_month": 12, "expiration_year": 2040}});
    let token = fixture.caller.post("/tokens", card).await.id();
    let header = json!({"type": "append_header", "options": {"value": "{{ proxy | json: '$.request.headers.x-card' }}", "location": "X-Echo"}});
    let proxy = fixture
        .create(json!({"configuration": {"KEY": "sk_1"}, "response_transforms": [
            append_json("{{ req.number }}", "$.number"),
            header,
            {"type": "append_text", "options": {"value": " {{ proxy.request.body }} {{ req }}"}},
        ]}))
        .await;
    let expression = format!("{{{{ {token} | json: '$.number' }}}}");
    let body = json!({"number": expression});
    let request = fixture
        .caller
        .request(Method::POST, "/proxy")
        .header("bt-proxy-key", proxy["key"].as_str().unwrap())
        .header("x-card", &expression)
        .header("content-type", "application/json");

    let response = fixture.caller.send(request.body(body.to_string())).await;

    assert_eq!(response.status, StatusCode::OK, "{}", response.body);
    assert!(fixture.destination.last().body.contains(CARD_NUMBER));
    let text = String::from_utf8(response.bytes.clone()).unwrap();
    let appended = format!("{{\"number\":\"{expression}\"}} ");
    assert!(text.starts_with(&appended), "{text}");
    assert!(
        !text.contains(CARD_NUMBER) && !text.contains("sk_1"),
        "{text}"
    );
    assert_eq!(response.header("x-echo"), expression);
}

/// Covers 29.32.
#[tokio::test]
async fn request_transforms_add_configuration_values_for_the_destination_only() {
    let fixture = Fixture::start().await;
    let proxy = fixture
        .create(json!({"require_auth": false, "configuration": {"KEY": "sk_1"},
            "allowed_requests": {"methods": ["POST"], "paths": ["/", "/charges"]}, "request_transforms": [
            {"type": "append_header", "options": {"value": "Bearer {{ config: KEY }}", "location": "Authorization"}},
            append_json("{{ config: KEY }}", "$.auth.key"),
            append_json("{{ req.amount }}", "$.total"),
        ]}))
        .await;
    let anonymous = fixture.vault.client_with(None);
    let request = anonymous
        .request(Method::POST, "/proxy/charges")
        .header("bt-proxy-key", proxy["key"].as_str().unwrap())
        .header("authorization", "Bearer mine")
        .header("content-type", "application/json");

    let response = anonymous
        .send(request.body(json!({"amount": 5, "a": "{{ config: KEY }}"}).to_string()))
        .await;

    assert_eq!(response.status, StatusCode::OK, "{}", response.body);
    let received = fixture.destination.last();
    let values: Vec<&str> = received
        .headers
        .get_all("authorization")
        .iter()
        .map(|value| value.to_str().unwrap())
        .collect();
    assert_eq!(values, ["Bearer sk_1"]);
    let body: Value = serde_json::from_str(&received.body).unwrap();
    assert_eq!(
        body,
        json!({"amount": 5, "a": "{{ config: KEY }}", "auth": {"key": "sk_1"}, "total": 5})
    );
    assert_eq!(
        received.headers["content-length"],
        received.body.len().to_string()
    );

    // Nothing is sent if the request cannot be transformed.
    let request = anonymous
        .request(Method::POST, "/proxy")
        .header("bt-proxy-key", proxy["key"].as_str().unwrap());
    let rejected = anonymous
        .send(request.header("content-type", "text/plain").body("no JSON"))
        .await;
    assert_eq!(
        rejected.status,
        StatusCode::BAD_REQUEST,
        "{}",
        rejected.body
    );
    assert_eq!(fixture.destination.received().len(), 1);
}

/// A browser sends a card that is encrypted for the vault to an open proxy, which tokenizes it.
///
/// Covers 29.33.
#[tokio::test]
async fn an_open_proxy_tokenizes_encrypted_data_with_the_permissions_of_its_application() {
    let fixture = Fixture::start().await;
    let keys = super::manager_with(
        &fixture.vault,
        &fixture.tenant,
        grants(&[Permission::KeysCreate]),
    )
    .await;
    let key = keys.post("/keys", json!({})).await;
    let card = json!({"number": CARD_NUMBER, "expiration_month": 12, "expiration_year": 2040});
    let encrypted = encrypt(&key.body, &card.to_string());
    let header = json!({"type": "card", "encrypted": encrypted}).to_string();
    let header = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, header);
    let proxy = fixture
        .create_with_application(json!({"require_auth": false,
            "request_transforms": [tokenize("card", json!({"type": "card", "data": "{{ encrypted | json: '$.data' }}"}))],
            "response_transforms": [append_json("{{ transform_identifier: 'card' | json: '$.id' }}", "$.token"),
                append_json("{{ transform_identifier: 'card' | json: '$.data' }}", "$.data")]}))
        .await;
    let anonymous = fixture.vault.client_with(None);
    let request = anonymous
        .request(Method::POST, "/proxy")
        .header("bt-proxy-key", proxy["key"].as_str().unwrap())
        .header("bt-encrypted", header)
        .header("content-type", "application/json");

    let response = anonymous.send(request.body("{}")).await;

    assert_eq!(response.status, StatusCode::OK, "{}", response.body);
    assert_eq!(response.body["data"], Value::Null);
    let token = response.body["token"].as_str().unwrap();
    let read = fixture.caller.get(&format!("/tokens/{token}")).await;
    assert_eq!(read.body["card"]["last4"], "4242");
    assert!(
        !fixture
            .destination
            .last()
            .headers
            .contains_key("bt-encrypted")
    );
    assert!(!fixture.destination.last().body.contains(CARD_NUMBER));
}

/// Covers 29.34.
#[tokio::test]
async fn nothing_is_sent_if_the_application_of_the_transforms_cannot_create_tokens() {
    let fixture = Fixture::start().await;
    let proxy = fixture
        .create_with_application(
            json!({"response_transforms": [tokenize("card", card_of_response())]}),
        )
        .await;
    let request_proxy = fixture
        .create_with_application(json!({"request_transforms": [tokenize("card", json!({"type": "token", "data": "{{ req.a }}"}))]}))
        .await;
    fixture.destination.reply(charge());
    let created = fixture
        .invoke(&fixture.caller, &request_proxy, json!({"a": "b"}))
        .await;
    assert_eq!(created.status, StatusCode::OK, "{}", created.body);

    let path = format!("/applications/{}", fixture.application.application);
    let change = json!({"name": "a", "permissions": ["token:read"]});
    assert_eq!(
        fixture.manager.put(&path, change).await.status,
        StatusCode::OK
    );
    let denied = fixture
        .invoke(&fixture.caller, &request_proxy, json!({"a": "b"}))
        .await;
    assert_eq!(denied.status, StatusCode::FORBIDDEN, "{}", denied.body);
    assert_eq!(
        fixture.manager.delete(&path).await.status,
        StatusCode::NO_CONTENT
    );
    for proxy in [&proxy, &request_proxy] {
        let rejected = fixture
            .invoke(&fixture.caller, proxy, json!({"a": "b"}))
            .await;
        assert_eq!(
            rejected.status,
            StatusCode::BAD_REQUEST,
            "{}",
            rejected.body
        );
    }
    assert_eq!(fixture.destination.received().len(), 1);
}

/// Covers 29.35.
#[tokio::test]
async fn headers_of_transforms_cannot_contain_line_breaks() {
    let fixture = Fixture::start().await;
    let header =
        json!({"type": "append_header", "options": {"value": "{{ req.a }}", "location": "X-A"}});
    let request = fixture
        .create(json!({"request_transforms": [header]}))
        .await;
    let response = fixture
        .create(json!({"response_transforms": [header]}))
        .await;
    let body = json!({"a": "b\r\nX-Injected: 1"});

    let rejected = fixture
        .invoke(&fixture.caller, &request, body.clone())
        .await;
    assert_eq!(rejected.status, StatusCode::BAD_REQUEST);
    let rejected = fixture.invoke(&fixture.caller, &response, body).await;
    assert_not_transformed(&rejected);
    assert_eq!(rejected.header("x-injected"), "");
}

#[tokio::test]
async fn responses_without_a_body_and_with_the_identity_encoding_are_transformed() {
    let fixture = Fixture::start().await;
    let mask = json!({"type": "mask", "matcher": "chase_stratus_pan", "replacement": "X"});
    let proxy = fixture
        .create(json!({"response_transforms": [mask, append_json("a", "$.added")]}))
        .await;

    fixture.destination.reply(Reply {
        headers: vec![
            ("content-type", "application/json".to_owned()),
            ("content-encoding", "identity".to_owned()),
        ],
        ..charge()
    });
    let response = fixture.invoke(&fixture.caller, &proxy, json!({})).await;
    assert_eq!(response.status, StatusCode::OK, "{}", response.body);
    assert_eq!(response.body["card"]["number"], "X".repeat(16));

    fixture.destination.reply(Reply {
        status: StatusCode::NO_CONTENT,
        headers: Vec::new(),
        body: Vec::new(),
    });
    let response = fixture.invoke(&fixture.caller, &proxy, json!({})).await;
    assert_eq!(response.status, StatusCode::NO_CONTENT, "{}", response.body);
    assert!(response.bytes.is_empty());

    // Digits that a mask does not find.
    let utf16: Vec<u8> = CARD_NUMBER.bytes().flat_map(|byte| [byte, 0]).collect();
    for (media, body) in [
        ("text/plain", utf16),
        ("text/plain; charset=\"UTF-7\"", b"abc".to_vec()),
    ] {
        fixture.destination.reply(Reply {
            status: StatusCode::OK,
            headers: vec![("content-type", media.to_owned())],
            body,
        });
        assert_not_transformed(&fixture.invoke(&fixture.caller, &proxy, json!({})).await);
    }
}
