//! One of several tenants: all its resources, and what the others must never learn.

use std::collections::BTreeMap;

use cloakroom::access::{ApplicationKind, Grants, Permission, Tenant, Transform};
use cloakroom::members::{self, Email, Member, NewInvitation, NewMember, Role};
use cloakroom_testkit::{
    Client, TestApplication, TestResponse, TestVault, everything, grants, held_by,
};
use http::StatusCode;
use serde_json::{Value, json};

const INTENTS: [Permission; 3] = [
    Permission::TokenIntentCreate,
    Permission::TokenIntentRead,
    Permission::TokenIntentDelete,
];

const TOKEN_USES: [Permission; 4] = [
    Permission::TokenUse,
    Permission::ThreedsSessionCreate,
    Permission::ThreedsSessionRead,
    Permission::ThreedsSessionAuthenticate,
];

/// A tenant with one of every kind of resource. A new kind of resource belongs here, in `traces` and in `snapshot`.
pub(super) struct TestTenant {
    pub(super) tenant: Tenant,
    /// Private application with all permissions.
    pub(super) client: Client,
    /// Management application with all permissions.
    pub(super) manager: Client,
    /// Public application.
    pub(super) browser: Client,
    /// Id of a client encryption key.
    pub(super) client_key: String,
    pub(super) proxy: String,
    pub(super) webhook: String,
    /// Used in the tenant's members, texts and metadata.
    pub(super) name: String,
    pub(super) tokens: Vec<TenantToken>,
    /// Its id, and the request that created it.
    pub(super) intent: (String, Value),
    /// Id of a checkout session.
    pub(super) checkout: String,
    /// The private application.
    pub(super) application: TestApplication,
    pub(super) owner: Member,
    pub(super) member: Member,
    /// Its id and email address.
    pub(super) invitation: (String, String),
    /// A quota value that only this tenant has.
    pub(super) tokenize_limit: usize,
    /// Cursors of the token list, the token search and the log.
    pub(super) cursors: [String; 3],
    /// Ids, fingerprints, names and data of this tenant, including its own id.
    pub(super) traces: Vec<String>,
    /// Responses to this tenant's reads, which other tenants must not change.
    snapshot: BTreeMap<String, Vec<u8>>,
}

/// A token as its owner sees it.
pub(super) struct TenantToken {
    pub(super) path: String,
    pub(super) id: String,
    pub(super) new: Value,
    pub(super) fingerprint: String,
    pub(super) snapshot: Vec<u8>,
}

impl TestTenant {
    pub(super) async fn new(vault: &TestVault, number: usize) -> Self {
        let tenant = vault.tenant().await;
        let private = Grants {
            permissions: INTENTS.into_iter().chain(TOKEN_USES).collect(),
            ..everything(Transform::Reveal)
        };
        let private = vault
            .holder(&tenant, ApplicationKind::Private, private)
            .await;
        let management: Vec<Permission> = held_by(ApplicationKind::Management).collect();
        let management = vault
            .holder(&tenant, ApplicationKind::Management, grants(&management))
            .await;
        let browser = grants(&[Permission::TokenCreate]);
        let browser = vault
            .holder(&tenant, ApplicationKind::Public, browser)
            .await;
        let name = format!("owner-{number}");
        let [owner, member] = [Role::Owner, Role::ReadOnly].map(|role| new_member(&name, role));
        let owner = members::add(&vault.vault, tenant.id, owner).await.unwrap();
        let member = members::add(&vault.vault, tenant.id, member).await.unwrap();
        let client = vault.client_with(Some(&private.key));
        let mut test_tenant = Self {
            traces: vec![
                tenant.id.uuid.to_string(),
                name.clone(),
                format!("secret-{number}"),
                management.application.to_string(),
                private.application.to_string(),
                private.key_id.to_string(),
                owner.id.to_string(),
                owner.user.id.to_string(),
                member.id.to_string(),
                member.user.id.to_string(),
            ],
            manager: client.with_key(&management.key),
            browser: client.with_key(&browser.key),
            client_key: String::new(),
            proxy: String::new(),
            webhook: String::new(),
            client,
            tenant,
            name,
            tokens: Vec::new(),
            intent: (String::new(), Value::Null),
            checkout: String::new(),
            application: private,
            owner,
            member,
            invitation: (String::new(), String::new()),
            tokenize_limit: 100 + number,
            cursors: [const { String::new() }; 3],
            snapshot: BTreeMap::new(),
        };
        test_tenant.create_tokens(number).await;
        test_tenant.create_intent(number).await;
        test_tenant.create_client_key().await;
        test_tenant.create_proxy().await;
        test_tenant.create_webhook().await;
        test_tenant.create_singletons(vault).await;
        test_tenant.read_pages().await;
        test_tenant.snapshot = test_tenant.read_all(&vault.base_url).await;
        test_tenant
    }

    /// Creates a client encryption key.
    async fn create_client_key(&mut self) {
        self.client_key = self.manager.post("/keys", json!({})).await.id();
        self.traces.push(self.client_key.clone());
    }

    /// Creates a pre-configured proxy.
    async fn create_proxy(&mut self) {
        let new = json!({"name": "A proxy", "destination_url": "https://api.example.com"});
        let created = self.manager.post("/proxies", new).await;
        self.proxy = created.id();
        let key = created.body["key"].as_str().unwrap_or_default();
        self.traces.extend([self.proxy.clone(), key.to_owned()]);
    }

    /// Creates a webhook.
    async fn create_webhook(&mut self) {
        let new = json!({"name": self.name, "url": "https://hooks.example.com/", "events": ["token.created"]});
        self.webhook = self.manager.post("/webhooks", new).await.id();
        self.traces.push(self.webhook.clone());
    }

    /// The nonce and the key of a new session that is not authorized.
    pub(super) async fn create_session(&self) -> [String; 2] {
        let session = self.browser.post("/sessions", Value::Null).await;
        assert_eq!(session.status, StatusCode::CREATED, "{}", session.body);
        ["nonce", "session_key"].map(|name| session.body[name].as_str().unwrap().to_owned())
    }

    async fn create_tokens(&mut self, number: usize) {
        let card = json!({"number": "4242424242424242", "expiration_month": 12});
        let mut requests = vec![
            json!({"type": "card", "data": card, "deduplicate_token": true}),
            json!({"type": "social_security_number", "data": format!("078-05-11{number}0")}),
        ];
        for count in 0..6 {
            let secret = format!("secret-{number}-{count}");
            requests.push(json!({
                "type": "token",
                "data": {"secret": secret},
                "search_indexes": ["{{ data.secret }}"],
                "metadata": {"who": self.name},
                "containers": [format!("/shared/{}/", count % 2)],
                "deduplicate_token": count % 2 == 0,
            }));
        }
        requests[6]["id"] = json!(format!("order {number} 17"));
        requests[7]["id"] = json!(format!("order-{number}-18"));
        // The other containers have the same names and order in all tenants.
        requests[3]["containers"] = json!([format!("/{}/", self.name)]);
        for new in requests {
            self.create(new).await;
        }
    }

    async fn create(&mut self, mut new: Value) {
        if new.get("id").is_none() {
            new["id"] = json!(uuid_with_letters());
        }
        let created = self.client.post("/tokens", new.clone()).await;
        assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
        let id = created.id();
        let path = format!("/tokens/{}", id.replace(' ', "%20"));
        let fingerprint = created.body["fingerprint"].as_str().unwrap().to_owned();
        self.traces.extend([id.clone(), fingerprint.clone()]);
        self.tokens.push(TenantToken {
            snapshot: self.client.get(&path).await.bytes,
            path,
            id,
            new,
            fingerprint,
        });
    }

    async fn create_intent(&mut self, number: usize) {
        let new = json!({"type": "token", "data": {"secret": format!("secret-{number}-intent")}});
        let created = self.client.post("/token-intents", new.clone()).await;
        let fingerprint = created.body["fingerprint"].as_str().unwrap();
        self.traces.extend([created.id(), fingerprint.to_owned()]);
        self.intent = (created.id(), new);
        let url = format!("http://localhost:3000/{}", self.name);
        let new = json!({"return_url": url, "cancel_url": url});
        self.checkout = self.client.post("/checkout/sessions", new).await.id();
        self.traces.push(self.checkout.clone());
    }

    /// Creates an invitation and the resources that a tenant has one of.
    async fn create_singletons(&mut self, vault: &TestVault) {
        let email = format!("{}.invited@example.com", self.name);
        let new = NewInvitation {
            email: Email::parse(&email).unwrap(),
            role: Role::Admin,
        };
        let invited = members::invite_as_operator(&vault.vault, self.tenant.id, &new).await;
        self.invitation = (invited.unwrap().0.id.to_string(), email);
        self.traces.push(self.invitation.0.clone());
        for (path, body) in self.singletons() {
            let changed = self.manager.put(path, body).await;
            assert_eq!(changed.status, StatusCode::OK, "{path} {}", changed.body);
        }
    }

    /// The updates of the tenant, its quotas and its security contact, which tests repeat.
    pub(super) fn singletons(&self) -> [(&'static str, Value); 3] {
        let email = format!("{}.contact@example.com", self.name);
        [
            (
                "/tenants/self",
                json!({ "name": format!("Tenant of {}", self.name) }),
            ),
            (
                "/tenants/self/quotas",
                json!({ "tokenize_limit": self.tokenize_limit }),
            ),
            ("/tenants/self/security-contact", json!({ "email": email })),
        ]
    }

    async fn read_pages(&mut self) {
        let next =
            |page: &TestResponse| page.body["pagination"]["next"].as_str().unwrap().to_owned();
        let listed = self.client.get("/v2/tokens?size=2").await;
        let search = json!({"size": 2});
        let searched = self.client.post("/v2/tokens/search", search).await;
        let log = self.manager.get("/logs?size=2").await;
        self.cursors = [next(&listed), next(&searched), next(&log)];
    }

    /// Reads all resources of the tenant from one node.
    async fn read_all(&self, base_url: &str) -> BTreeMap<String, Vec<u8>> {
        let (client, manager) = (self.client.at(base_url), self.manager.at(base_url));
        let mut snapshot = BTreeMap::new();
        for token in &self.tokens {
            snapshot.insert(token.path.clone(), client.get(&token.path).await.bytes);
        }
        let intent = format!("/token-intents/{}", self.intent.0);
        snapshot.insert(intent.clone(), client.get(&intent).await.bytes);
        let application = format!("/applications/{}", self.application.application);
        let paths = [
            &application,
            &format!("{application}/keys"),
            "/applications",
            "/keys",
            "/webhooks",
            "/tenants/self",
            "/tenants/self/quotas",
            "/tenants/self/security-contact",
            "/tenants/self/owner",
            "/tenants/self/members",
            "/tenants/self/invitations",
            "/tenants/self/reports/usage",
        ];
        for path in paths {
            let response = manager.get(path).await;
            assert_eq!(response.status, StatusCode::OK, "{path} {}", response.body);
            let mut body = response.body;
            if path.starts_with("/tenants/self") {
                remove_changes(&mut body);
            }
            snapshot.insert(path.to_owned(), body.to_string().into_bytes());
        }
        snapshot
    }

    /// Asserts that no resource has changed.
    pub(super) async fn check_unchanged(&self, base_url: &str) {
        for (path, now) in self.read_all(base_url).await {
            let before = String::from_utf8_lossy(&self.snapshot[&path]);
            assert_eq!(String::from_utf8_lossy(&now), before, "{path}");
        }
    }
}

fn new_member(name: &str, role: Role) -> NewMember {
    let email = format!("{name}.{}@example.com", role.name().to_lowercase());
    NewMember {
        email: Email::parse(&email).unwrap(),
        role,
        first_name: Some(name.to_owned()),
        last_name: None,
    }
}

/// Removes what the tenant's own requests change: modification times and activity counts.
fn remove_changes(body: &mut Value) {
    match body {
        Value::Object(members) => {
            for name in ["modified_at", "modified_by", "monthly_active_tokens"] {
                members.remove(name);
            }
            members.values_mut().for_each(remove_changes);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_changes),
        _ => {}
    }
}

/// Half of a UUID without letters may look like a card number, which ids must not contain.
fn uuid_with_letters() -> String {
    let has_letter = |half: &str| half.contains(char::is_alphabetic);
    loop {
        let id = cloakroom::ids::new_uuid().to_string();
        if has_letter(&id[..18]) && has_letter(&id[18..]) {
            return id;
        }
    }
}
