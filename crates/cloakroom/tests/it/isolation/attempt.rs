//! Calls of one tenant that name something of another, and what they must be answered with.

use std::collections::HashMap;

use cloakroom::access::ApplicationKind;
use cloakroom::doors::{Door, Needs};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::side::{Known, Side};
use crate::support::{Answer, Chance, Client};

/// What nobody is called.
const UNKNOWN: &str = "c06d0789-0a38-40be-b7cc-c28a718f76f1";

/// A call that names something of another tenant.
pub(super) struct Attempt {
    door: &'static Door,
    path: String,
    body: Option<Value>,
    /// What of the path or body is another tenant's.
    foreign: Vec<String>,
    expected: Expected,
}

enum Expected {
    /// This status, and the very bytes that the same call gets about something which does not exist.
    Unknown(StatusCode),
    /// A page without anything on it.
    Empty,
    /// A page of one's own things: so many, or some.
    Own(Option<usize>),
    Status(StatusCode),
    /// A member of the answer that is one's own.
    Member(&'static str, Value),
    /// A bare list of this one thing.
    Only(String),
    /// A report that counts one's own tokens only.
    Counted,
    /// Something that is one's own from now on, or was before.
    Fresh,
}

/// What a caller knows from earlier calls.
#[derive(Default)]
pub(super) struct Memory {
    /// Answers about things that do not exist, by method, path and body.
    unknown: HashMap<String, (StatusCode, Vec<u8>)>,
    /// Ids of others that the caller used for things of its own. Its log tells of them.
    named: Vec<String>,
    /// How many things the caller made.
    made: usize,
}

/// Who calls, and about whose things.
#[derive(Clone, Copy)]
pub(super) struct Between<'a> {
    pub(super) caller: &'a Side,
    pub(super) owner: &'a Side,
}

impl Attempt {
    /// Builds a random call on one route. A route that is not known here fails the test.
    pub(super) fn new(chance: &mut Chance, door: &'static Door, between: Between<'_>) -> Self {
        let mut attempt = Self {
            door,
            path: door.path.to_owned(),
            body: None,
            foreign: Vec::new(),
            expected: Expected::Unknown(StatusCode::NOT_FOUND),
        };
        let is_known = attempt.is_about_tokens(chance, between)
            || attempt.is_about_intents(between)
            || attempt.is_about_applications(chance, between)
            || attempt.is_about_logs(chance, between)
            || attempt.is_about_tenants(chance, between)
            || attempt.is_about_people(chance, between)
            || attempt.is_about_keys(between)
            || attempt.is_about_enrichments(chance, between)
            || attempt.is_about_threeds(chance, between)
            || attempt.is_about_nobody(between);
        assert!(is_known, "no call across tenants is known for {door}");
        attempt
    }

    fn route(&self) -> (&'static str, &'static str) {
        (self.door.method.as_str(), self.door.path)
    }

    /// Puts the id of another tenant's thing into the path.
    fn name(&mut self, place: &str, id: impl ToString) {
        let id = id.to_string();
        self.path = self.path.replace(place, &id);
        self.foreign.push(id);
    }

    fn ask(&mut self, query: &str, expected: Expected) {
        self.path = format!("{}{query}", self.path);
        self.expected = expected;
    }

    fn is_about_tokens(&mut self, chance: &mut Chance, between: Between<'_>) -> bool {
        let owner = between.owner;
        let token = chance.pick(&owner.tokens);
        match self.route() {
            ("GET" | "DELETE", "/tokens/{id}") => self.name("{id}", token.segment()),
            ("PATCH", "/tokens/{id}") => {
                let patches = [
                    json!({}),
                    json!({"data": {"secret": "x"}}),
                    json!({"metadata": null}),
                ];
                self.name("{id}", token.segment());
                self.body = Some(chance.pick(&patches).clone());
            }
            ("POST", "/tokens" | "/tokenize") => {
                let new = match chance.one_in(3) {
                    true => self.convert(owner),
                    false => self.remake(chance, token),
                };
                self.body = Some(match self.door.path {
                    "/tokenize" => json!([new]),
                    _ => new,
                });
            }
            ("GET", "/v2/tokens" | "/tokens") => self.list_tokens(chance, between, token),
            ("POST", "/v2/tokens/search" | "/tokens/search") => {
                self.search_tokens(chance, between, token);
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

    /// A token of another tenant's intent.
    fn convert(&mut self, owner: &Side) -> Value {
        self.foreign.push(owner.intent.0.clone());
        self.expected = Expected::Unknown(StatusCode::BAD_REQUEST);
        json!({ "token_intent_id": owner.intent.0 })
    }

    /// An equal token. Another tenant's id is as free as any other: a conflict would tell that it exists.
    fn remake(&mut self, chance: &mut Chance, token: &Known) -> Value {
        let mut new = token.new.clone();
        new["deduplicate_token"] = json!(true);
        new["id"] = chance.pick(&[json!(null), json!(token.id)]).clone();
        self.expected = Expected::Fresh;
        new
    }

    fn list_tokens(&mut self, chance: &mut Chance, between: Between<'_>, token: &Known) {
        let Between { caller, owner } = between;
        let is_old = self.path == "/tokens";
        let who = &owner.name;
        let id = token.id.replace(' ', "+");
        let refused = Expected::Status(StatusCode::BAD_REQUEST);
        let (query, expected) = match (chance.below(5), is_old) {
            (0, _) => (String::new(), own(caller.tokens.len())),
            (1, _) => (format!("?metadata.who={who}"), Expected::Empty),
            (2, true) => (format!("?metadata[who]={who}"), Expected::Empty),
            (_, true) => (format!("?id={id}"), Expected::Empty),
            (2, false) => ("?container=/shared/".to_owned(), own(5)),
            (3, false) => (
                format!("?fingerprint={}", token.fingerprint),
                Expected::Empty,
            ),
            (_, false) => (format!("?start={}&size=2", owner.cursors[0]), refused),
        };
        self.ask(&query, expected);
    }

    fn search_tokens(&mut self, chance: &mut Chance, between: Between<'_>, token: &Known) {
        let Between { caller, owner } = between;
        let is_old = self.path == "/tokens/search";
        let secret = token.new["data"]["secret"].as_str().unwrap_or("078051100");
        let (body, expected) = match (chance.below(5), is_old) {
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

    fn is_about_intents(&mut self, between: Between<'_>) -> bool {
        match self.route() {
            ("POST", "/token-intents") => {
                self.body = Some(between.owner.intent.1.clone());
                self.expected = Expected::Fresh;
            }
            ("GET" | "DELETE", "/token-intents/{id}") => {
                self.name("{id}", &between.owner.intent.0);
            }
            _ => return false,
        }
        true
    }

    fn is_about_applications(&mut self, chance: &mut Chance, between: Between<'_>) -> bool {
        let Between { caller, owner } = between;
        let other = &owner.application;
        let change = json!({"name": "Mine", "type": "private", "permissions": ["token:read"],
            "tenant_id": owner.tenant.id.uuid, "id": other.application});
        match self.route() {
            ("POST", "/applications") => {
                self.body = Some(change);
                self.expected = Expected::Fresh;
            }
            ("GET", "/applications") => match chance.one_in(2) {
                true => self.ask("", own(3)),
                false => self.ask(&format!("?id={}", other.application), Expected::Empty),
            },
            ("GET", "/applications/key") => {
                let own = json!(caller.application.application);
                self.expected = Expected::Member("id", own);
            }
            ("POST", "/applications/{id}/regenerate") => {
                self.name("{id}", other.application);
                self.expected = Expected::Status(StatusCode::GONE);
            }
            ("PUT", "/applications/{id}") => {
                self.name("{id}", other.application);
                self.body = Some(change);
            }
            ("GET" | "DELETE" | "POST", "/applications/{id}" | "/applications/{id}/keys") => {
                self.name("{id}", other.application);
            }
            ("GET" | "DELETE", "/applications/{id}/keys/{key_id}") => {
                let own = &caller.application;
                match chance.below(3) {
                    0 => {
                        self.name("{id}", other.application);
                        self.name("{key_id}", other.key_id);
                    }
                    1 => {
                        self.path = self.path.replace("{id}", &own.application.to_string());
                        self.name("{key_id}", other.key_id);
                    }
                    _ => {
                        self.name("{id}", other.application);
                        self.path = self.path.replace("{key_id}", &own.key_id.to_string());
                    }
                }
            }
            _ => return false,
        }
        true
    }

    fn is_about_logs(&mut self, chance: &mut Chance, between: Between<'_>) -> bool {
        let owner = between.owner;
        let things = [
            ("token_intent", owner.intent.0.clone()),
            ("application", owner.application.application.to_string()),
            ("application_key", owner.application.key_id.to_string()),
            ("invitation", owner.invitation.0.clone()),
            ("tenant", owner.tenant.id.uuid.to_string()),
        ];
        match self.route() {
            ("GET", "/logs") => match chance.below(4) {
                0 => self.ask("?size=100", Expected::Own(None)),
                1 => {
                    let start = format!("?start={}", owner.cursors[2]);
                    self.ask(&start, Expected::Status(StatusCode::BAD_REQUEST));
                }
                2 => {
                    let (_, id) = chance.pick(&things);
                    self.ask(&format!("?entity_id={id}"), Expected::Empty);
                }
                _ => {
                    let (kind, id) = chance.pick(&things);
                    let query = format!("?entity_type={kind}&entity_id={id}");
                    self.ask(&query, Expected::Empty);
                }
            },
            _ => return false,
        }
        true
    }

    /// What every tenant has one of. Whoever says another tenant's id still means their own.
    fn is_about_tenants(&mut self, chance: &mut Chance, between: Between<'_>) -> bool {
        let Between { caller, owner } = between;
        if self.route() == ("GET", "/tenants/self/reports/usage") {
            self.expected = Expected::Counted;
            return true;
        }
        let own = &caller.tenant.id.uuid;
        let [_, _, (_, contact)] = caller.singletons();
        let (name, value) = match self.door.path {
            "/tenants/self" => ("id", json!(own)),
            "/tenants/self/quotas" => ("tokenize_limit", json!(caller.tokenize_limit)),
            "/tenants/self/security-contact" => ("email", contact["email"].clone()),
            "/tenants/self/owner" => ("id", json!(caller.owner.id)),
            _ => return false,
        };
        self.expected = Expected::Member(name, value);
        match self.route() {
            ("GET", _) => {}
            // Whoever owns the tenant is made its owner again, and nobody else is.
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

    fn is_about_people(&mut self, chance: &mut Chance, between: Between<'_>) -> bool {
        let owner = between.owner;
        let (id, email) = &owner.invitation;
        match self.route() {
            ("GET", "/tenants/self/members") => match chance.one_in(2) {
                true => self.ask("", own(2)),
                false => {
                    let query = format!("?user_id={}", owner.member.user.id);
                    self.ask(&query, Expected::Empty);
                }
            },
            ("PUT" | "DELETE", "/tenants/self/members/{id}") => {
                let members = [owner.owner.id, owner.member.id];
                self.name("{id}", chance.pick(&members));
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
                self.ask(query, own(1));
            }
            (
                "GET" | "DELETE" | "POST",
                "/tenants/self/invitations/{id}" | "/tenants/self/invitations/{id}/resend",
            ) => self.name("{id}", id),
            _ => return false,
        }
        true
    }

    /// Keys that data is encrypted to. Sessions are authorized elsewhere: each nonce can be used once.
    fn is_about_keys(&mut self, between: Between<'_>) -> bool {
        let Between { caller, owner } = between;
        match self.route() {
            ("POST", "/sessions") => self.expected = Expected::Status(StatusCode::CREATED),
            ("GET" | "DELETE", "/keys/{id}") => self.name("{id}", &owner.client_key),
            ("GET", "/keys") => self.expected = Expected::Only(caller.client_key.clone()),
            ("POST", "/keys") => {
                self.body = Some(json!({"id": owner.client_key}));
                self.expected = Expected::Fresh;
            }
            _ => return false,
        }
        true
    }

    fn is_about_enrichments(&mut self, chance: &mut Chance, between: Between<'_>) -> bool {
        match self.route() {
            ("POST", "/enrichments/bank-account-verify") => {
                let id = chance.pick(&between.owner.tokens).id.clone();
                self.body = Some(json!({ "token_id": id }));
                self.foreign.push(id);
                self.expected = Expected::Unknown(StatusCode::BAD_REQUEST);
            }
            ("GET", "/enrichments/card-details") => {
                self.ask("?bin=424242", Expected::Status(StatusCode::OK));
            }
            _ => return false,
        }
        true
    }

    /// Sessions of others are met where there are card networks, in the tests of 3-D Secure.
    fn is_about_threeds(&mut self, chance: &mut Chance, between: Between<'_>) -> bool {
        match self.route() {
            ("POST", "/3ds/sessions") => {
                let id = chance.pick(&between.owner.tokens).id.clone();
                self.body = Some(json!({ "type": "merchant", "token_id": id }));
                self.foreign.push(id);
                self.expected = Expected::Unknown(StatusCode::BAD_REQUEST);
            }
            ("GET", "/3ds/sessions/{id}" | "/3ds/sessions/{id}/challenge-result") => {
                self.name("{id}", &between.owner.intent.0);
            }
            ("PUT", "/3ds/sessions/{id}") | ("POST", "/3ds/sessions/{id}/authenticate") => {
                self.name("{id}", &between.owner.intent.0);
                self.body = Some(json!({}));
            }
            _ => return false,
        }
        true
    }

    /// What is the same for every tenant.
    fn is_about_nobody(&mut self, between: Between<'_>) -> bool {
        match self.route() {
            ("GET", "/application-templates/{id}") => {
                self.name("{id}", between.owner.application.application);
            }
            (
                "GET",
                "/permissions" | "/application-templates" | "/roles" | "/logs/entity-types",
            ) => self.expected = Expected::Status(StatusCode::OK),
            (
                "GET" | "POST",
                "/orchestration/connection_formulas" | "/orchestration/connection/formulas",
            ) => self.expected = Expected::Status(StatusCode::OK),
            (
                "GET",
                "/orchestration/connection_formulas/{id}"
                | "/orchestration/connection/formulas/{id}",
            ) => self.name("{id}", between.owner.application.application),
            ("POST" | "DELETE", "/tenants/self/connections") => {
                self.expected = Expected::Status(StatusCode::GONE);
            }
            (_, path) if path.starts_with("/reactor-formulas") => {
                self.path = self.path.replace("{id}", "any");
                self.expected = Expected::Status(StatusCode::GONE);
            }
            (_, path) if path.starts_with("/reactors") || path.starts_with("/proxies") => {
                self.path = self.path.replace("{id}", "any");
                self.expected = Expected::Status(StatusCode::NOT_FOUND);
            }
            _ => return false,
        }
        true
    }
}

impl Known {
    /// The id as it stands in a path.
    fn segment(&self) -> &str {
        self.path.trim_start_matches("/tokens/")
    }
}

/// Whether only a management application may hold what this door needs.
fn is_managed(door: &Door) -> bool {
    let needed = door.needs.permissions();
    needed.iter().any(|it| it.fits(ApplicationKind::Management))
}

impl Attempt {
    fn client<'a>(&self, caller: &'a Side) -> &'a Client {
        match self.door.needs {
            Needs::Kinds([ApplicationKind::Public]) => &caller.browser,
            _ if is_managed(self.door) => &caller.manager,
            _ => &caller.client,
        }
    }

    /// Makes the call and says what is wrong with its answer.
    pub(super) async fn make(
        &self,
        between: Between<'_>,
        memory: &mut Memory,
    ) -> Result<(), String> {
        let Between { caller, owner } = between;
        let body = self.body.as_ref().map(Value::to_string).unwrap_or_default();
        let answer = self.send(caller, &self.path, body.clone()).await;
        let said = format!("{} {body}", self.path.replace("%20", " ").replace('+', " "));
        let text = String::from_utf8(answer.bytes.clone()).unwrap();
        let wrong = |what: &str| {
            let status = answer.status;
            Err(format!("{what}: {} {said}: {status} {text}", self.door))
        };
        let is_own_log = |trace: &String| self.door.path == "/logs" && memory.named.contains(trace);
        let leaks =
            |trace: &&String| text.contains(*trace) && !said.contains(*trace) && !is_own_log(trace);
        if owner.traces.iter().find(leaks).is_some() {
            return wrong("it tells something of another tenant");
        }
        match &self.expected {
            Expected::Unknown(status) => {
                if answer.status != *status {
                    return wrong("another status");
                }
                let unknown = self.ask_about_unknown(caller, body, memory).await;
                match (answer.status, &answer.bytes) == (unknown.0, &unknown.1) {
                    true => Ok(()),
                    false => wrong("not what the unknown gets"),
                }
            }
            Expected::Empty if !is_empty(&answer) => wrong("not empty"),
            Expected::Own(count) if !is_own(&answer, caller, *count) => wrong("not one's own"),
            Expected::Status(status) if answer.status != *status => wrong("another status"),
            Expected::Member(name, value) if answer.body[name] != *value => wrong("not one's own"),
            Expected::Only(id) if !is_only(&answer, id) => wrong("not one's own"),
            Expected::Counted if !counts_own(&answer, caller, memory.made) => {
                wrong("not one's own")
            }
            Expected::Fresh => {
                memory.made += 1;
                memory.named.extend(self.named_token());
                let undone = self.undo(caller, &answer).await;
                undone.or_else(|what| wrong(&what))
            }
            _ => Ok(()),
        }
    }

    async fn send(&self, caller: &Side, path: &str, body: String) -> Answer {
        let media = match self.door.method {
            Method::PATCH => "application/merge-patch+json",
            _ => "application/json",
        };
        let client = self.client(caller);
        let mut request = client.request(self.door.method.clone(), path);
        if !body.is_empty() {
            request = request.header("content-type", media).body(body);
        }
        client.send(request).await
    }

    /// The answer to the same call with an id that nobody has.
    async fn ask_about_unknown(
        &self,
        caller: &Side,
        body: String,
        memory: &mut Memory,
    ) -> (StatusCode, Vec<u8>) {
        let (mut path, mut body) = (self.path.clone(), body);
        for id in &self.foreign {
            path = path.replace(id, UNKNOWN);
            body = body.replace(id, UNKNOWN);
        }
        let call = format!("{} {path} {body}", self.door.method);
        if let Some(known) = memory.unknown.get(&call) {
            return known.clone();
        }
        let answer = self.send(caller, &path, body).await;
        let unknown = (answer.status, answer.bytes);
        memory.unknown.insert(call, unknown.clone());
        unknown
    }

    /// The id that a new token is given.
    fn named_token(&self) -> Option<String> {
        let new = match (self.door.path, self.body.as_ref()?) {
            ("/tokens", new) => new,
            ("/tokenize", document) => document.get(0)?,
            _ => return None,
        };
        Some(new["id"].as_str()?.to_owned())
    }

    /// Checks that something was made for the caller, and takes it away unless it was there before.
    async fn undo(&self, caller: &Side, answer: &Answer) -> Result<(), String> {
        let made = match &answer.body {
            Value::Array(tokens) => &tokens[0],
            made => made,
        };
        // Client encryption keys do not say whose they are; deleting them does.
        let is_own = match self.door.path {
            "/keys" => answer.status == StatusCode::CREATED,
            _ => made["tenant_id"] == caller.tenant.id.uuid.to_string(),
        };
        if !is_own {
            return Err("not made".to_owned());
        }
        let id = made["id"].as_str().unwrap_or_default();
        if !caller.tokens.iter().any(|own| own.id == id) {
            let folder = self.door.path.replace("/tokenize", "/tokens");
            let path = format!("{folder}/{}", id.replace(' ', "%20"));
            let deleted = self.client(caller).delete(&path).await;
            if deleted.status != StatusCode::NO_CONTENT {
                return Err("not one's own afterwards".to_owned());
            }
        }
        Ok(())
    }
}

fn is_empty(answer: &Answer) -> bool {
    answer.status == StatusCode::OK
        && answer.body["data"] == json!([])
        && answer.body["pagination"].get("next").is_none()
        && answer.body["pagination"]
            .get("total_items")
            .is_none_or(|total| *total == json!(0))
}

fn is_only(answer: &Answer, id: &str) -> bool {
    let items = answer.body.as_array();
    items.is_some_and(|items| items.len() == 1 && items[0]["id"] == id)
}

/// What the caller made and took away again was active as well.
fn counts_own(answer: &Answer, caller: &Side, made: usize) -> bool {
    let total = json!(caller.tokens.len());
    let report = &answer.body["token_report"];
    let active = report["monthly_active_tokens"].as_u64();
    let active_max = (caller.tokens.len() + made) as u64;
    answer.body["total_tokens"] == total
        && report["total_tokens"] == total
        && active.is_some_and(|active| active <= active_max)
}

fn own(count: usize) -> Expected {
    Expected::Own(Some(count))
}

fn is_own(answer: &Answer, caller: &Side, count: Option<usize>) -> bool {
    let tenant = json!(caller.tenant.id.uuid);
    let total = answer.body["pagination"].get("total_items");
    let Some(items) = answer.body["data"].as_array() else {
        return false;
    };
    let is_counted = match count {
        None => !items.is_empty(),
        Some(count) => items.len() == count && total.is_none_or(|total| *total == json!(count)),
    };
    is_counted && items.iter().all(|item| item["tenant_id"] == tenant)
}
