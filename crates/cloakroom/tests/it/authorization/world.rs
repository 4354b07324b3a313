//! A tenant with a planted value, a card with a number known to the callers, and applications with given grants.

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cloakroom::access::{ApplicationKind, Permission, Transform};
use cloakroom::ids::new_uuid;
use cloakroom_testkit::{
    Client, SeededRng, TestDestination, TestVault, encrypt, everything, grants, passes_luhn,
};
use http::StatusCode;
use serde_json::{Value, json};

use super::call::{Call, RequestParts};
use super::model::{OWN, Spec};
use super::proxied::{self, CREDENTIAL};
use super::transcript::Transcript;

/// Container of the card with the known number.
pub(super) const KNOWN_CONTAINER: &str = "/pci/high/";

/// The kind of planted value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Planted {
    Token,
    Intent,
    /// A JWE encrypted for the vault, which callers can send.
    Encrypted,
}

/// The values to plant, one per world; they differ only in parts that no mask shows.
#[derive(Clone, Debug)]
pub(super) struct Plant {
    pub(super) planted: Planted,
    pub(super) kind: &'static str,
    pub(super) container: &'static str,
    values: [Value; 2],
    known_number: String,
    /// A mask of its creator's own, which shows as much as a mask can.
    mask: Option<Value>,
    /// An index of its creator's own, over a member beside the number.
    search_index: Option<&'static str>,
    /// Whether a public application of the tenant creates it.
    is_public: bool,
}

impl Plant {
    pub(super) fn random(chance: &mut SeededRng) -> Self {
        let planted = match chance.below(6) {
            0..=2 => Planted::Token,
            3..=4 => Planted::Intent,
            _ => Planted::Encrypted,
        };
        let kind = *chance.pick(&["card", "card", "card_number", "token", "token"]);
        let visible = chance.below(10_000);
        let values = match kind {
            "token" => {
                // The mask shows the last four.
                let hidden = [chance.below(1_000_000), chance.below(1_000_000)];
                hidden.map(|hidden| {
                    let secret = format!("{hidden:06}{visible:04}");
                    json!({"secret": secret, "pin": (hidden % 10).to_string()})
                })
            }
            _ => {
                let numbers = card_numbers(chance, visible);
                numbers.map(|number| match kind {
                    "card" => json!({
                        "number": number, "expiration_month": 12, "expiration_year": 2030, "note": "n",
                    }),
                    _ => Value::from(number),
                })
            }
        };
        let [known_number, _] = card_numbers(chance, visible);
        let mask = match kind {
            // The hidden part differs between the worlds, and the mask of its type does not truncate it.
            "token" => Some(json!({"secret": "{{ data.secret | reveal_last: 4 }}"})),
            "card" if chance.one_in(2) => {
                let masks = [
                    "{{ data }}",
                    "{{ data.number | slice: 0, 12 }}",
                    "{{ data.note }}",
                ];
                Some(json!(chance.pick(&masks)))
            }
            "card_number" if chance.one_in(2) => Some(json!("{{ data }}")),
            _ => None,
        };
        let container = match kind {
            "token" => *chance.pick(&["/vault/", "/vault/a/"]),
            _ => *chance.pick(&["/pci/", "/pci/high/"]),
        };
        let is_indexed = kind == "card" && !chance.one_in(4);
        Self {
            planted,
            kind,
            container,
            values,
            search_index: is_indexed.then_some("{{ data.note }}"),
            known_number,
            mask,
            is_public: chance.one_in(2),
        }
    }

    /// The whole value of one of the worlds.
    pub(super) fn whole(&self, chance: &mut SeededRng) -> &Value {
        chance.pick(&self.values)
    }

    /// Text to compare with the hidden part, the same in both worlds: the value of one of them, with neighbors or pieces of
    /// it, in digits or in another notation.
    pub(super) fn guess(&self, chance: &mut SeededRng) -> String {
        let value = chance.pick(&self.values);
        let members = ["number", "secret"].map(|name| value[name].as_str());
        let text = members.into_iter().flatten().next();
        let value = text.or(value.as_str()).unwrap_or_default();
        let middle = value.len() / 2;
        let neighbor = |digit| format!("{}{digit}{}", &value[..middle], &value[middle + 1..]);
        let neighbors: Vec<String> = (0..10).map(neighbor).collect();
        let text = match chance.below(4) {
            0 => value.to_owned(),
            1 => format!("{} {}", &value[..middle + 2], &value[middle - 2..]),
            _ => neighbors.join(" "),
        };
        match chance.below(6) {
            0 => text.replace('4', "\u{ff14}"),
            1 => text.replace('4', "4-"),
            _ => text,
        }
    }
}

/// Two valid numbers with the same first eight and last four digits.
fn card_numbers(chance: &mut SeededRng, last: usize) -> [String; 2] {
    let first = 40_000_000 + chance.below(9_999_999);
    let mut found = Vec::new();
    while found.len() < 2 {
        let number = format!("{first}{:04}{last:04}", chance.below(10_000));
        if passes_luhn(&number) && !found.contains(&number) {
            found.push(number);
        }
    }
    [found[0].clone(), found[1].clone()]
}

/// Ids and values planted in one world.
pub(super) struct PlantedIds {
    /// The id of the token or intent.
    pub(super) victim: String,
    /// The encrypted value.
    pub(super) encrypted: String,
    /// The header with the encrypted value, for proxied requests.
    pub(super) sent: String,
    pub(super) known: String,
    pub(super) known_number: String,
    /// The known card as read by its owner.
    before: Value,
}

pub(super) struct World {
    /// Key that values are encrypted to.
    encryption_key: Value,
    owner: Client,
    public: Client,
    callers: Vec<Client>,
    /// Sessions of the callers that may authorize them.
    sessions: Vec<Option<Client>>,
    /// What the placeholders of proxies stand for.
    proxies: [(&'static str, String); 3],
    /// The path of the world's destination.
    prefix: String,
}

impl World {
    /// A tenant with an application for each spec.
    pub(super) async fn create(
        vault: &TestVault,
        destination: &TestDestination,
        specs: &[Spec],
    ) -> Self {
        let tenant = vault.tenant_with(&[("fingerprint_tokens", "true")]).await;
        let mut owners = everything(Transform::Reveal);
        owners.permissions = [Permission::TokenIntentCreate].into_iter().collect();
        let creates = grants(&[Permission::TokenCreate, Permission::TokenIntentCreate]);
        let public = vault
            .holder(&tenant, ApplicationKind::Public, creates)
            .await;
        let public = vault.client_with(Some(&public.key));
        let manages = grants(&[Permission::KeysCreate, Permission::ProxyCreate]);
        let manager = vault.holder(&tenant, ApplicationKind::Management, manages);
        let manager = vault.client_with(Some(&manager.await.key));
        let (mut callers, mut sessions) = (Vec::new(), Vec::new());
        for spec in specs {
            let holder = vault.holder(&tenant, spec.kind, spec.grants()).await;
            let caller = vault.client_with(Some(&holder.key));
            let session = authorize(&public, &caller, spec).await;
            sessions.push(session.map(|key| vault.client_with(Some(&key))));
            callers.push(caller);
        }
        let prefix = format!("/{}", new_uuid());
        let url = destination.url(&prefix);
        let [proxy, credential] = proxies(&manager, &url).await;
        Self {
            encryption_key: manager.post("/keys", json!({})).await.body,
            owner: vault.client(&tenant, owners).await,
            public,
            callers,
            sessions,
            proxies: [
                ("@proxy", proxy),
                ("@credential", credential),
                ("@destination", url),
            ],
            prefix,
        }
    }

    pub(super) async fn plant(&self, plant: &Plant, side: usize) -> PlantedIds {
        let creator = if plant.is_public {
            &self.public
        } else {
            &self.owner
        };
        let value = &plant.values[side];
        let mut new = json!({"type": plant.kind, "data": value});
        let path = match plant.planted {
            Planted::Intent => Some("/token-intents"),
            Planted::Encrypted => None,
            Planted::Token => {
                new["containers"] = json!([plant.container]);
                if let Some(mask) = &plant.mask {
                    new["mask"] = mask.clone();
                }
                if let Some(index) = plant.search_index {
                    new["search_indexes"] = json!([index]);
                }
                Some("/tokens")
            }
        };
        let victim = match path {
            Some(path) => {
                let victim = creator.post(path, new).await;
                assert_eq!(victim.status, StatusCode::CREATED, "{}", victim.body);
                victim.id()
            }
            None => uuid::Uuid::nil().to_string(),
        };
        let known = json!({
            "type": "card",
            "data": {"number": plant.known_number, "expiration_month": 1, "expiration_year": 2031},
            "containers": [KNOWN_CONTAINER],
            "metadata": {"owner": "the owner"},
        });
        let known = self.owner.post("/tokens", known).await.id();
        let before = self.owner.get(&format!("/tokens/{known}")).await.body;
        let encrypted = encrypt(&self.encryption_key, &value.to_string());
        let sent = json!({"type": plant.kind, "encrypted": encrypted});
        PlantedIds {
            victim,
            encrypted,
            sent: STANDARD.encode(sent.to_string()),
            known,
            known_number: plant.known_number.clone(),
            before,
        }
    }

    /// Sends a call with the placeholders replaced by the values of this world.
    pub(super) async fn send(&self, call: &Call, transcript: &mut Transcript) {
        let session = self.sessions[call.caller].as_ref();
        let session = session.filter(|_| call.by_session);
        let client = session.unwrap_or(&self.callers[call.caller]);
        let RequestParts {
            method,
            path,
            headers,
            body,
        } = &call.request;
        let names = &transcript.names;
        let fill = |text: &str| self.fill_proxies(fill(text, names));
        let mut request = client.request(method.clone(), &fill(path));
        for (name, value) in headers {
            request = request.header(*name, fill(value));
        }
        if let Some(body) = body {
            request = request.body(fill(body));
        }
        let response = client.send(request).await;
        transcript.add(method, path, &response);
    }

    fn fill_proxies(&self, text: String) -> String {
        let proxies = self.proxies.iter();
        proxies.fold(text, |filled, (name, value)| filled.replace(name, value))
    }

    /// What the destination received since the last call.
    pub(super) fn received(&self, destination: &TestDestination) -> Vec<String> {
        let received = destination.take(&self.prefix);
        let lines = received.iter();
        lines.map(|it| proxied::line(it, &self.prefix)).collect()
    }

    /// Deletes what callers created where others may see it: in a later sequence such a value would differ between the
    /// worlds.
    pub(super) async fn clear_revealed(&self) {
        let list = format!("/v2/tokens?container={OWN}&size=100");
        loop {
            let page = self.owner.get(&list).await;
            assert_eq!(page.status, StatusCode::OK, "{}", page.body);
            if page.items().is_empty() {
                return;
            }
            for token in page.items() {
                let path = format!("/tokens/{}", encoded(token["id"].as_str().unwrap()));
                let deleted = self.owner.delete(&path).await;
                assert_eq!(deleted.status, StatusCode::NO_CONTENT, "{path}");
            }
        }
    }

    /// Deletes the guesses of public callers: a private caller may see which fingerprints are equal.
    pub(super) async fn delete(&self, ids: &[String], planted: &PlantedIds) {
        for id in ids.iter().filter(|id| **id != planted.victim) {
            self.owner.delete(&format!("/tokens/{}", encoded(id))).await;
        }
    }

    /// Whether the known card is unchanged.
    pub(super) async fn is_unchanged(&self, planted: &PlantedIds) -> bool {
        let path = format!("/tokens/{}", planted.known);
        self.owner.get(&path).await.body == planted.before
    }
}

/// The key of a session that a caller authorizes, with a rule of the spec's choice.
async fn authorize(public: &Client, caller: &Client, spec: &Spec) -> Option<String> {
    let session = public.post("/sessions", json!({})).await.body;
    let (container, transform, permission) = spec.session;
    let rule = json!({"description": "s", "priority": 1, "container": container,
        "transform": transform, "permissions": [permission]});
    let authorization = json!({"nonce": session["nonce"], "rules": [rule]});
    let authorized = caller.post("/sessions/authorize", authorization).await;
    let key = session["session_key"].as_str()?;
    (authorized.status == StatusCode::OK).then(|| key.to_owned())
}

/// The keys of two proxies with a secret that differs between the worlds. The second sends it.
async fn proxies(manager: &Client, url: &str) -> [String; 2] {
    let secret = new_uuid().to_string();
    let append = json!({"type": "append_header", "options":
        {"location": CREDENTIAL, "value": "{{ config: KEY }}"}});
    let mut keys = Vec::new();
    for transforms in [json!([]), json!([append])] {
        let new = json!({"name": "p", "destination_url": url, "configuration": {"KEY": secret},
            "request_transforms": transforms});
        let created = manager.post("/proxies", new).await;
        keys.push(created.body["key"].as_str().unwrap().to_owned());
    }
    [keys[0].clone(), keys[1].clone()]
}

/// An id as a segment of a path: callers choose some of them.
fn encoded(id: &str) -> String {
    let encode = |byte: u8| match byte {
        b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'-' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    id.bytes().map(encode).collect()
}

fn fill(text: &str, names: &HashMap<&'static str, String>) -> String {
    let filled = text.to_owned();
    names
        .iter()
        .fold(filled, |filled, (name, value)| filled.replace(name, value))
}
