//! Every route that accepts a body, with a valid body and an authorized client.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cloakroom::access::{ApplicationKind, Grants, Permission, Transform};
use cloakroom::route_requirements::{ROUTES, Requirement, RouteRequirement};
use cloakroom_testkit::{Client, TestResponse, TestVault, everything, grants, held_by};
use http::Method;
use serde_json::{Value, json};

use super::corruption::RequestBody;

const UNKNOWN_ID: &str = "c06d0789-0a38-40be-b7cc-c28a718f76f1";

/// A route with a valid body and an authorized client.
pub(super) struct Target {
    pub(super) route: &'static RouteRequirement,
    path: String,
    client: Client,
    pub(super) body: Value,
    pub(super) format: BodyFormat,
}

/// The format in which a route reads its body.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum BodyFormat {
    Json(&'static str),
    /// A form field with base64url-encoded JSON.
    Form(&'static str),
    /// The OpenAPI document describes no body.
    Nothing,
}

/// Clients by route. Requests that change a tenant are sent for a separate one, so that they do not affect the others.
struct Clients {
    private: Client,
    manager: Client,
    changer: Client,
    public: Client,
    public_key: String,
    token: String,
    application: String,
}

impl Clients {
    async fn new(vault: &TestVault, card_number: &str) -> Self {
        let (tenant, changed) = (vault.tenant().await, vault.tenant().await);
        let private = Grants {
            permissions: held_by(ApplicationKind::Private).collect(),
            ..everything(Transform::Reveal)
        };
        let all: Vec<Permission> = held_by(ApplicationKind::Management).collect();
        let client = vault.client_with(None);
        let private = vault
            .holder(&tenant, ApplicationKind::Private, private)
            .await;
        let manager = vault
            .holder(&tenant, ApplicationKind::Management, grants(&all))
            .await;
        let changer = vault
            .holder(&changed, ApplicationKind::Management, grants(&all))
            .await;
        let public: Vec<Permission> = held_by(ApplicationKind::Public).collect();
        let public = vault
            .holder(&tenant, ApplicationKind::Public, grants(&public))
            .await;
        let application = vault
            .holder(
                &changed,
                ApplicationKind::Private,
                grants(&[Permission::TokenCreate]),
            )
            .await;
        let private = client.with_key(&private.key);
        let new = json!({"type": "card", "data": {"number": card_number}});
        Self {
            token: private.post("/tokens", new).await.id(),
            private,
            manager: client.with_key(&manager.key),
            changer: client.with_key(&changer.key),
            public: client.with_key(&public.key),
            public_key: public.key,
            application: application.application.to_string(),
        }
    }

    fn of(&self, route: &RouteRequirement) -> &Client {
        match route.needs {
            Requirement::Nothing | Requirement::KeyInUrl => &self.public,
            Requirement::Kinds(kinds) if !kinds.contains(&ApplicationKind::Private) => &self.public,
            Requirement::Key | Requirement::Kinds(_) | Requirement::PrivateKey(_) => &self.private,
            Requirement::Permissions(needed) | Requirement::AnyOf(needed) => {
                match needed.iter().all(|one| one.fits(ApplicationKind::Private)) {
                    true => &self.private,
                    false if route.path.starts_with("/tenants") => &self.changer,
                    false if route.path == "/applications/{id}" => &self.changer,
                    false => &self.manager,
                }
            }
        }
    }

    fn address(&self, route: &RouteRequirement) -> String {
        let id = match route.path {
            "/tokens/{id}" => &self.token,
            "/applications/{id}" => &self.application,
            _ => UNKNOWN_ID,
        };
        let path = route
            .path
            .replace("{id}", id)
            .replace("{key_id}", UNKNOWN_ID)
            .replace("{key}", UNKNOWN_ID);
        match route.needs {
            Requirement::KeyInUrl => format!("{path}?apiKey={}", self.public_key),
            _ => path,
        }
    }
}

/// Every route that can be sent a body, once per example in the OpenAPI document, with `card_number` in place of the
/// card number of the examples.
pub(super) async fn all(vault: &TestVault, card_number: &str) -> Vec<Target> {
    let document = serde_json::to_value(cloakroom::router::document()).unwrap();
    let clients = Clients::new(vault, card_number).await;
    let mut targets = Vec::new();
    for route in ROUTES {
        if [Method::GET, Method::DELETE].contains(&route.method) {
            continue;
        }
        let method = route.method.as_str().to_lowercase();
        let content = &document["paths"][route.path][&method]["requestBody"]["content"];
        let (format, bodies) = valid_bodies(route, content);
        for body in bodies {
            let text = body.to_string().replace("4242424242424242", card_number);
            let text = text.replace("9a9a8a4c-5d3e-4b2f-8c1d-0e7f6a5b4c3d", &clients.token);
            targets.push(Target {
                route,
                path: clients.address(route),
                client: clients.of(route).clone(),
                body: serde_json::from_str(&text).unwrap(),
                format,
            });
        }
    }
    targets
}

/// The body format of a route and valid bodies. Panics if neither the OpenAPI document nor `more_bodies` has one.
fn valid_bodies(route: &RouteRequirement, content: &Value) -> (BodyFormat, Vec<Value>) {
    let Some((media, described)) = content.as_object().and_then(|it| it.iter().next()) else {
        return (
            BodyFormat::Nothing,
            vec![json!({"a": {"number": "4242424242424242"}})],
        );
    };
    let examples = described["examples"].as_object();
    let mut bodies: Vec<Value> = examples.map_or_else(Vec::new, |examples| {
        examples
            .values()
            .map(|example| example["value"].clone())
            .collect()
    });
    bodies.extend(more_bodies(route));
    assert!(!bodies.is_empty(), "no valid body for {route}");
    let format = match media.as_str() {
        "application/json" => BodyFormat::Json("application/json"),
        "application/merge-patch+json" => BodyFormat::Json("application/merge-patch+json"),
        "application/x-www-form-urlencoded" => match route.path.contains("challenge") {
            true => BodyFormat::Form("cres"),
            false => BodyFormat::Form("threeDSMethodData"),
        },
        media => panic!("{route} accepts {media}, which this test does not cover"),
    };
    (format, bodies)
}

fn more_bodies(route: &RouteRequirement) -> Vec<Value> {
    let device = json!({
        "browser_javascript_enabled": true, "browser_java_enabled": false,
        "browser_language": "en-US", "browser_color_depth": "24", "browser_tz": "-60",
        "browser_user_agent": "Mozilla/5.0", "message_extensions": [{"data": {"a": "4242424242424242"}}],
    });
    match route.path {
        "/tokens" => vec![json!({
            "type": "token", "data": {"name": "Ada", "number": "4242424242424242", "more": [1, true, null]},
            "mask": {"name": "{{ data.name | slice: 0 }}"}, "metadata": {"order": "1001", "shop": "eu"},
            "search_indexes": ["{{ data.name }}"], "privacy": {"classification": "general"},
        })],
        "/tokenize" => {
            vec![json!([{"type": "token", "data": {"number": "4242424242424242"}}, "x", 1])]
        }
        "/detokenize" => vec![json!({"a": {"b": [format!("{{{{ {UNKNOWN_ID} }}}}"), 1, null]}})],
        "/tokens/{id}" => vec![json!({
            "data": {"number": "4242424242424242", "expiration_month": 1}, "mask": "{{ data.number | last4 }}",
            "search_indexes": ["{{ data.number | last4 }}"], "containers": ["/pci/high/"],
        })],
        "/checkout/{key}/card" => vec![json!({
            "data": {
                "number": "4242424242424242", "expiration_month": 12, "expiration_year": 2040, "cvc": "123",
            },
            "cardholder_name": "Ada Lovelace",
        })],
        "/3ds/sessions" => vec![json!({
            "token_id": "9a9a8a4c-5d3e-4b2f-8c1d-0e7f6a5b4c3d", "type": "customer", "device": "browser",
            "device_info": device, "authentication_request": authentication(),
        })],
        "/3ds/sessions/{id}" => vec![json!({ "device_info": device })],
        "/3ds/sessions/{id}/authenticate" => vec![authentication()],
        path if path.starts_with("/3ds/redirect/") => vec![json!({
            "nonce": "5dr6jz4QN8OxzWYKW9J1dQ", "device_info": device,
        })],
        "/3ds/sessions/{id}/challenge-notification" => vec![json!({
            "messageType": "CRes", "messageVersion": "2.2.0", "threeDSServerTransID": UNKNOWN_ID,
            "acsTransID": UNKNOWN_ID, "challengeCompletionInd": "Y", "transStatus": "Y",
            "pan": "4242424242424242",
        })],
        "/3ds/sessions/{id}/method-notification" => vec![json!({
            "threeDSServerTransID": UNKNOWN_ID, "pan": "4242424242424242",
        })],
        "/tenants/self/owner" => vec![json!({ "member_id": UNKNOWN_ID })],
        _ => Vec::new(),
    }
}

fn authentication() -> Value {
    json!({
        "authentication_category": "payment", "authentication_type": "payment-transaction",
        "purchase_info": {"amount": "8000", "currency": "826", "exponent": "2", "date": "20240109141010"},
        "merchant_info": {"mid": "9876543210001", "acquirer_bin": "000000999", "country_code": "826"},
        "requestor_info": {"id": "example", "name": "Example", "url": "https://www.example.com"},
        "cardholder_info": {"name": "John Doe", "account_id": "4242424242424242", "email": "a@example.com"},
        "message_extensions": [{"name": "x", "id": "y", "criticality_indicator": false, "data": {"a": "b"}}],
    })
}

impl Target {
    /// Sends a body; returns `None` if the connection was closed before the response.
    pub(super) async fn send(&self, body: &RequestBody) -> Option<TestResponse> {
        let (media, bytes) = match self.format {
            BodyFormat::Json(media) => (media, body.bytes.clone()),
            BodyFormat::Nothing => ("application/json", body.bytes.clone()),
            BodyFormat::Form(field) => {
                let text = URL_SAFE_NO_PAD.encode(&body.bytes);
                let media = "application/x-www-form-urlencoded";
                (media, format!("{field}={text}").into_bytes())
            }
        };
        let media = body.media.unwrap_or(media);
        let mut request = self.client.request(self.route.method.clone(), &self.path);
        request = request.header("content-type", media);
        for (name, value) in &body.headers {
            request = request.header(name, value);
        }
        self.client.try_send(request.body(bytes)).await
    }
}
