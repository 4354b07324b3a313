//! Every route that takes a body, with a good one and somebody who may send it.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cloakroom::access::{ApplicationKind, Grants, Permission, Transform};
use cloakroom::doors::{DOORS, Door, Needs};
use http::Method;
use serde_json::{Value, json};

use super::breakage::Broken;
use crate::doors::held_by;
use crate::support::{Answer, Client, TestVault, everything, grants};

const UNKNOWN: &str = "c06d0789-0a38-40be-b7cc-c28a718f76f1";

/// A route, a good body and who sends it.
pub(super) struct Target {
    pub(super) door: &'static Door,
    path: String,
    client: Client,
    pub(super) body: Value,
    pub(super) takes: Takes,
}

/// How a route reads what it is sent.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Takes {
    Json(&'static str),
    /// A field of a form that holds JSON in base64url.
    Form(&'static str),
    /// The description knows of no body.
    Nothing,
}

/// Who asks where. What changes a tenant is asked by another one, so that it is in nobody's way.
struct Askers {
    private: Client,
    manager: Client,
    changer: Client,
    page: Client,
    page_key: String,
    token: String,
    application: String,
}

impl Askers {
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
        let page: Vec<Permission> = held_by(ApplicationKind::Public).collect();
        let page = vault
            .holder(&tenant, ApplicationKind::Public, grants(&page))
            .await;
        let target = vault
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
            page: client.with_key(&page.key),
            page_key: page.key,
            application: target.application.to_string(),
        }
    }

    fn of(&self, door: &Door) -> &Client {
        match door.needs {
            Needs::Nothing | Needs::KeyInAddress => &self.page,
            Needs::Kinds(kinds) if !kinds.contains(&ApplicationKind::Private) => &self.page,
            Needs::Key | Needs::Kinds(_) => &self.private,
            Needs::Permissions(needed) => {
                match needed.iter().all(|one| one.fits(ApplicationKind::Private)) {
                    true => &self.private,
                    false if door.path.starts_with("/tenants") => &self.changer,
                    false if door.path == "/applications/{id}" => &self.changer,
                    false => &self.manager,
                }
            }
        }
    }

    fn address(&self, door: &Door) -> String {
        let id = match door.path {
            "/tokens/{id}" => &self.token,
            "/applications/{id}" => &self.application,
            _ => UNKNOWN,
        };
        let path = door.path.replace("{id}", id).replace("{key_id}", UNKNOWN);
        match door.needs {
            Needs::KeyInAddress => format!("{path}?apiKey={}", self.page_key),
            _ => path,
        }
    }
}

/// Every route that may be sent a body, once per example that its description has of one. The card
/// number of the examples is replaced.
pub(super) async fn all(vault: &TestVault, card_number: &str) -> Vec<Target> {
    let document = serde_json::to_value(cloakroom::router::document()).unwrap();
    let askers = Askers::new(vault, card_number).await;
    let mut targets = Vec::new();
    for door in DOORS {
        if [Method::GET, Method::DELETE].contains(&door.method) {
            continue;
        }
        let method = door.method.as_str().to_lowercase();
        let content = &document["paths"][door.path][&method]["requestBody"]["content"];
        let (takes, bodies) = good_bodies(door, content);
        for body in bodies {
            let text = body.to_string().replace("4242424242424242", card_number);
            let text = text.replace("9a9a8a4c-5d3e-4b2f-8c1d-0e7f6a5b4c3d", &askers.token);
            targets.push(Target {
                door,
                path: askers.address(door),
                client: askers.of(door).clone(),
                body: serde_json::from_str(&text).unwrap(),
                takes,
            });
        }
    }
    targets
}

/// How a route takes bodies, and good ones. One that the description shows no example of, and that is
/// not known here either, fails the test.
fn good_bodies(door: &Door, content: &Value) -> (Takes, Vec<Value>) {
    let Some((media, described)) = content.as_object().and_then(|it| it.iter().next()) else {
        return (
            Takes::Nothing,
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
    bodies.extend(more_bodies(door));
    assert!(!bodies.is_empty(), "no good body is known for {door}");
    let takes = match media.as_str() {
        "application/json" => Takes::Json("application/json"),
        "application/merge-patch+json" => Takes::Json("application/merge-patch+json"),
        "application/x-www-form-urlencoded" => match door.path.contains("challenge") {
            true => Takes::Form("cres"),
            false => Takes::Form("threeDSMethodData"),
        },
        media => panic!("{door} takes {media}, which is not broken here"),
    };
    (takes, bodies)
}

fn more_bodies(door: &Door) -> Vec<Value> {
    let device = json!({
        "browser_javascript_enabled": true, "browser_java_enabled": false,
        "browser_language": "en-US", "browser_color_depth": "24", "browser_tz": "-60",
        "browser_user_agent": "Mozilla/5.0", "message_extensions": [{"data": {"a": "4242424242424242"}}],
    });
    match door.path {
        "/tokens" => vec![json!({
            "type": "token", "data": {"name": "Ada", "number": "4242424242424242", "more": [1, true, null]},
            "mask": {"name": "{{ data.name | slice: 0 }}"}, "metadata": {"order": "1001", "shop": "eu"},
            "search_indexes": ["{{ data.name }}"], "privacy": {"classification": "general"},
        })],
        "/tokenize" => {
            vec![json!([{"type": "token", "data": {"number": "4242424242424242"}}, "x", 1])]
        }
        "/detokenize" => vec![json!({"a": {"b": [format!("{{{{ {UNKNOWN} }}}}"), 1, null]}})],
        "/tokens/{id}" => vec![json!({
            "data": {"number": "4242424242424242", "expiration_month": 1}, "mask": "{{ data.number | last4 }}",
            "search_indexes": ["{{ data.number | last4 }}"], "containers": ["/pci/high/"],
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
            "messageType": "CRes", "messageVersion": "2.2.0", "threeDSServerTransID": UNKNOWN,
            "acsTransID": UNKNOWN, "challengeCompletionInd": "Y", "transStatus": "Y",
            "pan": "4242424242424242",
        })],
        "/3ds/sessions/{id}/method-notification" => vec![json!({
            "threeDSServerTransID": UNKNOWN, "pan": "4242424242424242",
        })],
        "/tenants/self/owner" => vec![json!({ "member_id": UNKNOWN })],
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
    /// Sends the body, broken or not, and says what came back; nothing when the connection was cut.
    pub(super) async fn send(&self, broken: &Broken) -> Option<Answer> {
        let (media, bytes) = match self.takes {
            Takes::Json(media) => (media, broken.bytes.clone()),
            Takes::Nothing => ("application/json", broken.bytes.clone()),
            Takes::Form(field) => {
                let text = URL_SAFE_NO_PAD.encode(&broken.bytes);
                let media = "application/x-www-form-urlencoded";
                (media, format!("{field}={text}").into_bytes())
            }
        };
        let media = broken.media.unwrap_or(media);
        let mut request = self.client.request(self.door.method.clone(), &self.path);
        request = request.header("content-type", media);
        for (name, value) in &broken.headers {
            request = request.header(name, value);
        }
        self.client.try_send(request.body(bytes)).await
    }
}
