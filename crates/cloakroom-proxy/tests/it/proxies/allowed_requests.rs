//! What callers of a proxy may send: methods, paths, and the places of expressions.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::Fixture;

impl Fixture {
    /// A proxy that allows expressions in a few places, and an expression.
    async fn pinned(&self) -> (Value, String) {
        let token = json!({"type": "token", "data": {"number": "4f0e-secret", "cvc": "123"}});
        let token = self.caller.post("/tokens", token).await.id();
        let places = json!({"body.source.number": "number", "body.items[].card": "number",
            "form.card[number]": "number", "query.card": "number", "headers.x-card": "number"});
        let proxy = json!({"allowed_requests": {"expressions": places}});
        let proxy = self.create(proxy).await;
        (proxy, format!("{{{{ {token} | json: '$.number' }}}}"))
    }

    /// Invokes the proxy, and checks whether the request was sent.
    async fn expect(
        &self,
        proxy: &Value,
        (media, body): (&str, &str),
        query: &str,
        expected: bool,
    ) {
        let before = self.destination.received().len();
        let request = self.caller.request(Method::POST, &format!("/proxy{query}"));
        let request = request.header("bt-proxy-key", proxy["key"].as_str().unwrap());
        let request = request.header("content-type", media).body(body.to_owned());
        let response = self.caller.send(request).await;
        let status = match expected {
            true => StatusCode::OK,
            false => StatusCode::FORBIDDEN,
        };
        assert_eq!(response.status, status, "{body} {query}: {}", response.body);
        let sent = self.destination.received().len() - before;
        assert_eq!(sent, usize::from(expected), "{body} {query}");
    }
}

/// A card reaches the member that the destination expects it in, and none that it repeats.
///
/// Covers 29.38.
#[tokio::test]
async fn expressions_stand_only_where_the_proxy_allows_them() {
    let fixture = Fixture::start().await;
    let (proxy, value) = fixture.pinned().await;
    for (body, expected) in [
        (json!({"source": {"number": value}}), true),
        (json!({"items": [{}, {"card": value}]}), true),
        (json!({"source": {"number": value, "name": value}}), false),
        (
            json!({"source": {"number": "x"}, "reference": value}),
            false,
        ),
        (json!({"source.number": value}), false),
        (json!({"metadata": {"source": {"number": value}}}), false),
        (json!({"items": [{"card": [value]}]}), false),
        (
            json!({"source": {"number": value.replace("number", "cvc")}}),
            false,
        ),
        (json!({"source": {"number": format!("4111{value}")}}), false),
        (
            json!({"source": {"number": value.replace(" }}", " | pad_right: 16, '0' }}")}}),
            false,
        ),
    ] {
        let body = body.to_string();
        let content = ("application/json", &*body);
        fixture.expect(&proxy, content, "", expected).await;
    }
}

#[tokio::test]
async fn places_are_named_in_forms_queries_and_headers_and_not_in_text() {
    let fixture = Fixture::start().await;
    let (proxy, value) = fixture.pinned().await;
    let encoded = value.replace(' ', "+");
    let form = "application/x-www-form-urlencoded";
    let number = format!("card%5Bnumber%5D={encoded}");
    let described = format!("{number}&description={encoded}");
    fixture
        .expect(&proxy, (form, &format!("a=b&{number}")), "", true)
        .await;
    fixture.expect(&proxy, (form, &described), "", false).await;
    let query = |name: &str| format!("?a=b&{name}={encoded}");
    fixture
        .expect(&proxy, (form, ""), &query("card"), true)
        .await;
    fixture
        .expect(&proxy, (form, ""), &query("reference"), false)
        .await;
    fixture
        .expect(&proxy, ("text/plain", &value), "", false)
        .await;
    let xml = format!("<source><number>{value}</number></source>");
    fixture.expect(&proxy, ("text/xml", &xml), "", false).await;
    let request = fixture.caller.request(Method::POST, "/proxy");
    let request = request.header("bt-proxy-key", proxy["key"].as_str().unwrap());
    let in_header = fixture
        .caller
        .send(
            request
                .header("x-reference", &value)
                .header("x-card", &value),
        )
        .await;
    assert_eq!(in_header.status, StatusCode::FORBIDDEN);
    assert!(in_header.body.to_string().contains("headers.x-reference"));
}

/// Covers 29.38.
#[tokio::test]
async fn methods_and_paths_that_the_proxy_does_not_list_are_not_sent() {
    let fixture = Fixture::start().await;
    let allowed = json!({"methods": ["POST"], "paths": ["/payments", "/payments/*/captures"]});
    let proxy = fixture.create(json!({"allowed_requests": allowed})).await;
    for (method, path, expected) in [
        (Method::POST, "/payments", true),
        (Method::POST, "/payments/pay_1/captures?a=b", true),
        (Method::GET, "/payments", false),
        (Method::POST, "/payments/pay_1/refunds", false),
        (Method::POST, "/payments/../refunds", false),
        (Method::POST, "/payments/x%2F..%2F../captures", false),
        (Method::POST, "", false),
    ] {
        let before = fixture.destination.received().len();
        let request = fixture
            .caller
            .request(method.clone(), &format!("/proxy{path}"));
        let request = request.header("x-http-method-override", "DELETE");
        let request = request.header("bt-proxy-key", proxy["key"].as_str().unwrap());
        let response = fixture.caller.send(request).await;
        let sent = fixture.destination.received().len() - before;
        assert_eq!(
            sent,
            usize::from(expected),
            "{method} {path}: {}",
            response.body
        );
        if expected {
            let received = fixture.destination.last();
            assert!(!received.headers.contains_key("x-http-method-override"));
        } else {
            assert!(response.status.is_client_error());
        }
    }
}

/// S12: everybody with the key in the page could send any request with the credential of an open proxy.
///
/// Covers 29.39.
#[tokio::test]
async fn an_open_proxy_with_a_credential_lists_its_operations() {
    let fixture = Fixture::start().await;
    let credential = json!({"type": "append_header", "options":
        {"value": "Bearer {{ config: KEY }}", "location": "Authorization"}});
    let mut new = fixture.new_proxy();
    new["require_auth"] = json!(false);
    new["configuration"] = json!({"KEY": "sk_live_42"});
    new["request_transforms"] = json!([credential]);
    let lists = json!({"methods": ["POST"], "paths": ["/tokens"]});
    for (allowed, expected) in [
        (Value::Null, StatusCode::BAD_REQUEST),
        (json!({"methods": ["POST"]}), StatusCode::BAD_REQUEST),
        (json!({"paths": ["/tokens"]}), StatusCode::BAD_REQUEST),
        (
            json!({"method": ["POST"], "paths": ["/tokens"]}),
            StatusCode::BAD_REQUEST,
        ),
        (lists, StatusCode::CREATED),
    ] {
        new["allowed_requests"] = allowed.clone();
        let created = fixture.manager.post("/proxies", new.clone()).await;
        assert_eq!(created.status, expected, "{allowed}: {}", created.body);
        if expected == StatusCode::CREATED {
            let anonymous = fixture.vault.client_with(None);
            let charges = fixture.invoke(&anonymous, &created.body, json!({})).await;
            assert_eq!(charges.status, StatusCode::FORBIDDEN, "{}", charges.body);
            let path = format!("/proxies/{}", created.id());
            let unrestricted = fixture
                .manager
                .patch(&path, json!({"allowed_requests": null}))
                .await;
            assert_eq!(unrestricted.status, StatusCode::BAD_REQUEST);
        }
    }
    assert!(fixture.destination.received().is_empty());
}

/// Clients that do not know the attribute replace proxies without it.
#[tokio::test]
async fn a_replacement_without_restrictions_keeps_them() {
    let fixture = Fixture::start().await;
    let allowed = json!({"methods": ["POST"], "expressions": {"body.number": "number"}});
    let proxy = fixture.create(json!({"allowed_requests": allowed})).await;
    let path = format!("/proxies/{}", proxy["id"].as_str().unwrap());
    let replaced = fixture.manager.put(&path, fixture.new_proxy()).await;
    assert_eq!(
        replaced.body["allowed_requests"], allowed,
        "{}",
        replaced.body
    );
    let patch = json!({"allowed_requests": {"methods": ["GET"]}});
    let patched = fixture.manager.patch(&path, patch).await;
    assert_eq!(patched.status, StatusCode::NO_CONTENT, "{}", patched.body);
    let merged = json!({"methods": ["GET"], "expressions": {"body.number": "number"}});
    let patched = fixture.manager.get(&path).await.body;
    assert_eq!(patched["allowed_requests"], merged);
    let mut new = fixture.new_proxy();
    new["allowed_requests"] = json!({});
    let removed = fixture.manager.put(&path, new).await;
    assert!(
        removed.body.get("allowed_requests").is_none(),
        "{}",
        removed.body
    );
}

/// A transform parses the filled body: equal names, one of them a value, would be an error.
#[tokio::test]
async fn transforms_of_callers_without_reveal_append_to_json_only() {
    let fixture = Fixture::start().await;
    let append = json!({"type": "append_json", "options": {"value": "1", "location": "$.a"}});
    let proxy = json!({"request_transforms": [append]});
    let proxy = fixture.create(proxy).await;
    let token = json!({"type": "token", "data": {"number": "4f0e-secret", "cvc": "123"}});
    let token = fixture.caller.post("/tokens", token).await.id();
    let uses = cloakroom_testkit::grants(&[cloakroom::access::Permission::TokenUse]);
    let caller = fixture.vault.client(&fixture.tenant, uses).await;
    let code = format!("{{{{ {token} | json: '$.cvc' }}}}");
    for (media, body, expected) in [
        (
            "text/plain",
            format!("{{\"123\": 1, \"{code}\": 2}}"),
            StatusCode::BAD_REQUEST,
        ),
        (
            "text/plain",
            format!("{{\"124\": 1, \"{code}\": 2}}"),
            StatusCode::BAD_REQUEST,
        ),
        (
            "application/json",
            json!({"code": code}).to_string(),
            StatusCode::OK,
        ),
    ] {
        let request = caller.request(Method::POST, "/proxy");
        let request = request.header("bt-proxy-key", proxy["key"].as_str().unwrap());
        let request = request.header("content-type", media).body(body.clone());
        let response = caller.send(request).await;
        assert_eq!(response.status, expected, "{body}: {}", response.body);
    }
    assert_eq!(fixture.destination.received().len(), 1);
}
