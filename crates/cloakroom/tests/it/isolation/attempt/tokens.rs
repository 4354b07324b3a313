//! Requests about tokens and token intents.

use cloakroom_testkit::SeededRng;
use http::StatusCode;
use serde_json::{Value, json};

use super::{Attempt, Expected, Parties, own};
use crate::isolation::tenant::{TenantToken, TestTenant};

impl Attempt {
    pub(super) fn build_tokens(&mut self, chance: &mut SeededRng, parties: Parties<'_>) -> bool {
        let owner = parties.owner;
        let token = chance.pick(&owner.tokens);
        match self.method_and_path() {
            ("GET" | "DELETE", "/tokens/{id}") => self.insert_foreign_id("{id}", token.segment()),
            ("PATCH", "/tokens/{id}") => {
                let patches = [
                    json!({}),
                    json!({"data": {"secret": "x"}}),
                    json!({"metadata": null}),
                ];
                self.insert_foreign_id("{id}", token.segment());
                self.body = Some(chance.pick(&patches).clone());
            }
            ("POST", "/tokens" | "/tokenize") => {
                let new = match chance.one_in(3) {
                    true => self.convert_intent(owner),
                    false => self.duplicate(chance, token),
                };
                self.body = Some(match self.route.path {
                    "/tokenize" => json!([new]),
                    _ => new,
                });
            }
            ("GET", "/v2/tokens" | "/tokens") => self.list_tokens(chance, parties, token),
            ("POST", "/v2/tokens/search" | "/tokens/search") => {
                self.search_tokens(chance, parties, token);
            }
            ("POST", "/detokenize") => {
                let expressions = [
                    format!("{{{{ {} }}}}", token.id),
                    format!("<{{{{ token: {} | json: '$.data' }}}}>", token.id),
                ];
                self.body = Some(json!({"a": chance.pick(&expressions)}));
                self.expected = Expected::Status(StatusCode::BAD_REQUEST);
            }
            _ => return false,
        }
        true
    }

    /// Converts an intent of the other tenant.
    fn convert_intent(&mut self, owner: &TestTenant) -> Value {
        self.foreign.push(owner.intent.0.clone());
        self.expected = Expected::Unknown(StatusCode::BAD_REQUEST);
        json!({ "token_intent_id": owner.intent.0 })
    }

    /// Creates an equal token. The id of another tenant's token is free: a conflict would reveal that it exists.
    fn duplicate(&mut self, chance: &mut SeededRng, token: &TenantToken) -> Value {
        let mut new = token.new.clone();
        new["deduplicate_token"] = json!(true);
        new["id"] = chance.pick(&[json!(null), json!(token.id)]).clone();
        self.expected = Expected::Fresh;
        new
    }

    fn list_tokens(&mut self, chance: &mut SeededRng, parties: Parties<'_>, token: &TenantToken) {
        let Parties { caller, owner } = parties;
        let is_v1 = self.path == "/tokens";
        let name = &owner.name;
        let id = token.id.replace(' ', "+");
        let bad_request = Expected::Status(StatusCode::BAD_REQUEST);
        let (query, expected) = match (chance.below(5), is_v1) {
            (0, _) => (String::new(), own(caller.tokens.len())),
            (1, _) => (format!("?metadata.who={name}"), Expected::Empty),
            (2, true) => (format!("?metadata[who]={name}"), Expected::Empty),
            (_, true) => (format!("?id={id}"), Expected::Empty),
            (2, false) => ("?container=/shared/".to_owned(), own(5)),
            (3, false) => (
                format!("?fingerprint={}", token.fingerprint),
                Expected::Empty,
            ),
            (_, false) => (format!("?start={}&size=2", owner.cursors[0]), bad_request),
        };
        self.query(&query, expected);
    }

    fn search_tokens(&mut self, chance: &mut SeededRng, parties: Parties<'_>, token: &TenantToken) {
        let Parties { caller, owner } = parties;
        let is_v1 = self.path == "/tokens/search";
        let secret = token.new["data"]["secret"].as_str().unwrap_or("078051100");
        let (body, expected) = match (chance.below(5), is_v1) {
            (0, _) => (json!({}), own(caller.tokens.len())),
            (1, _) => {
                let query = format!("metadata.who:{}", owner.name);
                (json!({ "query": query }), Expected::Empty)
            }
            (2, _) if secret.starts_with("secret") => (
                json!({ "query": format!("data:{secret}") }),
                Expected::Empty,
            ),
            (_, true) => (
                json!({ "query": format!("id:\"{}\"", token.id) }),
                Expected::Empty,
            ),
            (2 | 3, false) => {
                let query = format!("fingerprint:{} AND container:\"/\"", token.fingerprint);
                (json!({ "query": query }), Expected::Empty)
            }
            (_, false) => {
                let body = json!({"start": owner.cursors[1], "size": 2});
                (body, Expected::Status(StatusCode::BAD_REQUEST))
            }
        };
        self.body = Some(body);
        self.expected = expected;
    }

    /// Without a destination, no tenant's token is looked up. The tests of the proxy have a destination.
    pub(super) fn build_proxy(&mut self, parties: Parties<'_>) -> bool {
        let (method, path) = self.method_and_path();
        if !path.starts_with("/proxy") || path.starts_with("/proxies") {
            return false;
        }
        let id = &parties.owner.intent.0;
        if method != "GET" && method != "DELETE" {
            self.body = Some(json!({ "a": format!("{{{{ token_intent: {id} }}}}") }));
        }
        self.expected = Expected::Status(StatusCode::BAD_REQUEST);
        true
    }

    pub(super) fn build_intents(&mut self, parties: Parties<'_>) -> bool {
        match self.method_and_path() {
            ("POST", "/token-intents") => {
                self.body = Some(parties.owner.intent.1.clone());
                self.expected = Expected::Fresh;
            }
            ("GET" | "DELETE", "/token-intents/{id}") => {
                self.insert_foreign_id("{id}", &parties.owner.intent.0);
            }
            _ => return false,
        }
        true
    }
}

impl TenantToken {
    /// The id as it appears in a path.
    fn segment(&self) -> &str {
        self.path.trim_start_matches("/tokens/")
    }
}
