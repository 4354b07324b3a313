//! Invoking the proxy, with a real TLS destination.

mod access;
mod audit;
mod destination;
mod disclosure;
mod failures;
mod limits;
mod replacement;
mod streaming;

use cloakroom::access::{Permission, Tenant};
use cloakroom::config::{Config, Ports, StaticAddresses};
use cloakroom_testkit::{Client, TestDatabase, TestResponse, TestVault, grants};
use http::Method;
use reqwest::RequestBuilder;
use serde_json::{Value, json};

use self::destination::{Behavior, Destination, HOST};

const NUMBER: &str = "4242424242424242";

/// A vault, a destination that it may send requests to, and a client that may use tokens there.
struct Fixture {
    vault: TestVault,
    tenant: Tenant,
    client: Client,
    destination: Destination,
}

impl Fixture {
    async fn start() -> Self {
        Self::with(Behavior::ok(), |_| {}).await
    }

    async fn with(behavior: Behavior, change: impl FnOnce(&mut Config)) -> Self {
        use Permission::{ProxyInvoke, TokenCreate, TokenIntentCreate};
        let destination = Destination::start(behavior).await;
        let vault = TestVault::start_with(TestDatabase::create().await, |config| {
            allow(config, &destination);
            change(config);
        })
        .await;
        let tenant = vault.tenant().await;
        let granted = grants(&[ProxyInvoke, TokenCreate, TokenIntentCreate]);
        Self {
            client: vault.client(&tenant, granted).await,
            vault,
            tenant,
            destination,
        }
    }

    /// A request through the ephemeral proxy.
    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.request_of(&self.client, method, path)
    }

    fn request_of(&self, client: &Client, method: Method, path: &str) -> RequestBuilder {
        let request = client.request(method, &format!("/proxy{path}"));
        request.header("bt-proxy-url", self.destination.url())
    }

    async fn post(&self, media: &str, body: impl Into<String>) -> TestResponse {
        self.post_as(&self.client, media, body).await
    }

    async fn post_as(&self, client: &Client, media: &str, body: impl Into<String>) -> TestResponse {
        let request = self.request_of(client, Method::POST, "/charges");
        let request = request.header("content-type", media);
        client.send(request.body(body.into())).await
    }

    async fn post_json(&self, body: Value) -> TestResponse {
        self.post("application/json", body.to_string()).await
    }

    async fn token(&self, data: Value) -> String {
        self.token_in("/", data).await
    }

    async fn token_in(&self, container: &str, data: Value) -> String {
        let new = json!({"type": "token", "data": data, "containers": [container]});
        self.client.post("/tokens", new).await.id()
    }

    async fn card(&self) -> String {
        self.client.post("/tokens", card()).await.id()
    }
}

fn card() -> Value {
    json!({
        "type": "card",
        "data": {
            "number": NUMBER,
            "expiration_month": 12,
            "expiration_year": 2030,
            "cvc": "123",
        },
    })
}

/// Allows the destination, on its loopback address.
fn allow(config: &mut Config, destination: &Destination) {
    let egress = &mut config.egress;
    egress.allowed_hosts = Some("*.example.com".parse().unwrap());
    egress.ports = Ports::new(vec![destination.address.port()]);
    egress.allow_private_networks = "127.0.0.1/32".parse().unwrap();
    let hosts = [HOST, "other.example.com"];
    let addresses = hosts.map(|host| (host.to_owned(), destination.address.ip()));
    egress.static_addresses = StaticAddresses::new(addresses.to_vec());
    egress.ca_file = Some(destination.ca_file.clone());
}

/// The error of the proxy, and the absence of a status of the destination.
fn proxy_error(response: &TestResponse) -> &Value {
    assert!(
        !response.headers.contains_key("bt-proxy-destination-status"),
        "{}",
        response.body
    );
    let error = &response.body["proxy_error"];
    assert_eq!(
        error["status"],
        response.status.as_u16(),
        "{}",
        response.body
    );
    for member in ["type", "title", "detail"] {
        assert!(error[member].is_string(), "{member} of {error}");
    }
    error
}
