//! What callers learn from a node: the responses to a fixed set of requests.

use std::collections::BTreeMap;

use cloakroom_testkit::{Client, TestResponse, TestVault};
use http::{Method, StatusCode};
use serde_json::json;

use super::scene::{DELETED, Scene, UPDATED, VICTIM, create_once, path_of};

/// Status and body of each response, without unstable members.
pub(super) type Observations = BTreeMap<String, (StatusCode, String)>;

impl Scene {
    /// Sends every request to a node.
    pub(super) async fn observe(&self, node: &TestVault) -> Observations {
        node.vault.principals.invalidate_all();
        let mut seen = Observations::new();
        let manager = self.clients.manager.at(&node.base_url);
        for path in self.managed() {
            observe(&mut seen, &path, &manager.get(&path).await);
        }
        self.observe_tokens(node, &mut seen).await;
        self.observe_rights(node, &mut seen).await;
        self.observe_pages(node, &mut seen).await;
        seen
    }

    /// Paths that the manager reads.
    fn managed(&self) -> Vec<String> {
        let resources = &self.resources;
        let (tenant, webhook) = ("/tenants/self", path_of("/webhooks", &resources.webhook));
        vec![
            "/applications".to_owned(),
            tenant.to_owned(),
            format!("{tenant}/quotas"),
            format!("{tenant}/branding"),
            format!("{tenant}/members"),
            format!("{tenant}/invitations"),
            path_of("/keys", &resources.client_key),
            path_of("/keys", &resources.deleted_client_key),
            format!("{webhook}/deliveries"),
            webhook,
            path_of("/webhooks", &resources.deleted_webhook),
            path_of("/proxies", &resources.proxy),
            path_of("/proxies", &resources.deleted_proxy),
            format!(
                "/logs?entity_type=application&entity_id={}",
                self.clients.deleted_id
            ),
        ]
    }

    async fn observe_tokens(&self, node: &TestVault, seen: &mut Observations) {
        let revealing = self.clients.revealing.at(&node.base_url);
        let card = path_of("/tokens", &self.resources.card);
        for path in [VICTIM, UPDATED, DELETED, &card, "/v2/tokens"] {
            observe(seen, path, &revealing.get(path).await);
        }
        let masking = self.clients.masking.at(&node.base_url);
        observe(seen, "masked", &masking.get(VICTIM).await);
        for query in [
            "metadata.who:\"first\"",
            "metadata.who:\"second\"",
            "data:\"first\"",
        ] {
            let body = json!({"query": query});
            observe(
                seen,
                query,
                &revealing.post("/v2/tokens/search", body).await,
            );
        }
        for intent in [&self.resources.intent, &self.resources.deleted_intent] {
            let id = intent["id"].as_str().unwrap();
            let path = format!("/token-intents/{id}");
            observe(seen, &path, &revealing.get(&path).await);
            let whole = json!(format!("{{{{ token_intent: {id} }}}}"));
            observe(seen, id, &revealing.post("/detokenize", whole).await);
        }
        observe(seen, "stored response", &create_once(&revealing).await);
    }

    async fn observe_rights(&self, node: &TestVault, seen: &mut Observations) {
        let clients = &self.clients;
        let all: [(&str, &Client); 5] = [
            ("session", &clients.session),
            ("narrowed application", &clients.narrowed),
            ("deleted application", &clients.deleted),
            ("deleted key", &clients.replaced),
            ("deleted tenant", &clients.former),
        ];
        for (name, client) in all {
            let client = client.at(&node.base_url);
            observe(seen, name, &client.get(VICTIM).await);
        }
    }

    async fn observe_pages(&self, node: &TestVault, seen: &mut Observations) {
        let revealing = self.clients.revealing.at(&node.base_url);
        let request = revealing
            .request(Method::POST, "/proxy/charges")
            .header(
                "bt-proxy-key",
                self.resources.proxy["key"].as_str().unwrap(),
            )
            .header("content-type", "application/json");
        observe(seen, "proxy", &revealing.send(request.body("{}")).await);
        let anonymous = node.client_with(None);
        let published = anonymous.get("/keys/webhooks.v1.key").await;
        observe(seen, "webhook key", &published);
        let id = self.resources.client_key["id"].as_str().unwrap();
        let key = self.clients.browser.key().unwrap();
        let path = format!("/web-elements/2.17.0/hosted-elements/keys/{id}?apiKey={key}");
        observe(seen, "client key of elements", &anonymous.get(&path).await);
        for checkout in &self.resources.checkouts {
            let url = checkout["url"].as_str().unwrap();
            let page = anonymous.get(&url.replace(&self.vault.base_url, "")).await;
            // The remaining time and the nonce change.
            let text = String::from_utf8_lossy(&page.bytes).into_owned();
            let title = text.split("<title>").nth(1);
            let title = title.and_then(|rest| rest.split('<').next());
            let title = title.unwrap_or_default().to_owned();
            seen.insert(format!("page {url}"), (page.status, title));
        }
    }
}

fn observe(seen: &mut Observations, name: &str, response: &TestResponse) {
    let mut body = response.body.clone();
    if let Some(members) = body.as_object_mut() {
        members.remove("trace_id");
        members.remove("traceId");
    }
    let body = match body.is_null() {
        true => String::from_utf8_lossy(&response.bytes).into_owned(),
        false => body.to_string(),
    };
    seen.insert(name.to_owned(), (response.status, body));
}
