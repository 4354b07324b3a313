//! Limits of a proxied request.

use http::StatusCode;
use serde_json::{Value, json};

use super::{Fixture, proxy_error};

/// At most 20 tokens and intents, and at most 200 expressions.
#[tokio::test]
async fn tokens_and_expressions_are_limited() {
    let fixture = Fixture::start().await;
    let mut ids = Vec::new();
    for _ in 0..20 {
        ids.push(fixture.token(json!(1)).await);
    }
    let intent = json!({"type": "token", "data": 1});
    let intent = fixture.client.post("/token-intents", intent).await.id();
    let intent = format!("{{{{ token_intent: {intent} | json: '$.data' }}}}");
    let expressions: Vec<String> = ids.iter().map(|id| format!("{{{{ {id} }}}}")).collect();
    let repeated = |count: usize| -> Value { vec![expressions[0].clone(); count].into() };

    let all = fixture.post_json(json!(expressions)).await;
    let with_intent = [expressions.clone(), vec![intent]].concat();
    let with_intent = fixture.post_json(json!(with_intent)).await;
    let most = fixture.post_json(repeated(200)).await;
    let more = fixture.post_json(repeated(201)).await;

    assert_eq!(all.status, StatusCode::OK, "{}", all.body);
    assert_eq!(most.status, StatusCode::OK, "{}", most.body);
    assert_eq!(
        fixture.destination.last().text(),
        json!(vec![1; 200]).to_string()
    );
    for (response, expected) in [(with_intent, "20 tokens"), (more, "200 expressions")] {
        assert_eq!(response.status, StatusCode::BAD_REQUEST);
        let detail = proxy_error(&response)["detail"].to_string();
        assert!(detail.contains(expected), "{detail}");
    }
    assert_eq!(fixture.destination.received().len(), 2);
}

/// One counter for body, headers and query.
#[tokio::test]
async fn expressions_are_counted_across_the_request() {
    let fixture = Fixture::start().await;
    let id = fixture.token(json!(1)).await;
    let expression = format!("{{{{ {id} }}}}");
    for (in_body, expected) in [(198, StatusCode::OK), (199, StatusCode::BAD_REQUEST)] {
        let query = serde_urlencoded::to_string([("q", &expression)]).unwrap();
        let request = fixture.request(http::Method::POST, &format!("?{query}"));
        let request = request.header("x-a", &expression);
        let request = request.header("content-type", "text/plain");
        let response = fixture
            .client
            .send(request.body(expression.repeat(in_body)))
            .await;
        assert_eq!(response.status, expected, "{}", response.body);
    }
}
