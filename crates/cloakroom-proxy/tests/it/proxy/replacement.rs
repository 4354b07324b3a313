//! Expressions in bodies, headers and queries.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cloakroom::access::{ApplicationKind, Permission};
use cloakroom_testkit::{encrypt, grants};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::destination::Behavior;
use super::{Fixture, NUMBER, card};

#[tokio::test]
async fn json_bodies_receive_values_with_their_types() {
    let fixture = Fixture::start().await;
    let id = fixture.card().await;

    let response = fixture
        .post_json(json!({
            "number": format!("{{{{ {id} | json: '$.number' }}}}"),
            "month": format!("{{{{ {id} | json: '$.expiration_month' }}}}"),
            "text": format!("ends in {{{{ {id} | json: '$.number' | last4 }}}}"),
            "card": format!("{{{{ {id} }}}}"),
            "type": format!("{{{{ token: {id} | json: '$.type' }}}}"),
            "bin": format!("{{{{ token: {id} | json: '$.enrichments.card_details.bin' }}}}"),
            "amount": 19.90,
            "{{ key }}": null,
        }))
        .await;

    assert_eq!(response.status, StatusCode::OK, "{}", response.body);
    assert_eq!(response.body, json!({"approved": true}));
    assert_eq!(response.header("bt-proxy-destination-status"), "200");
    let received = fixture.destination.only();
    assert_eq!(
        (&received.method, &*received.target),
        (&Method::POST, "/charges")
    );
    let body: Value = serde_json::from_slice(&received.body).unwrap();
    let data = card()["data"].clone();
    let expected = json!({
        "number": NUMBER,
        "month": 12,
        "text": "ends in 4242",
        "card": data,
        "type": "card",
        "bin": "42424242",
        "amount": 19.90,
        "{{ key }}": null,
    });
    assert_eq!(body, expected);
    assert_eq!(
        received.header("content-length"),
        received.body.len().to_string()
    );
}

#[tokio::test]
async fn other_bodies_receive_values_in_their_encoding() {
    let fixture = Fixture::start().await;
    let id = fixture.token(json!("<Müller & \"Co\"=1>")).await;
    let cases = [
        (
            "application/x-www-form-urlencoded",
            format!("name=%7B%7B+{id}+%7D%7D&raw={{{{{id}}}}}&plain=a+b%20c"),
            "name=%3CM%C3%BCller%20%26%20%22Co%22%3D1%3E&raw=%3CM%C3%BCller%20%26%20%22Co%22%3D1%3E&plain=a+b%20c",
        ),
        (
            "application/xml",
            format!("<a b=\"{{{{ {id} }}}}\">{{{{ {id} }}}}</a>"),
            "<a b=\"&lt;Müller &amp; &quot;Co&quot;=1&gt;\">&lt;Müller &amp; &quot;Co&quot;=1&gt;</a>",
        ),
        (
            "text/plain",
            format!("Hi {{{{ {id} }}}}"),
            "Hi <Müller & \"Co\"=1>",
        ),
        (
            "image/png",
            format!("{{{{ {id} }}}}"),
            &format!("{{{{ {id} }}}}"),
        ),
        (
            "application/json",
            "{\"a\" :1,\"a\":2}".to_owned(),
            "{\"a\" :1,\"a\":2}",
        ),
    ];
    for (media, body, expected) in cases {
        let response = fixture.post(media, body).await;
        assert_eq!(
            response.status,
            StatusCode::OK,
            "{media}: {}",
            response.body
        );
        assert_eq!(fixture.destination.last().text(), expected, "{media}");
        assert_eq!(fixture.destination.last().header("content-type"), media);
    }
}

#[tokio::test]
async fn headers_and_query_receive_values() {
    let fixture = Fixture::start().await;
    let id = fixture.token(json!({"key": "a b", "n": 7})).await;

    let path =
        format!("/v1//x%2Fy/?k=%7B%7B+{id}+%7C+json%3A+%27%24.key%27+%7D%7D&p=1+2&bt-other=3");
    // With another key than a configuration value, only a caller that sees the data may sign it.
    let client = fixture.revealing().await;
    let request = fixture
        .request_of(&client, Method::GET, &path)
        .header("authorization", format!("Bearer {{{{ {id} | json: '$.key' }}}}"))
        .header("x-many", "1")
        .header("x-many", format!("{{{{ {id} | json: '$.n' }}}}"))
        .header("x-signed", "{{ proxy.request.headers.X-Date | append: proxy.request.body | hmac: 'sha-256', 'secretKeyValue' | to_base16 }}")
        .header("x-date", "4242424242424242")
        .header("x-path", "{{ proxy | json: '$.request.path' }}");
    let response = client.send(request).await;

    assert_eq!(response.status, StatusCode::OK, "{}", response.body);
    let received = fixture.destination.only();
    assert_eq!(received.target, "/v1//x%2Fy/?k=a%20b&p=1+2&bt-other=3");
    assert_eq!(received.header("authorization"), "Bearer a b");
    let many: Vec<&str> = received
        .headers
        .get_all("x-many")
        .iter()
        .map(|it| it.to_str().unwrap())
        .collect();
    assert_eq!(many, ["1", "7"]);
    // The vector of the documentation: HMAC of a card number.
    assert_eq!(
        received.header("x-signed"),
        "90A0050E90515101DCAD0F68955370CCA81F6DCB9D299E7E0585CC9746716D9B"
    );
    assert_eq!(received.header("x-path"), "/v1//x%2Fy/");
    let host = format!("{}:{}", super::HOST, fixture.destination.address.port());
    assert_eq!(received.header("host"), host);
    let names: Vec<&str> = received.headers.keys().map(|name| name.as_str()).collect();
    assert!(
        !names.iter().any(|name| name.starts_with("bt-")),
        "{names:?}"
    );
}

#[tokio::test]
async fn a_value_with_line_breaks_adds_no_header() {
    let fixture = Fixture::start().await;
    let id = fixture.token(json!("a\r\nx-evil: 1")).await;

    let request = fixture.request(Method::GET, "");
    let request = request.header("x-a", format!("{{{{ {id} }}}}"));
    let response = fixture.client.send(request).await;

    assert_eq!(response.status, StatusCode::OK, "{}", response.body);
    let received = fixture.destination.only();
    assert_eq!(received.header("x-a"), "a  x-evil: 1");
    assert!(!received.headers.contains_key("x-evil"));
}

#[tokio::test]
async fn values_are_not_searched_for_expressions() {
    let fixture = Fixture::start().await;
    let secret = fixture.token(json!("secret")).await;
    let id = fixture.token(json!(format!("{{{{ {secret} }}}}"))).await;

    fixture.post("text/plain", format!("{{{{ {id} }}}}")).await;

    assert_eq!(
        fixture.destination.only().text(),
        format!("{{{{ {secret} }}}}")
    );
}

#[tokio::test]
async fn token_intents_are_used_with_their_security_code() {
    let fixture = Fixture::start().await;
    let id = fixture.client.post("/token-intents", card()).await.id();

    let cvc = format!("{{{{ token_intent: {id} | json: '$.data.cvc' }}}}");
    let response = fixture.post_json(json!({ "cvc": cvc })).await;

    assert_eq!(response.status, StatusCode::OK, "{}", response.body);
    assert_eq!(fixture.destination.only().text(), r#"{"cvc":"123"}"#);
}

#[tokio::test]
async fn values_that_the_client_encrypted_are_decrypted() {
    let fixture = Fixture::start().await;
    let manager = fixture.vault.holder(
        &fixture.tenant,
        ApplicationKind::Management,
        grants(&[Permission::KeysCreate]),
    );
    let manager = fixture.vault.client_with(Some(&manager.await.key));
    let key = manager.post("/keys", json!({})).await.body;
    let encrypted = encrypt(&key, &card()["data"].to_string());
    let one = json!({"type": "card", "encrypted": encrypted});
    for (header, expression) in [
        (one.clone(), "{{ encrypted | json: '$.data.number' }}"),
        (
            json!({ "payer": one }),
            "{{ encrypted | json: '$.payer.data.number' }}",
        ),
    ] {
        let header = STANDARD.encode(header.to_string());
        let request = fixture
            .request(Method::POST, "")
            .header("bt-encrypted", header);
        let request = request.header("content-type", "application/json");
        let body = json!({ "n": expression }).to_string();
        let response = fixture.client.send(request.body(body)).await;

        assert_eq!(response.status, StatusCode::OK, "{}", response.body);
        let expected = json!({ "n": NUMBER }).to_string();
        assert_eq!(fixture.destination.last().text(), expected);
    }
    for header in ["", "e30=", "!", &STANDARD.encode(r#"{"encrypted":"x"}"#)] {
        let request = fixture
            .request(Method::POST, "")
            .header("bt-encrypted", header);
        let request = request.header("content-type", "application/json");
        let body = r#"{"n":"{{ encrypted | json: '$.data' }}"}"#;
        let response = fixture.client.send(request.body(body)).await;
        let expected = if header == "e30=" {
            StatusCode::OK
        } else {
            StatusCode::BAD_REQUEST
        };
        assert_eq!(response.status, expected, "{header}: {}", response.body);
    }
}

#[tokio::test]
async fn the_response_of_the_destination_is_returned() {
    let behavior = Behavior::respond(|_| {
        let response = http::Response::builder().status(402);
        let response = response
            .header("content-type", "text/plain")
            .header("content-encoding", "br")
            .header("cache-control", "public, max-age=600")
            .header("set-cookie", "a=b")
            .header("x-request-id", "1")
            .header("x-request-id", "2")
            .header("access-control-allow-origin", "https://evil.example.com")
            .header("bt-proxy-destination-status", "200")
            .header("bt-trace-id", "forged");
        response.body("declined".into()).unwrap()
    });
    let fixture = Fixture::with(behavior, |_| {}).await;

    for method in [
        Method::GET,
        Method::POST,
        Method::PUT,
        Method::PATCH,
        Method::DELETE,
    ] {
        let request = fixture
            .request(method.clone(), "/a")
            .header("origin", "https://shop.example.com");
        let response = fixture.client.send(request).await;

        assert_eq!(response.status, StatusCode::PAYMENT_REQUIRED, "{method}");
        assert_eq!(response.bytes, b"declined");
        assert_eq!(response.header("bt-proxy-destination-status"), "402");
        assert_eq!(response.header("content-encoding"), "br");
        assert_eq!(response.header("cache-control"), "no-store");
        assert_eq!(response.header("x-content-type-options"), "nosniff");
        assert_eq!(response.header("set-cookie"), "");
        assert_eq!(response.header("access-control-allow-origin"), "*");
        assert_ne!(response.header("bt-trace-id"), "forged");
        let exposed = response.header("access-control-expose-headers");
        assert!(exposed.contains("bt-proxy-destination-status"), "{exposed}");
        assert_eq!(response.headers.get_all("x-request-id").iter().count(), 2);
        assert_eq!(fixture.destination.last().method, method);
    }
    let head = fixture
        .client
        .send(fixture.request(Method::HEAD, "/a"))
        .await;
    assert_eq!(
        (head.status, head.bytes.len()),
        (StatusCode::PAYMENT_REQUIRED, 0)
    );
    assert_eq!(fixture.destination.last().method, Method::HEAD);
}

#[tokio::test]
async fn redirects_are_returned_and_not_followed() {
    let behavior = Behavior::respond(|_| {
        let response = http::Response::builder().status(307);
        let response = response.header("location", "https://169.254.169.254/latest");
        response.body(axum::body::Body::empty()).unwrap()
    });
    let fixture = Fixture::with(behavior, |_| {}).await;
    let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none());
    let request = fixture.request(Method::GET, "").build().unwrap();

    let response = client.build().unwrap().execute(request).await.unwrap();

    assert_eq!(response.status(), 307);
    assert_eq!(
        response.headers()["location"],
        "https://169.254.169.254/latest"
    );
    assert_eq!(fixture.destination.received().len(), 1);
}
