//! HTTP client for tests.

use std::time::Duration;

use http::{HeaderMap, HeaderValue, Method, StatusCode};
use serde_json::Value;

/// An HTTP client with one API key or none.
#[derive(Clone)]
pub struct Client {
    base_url: String,
    key: Option<String>,
    http: reqwest::Client,
}

/// A complete HTTP response.
#[derive(Debug)]
pub struct TestResponse {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub bytes: Vec<u8>,
    /// Null if the response has no JSON body.
    pub body: Value,
}

impl Client {
    pub fn new(base_url: &str, key: Option<&str>) -> Self {
        // Shorter than the node's idle timeout: a request on a connection that the node is closing is lost.
        let client = reqwest::Client::builder().pool_idle_timeout(Duration::from_secs(2));
        let client = client.build().unwrap();
        Self {
            base_url: base_url.to_owned(),
            key: key.map(str::to_owned),
            http: client,
        }
    }

    /// The same client against another node.
    pub fn at(&self, base_url: &str) -> Self {
        Self {
            base_url: base_url.to_owned(),
            ..self.clone()
        }
    }

    pub fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// The same client with another key, on the same connections.
    pub fn with_key(&self, key: &str) -> Self {
        Self {
            key: Some(key.to_owned()),
            ..self.clone()
        }
    }

    pub async fn post(&self, path: &str, body: Value) -> TestResponse {
        self.post_text(path, &body.to_string(), "application/json")
            .await
    }

    pub async fn post_text(&self, path: &str, body: &str, media: &str) -> TestResponse {
        let request = self
            .request(Method::POST, path)
            .header("content-type", media);
        self.send(request.body(body.to_owned())).await
    }

    /// Sends a merge patch.
    pub async fn patch(&self, path: &str, body: Value) -> TestResponse {
        self.patch_text(path, &body.to_string()).await
    }

    pub async fn patch_text(&self, path: &str, body: &str) -> TestResponse {
        let request = self
            .request(Method::PATCH, path)
            .header("content-type", "application/merge-patch+json");
        self.send(request.body(body.to_owned())).await
    }

    pub async fn put(&self, path: &str, body: Value) -> TestResponse {
        let request = self
            .request(Method::PUT, path)
            .header("content-type", "application/json");
        self.send(request.body(body.to_string())).await
    }

    pub async fn get(&self, path: &str) -> TestResponse {
        self.send(self.request(Method::GET, path)).await
    }

    pub async fn delete(&self, path: &str) -> TestResponse {
        self.send(self.request(Method::DELETE, path)).await
    }

    pub fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let request = self
            .http
            .request(method, format!("{}{path}", self.base_url));
        match &self.key {
            Some(key) => request.header("bt-api-key", key),
            None => request,
        }
    }

    pub async fn send(&self, request: reqwest::RequestBuilder) -> TestResponse {
        Self::receive(request.send().await.unwrap()).await.unwrap()
    }

    /// Sends a request whose body the server may not read to the end. `None` if the connection closes before a
    /// complete response arrives.
    pub async fn try_send(&self, request: reqwest::RequestBuilder) -> Option<TestResponse> {
        Self::receive(request.send().await.ok()?).await.ok()
    }

    async fn receive(response: reqwest::Response) -> reqwest::Result<TestResponse> {
        let (status, headers) = (response.status(), response.headers().clone());
        let bytes = response.bytes().await?.to_vec();
        let bytes = without_trace_id(&headers, bytes);
        let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        Ok(TestResponse {
            status,
            headers,
            bytes,
            body,
        })
    }
}

/// Removes the trace id of an error, which must be that of the header, so that errors can be compared.
fn without_trace_id(headers: &HeaderMap, bytes: Vec<u8>) -> Vec<u8> {
    let media_type = headers.get("content-type");
    let is_problem = |it: &HeaderValue| it.as_bytes().starts_with(b"application/problem+json");
    let is_proxy_error = bytes.starts_with(b"{\"proxy_error\":");
    if bytes.is_empty() || !(is_proxy_error || media_type.is_some_and(is_problem)) {
        return bytes;
    }
    let text = String::from_utf8(bytes).unwrap();
    let trace_id = headers["bt-trace-id"].to_str().unwrap();
    let member = format!(",\"trace_id\":{}", Value::from(trace_id));
    assert!(text.contains(&member), "no {member} in {text}");
    text.replace(&member, "").into_bytes()
}

impl TestResponse {
    pub fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }

    /// The problem of an error. Errors of the proxy have it as a member.
    pub fn problem(&self) -> &Value {
        self.body.get("proxy_error").unwrap_or(&self.body)
    }

    pub fn id(&self) -> String {
        self.body["id"]
            .as_str()
            .unwrap_or_else(|| panic!("no id in {}", self.body))
            .to_owned()
    }

    /// The items of a list or a search.
    pub fn items(&self) -> &[Value] {
        let items = self.body["data"].as_array();
        items.unwrap_or_else(|| panic!("no items in {}", self.body))
    }

    /// The body as text for a snapshot, with the values of unstable members replaced by placeholders. Of an error, without
    /// its type, which follows from the code.
    pub fn told(&self, unstable: &[&str]) -> String {
        let mut body = self.body.clone();
        if let Some(problem) = body.as_object_mut().filter(|it| it.contains_key("code")) {
            problem.retain(|name, _| name != "type");
        }
        for name in unstable {
            if let Some(value) = body.get_mut(*name) {
                *value = Value::String(format!("[{name}]"));
            }
        }
        serde_json::to_string_pretty(&body).unwrap()
    }

    /// The fields that a 400 response reports as invalid.
    pub fn refused(&self) -> Vec<&str> {
        let errors = self.body["errors"].as_object();
        errors
            .map(|map| map.keys().map(String::as_str).collect())
            .unwrap_or_default()
    }
}
