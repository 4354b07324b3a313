//! Requests about everything but tokens and intents.

use cloakroom_testkit::SeededRng;
use http::StatusCode;
use serde_json::json;

use super::{Attempt, Expected, Parties, own};

impl Attempt {
    pub(super) fn build_applications(
        &mut self,
        chance: &mut SeededRng,
        parties: Parties<'_>,
    ) -> bool {
        let Parties { caller, owner } = parties;
        let other = &owner.application;
        let change = json!({"name": "Mine", "type": "private", "permissions": ["token:read"],
            "tenant_id": owner.tenant.id.uuid, "id": other.application});
        match self.method_and_path() {
            ("POST", "/applications") => {
                self.body = Some(change);
                self.expected = Expected::Fresh;
            }
            ("GET", "/applications") => match chance.one_in(2) {
                true => self.query("", own(3)),
                false => self.query(&format!("?id={}", other.application), Expected::Empty),
            },
            ("GET", "/applications/key") => {
                let own = json!(caller.application.application);
                self.expected = Expected::Member("id", own);
            }
            ("POST", "/applications/{id}/regenerate") => {
                self.insert_foreign_id("{id}", other.application);
                self.expected = Expected::Status(StatusCode::GONE);
            }
            ("PUT", "/applications/{id}") => {
                self.insert_foreign_id("{id}", other.application);
                self.body = Some(change);
            }
            ("GET" | "DELETE" | "POST", "/applications/{id}" | "/applications/{id}/keys") => {
                self.insert_foreign_id("{id}", other.application);
            }
            ("GET" | "DELETE", "/applications/{id}/keys/{key_id}") => {
                let own = &caller.application;
                match chance.below(3) {
                    0 => {
                        self.insert_foreign_id("{id}", other.application);
                        self.insert_foreign_id("{key_id}", other.key_id);
                    }
                    1 => {
                        self.path = self.path.replace("{id}", &own.application.to_string());
                        self.insert_foreign_id("{key_id}", other.key_id);
                    }
                    _ => {
                        self.insert_foreign_id("{id}", other.application);
                        self.path = self.path.replace("{key_id}", &own.key_id.to_string());
                    }
                }
            }
            _ => return false,
        }
        true
    }

    pub(super) fn build_logs(&mut self, chance: &mut SeededRng, parties: Parties<'_>) -> bool {
        let owner = parties.owner;
        let resources = [
            ("token_intent", owner.intent.0.clone()),
            ("application", owner.application.application.to_string()),
            ("application_key", owner.application.key_id.to_string()),
            ("invitation", owner.invitation.0.clone()),
            ("tenant", owner.tenant.id.uuid.to_string()),
        ];
        match self.method_and_path() {
            ("GET", "/logs") => match chance.below(4) {
                0 => self.query("?size=100", Expected::Own(None)),
                1 => {
                    let start = format!("?start={}", owner.cursors[2]);
                    self.query(&start, Expected::Status(StatusCode::BAD_REQUEST));
                }
                2 => {
                    let (_, id) = chance.pick(&resources);
                    self.query(&format!("?entity_id={id}"), Expected::Empty);
                }
                _ => {
                    let (kind, id) = chance.pick(&resources);
                    let query = format!("?entity_type={kind}&entity_id={id}");
                    self.query(&query, Expected::Empty);
                }
            },
            _ => return false,
        }
        true
    }

    /// Resources that every tenant has exactly one of. An id of another tenant in the body is ignored.
    pub(super) fn build_tenant(&mut self, chance: &mut SeededRng, parties: Parties<'_>) -> bool {
        let Parties { caller, owner } = parties;
        if self.method_and_path() == ("GET", "/tenants/self/reports/usage") {
            self.expected = Expected::CounterKind;
            return true;
        }
        let own = &caller.tenant.id.uuid;
        let [_, _, (_, contact)] = caller.singletons();
        let (name, value) = match self.route.path {
            "/tenants/self" => ("id", json!(own)),
            "/tenants/self/quotas" => ("tokenize_limit", json!(caller.tokenize_limit)),
            "/tenants/self/security-contact" => ("email", contact["email"].clone()),
            "/tenants/self/owner" => ("id", json!(caller.owner.id)),
            _ => return false,
        };
        self.expected = Expected::Member(name, value);
        match self.method_and_path() {
            ("GET", _) => {}
            // The owner can be set to the current owner again, and to no member of another tenant.
            ("PUT", "/tenants/self/owner") if chance.one_in(3) => {
                self.body = Some(json!({ "member_id": caller.owner.id }));
            }
            ("PUT", "/tenants/self/owner") => {
                let members = [owner.owner.id.to_string(), owner.member.id.to_string()];
                let id = chance.pick(&members).clone();
                self.body = Some(json!({ "member_id": id }));
                self.foreign.push(id);
                self.expected = Expected::Unknown(StatusCode::UNPROCESSABLE_ENTITY);
            }
            ("PUT", path) => {
                let changed = caller.singletons().into_iter().find(|it| it.0 == path);
                let mut body = changed.unwrap().1;
                if path == "/tenants/self" {
                    body["id"] = json!(owner.tenant.id.uuid);
                }
                self.body = Some(body);
            }
            _ => return false,
        }
        true
    }

    pub(super) fn build_members(&mut self, chance: &mut SeededRng, parties: Parties<'_>) -> bool {
        let owner = parties.owner;
        let (id, email) = &owner.invitation;
        match self.method_and_path() {
            ("GET", "/tenants/self/members") => match chance.one_in(2) {
                true => self.query("", own(2)),
                false => {
                    let query = format!("?user_id={}", owner.member.user.id);
                    self.query(&query, Expected::Empty);
                }
            },
            ("PUT" | "DELETE", "/tenants/self/members/{id}") => {
                let members = [owner.owner.id, owner.member.id];
                self.insert_foreign_id("{id}", chance.pick(&members));
                self.body = Some(json!({"role": "ADMIN"}));
            }
            ("POST", "/tenants/self/invitations") => {
                let member = owner.member.user.email.as_str();
                let email = chance.pick(&[email.as_str(), member]).to_owned();
                self.body = Some(json!({ "email": email }));
                self.expected = Expected::Fresh;
            }
            ("GET", "/tenants/self/invitations") => {
                let query = *chance.pick(&["", "?status=PENDING"]);
                self.query(query, own(1));
            }
            (
                "GET" | "DELETE" | "POST",
                "/tenants/self/invitations/{id}" | "/tenants/self/invitations/{id}/resend",
            ) => self.insert_foreign_id("{id}", id),
            _ => return false,
        }
        true
    }

    pub(super) fn build_proxies(&mut self, chance: &mut SeededRng, parties: Parties<'_>) -> bool {
        let owner = parties.owner;
        let body = || Some(json!({"name": "P", "destination_url": "https://api.example.com"}));
        match self.method_and_path() {
            ("GET", "/proxies") => match chance.one_in(2) {
                true => self.query("", Expected::Own(None)),
                false => self.query(&format!("?id={}", owner.proxy), Expected::Empty),
            },
            ("POST", "/proxies") => {
                self.body = body();
                self.expected = Expected::Fresh;
            }
            ("GET" | "DELETE", "/proxies/{id}") => self.insert_foreign_id("{id}", &owner.proxy),
            ("POST", "/proxies/{id}/rotate-key") => self.insert_foreign_id("{id}", &owner.proxy),
            ("PUT" | "PATCH", "/proxies/{id}") => {
                self.insert_foreign_id("{id}", &owner.proxy);
                self.body = body();
            }
            _ => return false,
        }
        true
    }

    /// Branding and checkout sessions. Each turn sets the caller's branding, reads it and deletes it.
    pub(super) fn build_pages(&mut self, parties: Parties<'_>) -> bool {
        let Parties { caller, owner } = parties;
        let name = json!(caller.name);
        match self.method_and_path() {
            ("PUT", "/tenants/self/branding") => {
                self.body = Some(json!({ "name": name, "tenant_id": owner.tenant.id.uuid }));
                self.expected = Expected::Member("name", name);
            }
            ("GET", "/tenants/self/branding") => self.expected = Expected::Member("name", name),
            ("DELETE", "/tenants/self/branding") => {
                self.expected = Expected::Status(StatusCode::NO_CONTENT);
            }
            ("POST", "/checkout/sessions") => {
                let url = "http://localhost:3000/";
                self.body = Some(json!({ "return_url": url, "cancel_url": url }));
                self.expected = Expected::Status(StatusCode::CREATED);
            }
            ("GET", "/checkout/sessions/{id}") => self.insert_foreign_id("{id}", &owner.checkout),
            _ => return false,
        }
        true
    }

    /// Client encryption keys. Sessions are authorized separately, because a nonce can be used once.
    pub(super) fn build_keys(&mut self, parties: Parties<'_>) -> bool {
        let Parties { caller, owner } = parties;
        match self.method_and_path() {
            ("POST", "/sessions") => self.expected = Expected::Status(StatusCode::CREATED),
            ("GET" | "DELETE", "/keys/{id}") => self.insert_foreign_id("{id}", &owner.client_key),
            ("GET", "/keys") => self.expected = Expected::Only(caller.client_key.clone()),
            ("POST", "/keys") => {
                self.body = Some(json!({"id": owner.client_key}));
                self.expected = Expected::Fresh;
            }
            _ => return false,
        }
        true
    }

    pub(super) fn build_webhooks(&mut self, parties: Parties<'_>) -> bool {
        let webhook =
            json!({"name": "n", "url": "https://hooks.example.com/", "events": ["token.created"]});
        match self.method_and_path() {
            ("GET", "/webhooks") => self.query("", own(1)),
            ("POST", "/webhooks") => {
                self.body = Some(webhook);
                self.expected = Expected::Fresh;
            }
            ("GET" | "DELETE", "/webhooks/{id}" | "/webhooks/{id}/deliveries") => {
                self.insert_foreign_id("{id}", &parties.owner.webhook);
            }
            ("PUT", "/webhooks/{id}") => {
                self.insert_foreign_id("{id}", &parties.owner.webhook);
                self.body = Some(webhook);
            }
            ("POST", "/webhooks/{id}/replay") => {
                self.insert_foreign_id("{id}", &parties.owner.webhook);
                self.body = Some(json!({"event_id": parties.owner.client_key}));
            }
            _ => return false,
        }
        true
    }

    pub(super) fn build_enrichments(
        &mut self,
        chance: &mut SeededRng,
        parties: Parties<'_>,
    ) -> bool {
        match self.method_and_path() {
            ("POST", "/enrichments/bank-account-verify") => {
                let id = chance.pick(&parties.owner.tokens).id.clone();
                self.body = Some(json!({ "token_id": id }));
                self.foreign.push(id);
                self.expected = Expected::Unknown(StatusCode::BAD_REQUEST);
            }
            ("GET", "/enrichments/card-details") => {
                self.query("?bin=424242", Expected::Status(StatusCode::OK));
            }
            _ => return false,
        }
        true
    }

    /// 3-D Secure sessions of other tenants are covered by the tests of 3-D Secure, which have card networks.
    pub(super) fn build_threeds(&mut self, chance: &mut SeededRng, parties: Parties<'_>) -> bool {
        match self.method_and_path() {
            ("POST", "/3ds/sessions") => {
                let id = chance.pick(&parties.owner.tokens).id.clone();
                self.body = Some(json!({ "type": "merchant", "token_id": id }));
                self.foreign.push(id);
                self.expected = Expected::Unknown(StatusCode::BAD_REQUEST);
            }
            ("GET", "/3ds/sessions/{id}" | "/3ds/sessions/{id}/challenge-result") => {
                self.insert_foreign_id("{id}", &parties.owner.intent.0);
            }
            ("PUT", "/3ds/sessions/{id}") | ("POST", "/3ds/sessions/{id}/authenticate") => {
                self.insert_foreign_id("{id}", &parties.owner.intent.0);
                self.body = Some(json!({}));
            }
            _ => return false,
        }
        true
    }

    /// Resources that all tenants share.
    pub(super) fn build_shared_resources(&mut self, parties: Parties<'_>) -> bool {
        match self.method_and_path() {
            ("GET", "/application-templates/{id}") => {
                self.insert_foreign_id("{id}", parties.owner.application.application);
            }
            (
                "GET",
                "/permissions"
                | "/application-templates"
                | "/roles"
                | "/logs/entity-types"
                | "/webhooks/event-types",
            ) => self.expected = Expected::Status(StatusCode::OK),
            (
                "GET" | "POST",
                "/orchestration/connection_formulas" | "/orchestration/connection/formulas",
            ) => self.expected = Expected::Status(StatusCode::OK),
            (
                "GET",
                "/orchestration/connection_formulas/{id}"
                | "/orchestration/connection/formulas/{id}",
            ) => self.insert_foreign_id("{id}", parties.owner.application.application),
            ("POST" | "DELETE", "/tenants/self/connections") => {
                self.expected = Expected::Status(StatusCode::GONE);
            }
            ("DELETE", "/tenants/self/deletion") => {
                self.expected = Expected::Status(StatusCode::NOT_FOUND);
            }
            (_, path) if path.starts_with("/reactor-formulas") => {
                self.path = self.path.replace("{id}", "any");
                self.expected = Expected::Status(StatusCode::GONE);
            }
            (_, path) if path.starts_with("/reactors") => {
                let path = self.path.replace("{id}", "any");
                self.path = path.replace("{request_id}", "any");
                self.expected = Expected::Status(StatusCode::NOT_IMPLEMENTED);
            }
            _ => return false,
        }
        true
    }
}
