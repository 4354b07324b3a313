//! Every route, tried by everyone who must not get in.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use cloakroom::access::{
    ALL_PERMISSIONS, ApiKey, ApplicationKind, Grants, Permission, Tenant, TenantKind, Transform,
};
use cloakroom::doors::{DOORS, Door, Needs};
use cloakroom::ids;
use cloakroom::members::{self, Email, NewInvitation, NewMember, Role};
use http::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::{Client, TestVault, grants, rule};

const FORBIDDEN: StatusCode = StatusCode::FORBIDDEN;

/// A stranger, and the answer that awaits them at every door that needs a permission.
struct Stranger {
    name: &'static str,
    client: Client,
    expected: StatusCode,
}

#[test]
fn every_route_is_listed() {
    let document = serde_json::to_value(cloakroom::router::document()).unwrap();
    let mut routes = BTreeSet::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for method in operations.as_object().unwrap().keys() {
            routes.insert((method.to_uppercase(), path.clone()));
        }
    }

    let listed: BTreeSet<(String, String)> = DOORS
        .iter()
        .map(|door| (door.method.to_string(), door.path.to_owned()))
        .collect();

    assert_eq!(listed, routes);
    assert_eq!(listed.len(), DOORS.len());
}

#[test]
fn descriptions_name_what_each_route_needs() {
    let document = serde_json::to_value(cloakroom::router::document()).unwrap();
    for door in DOORS {
        let method = door.method.as_str().to_lowercase();
        let said = document["paths"][door.path][&method]["description"].as_str();
        let said = said.unwrap_or_default().replace('\n', " ");

        let needs = match door.needs {
            Needs::Nothing | Needs::Key | Needs::KeyInAddress => None,
            Needs::Kinds(_) | Needs::Permissions(_) => Some(door.needs.to_string()),
        };
        assert_eq!(needs_in(&said), needs, "{door}: {said}");
        if said.contains("Any valid key") {
            assert_eq!(door.needs, Needs::Key, "{door}: {said}");
        }
    }
}

/// What follows on the only `Needs`, as far as it names permissions or a kind of application.
fn needs_in(said: &str) -> Option<String> {
    let (_, needs) = said.split_once("Needs ")?;
    assert!(!needs.contains("Needs "), "{said}");
    let mut named = Vec::new();
    let mut rest = needs;
    while let Some((name, after)) = rest.strip_prefix('`').and_then(|it| it.split_once('`')) {
        named.push(format!("`{name}`"));
        rest = after.strip_prefix(" and ").unwrap_or_default();
    }
    match named.is_empty() {
        true => Some(needs.split(['.', ';', ',']).next()?.to_owned()),
        false => Some(named.join(" and ")),
    }
}

#[tokio::test]
async fn nobody_passes_a_door_without_the_right_key() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let mut all_strangers = HashMap::new();
    let mut tried = 0;

    for Door {
        method,
        path,
        needs,
    } in DOORS
    {
        if matches!(needs, Needs::Nothing | Needs::KeyInAddress) {
            continue;
        }
        let needed = needs.permissions().first().copied();
        if let Entry::Vacant(vacant) = all_strangers.entry(needed) {
            vacant.insert(strangers(&vault, &tenant, needed).await);
        }
        for stranger in &all_strangers[&needed] {
            let path = address(path, UNKNOWN, UNKNOWN);
            // The body is not even JSON: whoever is turned away must not learn that.
            let request = stranger.client.request(method.clone(), &path).body("{");
            let answer = stranger.client.send(request).await;

            let case = format!("{method} {path} {}", stranger.name);
            assert_eq!(answer.status, stranger.expected, "{case}");
            assert_eq!(answer.body["status"], stranger.expected.as_u16(), "{case}");
            assert!(answer.body["title"].is_string(), "{case}");
            assert!(answer.body["detail"].is_string(), "{case}");
            tried += 1;
        }
    }

    let is_open = |door: &&Door| matches!(door.needs, Needs::Nothing | Needs::KeyInAddress);
    let open = DOORS.iter().filter(is_open);
    let open = open.count();
    let permitted = DOORS.iter().map(|door| door.needs.permissions());
    let permitted = permitted.filter(|needed| !needed.is_empty()).count();
    let guarded = DOORS.len() - open;
    println!("{guarded} guarded routes, {tried} refusals, {open} open routes");
    assert_eq!(tried, guarded * 5 + permitted * 3);
}

const UNKNOWN: &str = "c06d0789-0a38-40be-b7cc-c28a718f76f1";

fn address(path: &str, id: &str, key_id: &str) -> String {
    path.replace("{id}", id).replace("{key_id}", key_id)
}

/// How many ask at the same time.
const ASKING: usize = 8;

/// An application that holds one permission.
struct Single {
    held: Permission,
    kind: ApplicationKind,
    /// Holds it by a rule for one container instead of everywhere.
    is_ruled: bool,
    client: Client,
}

/// Every permission with every kind of application that may hold it, alone: plainly, and by a rule
/// where it is scoped.
async fn singles(vault: &TestVault) -> Vec<Single> {
    let shared = vault.tenant().await;
    let client = vault.client_with(None);
    let mut singles = Vec::new();
    for held in ALL_PERMISSIONS.iter().copied() {
        // Whoever may delete the tenant does: it must not be that of the others.
        let tenant = match held {
            Permission::TenantDelete => &vault.tenant().await,
            _ => &shared,
        };
        for kind in held.kinds().iter().copied() {
            for is_ruled in [false, true] {
                let grants = match is_ruled {
                    false => grants(&[held]),
                    true if held.is_scoped() => Grants {
                        rules: vec![rule(1, "/a/", Transform::Reveal, &[held])],
                        ..grants(&[])
                    },
                    true => continue,
                };
                let holder = vault.holder(tenant, kind, grants).await;
                singles.push(Single {
                    held,
                    kind,
                    is_ruled,
                    client: client.with_key(&holder.key),
                });
            }
        }
    }
    singles
}

impl Single {
    fn may_pass(&self, needs: Needs) -> bool {
        match needs {
            Needs::Nothing | Needs::Key | Needs::KeyInAddress => true,
            Needs::Kinds(kinds) => kinds.contains(&self.kind),
            Needs::Permissions(needed) => needed == [self.held],
        }
    }

    /// Asks at every door and says where it was treated otherwise than the table says.
    ///
    /// Nothing that is asked for exists and no body can be read, so that nothing changes, and whoever
    /// passes hears of that instead of a refusal. Only a tenant can always be deleted: that comes last.
    async fn ask_everywhere(&self) -> Vec<String> {
        let mut doors: Vec<&Door> = DOORS.iter().collect();
        doors.sort_by_key(|door| door.needs.permissions() == [Permission::TenantDelete]);
        let mut wrong = Vec::new();
        for door in doors {
            let path = address(door.path, UNKNOWN, UNKNOWN);
            let request = self.client.request(door.method.clone(), &path);
            let request = request.header("content-type", "application/json");
            let answer = self.client.send(request.body("{")).await;

            let is_as_expected = match (self.may_pass(door.needs), answer.status) {
                // A key in a header is none in the address.
                (_, status) if door.needs == Needs::KeyInAddress => {
                    status == StatusCode::UNAUTHORIZED
                }
                (true, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => false,
                (true, status) => !status.is_server_error(),
                (false, status) => {
                    status == StatusCode::FORBIDDEN && answer.body["code"] == "forbidden"
                }
            };
            if !is_as_expected {
                let Self { held, kind, .. } = self;
                let ruled = if self.is_ruled { " in /a/" } else { "" };
                let told = format!("{} {}", answer.status, answer.body);
                wrong.push(format!("{door} with {held}{ruled} of {kind}: {told}"));
            }
        }
        wrong
    }
}

/// The matrix: every door, every permission alone, and every kind of application that may hold it.
///
/// Covers 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9, 1.10, 16.1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_door_opens_to_its_own_permission_and_to_no_other() {
    let vault = TestVault::start_patient().await;
    let mut singles = singles(&vault).await;
    let holders = singles.len();

    let mut asking = JoinSet::new();
    while !singles.is_empty() {
        let few = singles.split_off(singles.len().saturating_sub(holders.div_ceil(ASKING)));
        asking.spawn(async move {
            let mut wrong = Vec::new();
            for single in few {
                wrong.extend(single.ask_everywhere().await);
            }
            wrong
        });
    }
    let wrong: Vec<String> = asking.join_all().await.into_iter().flatten().collect();

    let cells = holders * DOORS.len();
    println!("{cells} cells: {holders} holders at {} doors", DOORS.len());
    assert!(wrong.is_empty(), "{} of {cells}: {wrong:#?}", wrong.len());
}

/// Requests that nothing is wrong with: those who hold what is needed succeed, those who hold
/// everything else are refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_door_needs_nothing_besides_and_nothing_else_will_do() {
    let vault = TestVault::start_patient().await;
    let client = vault.client_with(None);
    let shared = vault.tenant().await;
    for door in DOORS {
        let needed = door.needs.permissions();
        for kind in ApplicationKind::ALL {
            if needed.is_empty() || !needed.iter().all(|permission| permission.fits(kind)) {
                continue;
            }
            // What is done to a tenant must not be in the way of the next door.
            let tenant = match door.path.starts_with("/tenants/self") {
                true => &vault.tenant().await,
                false => &shared,
            };
            let others = held_by(kind).filter(|other| !needed.contains(other));
            for (held, is_welcome) in [(others.collect(), false), (needed.to_vec(), true)] {
                let (id, key_id) = thing(&vault, tenant, door.path).await;
                let holder = vault.holder(tenant, kind, grants(&held)).await;
                let client = client.with_key(&holder.key);
                let path = address(door.path, &id, &key_id);
                let (media, body) = well_formed(door, &id);
                let request = client.request(door.method.clone(), &path);
                let request = request.header("content-type", media).body(body.to_string());
                let answer = client.send(request).await;

                let case = format!("{door} of {kind} with {held:?}: {}", answer.body);
                // Card networks have to answer for a success there, which other tests show.
                let is_let_in = match door.path.starts_with("/3ds/") {
                    true => answer.status.is_client_error() && answer.status != FORBIDDEN,
                    false => answer.status.is_success(),
                };
                match is_welcome {
                    true => assert!(is_let_in, "{case}"),
                    false => assert_eq!(answer.status, FORBIDDEN, "{case}"),
                }
            }
        }
    }
}

/// A new thing of the tenant that this path can be about: its id, and that of its key if it has one.
async fn thing(vault: &TestVault, tenant: &Tenant, path: &str) -> (String, String) {
    let creating = [Permission::TokenCreate, Permission::TokenIntentCreate];
    let creator = vault
        .holder(tenant, ApplicationKind::Private, grants(&creating))
        .await;
    if path.starts_with("/applications") {
        return (creator.application.to_string(), creator.key_id.to_string());
    }
    if path.starts_with("/orchestration/") {
        return ("stripe-card".to_owned(), String::new());
    }
    let id = if path.starts_with("/tenants/self") {
        person(vault, tenant, path).await
    } else if path.starts_with("/keys") {
        let creating = grants(&[Permission::KeysCreate]);
        let manager = vault.holder(tenant, ApplicationKind::Management, creating);
        let manager = vault.client_with(Some(&manager.await.key));
        manager.post("/keys", json!({})).await.id()
    } else {
        let route = match path.starts_with("/token-intents") {
            true => "/token-intents",
            false => "/tokens",
        };
        let client = vault.client_with(Some(&creator.key));
        let new = match path.starts_with("/enrichments") {
            true => json!({"type": "bank", "data":
                {"routing_number": "021000021", "account_number": "00001"}}),
            false => json!({"type": "token", "data": "x"}),
        };
        client.post(route, new).await.id()
    };
    (id, String::new())
}

/// A body that this door accepts, and its media type.
fn well_formed(door: &Door, id: &str) -> (&'static str, Value) {
    let body = match (&door.method, door.path) {
        (&Method::POST, "/tokens" | "/token-intents") => json!({"type": "token", "data": "x"}),
        (&Method::POST, "/enrichments/bank-account-verify") => json!({ "token_id": id }),
        (&Method::POST, "/tokenize") => json!("x"),
        (&Method::POST, "/detokenize") => json!(format!("{{{{ {id} }}}}")),
        (&Method::PATCH, _) => return ("application/merge-patch+json", json!({})),
        (&Method::POST | &Method::PUT, "/applications" | "/applications/{id}") => {
            json!({"name": "n", "type": "private", "permissions": ["token:read"]})
        }
        (&Method::POST | &Method::PUT, path) if path.starts_with("/tenants/self") => {
            json!({"name": "n", "email": "a@b", "role": "ADMIN", "member_id": id})
        }
        _ => json!({}),
    };
    ("application/json", body)
}

/// Every permission that an application of this kind may hold.
pub(crate) fn held_by(kind: ApplicationKind) -> impl Iterator<Item = Permission> {
    let all = ALL_PERMISSIONS.iter().copied();
    all.filter(move |permission| permission.fits(kind))
}

#[tokio::test]
async fn doors_that_need_any_key_open_to_every_kind_of_application() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;

    for kind in ApplicationKind::ALL {
        let one: Vec<Permission> = held_by(kind).take(1).collect();
        let holder = vault.holder(&tenant, kind, grants(&one)).await;
        let client = vault.client_with(Some(&holder.key));
        for door in DOORS {
            if door.needs != Needs::Key {
                continue;
            }
            let (method, path) = (&door.method, door.path);
            let id = match path {
                "/application-templates/{id}" => "6f486ec1-ddf4-4040-b7f1-3ddca4209495",
                _ => UNKNOWN,
            };
            let request = client.request(method.clone(), &address(path, id, UNKNOWN));
            let answer = client.send(request).await;
            let expected = match path {
                "/applications/{id}/regenerate" | "/tenants/self/connections" => StatusCode::GONE,
                path if path.starts_with("/reactor-formulas") => StatusCode::GONE,
                path if path.starts_with("/reactors") || path.starts_with("/proxies") => {
                    StatusCode::NOT_FOUND
                }
                _ => StatusCode::OK,
            };
            assert_eq!(answer.status, expected, "{kind} {method} {path}");
        }
    }
}

/// Somebody of the tenant whom this path can be about.
async fn person(vault: &TestVault, tenant: &Tenant, path: &str) -> String {
    let email = format!("{}@example.com", ids::new_uuid());
    let email = Email::parse(&email).unwrap();
    if path.starts_with("/tenants/self/invitations") {
        let role = Role::Admin;
        let new = NewInvitation { email, role };
        let invited = members::invite_by_command(&vault.vault, tenant.id, &new).await;
        return invited.unwrap().0.id.to_string();
    }
    let role = match path {
        "/tenants/self/owner" => match members::owner_of(&vault.vault, tenant.id).await.unwrap() {
            Some(_) => Role::Admin,
            None => Role::Owner,
        },
        _ => Role::ReadOnly,
    };
    let new = NewMember {
        email,
        role,
        first_name: None,
        last_name: None,
    };
    let member = members::add(&vault.vault, tenant.id, new).await;
    member.unwrap().id.to_string()
}

#[tokio::test]
async fn open_doors_need_no_key() {
    let vault = TestVault::start().await;

    for door in DOORS {
        if door.needs == Needs::Nothing {
            let client = vault.client_with(None);
            let request = client.request(door.method.clone(), door.path);
            let answer = client.send(request).await;
            let status = answer.status;
            assert!(
                ![StatusCode::UNAUTHORIZED, FORBIDDEN].contains(&status),
                "{door}: {status}"
            );
            assert_eq!(
                status.is_success(),
                door.method == Method::GET,
                "{door}: {status}"
            );
        }
        if door.needs == Needs::KeyInAddress {
            let client = vault.client_with(None);
            let request = client.request(door.method.clone(), door.path);
            let answer = client.send(request).await;
            assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{door}");
        }
    }
}

/// Everyone who lacks something that this permission's doors ask for, or a valid key at least.
async fn strangers(
    vault: &TestVault,
    tenant: &Tenant,
    permission: Option<Permission>,
) -> Vec<Stranger> {
    use ApplicationKind::{Management, Private, Public};

    let known = vault
        .holder(tenant, Private, grants(&[Permission::DocumentsRead]))
        .await;
    let wrong_secret = format!("{}{}", &known.key[..known.key.len() - 4], "0000");
    let retold = known.key.replacen("_test_", "_prod_", 1);
    let unknown = ApiKey::generate(TenantKind::Test, "us", Private);
    // A public application cannot hold most permissions; it gets the one that it can.
    let public = match permission {
        Some(Permission::TokenCreate) => Permission::TokenIntentCreate,
        _ => Permission::TokenCreate,
    };
    let public = vault.holder(tenant, Public, grants(&[public])).await;
    let others: Vec<Permission> = held_by(Management)
        .filter(|other| Some(*other) != permission)
        .collect();
    let management = vault.holder(tenant, Management, grants(&others)).await;

    let keyless = vault.client_with(None);
    let stranger = |name, key: Option<&str>, expected| Stranger {
        name,
        client: key.map_or_else(|| keyless.clone(), |key| keyless.with_key(key)),
        expected,
    };
    let mut strangers = vec![
        stranger("without a key", None, StatusCode::UNAUTHORIZED),
        stranger(
            "with a malformed key",
            Some("key_test_us_pvt_x"),
            StatusCode::UNAUTHORIZED,
        ),
        stranger(
            "with an unknown key",
            Some(unknown.expose()),
            StatusCode::UNAUTHORIZED,
        ),
        stranger(
            "with a wrong secret",
            Some(&wrong_secret),
            StatusCode::UNAUTHORIZED,
        ),
        stranger(
            "with a key retold as production",
            Some(&retold),
            StatusCode::UNAUTHORIZED,
        ),
        stranger(
            "with a public key",
            Some(&public.key),
            StatusCode::FORBIDDEN,
        ),
        stranger(
            "with a management key",
            Some(&management.key),
            StatusCode::FORBIDDEN,
        ),
        stranger(
            "without the permission",
            Some(&known.key),
            StatusCode::FORBIDDEN,
        ),
    ];
    if permission.is_none() {
        strangers.retain(|stranger| stranger.expected == StatusCode::UNAUTHORIZED);
    }
    strangers
}

/// Where tokens lie, for applications whose rule is about the first.
const CONTAINERS: [&str; 3] = ["/a/", "/a/b/", "/b/"];
const SECRET: &str = "the secret";
const MASKED: &str = "the mask";

/// How an application came by a scoped permission.
#[derive(Clone, Copy, Debug)]
enum Grant {
    Plain,
    /// By a rule for `/a/`, alone or beside all others of its kind, which hold everywhere and reveal.
    Ruled(Transform, Beside),
}

#[derive(Clone, Copy, Debug)]
enum Beside {
    Nothing,
    EverythingElse,
}

impl Grant {
    fn all() -> Vec<Self> {
        let mut all = vec![Self::Plain];
        for transform in [Transform::Redact, Transform::Mask, Transform::Reveal] {
            all.push(Self::Ruled(transform, Beside::Nothing));
            all.push(Self::Ruled(transform, Beside::EverythingElse));
        }
        all
    }

    fn of(self, held: Permission, kind: ApplicationKind) -> Grants {
        let Self::Ruled(transform, beside) = self else {
            return grants(&[held]);
        };
        let others = held_by(kind).filter(|other| other.is_scoped() && *other != held);
        let others: Vec<Permission> = others.collect();
        let mut rules = vec![rule(2, "/a/", transform, &[held])];
        if let Beside::EverythingElse = beside {
            rules.push(rule(1, "/", Transform::Reveal, &others));
        }
        Grants {
            rules,
            ..grants(&[])
        }
    }

    fn holds_in(self, container: &str) -> bool {
        match self {
            Self::Plain => true,
            Self::Ruled(..) => container.starts_with("/a/"),
        }
    }

    /// The data of a token as this grant shows it.
    fn shown(self) -> Option<Value> {
        match self {
            Self::Ruled(Transform::Redact, _) => None,
            Self::Plain | Self::Ruled(Transform::Mask, _) => Some(json!(MASKED)),
            Self::Ruled(Transform::Reveal, _) => Some(json!(SECRET)),
        }
    }
}

/// One way through a door to a token.
struct Way {
    door: (Method, &'static str),
    path: String,
    body: Value,
    /// Where in the answer the token is.
    place: Place,
}

#[derive(Clone, Copy, PartialEq)]
enum Place {
    /// The answer is the token.
    Whole,
    /// The only element of an array.
    First,
    /// One of a page, unless the permission does not reach it.
    Listed,
    /// The whole token and its data, each by its expression.
    Filled,
    /// Nothing is answered.
    Nowhere,
}

/// What a way led to.
#[derive(Debug, PartialEq)]
enum Seen {
    Refused,
    LeftOut,
    Shown(Option<Value>),
    /// An answer that should never be.
    Other(String),
}

fn new_token(container: &str) -> Value {
    json!({"type": "token", "data": SECRET, "mask": MASKED, "containers": [container]})
}

/// Every way that `held` opens to a token, or to making one, in `container`.
fn ways(held: Permission, id: &str, container: &str) -> Vec<Way> {
    let way = |method: &Method, door, query: &str, body, place| Way {
        door: (method.clone(), door),
        path: format!("{}{query}", address(door, id, "")),
        body,
        place,
    };
    let (get, post) = (&Method::GET, &Method::POST);
    let none = Value::Null;
    let (in_it, its_id) = (format!("?container={container}"), format!("?id={id}"));
    match held {
        Permission::TokenCreate => {
            let new = new_token(container);
            vec![
                way(post, "/tokens", "", new.clone(), Place::Whole),
                way(post, "/tokenize", "", json!([new]), Place::First),
            ]
        }
        Permission::TokenUpdate => {
            let body = json!({"metadata": {"k": "v"}});
            vec![way(&Method::PATCH, "/tokens/{id}", "", body, Place::Whole)]
        }
        Permission::TokenRead => {
            let body = json!([format!("{{{{ token: {id} }}}}"), format!("{{{{ {id} }}}}")]);
            vec![
                way(get, "/tokens/{id}", "", none.clone(), Place::Whole),
                way(get, "/v2/tokens", "", none.clone(), Place::Listed),
                way(get, "/v2/tokens", &in_it, none.clone(), Place::Listed),
                way(get, "/tokens", "", none.clone(), Place::Listed),
                way(get, "/tokens", &its_id, none, Place::Listed),
                way(post, "/detokenize", "", body, Place::Filled),
            ]
        }
        Permission::TokenSearch => {
            let in_it = json!({ "query": format!("container:\"{container}\"") });
            let by_id = json!({ "query": format!("id:{id}") });
            let all = json!({});
            vec![
                way(post, "/v2/tokens/search", "", all.clone(), Place::Listed),
                way(post, "/v2/tokens/search", "", in_it, Place::Listed),
                way(post, "/tokens/search", "", all, Place::Listed),
                way(post, "/tokens/search", "", by_id, Place::Listed),
            ]
        }
        Permission::TokenDelete => {
            let door = "/tokens/{id}";
            vec![way(&Method::DELETE, door, "", none, Place::Nowhere)]
        }
        _ => Vec::new(),
    }
}

impl Way {
    async fn go(&self, client: &Client, id: &str) -> Seen {
        let media = match self.door.0 {
            Method::PATCH => "application/merge-patch+json",
            _ => "application/json",
        };
        let request = client.request(self.door.0.clone(), &self.path);
        let request = request.header("content-type", media);
        let answer = client.send(request.body(self.body.to_string())).await;
        if answer.status == StatusCode::FORBIDDEN {
            return Seen::Refused;
        }
        if !answer.status.is_success() {
            return Seen::Other(answer.body.to_string());
        }
        let data_of = |token: &Value| Seen::Shown(token.get("data").cloned());
        match self.place {
            Place::Nowhere => Seen::Shown(None),
            Place::Whole => data_of(&answer.body),
            Place::First => data_of(&answer.body[0]),
            Place::Listed => {
                let item = answer.items().iter().find(|item| item["id"] == id);
                item.map_or(Seen::LeftOut, data_of)
            }
            Place::Filled => {
                let filled = (!answer.body[1].is_null()).then(|| answer.body[1].clone());
                match answer.body[0].get("data") == filled.as_ref() {
                    true => Seen::Shown(filled),
                    false => Seen::Other(answer.body.to_string()),
                }
            }
        }
    }

    fn expected(&self, grant: Grant, container: &str) -> Seen {
        let names_container = self.path.contains("container=")
            || self.body["query"]
                .as_str()
                .is_some_and(|it| it.starts_with("container"));
        match (grant.holds_in(container), self.place) {
            (true, Place::Nowhere) => Seen::Shown(None),
            (true, _) => Seen::Shown(grant.shown()),
            (false, Place::Listed) if !names_container => Seen::LeftOut,
            (false, _) => Seen::Refused,
        }
    }
}

/// An application that holds one scoped permission, maybe beside others.
struct Scoped {
    held: Permission,
    kind: ApplicationKind,
    grant: Grant,
    client: Client,
}

/// Two tenants: one whose tokens stay as they are, and one for whatever changes them.
struct Stage {
    kept: [String; 3],
    creator: Client,
}

impl Stage {
    async fn token(client: &Client, container: &str) -> String {
        client.post("/tokens", new_token(container)).await.id()
    }

    async fn set(vault: &TestVault) -> (Self, Vec<Scoped>) {
        let tenants = [vault.tenant().await, vault.tenant().await];
        let creating = || grants(&[Permission::TokenCreate]);
        let keeper = vault.client(&tenants[0], creating()).await;
        let mut kept = [const { String::new() }; 3];
        for (id, container) in kept.iter_mut().zip(CONTAINERS) {
            *id = Self::token(&keeper, container).await;
        }
        let creator = vault.client(&tenants[1], creating()).await;
        let mut holders = Vec::new();
        for held in ALL_PERMISSIONS.iter().copied() {
            if ways(held, "", "").is_empty() {
                continue;
            }
            for kind in held.kinds().iter().copied() {
                for grant in Grant::all() {
                    let tenant = &tenants[usize::from(changes_tokens(held))];
                    let holder = vault.holder(tenant, kind, grant.of(held, kind)).await;
                    holders.push(Scoped {
                        held,
                        kind,
                        grant,
                        client: keeper.with_key(&holder.key),
                    });
                }
            }
        }
        (Self { kept, creator }, holders)
    }
}

fn changes_tokens(held: Permission) -> bool {
    !matches!(held, Permission::TokenRead | Permission::TokenSearch)
}

impl Scoped {
    /// Goes every way in every container, and says how many cells that were and which of them led
    /// elsewhere than they should.
    async fn go_everywhere(&self, stage: &Stage) -> (usize, Vec<String>) {
        let (mut cells, mut wrong) = (0, Vec::new());
        for (position, container) in CONTAINERS.into_iter().enumerate() {
            let count = ways(self.held, "", container).len();
            for number in 0..count {
                let id = match changes_tokens(self.held) {
                    true => &Stage::token(&stage.creator, container).await,
                    false => &stage.kept[position],
                };
                let way = ways(self.held, id, container).swap_remove(number);
                let expected = way.expected(self.grant, container);
                wrong.extend(self.check(&way, id, expected).await);
                cells += 1;
            }
            if self.held == Permission::TokenUpdate {
                for to in CONTAINERS {
                    let id = Stage::token(&stage.creator, container).await;
                    let mut way = ways(self.held, &id, container).swap_remove(0);
                    way.body = json!({ "containers": [to] });
                    let may = self.grant.holds_in(container) && self.grant.holds_in(to);
                    let expected = match may {
                        true => Seen::Shown(self.grant.shown()),
                        false => Seen::Refused,
                    };
                    wrong.extend(self.check(&way, &id, expected).await);
                    cells += 1;
                }
            }
        }
        (cells, wrong)
    }

    async fn check(&self, way: &Way, id: &str, expected: Seen) -> Option<String> {
        let seen = way.go(&self.client, id).await;
        let Self {
            held, kind, grant, ..
        } = self;
        let Way { path, body, .. } = way;
        let case = format!("{path} {body} with {held} of {kind} by {grant:?}");
        (seen != expected).then(|| format!("{case}: {seen:?}, not {expected:?}"))
    }
}

/// The matrix within containers: how each scoped permission was granted, where the token lies, every
/// way to it, and how its data appears there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rule_decides_where_a_permission_holds_and_what_it_shows() {
    let of_ways: BTreeSet<(String, &str)> = ALL_PERMISSIONS
        .iter()
        .flat_map(|held| ways(*held, "", ""))
        .map(|way| (way.door.0.to_string(), way.door.1))
        .collect();
    let scoped: BTreeSet<(String, &str)> = DOORS
        .iter()
        .filter(|door| door.needs.permissions().iter().any(|it| it.is_scoped()))
        // Shows no data, and is tried in containers by its own tests.
        .filter(|door| !door.path.starts_with("/enrichments"))
        .map(|door| (door.method.to_string(), door.path))
        .collect();
    assert_eq!(of_ways, scoped);
    let vault = TestVault::start_patient().await;
    let (stage, mut holders) = Stage::set(&vault).await;
    let (stage, count) = (Arc::new(stage), holders.len());

    let mut asking = JoinSet::new();
    while !holders.is_empty() {
        let few = holders.split_off(holders.len().saturating_sub(count.div_ceil(ASKING)));
        let stage = stage.clone();
        asking.spawn(async move {
            let (mut cells, mut wrong) = (0, Vec::new());
            for holder in few {
                let went = holder.go_everywhere(&stage).await;
                cells += went.0;
                wrong.extend(went.1);
            }
            (cells, wrong)
        });
    }
    let went = asking.join_all().await;

    let cells: usize = went.iter().map(|went| went.0).sum();
    let wrong: Vec<String> = went.into_iter().flat_map(|went| went.1).collect();
    println!(
        "{cells} cells: {count} holders in {} containers",
        CONTAINERS.len()
    );
    assert!(wrong.is_empty(), "{} of {cells}: {wrong:#?}", wrong.len());
}
