//! Destinations that fail: garbage, silence, refused connections, broken TLS.

use std::time::Duration;

use http::{Method, StatusCode};
use serde_json::json;

use super::destination::Behavior;
use super::{Fixture, proxy_error};

/// Responds with an error that says what happened, and whether the destination may have processed the request.
#[tokio::test]
async fn garbage_is_a_bad_gateway() {
    let cases: [(&'static [u8], &str); 4] = [
        (b"this is not HTTP\r\n\r\n", "destination_bad_response"),
        (
            b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello",
            "destination_bad_response",
        ),
        (
            b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
            "destination_bad_response",
        ),
        (b"", "destination_interrupted"),
    ];
    for (bytes, code) in cases {
        let fixture = Fixture::with(Behavior::Raw(bytes), |_| {}).await;
        let response = fixture.client.send(fixture.request(Method::GET, "")).await;

        let case = String::from_utf8_lossy(bytes);
        assert_eq!(response.status, StatusCode::BAD_GATEWAY, "{case}");
        let error = proxy_error(&response);
        assert_eq!(error["code"], code, "{case}");
        assert!(
            error["detail"].to_string().contains("before you retry"),
            "{case}"
        );
    }
}

#[tokio::test]
async fn a_silent_destination_is_a_timeout() {
    let fixture = Fixture::with(Behavior::Silent, |config| {
        config.proxy.destination_timeout = Duration::from_millis(300);
    })
    .await;
    let id = fixture.token(json!("x")).await;

    let response = fixture.post("text/plain", format!("{{{{ {id} }}}}")).await;

    assert_eq!(response.status, StatusCode::REQUEST_TIMEOUT);
    let error = proxy_error(&response);
    assert_eq!(error["code"], "destination_timeout");
    assert!(error["detail"].to_string().contains("before you retry"));
    assert_eq!(fixture.destination.received().len(), 1);
}

/// The time limit of the interface.
#[test]
fn destinations_have_25_seconds() {
    let config = cloakroom::config::Config::default();
    assert_eq!(config.proxy.destination_timeout, Duration::from_secs(25));
}

#[tokio::test]
async fn a_destination_without_a_valid_certificate_gets_nothing() {
    let fixture = Fixture::start().await;
    let id = fixture.card().await;
    let request = fixture.client.request(Method::POST, "/proxy");
    let url = fixture.destination.url().replace("psp.", "other.");
    let request = request.header("bt-proxy-url", url);
    let response = fixture
        .client
        .send(request.body(format!("{{{{ {id} }}}}")))
        .await;

    assert_eq!(response.status, StatusCode::BAD_GATEWAY);
    let error = proxy_error(&response);
    assert_eq!(error["code"], "destination_tls");
    assert!(error["detail"].to_string().contains("Nothing was sent"));
    assert_eq!(fixture.destination.received().len(), 0);
}

#[tokio::test]
async fn an_unreachable_destination_is_a_bad_gateway() {
    let fixture = Fixture::start().await;
    let request = fixture.request(Method::GET, "");
    let destination = fixture.destination;
    // Closes the listener.
    drop(destination);
    tokio::time::sleep(Duration::from_millis(50)).await;

    let response = fixture.client.send(request).await;

    assert_eq!(
        response.status,
        StatusCode::BAD_GATEWAY,
        "{}",
        response.body
    );
    assert_eq!(proxy_error(&response)["code"], "destination_unreachable");
}

/// Expressions that are invalid, or need something that is not there.
#[tokio::test]
async fn invalid_expressions_are_rejected() {
    let fixture = Fixture::start().await;
    let id = fixture.token(json!({"a": 1})).await;
    for body in [
        json!({ "x": format!("{{{{ {id} | shout }}}}") }),
        json!({ "x": format!("{{{{ {id} | to_number }}}}") }),
        json!({ "x": "{{ config: SECRET }}" }),
        json!({ "x": "{{ encrypted | json: '$.data' }}" }),
        json!({ "x": "{{ proxy.request.body }}" }),
        json!({ "x": "{{ }}" }),
    ] {
        let response = fixture.post_json(body.clone()).await;
        assert_eq!(response.status, StatusCode::BAD_REQUEST, "{body}");
        proxy_error(&response);
    }
    let malformed = format!("{{\"x\": {{{{ {id} }}}} }}");
    let response = fixture.post("application/json", malformed).await;
    assert_eq!(response.status, StatusCode::BAD_REQUEST);
    assert_eq!(fixture.destination.connections(), 0);
}
