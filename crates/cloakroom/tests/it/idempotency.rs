//! The same request twice: done once, and answered the same way.

use std::time::{Duration, Instant};

use cloakroom::access::{ALL_PERMISSIONS, ApplicationKind, Permission, Tenant, Transform};
use cloakroom::members::{self, Email, NewMember, Role};
use cloakroom::{ids, jobs};
use http::{Method, StatusCode};
use serde_json::{Value, json};
use tokio_postgres::Client as Database;

use crate::support::{Answer, Client, Tap, TestDatabase, TestVault, everything, grants};

const CARD: &str = "4242424242424242";
/// Records of what was changed, and of what was read.
const CHANGES: &str = "log where operation <> 2";
const READS: &str = "log where operation = 2";

fn note(text: &str) -> Value {
    json!({"type": "token", "data": text})
}

/// Asks with an idempotency key.
async fn ask(client: &Client, method: &Method, path: &str, key: &str, body: &Value) -> Answer {
    let media = match *method == Method::PATCH {
        true => "application/merge-patch+json",
        false => "application/json",
    };
    let request = client
        .request(method.clone(), path)
        .header("bt-idempotency-key", key)
        .header("content-type", media);
    client.send(request.body(body.to_string())).await
}

async fn post(client: &Client, path: &str, key: &str, body: Value) -> Answer {
    ask(client, &Method::POST, path, key, &body).await
}

/// What a client sees of an answer that is given again.
fn seen(answer: &Answer) -> (StatusCode, &str, &str, &[u8]) {
    (
        answer.status,
        answer.header("location"),
        answer.header("content-type"),
        &answer.bytes,
    )
}

async fn count(database: &Database, what: &str) -> i64 {
    let sql = format!("select count(*) from {what}");
    database.query_one(&sql, &[]).await.unwrap().get(0)
}

/// Waits until somebody waits for a lock.
async fn until_blocked(database: &Database, blocked: i64) {
    let waiting =
        "pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
    let deadline = Instant::now() + Duration::from_secs(10);
    while count(database, waiting).await < blocked {
        assert!(Instant::now() < deadline, "nobody waits");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A vault with a tenant, and clients of every kind that may do everything.
struct Stage {
    vault: TestVault,
    tenant: Tenant,
    private: Client,
    public: Client,
    management: Client,
    database: Database,
}

impl Stage {
    async fn start() -> Self {
        let vault = TestVault::start().await;
        let tenant = vault.tenant().await;
        let mut held = everything(Transform::Reveal);
        held.permissions = [Permission::TokenIntentCreate, Permission::TokenUse]
            .into_iter()
            .collect();
        let private = vault.client(&tenant, held).await;
        let public = grants(&[Permission::TokenCreate]);
        let public = vault.holder(&tenant, ApplicationKind::Public, public).await;
        let all = ALL_PERMISSIONS.iter().copied();
        let kind = ApplicationKind::Management;
        let fitting: Vec<Permission> = all.filter(|one| one.fits(kind)).collect();
        let management = vault.holder(&tenant, kind, grants(&fitting)).await;
        let database = vault.database.connect().await;
        Self {
            public: vault.client_with(Some(&public.key)),
            management: vault.client_with(Some(&management.key)),
            private,
            database,
            vault,
            tenant,
        }
    }

    /// Every request about tokens that changes something, with a body that works.
    async fn token_writes(&self) -> Vec<(&Client, Write)> {
        let token = self.private.post("/tokens", note("before")).await.id();
        let session = self.public.post("/sessions", json!({})).await;
        let nonce = &session.body["nonce"];
        let card = json!({"type": "card", "data": {"number": CARD}});
        let writes = [
            ("POST /tokens".to_owned(), card.clone()),
            (format!("PATCH /tokens/{token}"), json!({"data": "after"})),
            (
                "POST /tokenize".to_owned(),
                json!({"a": "1", "b": [2, card]}),
            ),
            ("POST /token-intents".to_owned(), card),
            (
                "POST /sessions/authorize".to_owned(),
                json!({"nonce": nonce, "permissions": ["token:read"]}),
            ),
        ];
        let session = ("POST /sessions".to_owned(), json!({}));
        let writes = writes.map(|write| (&self.private, write));
        writes
            .into_iter()
            .chain([(&self.public, session)])
            .collect()
    }

    /// Every request that manages the tenant.
    async fn management_writes(&self) -> Vec<(&Client, Write)> {
        let manager = &self.management;
        let new = json!({"name": "A", "type": "private", "permissions": ["token:read"]});
        let application = manager.post("/applications", new.clone()).await.id();
        let invitation = json!({"email": "ada@example.com"});
        let invitations = "/tenants/self/invitations";
        let invited = manager.post(invitations, invitation.clone()).await.id();
        let changed = json!({"name": "B", "permissions": ["token:create"]});
        let writes = [
            ("POST /applications".to_owned(), new),
            (format!("PUT /applications/{application}"), changed),
            (format!("POST /applications/{application}/keys"), json!({})),
            ("PUT /tenants/self".to_owned(), json!({"name": "T2"})),
            (
                "PUT /tenants/self/quotas".to_owned(),
                json!({"tokenize_limit": 6}),
            ),
            (
                "PUT /tenants/self/security-contact".to_owned(),
                invitation.clone(),
            ),
            (format!("POST {invitations}"), invitation),
            (format!("POST {invitations}/{invited}/resend"), json!({})),
            ("POST /keys".to_owned(), json!({})),
        ];
        writes.map(|write| (manager, write)).into()
    }
}

/// Method and path, and a body.
type Write = (String, Value);

/// Covers 21.1.
///
/// I03: in the same commit as what it tells of, and byte for byte the same afterwards.
#[tokio::test]
async fn every_change_is_made_once_and_its_answer_commits_with_it() {
    let stage = Stage::start().await;
    let mut writes = stage.token_writes().await;
    writes.extend(stage.management_writes().await);
    for (client, (door, body)) in writes {
        let (method, path) = door.split_once(' ').unwrap();
        let method: Method = method.parse().unwrap();
        let records = count(&stage.database, CHANGES).await;

        let first = ask(client, &method, path, "once", &body).await;
        let after = count(&stage.database, CHANGES).await;
        let reads = count(&stage.database, READS).await;
        let again = ask(client, &method, path, "once", &body).await;

        assert!(first.status.is_success(), "{door}: {}", first.body);
        assert_eq!(seen(&first), seen(&again), "{door}");
        assert!(records < after, "{door} recorded nothing");
        assert_eq!(count(&stage.database, CHANGES).await, after, "{door}");
        // Whoever is shown something again has read it.
        assert!(reads < count(&stage.database, READS).await, "{door}");
    }
    let apart = "reply where not exists (select from log where log.xmin::text = reply.xmin::text)";
    assert_eq!(count(&stage.database, apart).await, 0);
    assert_eq!(count(&stage.database, "reply").await, 15);
    assert_eq!(count(&stage.database, "reply_lease").await, 0);
    assert_eq!(
        stage.vault.vault.config.idempotency.lease,
        Duration::from_secs(60)
    );
}

/// Members are made by commands only.
#[tokio::test]
async fn members_are_changed_once() {
    let stage = Stage::start().await;
    let mut ids = Vec::new();
    for (email, role) in [
        ("o@example.com", Role::Owner),
        ("m@example.com", Role::Admin),
    ] {
        let new = NewMember {
            email: Email::parse(email).unwrap(),
            role,
            first_name: None,
            last_name: None,
        };
        let added = members::add(&stage.vault.vault, stage.tenant.id, new).await;
        ids.push(added.unwrap().id);
    }
    let writes = [
        (
            format!("/tenants/self/members/{}", ids[1]),
            json!({"role": "READ_ONLY"}),
        ),
        ("/tenants/self/owner".into(), json!({"member_id": ids[1]})),
    ];
    for (path, body) in writes {
        let first = ask(&stage.management, &Method::PUT, &path, "k", &body).await;
        let again = ask(&stage.management, &Method::PUT, &path, "k", &body).await;
        assert_eq!(first.status, StatusCode::OK, "{path} {}", first.body);
        assert_eq!(seen(&first), seen(&again), "{path}");
    }
    let apart = "reply where not exists (select from log where log.xmin::text = reply.xmin::text)";
    assert_eq!(
        (
            count(&stage.database, "reply").await,
            count(&stage.database, apart).await
        ),
        (2, 0)
    );
}

#[tokio::test]
async fn what_changes_nothing_is_answered_the_same_way_too() {
    let stage = Stage::start().await;
    let account =
        json!({"type": "bank", "data": {"routing_number": "021000021", "account_number": "00001"}});
    let token = stage.private.post("/tokens", account).await.id();
    let body = json!({"token_id": token, "country_code": "US"});
    let path = "/enrichments/bank-account-verify";
    let equal = json!({"type": "token", "data": "equal", "deduplicate_token": true});
    stage.private.post("/tokens", equal.clone()).await;

    let first = post(&stage.private, path, "k", body.clone()).await;
    let again = post(&stage.private, path, "k", body).await;
    let met = post(&stage.private, "/tokens", "k", equal.clone()).await;
    let met_again = post(&stage.private, "/tokens", "k", equal).await;

    assert_eq!(first.status, StatusCode::OK, "{}", first.body);
    assert_eq!(seen(&first), seen(&again));
    assert_eq!(met.body["_extras"]["deduplicated"], true);
    assert_eq!(seen(&met), seen(&met_again));
    assert_eq!(count(&stage.database, "reply").await, 2);
}

/// Covers 21.2.
///
/// The body is not compared, unless the operator wants that.
#[tokio::test]
async fn another_body_under_the_same_key_gets_the_first_answer() {
    let lax = Stage::start().await;
    let strict = TestVault::start_with(TestDatabase::create().await, |config| {
        config.idempotency.refuse_other_bodies = true;
    })
    .await;
    let strict = strict.revealing_client().await;

    let first = post(&lax.private, "/tokens", "k", note("a")).await;
    let other = post(&lax.private, "/tokens", "k", note("b")).await;
    let garbage = lax.private.request(Method::POST, "/tokens");
    let garbage = garbage
        .header("bt-idempotency-key", "k")
        .header("content-type", "application/json");
    let garbage = lax.private.send(garbage.body("{")).await;
    post(&strict, "/tokens", "k", note("a")).await;
    let refused = post(&strict, "/tokens", "k", note("b")).await;
    let same = post(&strict, "/tokens", "k", note("a")).await;

    assert_eq!(seen(&first), seen(&other));
    assert_eq!(seen(&first), seen(&garbage));
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(same.status, StatusCode::CREATED);
}

/// Covers 21.3.
#[tokio::test]
async fn a_failure_leaves_the_key_free() {
    let stage = Stage::start().await;
    let wrong = json!({"type": "card", "data": {"number": "4242424242424241"}});
    let nobody = format!("/tokens/{}", ids::new_uuid());

    let refused = post(&stage.private, "/tokens", "k", wrong).await;
    let denied = post(&stage.management, "/tokens", "k", note("a")).await;
    let missing = ask(
        &stage.private,
        &Method::PATCH,
        &nobody,
        "k",
        &json!({"data": "b"}),
    )
    .await;
    let leases = count(&stage.database, "reply_lease").await;
    let done = post(&stage.private, "/tokens", "k", note("a")).await;

    let statuses = [refused.status, denied.status, missing.status, done.status];
    assert_eq!(statuses.map(|status| status.as_u16()), [400, 403, 404, 201]);
    assert_eq!(leases, 0);
    assert_eq!(count(&stage.database, "reply").await, 1);
}

/// Covers 21.5.
#[tokio::test]
async fn keys_do_not_count_where_nothing_is_changed() {
    let stage = Stage::start().await;
    let new = json!({"type": "token", "data": "a", "metadata": {"a": "b"}});
    let token = stage.private.post("/tokens", new).await.id();
    let path = format!("/tokens/{token}");
    let search = json!({"query": "metadata.a:b"});
    let nothing = json!({"query": "metadata.a:c"});
    let mut found = Vec::new();
    for path in ["/tokens/search", "/v2/tokens/search"] {
        for query in [&search, &nothing] {
            let answer = post(&stage.private, path, "k", query.clone()).await;
            found.push(answer.items().len());
        }
    }
    let detokenize = |text: &str| json!({"text": format!("{text} {{{{ {token} }}}}")});
    let one = post(&stage.private, "/detokenize", "k", detokenize("one")).await;
    let two = post(&stage.private, "/detokenize", "k", detokenize("two")).await;
    let read = ask(&stage.private, &Method::GET, &path, "k", &json!({})).await;
    let gone = ask(&stage.private, &Method::DELETE, &path, "k", &json!({})).await;
    let twice = ask(&stage.private, &Method::DELETE, &path, "k", &json!({})).await;
    let unread = ask(&stage.private, &Method::GET, &path, "k", &json!({})).await;

    assert_eq!(found, [1, 0, 1, 0]);
    assert_eq!(
        (&one.body["text"], &two.body["text"]),
        (&json!("one a"), &json!("two a"))
    );
    let statuses = [read, gone, twice, unread].map(|answer| answer.status.as_u16());
    assert_eq!(statuses, [200, 204, 404, 404]);
    assert_eq!(count(&stage.database, "reply").await, 0);
}

/// Covers 21.6.
///
/// T16: nobody else's key, and no other request's.
#[tokio::test]
async fn a_key_belongs_to_one_application_one_method_and_one_path() {
    let stage = Stage::start().await;
    let tenant = stage.vault.tenant().await;
    let foreign = stage
        .vault
        .client(&tenant, everything(Transform::Reveal))
        .await;
    let session = stage.public.post("/sessions", json!({})).await;
    let rule = json!({"description": "All", "priority": 1, "container": "/", "transform": "reveal",
        "permissions": ["token:create"]});
    let granted = json!({"nonce": session.body["nonce"], "rules": [rule]});
    stage.private.post("/sessions/authorize", granted).await;
    let session = stage
        .private
        .with_key(session.body["session_key"].as_str().unwrap());

    let mut made = Vec::new();
    for client in [&stage.private, &stage.public, &foreign, &session] {
        let answer = post(client, "/tokens", "k", note("a")).await;
        assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.body);
        made.push(answer.id());
    }
    let tokenized = post(&stage.private, "/tokenize", "k", json!("a")).await;
    made.push(tokenized.body.as_str().unwrap().to_owned());
    let queried = post(&stage.private, "/tokens?x=1", "k", note("a"))
        .await
        .id();
    let slashed = post(&stage.private, "/tokens/", "k", note("a")).await.id();
    let empty = post(&stage.private, "/tokens", "", note("a")).await.id();

    assert_eq!((&queried, &slashed), (&made[0], &made[0]));
    made.push(empty);
    made.sort();
    made.dedup();
    assert_eq!(made.len(), 6, "{made:?}");
}

/// A second key of the same application is the same application.
#[tokio::test]
async fn another_key_of_the_application_gets_the_same_answer() {
    let stage = Stage::start().await;
    let new = json!({"name": "A", "type": "private", "permissions": ["token:create"]});
    let made = stage.management.post("/applications", new).await;
    let path = format!("/applications/{}/keys", made.id());
    let further = stage.management.post(&path, json!({})).await;
    let [one, two] = [&made, &further]
        .map(|answer| stage.private.with_key(answer.body["key"].as_str().unwrap()));

    let first = post(&one, "/tokens", "k", note("a")).await;
    let again = post(&two, "/tokens", "k", note("a")).await;

    assert_eq!(first.status, StatusCode::CREATED);
    assert_eq!(seen(&first), seen(&again));
}

/// Covers 21.7.
#[tokio::test]
async fn keys_that_cannot_be_are_refused() {
    let stage = Stage::start().await;
    let long = "k".repeat(256);
    let refused = post(&stage.private, "/tokens", &long, note("a")).await;
    let twice = stage.private.request(Method::POST, "/tokens");
    let twice = twice
        .header("bt-idempotency-key", "a")
        .header("bt-idempotency-key", "b");
    let twice = twice
        .header("content-type", "application/json")
        .body(note("a").to_string());
    let twice = stage.private.send(twice).await;

    for answer in [refused, twice] {
        assert_eq!(answer.status, StatusCode::BAD_REQUEST);
        assert_eq!(answer.refused(), ["bt-idempotency-key"]);
    }
    let fits = post(&stage.private, "/tokens", &long[1..], note("a")).await;
    assert_eq!(fits.status, StatusCode::CREATED);
}

/// Covers 5.24, 21.4.
#[tokio::test]
async fn while_the_first_is_running_the_second_is_told_so() {
    let stage = Stage::start().await;
    let blocker = stage.vault.database.connect().await;
    blocker
        .batch_execute("begin; lock table token in exclusive mode")
        .await
        .unwrap();
    let second = stage.vault.second_node().await;

    let first = post(&stage.private, "/tokens", "k", note("a"));
    let others = async {
        until_blocked(&stage.database, 1).await;
        let here = post(&stage.private, "/tokens", "k", note("a")).await;
        let there = post(
            &stage.private.at(&second.base_url),
            "/tokens",
            "k",
            note("a"),
        )
        .await;
        blocker.batch_execute("commit").await.unwrap();
        [here, there]
    };
    let (first, others) = tokio::join!(first, others);
    let replayed = post(
        &stage.private.at(&second.base_url),
        "/tokens",
        "k",
        note("a"),
    )
    .await;

    assert_eq!(first.status, StatusCode::CREATED, "{}", first.body);
    for other in others {
        assert_eq!(other.status, StatusCode::CONFLICT);
        assert_eq!(other.header("retry-after"), "1");
    }
    // The address is the one under which the first was asked for.
    assert_eq!(seen(&first), seen(&replayed));
    assert_eq!(count(&stage.database, "token").await, 1);
}

/// Covers 21.8.
#[tokio::test]
async fn an_answer_is_forgotten_after_a_day() {
    let stage = Stage::start().await;
    let node = ids::new_uuid();
    let first = post(&stage.private, "/tokens", "k", note("a")).await.id();
    let age = async |interval: &str| {
        let sql = format!("update reply set until = until - interval '{interval}'");
        stage.database.batch_execute(&sql).await.unwrap();
    };
    age("23 hours 59 minutes").await;
    let still = post(&stage.private, "/tokens", "k", note("a")).await.id();
    jobs::sweep_once(&stage.vault.vault, node).await.unwrap();
    let kept = count(&stage.database, "reply").await;
    age("1 minute").await;
    let anew = post(&stage.private, "/tokens", "k", note("a")).await.id();
    let again = post(&stage.private, "/tokens", "k", note("a")).await.id();
    age("24 hours").await;
    jobs::sweep_once(&stage.vault.vault, node).await.unwrap();

    assert_eq!((&still, kept), (&first, 1));
    assert_ne!(anew, first);
    assert_eq!(again, anew);
    assert_eq!(count(&stage.database, "reply").await, 0);
}

/// A node that stalls for longer than its lease: whoever took over is right, and the first does nothing.
#[tokio::test]
async fn a_lease_that_was_lost_stops_what_was_still_on_its_way() {
    let stage = Stage::start().await;
    let second = stage.vault.second_node().await;
    let blocker = stage.vault.database.connect().await;
    blocker
        .batch_execute("begin; lock table token in exclusive mode")
        .await
        .unwrap();

    let stalled = post(&stage.private, "/tokens", "k", note("a"));
    let taken_over = async {
        until_blocked(&stage.database, 1).await;
        let end = "update reply_lease set until = now() - interval '1 second'";
        stage.database.batch_execute(end).await.unwrap();
        let there = stage.private.at(&second.base_url);
        let takeover = post(&there, "/tokens", "k", note("a"));
        let unblocked = async {
            until_blocked(&stage.database, 2).await;
            blocker.batch_execute("commit").await.unwrap();
        };
        tokio::join!(takeover, unblocked).0
    };
    let (stalled, taken_over) = tokio::join!(stalled, taken_over);

    assert_eq!(
        taken_over.status,
        StatusCode::CREATED,
        "{}",
        taken_over.body
    );
    assert_eq!(count(&stage.database, "token").await, 1);
    // It may have been told before or after the other was done.
    match stalled.status {
        StatusCode::CONFLICT => {}
        status => assert_eq!(
            (status, &stalled.bytes),
            (StatusCode::CREATED, &taken_over.bytes)
        ),
    }
    let again = post(&stage.private, "/tokens", "k", note("a")).await;
    assert_eq!(again.bytes, taken_over.bytes);
}

/// Somebody else holds the lease by now and is not done: what was sent under the old one does nothing.
#[tokio::test]
async fn what_was_sent_under_a_lost_lease_does_not_count_under_the_next() {
    let stage = Stage::start().await;
    let blocker = stage.vault.database.connect().await;
    blocker
        .batch_execute("begin; lock table token in exclusive mode")
        .await
        .unwrap();
    let taken_over = async {
        until_blocked(&stage.database, 1).await;
        let take = "update reply_lease set fence = fence + 1";
        stage.database.batch_execute(take).await.unwrap();
        blocker.batch_execute("commit").await.unwrap();
    };
    let (stalled, ()) = tokio::join!(post(&stage.private, "/tokens", "k", note("a")), taken_over);

    assert_eq!(stalled.status, StatusCode::CONFLICT, "{}", stalled.body);
    assert_eq!(count(&stage.database, "token").await, 0);
    assert_eq!(count(&stage.database, "reply_lease").await, 1);
}

/// Covers 21.9.
///
/// What a dead node left holds others up until its lease ends, and no longer.
#[tokio::test]
async fn a_dead_node_blocks_nobody_longer_than_its_lease() {
    let database = TestDatabase::create().await;
    let vault = TestVault::start_with(database, |config| {
        config.idempotency.lease = Duration::from_secs(2);
    })
    .await;
    let client = vault.revealing_client().await;
    let database = vault.database.connect().await;
    let blocker = vault.database.connect().await;
    // The lease of a request that will never end: the row that it waits for is never let go.
    blocker
        .batch_execute("begin; lock table token in exclusive mode")
        .await
        .unwrap();
    let abandoned = tokio::time::timeout(
        Duration::from_millis(300),
        post(&client, "/tokens", "k", note("a")),
    );
    let held = async {
        until_blocked(&database, 1).await;
        post(&client, "/tokens", "k", note("a")).await
    };
    let (abandoned, held) = tokio::join!(abandoned, held);
    let dead = "select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'";
    database
        .batch_execute("update reply_lease set fence = fence + 1")
        .await
        .unwrap();
    database.batch_execute(dead).await.unwrap();
    blocker.batch_execute("commit").await.unwrap();

    let mut refused = 0;
    let done = loop {
        let answer = post(&client, "/tokens", "k", note("a")).await;
        if answer.status != StatusCode::CONFLICT {
            break answer;
        }
        refused += 1;
        assert!(refused <= 25, "{refused}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    };

    assert!(abandoned.is_err());
    assert_eq!(held.status, StatusCode::CONFLICT);
    assert_eq!(done.status, StatusCode::CREATED);
    assert!(refused > 0);
    assert_eq!(count(&database, "token").await, 1);
}

/// A client that gave up finds the answer when it tries again.
#[tokio::test]
async fn a_request_is_finished_although_its_client_left() {
    let stage = Stage::start().await;
    let blocker = stage.vault.database.connect().await;
    blocker
        .batch_execute("begin; lock table token in exclusive mode")
        .await
        .unwrap();
    let patience = Duration::from_millis(300);
    let left =
        tokio::time::timeout(patience, post(&stage.private, "/tokens", "k", note("a"))).await;
    assert!(left.is_err());
    blocker.batch_execute("commit").await.unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    while count(&stage.database, "token").await == 0 {
        assert!(Instant::now() < deadline, "it was given up with its client");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }

    let again = post(&stage.private, "/tokens", "k", note("a")).await;

    assert_eq!(again.status, StatusCode::CREATED, "{}", again.body);
    assert_eq!(count(&stage.database, "token").await, 1);
}

/// With a key, an unknown outcome becomes a certain one.
#[tokio::test]
async fn after_a_lost_connection_it_is_known_that_nothing_happened() {
    let vault = TestVault::start_with(TestDatabase::create().await, |config| {
        config.database.max_connections = 1;
    })
    .await;
    let client = vault.revealing_client().await;
    // What is cut off while it is prepared has certainly not happened, so it is prepared before.
    post(&client, "/tokens", "before", note("a")).await;
    let database = vault.database.connect().await;
    let blocker = vault.database.connect().await;
    blocker
        .batch_execute("begin; lock table token in exclusive mode")
        .await
        .unwrap();
    let cut = async {
        until_blocked(&database, 1).await;
        let kill = "select pg_terminate_backend(pid) from pg_stat_activity
            where datname = current_database() and wait_event_type = 'Lock'";
        database.batch_execute(kill).await.unwrap();
    };
    let (lost, ()) = tokio::join!(post(&client, "/tokens", "k", note("a")), cut);
    blocker.batch_execute("commit").await.unwrap();
    let again = post(&client, "/tokens", "k", note("a")).await;

    assert_eq!(lost.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(lost.body["code"], "database_unavailable");
    assert_eq!(again.status, StatusCode::CREATED);
    assert_eq!(count(&database, "token").await, 2);
}

#[tokio::test]
async fn kept_answers_are_sealed_and_bound() {
    let stage = Stage::start().await;
    let body = json!({"type": "card", "data": {"number": CARD}});
    let first = post(&stage.private, "/tokens", "k", body.clone()).await;
    post(&stage.private, "/tokens", "other", body.clone()).await;
    assert!(first.body["data"]["number"] == CARD, "{}", first.body);

    let legible = "reply where position('4242'::bytea in sealed) > 0 or position('number'::bytea in sealed) > 0";
    let legible = count(&stage.database, legible).await;
    let mut answers = Vec::new();
    for change in [
        "update reply set sealed = (select sealed from reply r where r.scope <> reply.scope)",
        "update reply set status = 200",
        "update reply set request_mac = sha256(request_mac)",
        "update reply set sealed = set_byte(sealed, 60, get_byte(sealed, 60) # 1)",
    ] {
        let keep = "create table if not exists before as select * from reply;";
        stage
            .database
            .batch_execute(&format!("{keep} {change}"))
            .await
            .unwrap();
        answers.push(post(&stage.private, "/tokens", "k", body.clone()).await);
        let restore = "truncate reply; insert into reply select * from before";
        stage.database.batch_execute(restore).await.unwrap();
    }
    let restored = post(&stage.private, "/tokens", "k", body).await;

    assert_eq!(legible, 0);
    for answer in answers {
        assert_eq!(answer.status, StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(answer.body["code"], "integrity_error");
    }
    assert_eq!(seen(&restored), seen(&first));
}

/// Covers 21.10.
///
/// Nothing outlives a security code's time, so it is not kept with the answer at all.
#[tokio::test]
async fn a_security_code_is_not_given_again() {
    let stage = Stage::start().await;
    let card = json!({"type": "card", "data": {"number": CARD, "cvc": "737"}});
    let first = post(&stage.private, "/tokens", "k", card.clone()).await;
    let again = post(&stage.private, "/tokens", "k", card.clone()).await;
    let path = format!("/tokens/{}", first.id());
    let patch = json!({"metadata": {"a": "b"}});
    let patched = ask(&stage.private, &Method::PATCH, &path, "k", &patch).await;
    let patched_again = ask(&stage.private, &Method::PATCH, &path, "k", &patch).await;
    let document = json!([card]);
    let tokenized = post(&stage.private, "/tokenize", "k", document.clone()).await;
    let tokenized_again = post(&stage.private, "/tokenize", "k", document).await;

    for (mut shown, kept) in [
        (first, again),
        (patched, patched_again),
        (tokenized, tokenized_again),
    ] {
        let data = match shown.body.is_array() {
            true => &mut shown.body[0]["data"],
            false => &mut shown.body["data"],
        };
        assert_eq!(data["cvc"], "737");
        data.as_object_mut().unwrap().remove("cvc");
        assert_eq!(shown.body, kept.body);
    }
}

/// I07: two requests that differ in nothing but the code leave the same digest.
#[tokio::test]
async fn no_digest_of_a_request_depends_on_a_security_code() {
    let stage = Stage::start().await;
    let mut digests = Vec::new();
    for code in ["737", "738"] {
        let card = |name: &str| json!({"type": "card", "data": {"number": CARD, name: code}});
        let escaped = card("cvc").to_string().replace("cvc", "\\u0063vc");
        let bodies = [
            card("cvc").to_string(),
            json!([card("cvc")]).to_string(),
            escaped,
        ];
        for (body, path) in bodies
            .iter()
            .zip(["/tokens", "/tokenize", "/token-intents"])
        {
            let request = stage.private.request(Method::POST, path);
            let request = request
                .header("bt-idempotency-key", "k")
                .header("content-type", "application/json");
            let made = stage.private.send(request.body(body.clone())).await;
            assert!(made.status.is_success(), "{}", made.body);
        }
        let sql = "with gone as (delete from reply returning *)
            select encode(request_mac, 'hex') from gone order by scope";
        let rows = stage.database.query(sql, &[]).await.unwrap();
        digests.push(rows.iter().map(|row| row.get(0)).collect::<Vec<String>>());
    }
    assert_eq!(digests[0].len(), 3);
    assert_eq!(digests[0], digests[1]);
}

/// I05: what a token showed is not given again once it has expired.
#[tokio::test]
async fn an_answer_ends_with_the_token_that_it_shows() {
    let stage = Stage::start().await;
    let sql = "select (now() + interval '2 seconds')::text";
    let end: String = stage.database.query_one(sql, &[]).await.unwrap().get(0);
    let end = end.replace(' ', "T").replace("+00", "+00:00");
    let body = json!({"type": "token", "data": "brief", "expires_at": end});
    let first = post(&stage.private, "/tokens", "k", body.clone()).await;
    assert_eq!(first.status, StatusCode::CREATED, "{}", first.body);
    let again = post(&stage.private, "/tokens", "k", body.clone()).await;
    let over = "(select from pg_sleep(2)) one";
    count(&stage.database, over).await;

    let late = post(&stage.private, "/tokens", "k", body).await;

    assert_eq!(seen(&first), seen(&again));
    assert_eq!(late.status, StatusCode::BAD_REQUEST, "{}", late.body);
}

/// Not every handler looks at the body, and a key counts for all of them.
#[tokio::test]
async fn a_body_that_cannot_be_read_does_not_make_a_key_count_for_nothing() {
    let stage = Stage::start().await;
    let new = json!({"name": "A", "type": "private", "permissions": ["token:read"]});
    let made = stage.management.post("/applications", new).await.id();
    let path = format!("/applications/{made}/keys");
    let mut answers = Vec::new();
    for _ in 0..2 {
        let request = stage.management.request(Method::POST, &path);
        let request = request
            .header("bt-idempotency-key", "k")
            .header("content-encoding", "gzip");
        answers.push(stage.management.send(request.body("x")).await);
    }
    assert_eq!(
        answers[0].status,
        StatusCode::CREATED,
        "{}",
        answers[0].body
    );
    assert_eq!(seen(&answers[0]), seen(&answers[1]));
}

/// Without a key nothing is added, and with one a single round trip.
#[tokio::test]
async fn a_key_costs_one_round_trip_and_its_absence_none() {
    let database = TestDatabase::create().await;
    let tap = Tap::before(&database.url).await;
    let through = tap.url.clone();
    let vault = TestVault::start_with(database, |config| {
        config.database.url = Some(cloakroom::config::Secret::new(&through));
        config.database.max_connections = 1;
    })
    .await;
    let client = vault.revealing_client().await;
    let token = client.post("/tokens", note("a")).await.id();
    let path = format!("/tokens/{token}");
    // Statements are prepared when they are first used.
    for round in 0..2 {
        for key in ["warm".to_owned(), format!("warm {round}")] {
            post(&client, "/tokens", &key, note("a")).await;
        }
        client.patch(&path, json!({"data": "b"})).await;
    }
    let trips = async |asking: std::pin::Pin<Box<dyn Future<Output = Answer> + '_>>| {
        let before = tap.trips();
        let answer = asking.await;
        assert!(answer.status.is_success(), "{}", answer.body);
        tap.trips() - before
    };

    let create = trips(Box::pin(client.post("/tokens", note("a")))).await;
    let create_once = trips(Box::pin(post(&client, "/tokens", "k", note("a")))).await;
    let replay = trips(Box::pin(post(&client, "/tokens", "k", note("a")))).await;
    let patch = trips(Box::pin(client.patch(&path, json!({"data": "c"})))).await;
    let body = json!({"data": "d"});
    let patch_once = trips(Box::pin(ask(&client, &Method::PATCH, &path, "k", &body))).await;

    // The replay is recorded before it leaves.
    assert_eq!((create, create_once, replay), (1, 2, 2));
    assert_eq!(patch_once, patch + 1);
}
