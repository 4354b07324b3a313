//! One tenant among others: all that it has, and what the others must never learn.

use std::collections::BTreeMap;

use cloakroom::access::{ApplicationKind, Grants, Permission, Tenant, Transform};
use cloakroom::members::{self, Email, Member, NewInvitation, NewMember, Role};
use http::StatusCode;
use serde_json::{Value, json};

use crate::doors::held_by;
use crate::support::{Answer, Client, Holder, TestVault, everything, grants};

const INTENTS: [Permission; 3] = [
    Permission::TokenIntentCreate,
    Permission::TokenIntentRead,
    Permission::TokenIntentDelete,
];

const USES: [Permission; 4] = [
    Permission::TokenUse,
    Permission::ThreedsSessionCreate,
    Permission::ThreedsSessionRead,
    Permission::ThreedsSessionAuthenticate,
];

/// Something of everything that a tenant can have. A new kind of thing belongs here, in `traces` and in
/// `seen`.
pub(super) struct Side {
    pub(super) tenant: Tenant,
    /// Of a private application that may do everything.
    pub(super) client: Client,
    /// Of a management application that may do everything.
    pub(super) manager: Client,
    /// Of a public application.
    pub(super) browser: Client,
    /// The id of a client encryption key.
    pub(super) client_key: String,
    /// What the tenant's people are called, its texts and its metadata.
    pub(super) name: String,
    pub(super) tokens: Vec<Known>,
    /// Its id, and what it was made of.
    pub(super) intent: (String, Value),
    /// The private application.
    pub(super) application: Holder,
    pub(super) owner: Member,
    pub(super) member: Member,
    /// Its id and the address.
    pub(super) invitation: (String, String),
    /// A quota that only this tenant has.
    pub(super) tokenize_limit: usize,
    /// Of the list and the search of tokens, and of the log.
    pub(super) cursors: [String; 3],
    /// Ids, fingerprints, names and data of this tenant, and its own id.
    pub(super) traces: Vec<String>,
    /// What this tenant reads here stays the same, whatever the others do.
    seen: BTreeMap<String, Vec<u8>>,
}

/// A token as its owner sees it.
pub(super) struct Known {
    pub(super) path: String,
    pub(super) id: String,
    pub(super) new: Value,
    pub(super) fingerprint: String,
    pub(super) seen: Vec<u8>,
}

impl Side {
    pub(super) async fn new(vault: &TestVault, number: usize) -> Self {
        let tenant = vault.tenant().await;
        let private = Grants {
            permissions: INTENTS.into_iter().chain(USES).collect(),
            ..everything(Transform::Reveal)
        };
        let private = vault
            .holder(&tenant, ApplicationKind::Private, private)
            .await;
        let managing: Vec<Permission> = held_by(ApplicationKind::Management).collect();
        let managing = vault
            .holder(&tenant, ApplicationKind::Management, grants(&managing))
            .await;
        let browser = grants(&[Permission::TokenCreate]);
        let browser = vault
            .holder(&tenant, ApplicationKind::Public, browser)
            .await;
        let name = format!("owner-{number}");
        let [owner, member] = [Role::Owner, Role::ReadOnly].map(|role| person(&name, role));
        let owner = members::add(&vault.vault, tenant.id, owner).await.unwrap();
        let member = members::add(&vault.vault, tenant.id, member).await.unwrap();
        let client = vault.client_with(Some(&private.key));
        let mut side = Self {
            traces: vec![
                tenant.id.uuid.to_string(),
                name.clone(),
                format!("secret-{number}"),
                managing.application.to_string(),
                private.application.to_string(),
                private.key_id.to_string(),
                owner.id.to_string(),
                owner.user.id.to_string(),
                member.id.to_string(),
                member.user.id.to_string(),
            ],
            manager: client.with_key(&managing.key),
            browser: client.with_key(&browser.key),
            client_key: String::new(),
            client,
            tenant,
            name,
            tokens: Vec::new(),
            intent: (String::new(), Value::Null),
            application: private,
            owner,
            member,
            invitation: (String::new(), String::new()),
            tokenize_limit: 100 + number,
            cursors: [const { String::new() }; 3],
            seen: BTreeMap::new(),
        };
        side.create_tokens(number).await;
        side.create_intent(number).await;
        side.create_client_key().await;
        side.set_up(vault).await;
        side.read_pages().await;
        side.seen = side.look(&vault.base_url).await;
        side
    }

    /// A key that data can be encrypted to.
    async fn create_client_key(&mut self) {
        self.client_key = self.manager.post("/keys", json!({})).await.id();
        self.traces.push(self.client_key.clone());
    }

    /// The nonce and the key of a session that nobody has authorized.
    pub(super) async fn ask_for_session(&self) -> [String; 2] {
        let session = self.browser.post("/sessions", Value::Null).await;
        assert_eq!(session.status, StatusCode::CREATED, "{}", session.body);
        ["nonce", "session_key"].map(|name| session.body[name].as_str().unwrap().to_owned())
    }

    async fn create_tokens(&mut self, number: usize) {
        let card = json!({"number": "4242424242424242", "expiration_month": 12});
        let mut news = vec![
            json!({"type": "card", "data": card, "deduplicate_token": true}),
            json!({"type": "social_security_number", "data": format!("078-05-11{number}0")}),
        ];
        for count in 0..6 {
            let secret = format!("secret-{number}-{count}");
            news.push(json!({
                "type": "token",
                "data": {"secret": secret},
                "search_indexes": ["{{ data.secret }}"],
                "metadata": {"who": self.name},
                "containers": [format!("/shared/{}/", count % 2)],
                "deduplicate_token": count % 2 == 0,
            }));
        }
        news[6]["id"] = json!(format!("order {number} 17"));
        news[7]["id"] = json!(format!("order-{number}-18"));
        // Elsewhere the tenants have containers of the same names, and in the same order.
        news[3]["containers"] = json!([format!("/{}/", self.name)]);
        for new in news {
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
        self.tokens.push(Known {
            seen: self.client.get(&path).await.bytes,
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
    }

    /// What a tenant has one of, and an invitation.
    async fn set_up(&mut self, vault: &TestVault) {
        let email = format!("{}.invited@example.com", self.name);
        let new = NewInvitation {
            email: Email::parse(&email).unwrap(),
            role: Role::Admin,
        };
        let invited = members::invite_by_command(&vault.vault, self.tenant.id, &new).await;
        self.invitation = (invited.unwrap().0.id.to_string(), email);
        self.traces.push(self.invitation.0.clone());
        for (path, body) in self.singletons() {
            let changed = self.manager.put(path, body).await;
            assert_eq!(changed.status, StatusCode::OK, "{path} {}", changed.body);
        }
    }

    /// What the tenant itself, its quotas and its security contact are changed to, again and again.
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
        let next = |page: &Answer| page.body["pagination"]["next"].as_str().unwrap().to_owned();
        let listed = self.client.get("/v2/tokens?size=2").await;
        let search = json!({"size": 2});
        let searched = self.client.post("/v2/tokens/search", search).await;
        let log = self.manager.get("/logs?size=2").await;
        self.cursors = [next(&listed), next(&searched), next(&log)];
    }

    /// All that the tenant has, as it reads it at a node.
    async fn look(&self, base_url: &str) -> BTreeMap<String, Vec<u8>> {
        let (client, manager) = (self.client.at(base_url), self.manager.at(base_url));
        let mut seen = BTreeMap::new();
        for token in &self.tokens {
            seen.insert(token.path.clone(), client.get(&token.path).await.bytes);
        }
        let intent = format!("/token-intents/{}", self.intent.0);
        seen.insert(intent.clone(), client.get(&intent).await.bytes);
        let application = format!("/applications/{}", self.application.application);
        let paths = [
            &application,
            &format!("{application}/keys"),
            "/applications",
            "/keys",
            "/tenants/self",
            "/tenants/self/quotas",
            "/tenants/self/security-contact",
            "/tenants/self/owner",
            "/tenants/self/members",
            "/tenants/self/invitations",
            "/tenants/self/reports/usage",
        ];
        for path in paths {
            let answer = manager.get(path).await;
            assert_eq!(answer.status, StatusCode::OK, "{path} {}", answer.body);
            let mut body = answer.body;
            if path.starts_with("/tenants/self") {
                forget_changes(&mut body);
            }
            seen.insert(path.to_owned(), body.to_string().into_bytes());
        }
        seen
    }

    /// Fails unless everything is as it was.
    pub(super) async fn check_unchanged(&self, base_url: &str) {
        for (path, now) in self.look(base_url).await {
            let before = String::from_utf8_lossy(&self.seen[&path]);
            assert_eq!(String::from_utf8_lossy(&now), before, "{path}");
        }
    }
}

fn person(name: &str, role: Role) -> NewMember {
    let email = format!("{name}.{}@example.com", role.name().to_lowercase());
    NewMember {
        email: Email::parse(&email).unwrap(),
        role,
        first_name: Some(name.to_owned()),
        last_name: None,
    }
}

/// Takes out what the tenant's own calls change: when something was changed, and how much was read.
fn forget_changes(body: &mut Value) {
    match body {
        Value::Object(members) => {
            for name in ["modified_at", "modified_by", "monthly_active_tokens"] {
                members.remove(name);
            }
            members.values_mut().for_each(forget_changes);
        }
        Value::Array(items) => items.iter_mut().for_each(forget_changes),
        _ => {}
    }
}

/// Half of a UUID without letters may look like a card number, which no id may hold.
fn uuid_with_letters() -> String {
    let has_letter = |half: &str| half.contains(char::is_alphabetic);
    loop {
        let id = cloakroom::ids::new_uuid().to_string();
        if has_letter(&id[..18]) && has_letter(&id[18..]) {
            return id;
        }
    }
}
