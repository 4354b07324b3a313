//! Sessions: keys of browsers that a server grants rights to.

use std::time::Duration;

use cloakroom::access::{ApplicationKind, Permission, Tenant, Transform};
use cloakroom::{ids, jobs};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{Answer, Client, TestDatabase, TestVault, everything, grants};

const UNKNOWN_NONCE: &str = "1111111111111111111111";

/// A tenant with a browser, a server, and someone who makes tokens.
struct Stage {
    vault: TestVault,
    tenant: Tenant,
    browser: Client,
    browser_id: String,
    server: Client,
    creator: Client,
}

impl Stage {
    async fn new() -> Self {
        Self::on(TestVault::start().await).await
    }

    async fn on(vault: TestVault) -> Self {
        let tenant = vault.tenant().await;
        let public = grants(&[Permission::TokenCreate]);
        let browser = vault.holder(&tenant, ApplicationKind::Public, public).await;
        // Masked reading only: what it grants may be more.
        let server = vault
            .client(&tenant, grants(&[Permission::TokenRead]))
            .await;
        Self {
            browser: vault.client_with(Some(&browser.key)),
            browser_id: browser.application.to_string(),
            server,
            creator: vault.client(&tenant, everything(Transform::Reveal)).await,
            tenant,
            vault,
        }
    }

    /// The time by the database's clock.
    async fn now(&self) -> jiff::Timestamp {
        self.vault.vault.audit.now().await.unwrap()
    }

    async fn session(&self) -> (Client, String) {
        let made = create(&self.browser).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
        let key = made.body["session_key"].as_str().unwrap();
        let nonce = made.body["nonce"].as_str().unwrap().to_owned();
        (self.vault.client_with(Some(key)), nonce)
    }

    /// A session with these grants.
    async fn granted(&self, mut body: Value) -> Client {
        let (session, nonce) = self.session().await;
        body["nonce"] = json!(nonce);
        let authorized = self.server.post("/sessions/authorize", body).await;
        assert_eq!(authorized.status, StatusCode::OK, "{}", authorized.body);
        assert!(authorized.bytes.is_empty());
        session
    }

    async fn token(&self, id: &str, container: &str) -> String {
        let token = json!({
            "id": id, "type": "token", "data": "secret", "mask": "{{ data | slice: 0, 2 }}",
            "containers": [container],
        });
        let created = self.creator.post("/tokens", token).await;
        assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
        format!("/tokens/{id}")
    }
}

/// Official clients send neither a body nor a content type.
async fn create(client: &Client) -> Answer {
    client
        .send(
            client
                .request(Method::POST, "/sessions")
                .header("content-length", "0"),
        )
        .await
}

fn rule(permissions: &[&str], transform: &str, scope: Value) -> Value {
    let mut rule = json!({
        "description": "A rule", "priority": 1, "transform": transform,
        "permissions": permissions,
    });
    rule.as_object_mut()
        .unwrap()
        .extend(scope.as_object().unwrap().clone());
    rule
}

fn condition(attribute: &str, operator: &str, value: &str) -> Value {
    json!({"attribute": attribute, "operator": operator, "value": value})
}

/// Covers 17.1.
#[tokio::test]
async fn a_public_key_makes_a_session_and_no_other_does() {
    let stage = Stage::new().await;

    let made = create(&stage.browser).await;

    assert_eq!(made.status, StatusCode::CREATED);
    let key = made.body["session_key"].as_str().unwrap();
    assert!(key.starts_with("key_test_us_ses_"), "{key}");
    assert_eq!(made.body["nonce"].as_str().unwrap().len(), 22);
    let expires_at: jiff::Timestamp = made.body["expires_at"].as_str().unwrap().parse().unwrap();
    let left = expires_at.duration_since(stage.now().await).as_secs();
    assert!((170..=181).contains(&left), "{left}");
    let management = vault_key(&stage, ApplicationKind::Management, Permission::TenantRead).await;
    let session = stage
        .granted(json!({"permissions": ["token:create"]}))
        .await;
    for (who, client) in [
        ("private", &stage.server),
        ("management", &management),
        ("session", &session),
    ] {
        assert_eq!(create(client).await.status, StatusCode::FORBIDDEN, "{who}");
    }
    let body = json!({"nonce": made.body["nonce"], "permissions": ["token:read"]});
    for (who, client) in [
        ("public", &stage.browser),
        ("management", &management),
        ("session", &session),
    ] {
        let answer = client.post("/sessions/authorize", body.clone()).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{who}");
    }
}

async fn vault_key(stage: &Stage, kind: ApplicationKind, permission: Permission) -> Client {
    let holder = stage
        .vault
        .holder(&stage.tenant, kind, grants(&[permission]))
        .await;
    stage.vault.client_with(Some(&holder.key))
}

/// Covers 17.2, 17.3.
#[tokio::test]
async fn a_session_may_do_nothing_before_and_what_it_was_granted_afterwards() {
    let stage = Stage::new().await;
    let path = stage.token("card-1", "/pci/high/").await;
    let (session, nonce) = stage.session().await;

    for path in [
        &path,
        "/v2/tokens",
        "/permissions",
        "/applications/key",
        "/nowhere-at-all",
    ] {
        let answer = session.get(path).await;
        let expected = match path {
            "/nowhere-at-all" => StatusCode::NOT_FOUND,
            _ => StatusCode::FORBIDDEN,
        };
        assert_eq!(answer.status, expected, "{path}");
    }
    let scope = json!({"container": "/pci/"});
    let permissions = ["token:read", "token:search", "token:delete", "token:use"];
    let rules = json!([rule(&permissions, "reveal", scope)]);
    let body = json!({"nonce": nonce, "rules": rules});
    let other = stage.vault.second_node().await;
    let elsewhere = other.client_with(Some(session.key().unwrap()));
    assert_eq!(elsewhere.get(&path).await.status, StatusCode::FORBIDDEN);
    assert_eq!(
        stage.server.post("/sessions/authorize", body).await.status,
        StatusCode::OK
    );

    for node in [&session, &elsewhere] {
        assert_eq!(
            node.get(&path).await.body["data"],
            "secret",
            "on every node, at once"
        );
    }
    let own = json!({"type": "token", "data": "x"});
    let created = session.post("/tokens", own).await;
    assert_eq!(
        created.status,
        StatusCode::FORBIDDEN,
        "its application's grants are replaced"
    );
    assert_eq!(session.delete(&path).await.status, StatusCode::NO_CONTENT);
}

/// Covers 2.22, 17.4.
#[tokio::test]
async fn what_a_session_makes_is_its_applications_and_is_told_so() {
    let stage = Stage::new().await;
    let session = stage
        .granted(json!({"permissions": ["token:create"]}))
        .await;

    let created = session
        .post("/tokens", json!({"type": "token", "data": "x"}))
        .await;

    assert_eq!(created.body["created_by"], stage.browser_id);
    let logs = vault_key(&stage, ApplicationKind::Management, Permission::LogRead).await;
    let told = logs.get(&format!("/logs?entity_id={}", created.id())).await;
    assert_eq!(told.items()[0]["actor_id"], stage.browser_id);
    let sessions = logs.get("/logs?entity_type=session").await;
    let messages: Vec<&Value> = sessions.items().iter().map(|it| &it["message"]).collect();
    assert_eq!(messages, ["Session authorized", "Session created"]);
}

/// Covers 17.5.
#[tokio::test]
async fn a_nonce_is_used_once_however_many_try() {
    let stage = Stage::new().await;
    let other = stage.vault.second_node().await;
    let nodes = [
        stage.server.clone(),
        other.client_with(Some(stage.server.key().unwrap())),
    ];
    let (_, nonce) = stage.session().await;
    let mut asked = tokio::task::JoinSet::new();
    for index in 0..16 {
        let (client, nonce) = (nodes[index % 2].clone(), nonce.clone());
        asked.spawn(async move {
            let body = json!({"nonce": nonce, "permissions": ["token:read"]});
            client.post("/sessions/authorize", body).await.status
        });
    }
    let answers = asked.join_all().await;
    let count = |status| answers.iter().filter(|it| **it == status).count();
    assert_eq!(
        (count(StatusCode::OK), count(StatusCode::CONFLICT)),
        (1, 15)
    );

    let body = |nonce: &str| json!({"nonce": nonce, "permissions": ["token:read"]});
    let unknown = stage
        .server
        .post("/sessions/authorize", body(UNKNOWN_NONCE))
        .await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
    let (_, foreign) = Stage::new().await.session().await;
    let foreign = stage
        .server
        .post("/sessions/authorize", body(&foreign))
        .await;
    assert_eq!(foreign.bytes, unknown.bytes, "another vault's nonce");
    let tenant = stage.vault.tenant().await;
    let stranger = stage
        .vault
        .client(&tenant, grants(&[Permission::TokenRead]))
        .await;
    let (_, nonce) = stage.session().await;
    let stranger = stranger.post("/sessions/authorize", body(&nonce)).await;
    assert_eq!(stranger.bytes, unknown.bytes, "another tenant's nonce");
}

/// Covers 17.6.
#[tokio::test]
async fn what_cannot_be_granted_is_named() {
    let stage = Stage::new().await;
    let (_, nonce) = stage.session().await;
    let container = || json!({"container": "/a/"});
    let read = ["token:read"];
    let conditions =
        |conditions: Value| json!([rule(&read, "mask", json!({"conditions": conditions}))]);
    let in_a_day = stage.now().await + Duration::from_secs(24 * 3600 + 60);
    let cases = [
        (
            json!({"permissions": ["token:read"], "nonce": null}),
            "nonce",
        ),
        (json!({}), "permissions"),
        (json!({"permissions": ["application:read"]}), "permissions"),
        (json!({"permissions": ["token:everything"]}), "permissions"),
        (
            json!({"permissions": ["token:read"], "expires_at": "2001-01-01T00:00:00Z"}),
            "expires_at",
        ),
        (
            json!({"permissions": ["token:read"], "expires_at": in_a_day.to_string()}),
            "expires_at",
        ),
        (
            json!({"rules": [rule(&read, "show", container())]}),
            "rules[0].transform",
        ),
        (
            json!({"rules": [rule(&["log:read"], "mask", container())]}),
            "rules[0].permissions",
        ),
        (
            json!({"rules": [rule(&read, "mask", json!({}))]}),
            "rules[0].container",
        ),
        (
            json!({"rules": conditions(json!([]))}),
            "rules[0].conditions",
        ),
        (
            json!({"rules": conditions(json!([condition("type", "equals", "card")]))}),
            "rules[0].conditions[0].attribute",
        ),
        (
            json!({"rules": conditions(json!([condition("id", "matches", "x")]))}),
            "rules[0].conditions[0].operator",
        ),
        (
            json!({"rules": conditions(json!([condition("id", "equals", "")]))}),
            "rules[0].conditions[0].value",
        ),
        (
            json!({"rules": [rule(&read, "mask", json!({"container": "/a/", "conditions": [condition("id", "equals", "x")]}))]}),
            "rules[0].container",
        ),
    ];
    for (mut body, refused) in cases {
        if body.get("nonce").is_none() {
            body["nonce"] = json!(nonce);
        }
        let answer = stage.server.post("/sessions/authorize", body.clone()).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{body}");
        assert!(
            answer.refused().contains(&refused),
            "{body}: {:?}",
            answer.refused()
        );
    }
}

/// Covers 17.6.
#[tokio::test]
async fn only_sessions_have_conditions() {
    let stage = Stage::new().await;
    let about = json!({"conditions": [condition("id", "equals", "x")]});
    let management = grants(&[Permission::ApplicationCreate]);
    let management = stage
        .vault
        .holder(&stage.tenant, ApplicationKind::Management, management)
        .await;
    let management = stage.vault.client_with(Some(&management.key));
    let with_conditions = json!({
        "name": "n", "type": "private",
        "rules": [rule(&["token:read"], "mask", about)],
    });
    let answer = management.post("/applications", with_conditions).await;
    assert_eq!(
        answer.refused(),
        ["rules[0].conditions"],
        "only sessions have conditions"
    );
}

/// The last one holds in its middle what conditions ask others to start with.
const TOKENS: [(&str, &str); 5] = [
    ("card-1", "/users/eu/"),
    ("card-12", "/users/us/"),
    ("bank-1", "/users/eu/"),
    ("card-3", "/orders/"),
    ("my-card-1", "/all/users/eu/"),
];

/// Conditions, and the tokens that meet all of them.
fn conditions_and_tokens() -> [(Value, &'static [&'static str]); 8] {
    let by = condition;
    let users = |operator, path| by("container", operator, path);
    [
        (json!([by("id", "equals", "card-1")]), &["card-1"]),
        (
            json!([by("id", "starts_with", "card-1")]),
            &["card-1", "card-12"],
        ),
        (
            json!([users("equals", "/users/eu/")]),
            &["bank-1", "card-1"],
        ),
        (json!([users("equals", "/users/")]), &[]),
        (
            json!([users("starts_with", "/Users/")]),
            &["bank-1", "card-1", "card-12"],
        ),
        (
            json!([users("starts_with", "/users/e")]),
            &["bank-1", "card-1"],
        ),
        (
            json!([
                users("starts_with", "/users/"),
                by("id", "starts_with", "card")
            ]),
            &["card-1", "card-12"],
        ),
        (
            json!([users("equals", "/orders/"), by("id", "equals", "card-1")]),
            &[],
        ),
    ]
}

/// Each rule about each of five tokens, by every way to them.
///
/// Covers 17.7.
#[tokio::test]
async fn conditions_decide_about_each_token() {
    let stage = Stage::new().await;
    for (id, container) in TOKENS {
        stage.token(id, container).await;
    }
    let all = ["token:read", "token:search", "token:update", "token:delete"];
    for (conditions, expected) in conditions_and_tokens() {
        let rules = json!([rule(&all, "reveal", json!({"conditions": conditions}))]);
        let session = stage.granted(json!({"rules": rules})).await;
        for listed in [
            session.get("/v2/tokens").await,
            session.get("/tokens").await,
            session.post("/v2/tokens/search", json!({})).await,
        ] {
            let mut ids = ids(&listed);
            ids.sort_unstable();
            assert_eq!(ids, expected, "{conditions}");
        }
        for (id, container) in TOKENS {
            let is_covered = expected.contains(&id);
            let case = format!("{id} {conditions}");
            reach(&session, id, is_covered, &case).await;
            // Out of every container that a condition names; only ids go along.
            let path = format!("/tokens/{id}");
            let elsewhere = json!({"containers": ["/elsewhere/"]});
            let moved = session.patch(&path, elsewhere).await.status;
            let may_move = is_covered && !conditions.to_string().contains("container");
            assert_eq!(moved == StatusCode::OK, may_move, "move {case}");
            let back = json!({"containers": [container]});
            stage.creator.patch(&path, back).await;
        }
    }
    let only = json!({"conditions": [condition("id", "equals", "card-1")]});
    let rules = json!([rule(&all, "reveal", only)]);
    let session = stage.granted(json!({"rules": rules})).await;
    for (id, expected) in [
        ("card-12", StatusCode::FORBIDDEN),
        ("card-1", StatusCode::NO_CONTENT),
    ] {
        let deleted = session.delete(&format!("/tokens/{id}")).await;
        assert_eq!(deleted.status, expected, "{id}");
    }
}

/// Reads, fills in and changes one token, or is refused.
async fn reach(session: &Client, id: &str, is_covered: bool, case: &str) {
    let path = format!("/tokens/{id}");
    let expected = match is_covered {
        true => StatusCode::OK,
        false => StatusCode::FORBIDDEN,
    };
    assert_eq!(session.get(&path).await.status, expected, "get {case}");
    let document = json!(format!("{{{{ {id} }}}}"));
    let detokenized = session.post("/detokenize", document).await;
    assert_eq!(detokenized.status, expected, "detokenize {case}");
    let patched = session.patch(&path, json!({"metadata": {"a": "b"}})).await;
    assert_eq!(patched.status, expected, "update {case}");
}

fn ids(answer: &Answer) -> Vec<&str> {
    let items = answer.items().iter();
    items.map(|token| token["id"].as_str().unwrap()).collect()
}

/// One token that the session is about, and three others that are found in the same ways.
async fn create_mine_and_others(stage: &Stage) {
    for (id, container) in [
        ("mine", "/a/"),
        ("his", "/a/"),
        ("hers", "/a/b/"),
        ("its", "/c/"),
    ] {
        let token = json!({
            "id": id, "type": "token", "data": "x", "containers": [container],
            "search_indexes": ["shared", if id == "mine" { "own" } else { "foreign" }],
            "metadata": {"of": if id == "mine" { "me" } else { "others" }},
        });
        let created = stage.creator.post("/tokens", token).await;
        assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
    }
}

/// Covers 17.13.
#[tokio::test]
async fn lists_under_conditions_tell_nothing_of_other_tokens() {
    let stage = Stage::new().await;
    create_mine_and_others(&stage).await;
    let both = ["token:read", "token:search"];
    let by_id = json!({"conditions": [condition("id", "equals", "mine")]});
    let by_id = json!({"rules": [rule(&both, "mask", by_id)]});
    let session = stage.granted(by_id).await;
    let search = async |path: &str, query: &str| {
        let body = json!({"query": query, "size": 1});
        session.post(path, body).await
    };

    let (new, old) = ("/v2/tokens/search", "/tokens/search");
    let cases = [
        ("list", session.get("/v2/tokens?size=1").await, true),
        (
            "metadata",
            session.get("/v2/tokens?size=1&metadata.of=me").await,
            true,
        ),
        (
            "others",
            session.get("/v2/tokens?size=1&metadata.of=others").await,
            false,
        ),
        (
            "container",
            session.get("/v2/tokens?size=1&container=/a/").await,
            true,
        ),
        (
            "below",
            session.get("/v2/tokens?size=1&container=/a/b/").await,
            false,
        ),
        ("search", search(new, "data:shared").await, true),
        ("foreign", search(new, "data:foreign").await, false),
        ("old list", session.get("/tokens?size=1").await, true),
        (
            "old others",
            session.get("/tokens?size=1&metadata.of=others").await,
            false,
        ),
        (
            "old second page",
            session.get("/tokens?size=1&page=2").await,
            false,
        ),
        ("old search", search(old, "data:shared").await, true),
        ("old foreign", search(old, "data:foreign").await, false),
    ];
    for (case, answer, is_found) in cases {
        let expected: &[&str] = if is_found { &["mine"] } else { &[] };
        assert_eq!(answer.status, StatusCode::OK, "{case}: {}", answer.body);
        assert_eq!(ids(&answer), expected, "{case}");
        let pagination = &answer.body["pagination"];
        assert_eq!(pagination.get("next"), None, "{case}");
        if let Some(total) = pagination.get("total_items") {
            let is_page = is_found || case == "old second page";
            assert_eq!(*total, json!(u8::from(is_page)), "{case}");
        }
    }
    let by_container = json!({"conditions": [condition("container", "equals", "/a/")]});
    let by_container = json!({"rules": [rule(&both, "mask", by_container)]});
    let session = stage.granted(by_container).await;
    let elsewhere = session.get("/v2/tokens?container=/c/").await;
    assert_eq!(elsewhere.status, StatusCode::FORBIDDEN);
}

/// Covers 17.14.
#[tokio::test]
async fn pages_under_conditions_are_full_as_far_as_one_request_may_look() {
    let stage = Stage::new().await;
    for number in 0..12 {
        stage.token(&format!("card-{number:02}"), "/a/").await;
        stage.token(&format!("bank-{number:02}"), "/a/").await;
    }
    let scope = json!({"conditions": [condition("id", "starts_with", "card-")]});
    let rules = json!({"rules": [rule(&["token:read"], "mask", scope)]});
    let session = stage.granted(rules).await;

    let mut sizes = Vec::new();
    let mut seen: Vec<String> = Vec::new();
    let mut path = "/v2/tokens?size=5".to_owned();
    loop {
        let page = session.get(&path).await;
        sizes.push(page.items().len());
        seen.extend(ids(&page).into_iter().map(str::to_owned));
        let Some(next) = page.body["pagination"]["next"].as_str() else {
            break;
        };
        path = format!("/v2/tokens?size=5&start={next}");
    }
    let newest_first: Vec<String> = (0..12).rev().map(|n| format!("card-{n:02}")).collect();
    assert_eq!((sizes, seen), (vec![5, 5, 2], newest_first));

    // A thousand others in front of them: the first page stops there, and the next one goes on.
    let database = stage.vault.database.connect().await;
    let crowd = "create temp table crowd as
            select token.* from token, generate_series(1, 1000)
            where alias = 'bank-00';
        update crowd set token_id = gen_random_uuid(), alias = null,
            created_at = now() + interval '1 hour';
        insert into token select * from crowd";
    database.batch_execute(crowd).await.unwrap();
    let first = session.get("/v2/tokens?size=5").await;
    let next = first.body["pagination"]["next"].as_str().unwrap();
    let second = session
        .get(&format!("/v2/tokens?size=5&start={next}"))
        .await;
    assert_eq!((first.status, first.items().len()), (StatusCode::OK, 0));
    assert_eq!(ids(&second)[0], "card-11");
    assert_eq!(second.items().len(), 5);
}

/// Covers 17.8.
#[tokio::test]
async fn a_session_ends_at_its_instant_by_the_databases_clock() {
    let stage = Stage::new().await;
    let path = stage.token("card-1", "/a/").await;
    let ends_at = stage.now().await + Duration::from_secs(2);
    let body = json!({"permissions": ["token:read"], "expires_at": ends_at.to_string()});
    let session = stage.granted(body).await;
    assert_eq!(session.get(&path).await.status, StatusCode::OK);
    let database = stage.vault.database.connect().await;
    let is_past = async || -> bool {
        database
            .query_one("select now() >= $1", &[&ends_at])
            .await
            .unwrap()
            .get(0)
    };
    while !is_past().await {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }

    assert_eq!(session.get(&path).await.status, StatusCode::UNAUTHORIZED);

    jobs::sweep_once(&stage.vault.vault, ids::new_uuid())
        .await
        .unwrap();
    let sql = "select count(*) from session";
    let left: i64 = database.query_one(sql, &[]).await.unwrap().get(0);
    assert_eq!(left, 0);
    let (waiting, nonce) = stage.session().await;
    database
        .batch_execute("update session set expires_at = now() - interval '1 s'")
        .await
        .unwrap();
    let body = json!({"nonce": nonce, "permissions": ["token:read"]});
    let authorized = stage.server.post("/sessions/authorize", body).await;
    assert_eq!(
        authorized.status,
        StatusCode::NOT_FOUND,
        "expired before it was authorized"
    );
    assert_eq!(waiting.get(&path).await.status, StatusCode::UNAUTHORIZED);
}

/// Covers 17.9.
#[tokio::test]
async fn sessions_end_with_their_application() {
    let stage = Stage::new().await;
    let path = stage.token("card-1", "/a/").await;
    let session = stage.granted(json!({"permissions": ["token:read"]})).await;
    assert_eq!(session.get(&path).await.status, StatusCode::OK);
    let management = vault_key(
        &stage,
        ApplicationKind::Management,
        Permission::ApplicationDelete,
    )
    .await;

    let deleted = management
        .delete(&format!("/applications/{}", stage.browser_id))
        .await;

    assert_eq!(deleted.status, StatusCode::NO_CONTENT);
    assert_eq!(session.get(&path).await.status, StatusCode::UNAUTHORIZED);
}

/// I22 for sessions.
///
/// Covers 17.10.
#[tokio::test]
async fn sql_neither_authorizes_a_session_nor_widens_one() {
    let stage = Stage::new().await;
    let path = stage.token("card-1", "/a/").await;
    let everything = r#"{"permissions":["token:read"],"rules":[]}"#;
    let changes = [
        format!("grants = '{everything}'"),
        "expires_at = expires_at + interval '1 hour'".to_owned(),
        "application_id = gen_random_uuid()".to_owned(),
        "nonce_mac = sha256('x')".to_owned(),
    ];
    for change in changes {
        let (waiting, nonce) = stage.session().await;
        let granted = stage
            .granted(json!({"permissions": ["token:create"]}))
            .await;
        let database = stage.vault.database.connect().await;
        database
            .batch_execute(&format!("update session set {change} where grants is null"))
            .await
            .unwrap();
        let answer = waiting.get(&path).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{change}");
        let body = json!({"nonce": nonce, "permissions": ["token:read"]});
        let authorized = stage.server.post("/sessions/authorize", body).await;
        assert!(
            !authorized.status.is_success(),
            "{change}: {}",
            authorized.status
        );

        if !change.starts_with("nonce") {
            database
                .batch_execute(&format!("update session set {change}"))
                .await
                .unwrap();
            stage.vault.vault.authenticator.forget_all();
            let answer = granted.get(&path).await;
            assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "widened: {change}");
        }
        database.batch_execute("delete from session").await.unwrap();
    }
}

/// Covers 17.11.
#[tokio::test]
async fn the_hardening_switch_lets_nobody_grant_what_they_lack() {
    let vault = TestVault::start_with(TestDatabase::create().await, |config| {
        config.sessions.require_subset = true;
    })
    .await;
    let stage = Stage::on(vault).await;
    let path = stage.token("card-1", "/a/").await;
    let (session, nonce) = stage.session().await;
    let scope = || json!({"container": "/a/"});
    let refused = [
        (json!({"permissions": ["token:create"]}), "permissions"),
        (
            json!({"rules": [rule(&["token:read"], "reveal", scope())]}),
            "rules[0].permissions",
        ),
        (
            json!({"rules": [rule(&["token:delete"], "redact", scope())]}),
            "rules[0].permissions",
        ),
    ];
    for (mut body, name) in refused {
        body["nonce"] = json!(nonce);
        let answer = stage.server.post("/sessions/authorize", body).await;
        assert_eq!(answer.refused(), [name]);
    }
    let body = json!({"nonce": nonce, "rules": [rule(&["token:read"], "mask", scope())]});
    assert_eq!(
        stage.server.post("/sessions/authorize", body).await.status,
        StatusCode::OK
    );
    assert_eq!(session.get(&path).await.body["data"], "se");
}
