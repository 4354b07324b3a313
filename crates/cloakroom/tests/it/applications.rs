//! Applications and their keys: made, changed and deleted over HTTP.

use std::time::{Duration, Instant};

use cloakroom::access::{ALL_PERMISSIONS, ApplicationKind, Permission, Tenant, Transform};
use cloakroom::doors::{DOORS, Door};
use cloakroom::{ids, jobs};
use http::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::{Answer, Client, TestVault, everything, grants};

const NOWHERE: &str = "c06d0789-0a38-40be-b7cc-c28a718f76f1";

/// Someone who may do everything with the applications of a tenant.
async fn manager(vault: &TestVault, tenant: &Tenant) -> Client {
    use Permission::{ApplicationCreate, ApplicationDelete, ApplicationRead, ApplicationUpdate};
    let all = [
        ApplicationCreate,
        ApplicationRead,
        ApplicationUpdate,
        ApplicationDelete,
        Permission::LogRead,
    ];
    let management = ApplicationKind::Management;
    let holder = vault.holder(tenant, management, grants(&all)).await;
    vault.client_with(Some(&holder.key))
}

fn creator() -> Value {
    json!({"name": "Checkout", "type": "private", "permissions": ["token:create"]})
}

/// The creator, with some members changed.
fn changed(changes: Value) -> Value {
    let mut new = creator();
    for (name, value) in changes.as_object().unwrap() {
        new[name] = value.clone();
    }
    new
}

fn rule(priority: u32, container: &str, transform: &str, permissions: &[&str]) -> Value {
    json!({"description": "A rule", "priority": priority, "container": container,
        "transform": transform, "permissions": permissions})
}

/// An application that a manager made.
struct Made {
    path: String,
    id: String,
    key: String,
    key_id: String,
}

async fn make(manager: &Client, new: Value) -> Made {
    let created = manager.post("/applications", new).await;
    assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    Made {
        path: format!("/applications/{}", created.id()),
        id: created.id(),
        key: text(&created.body["key"]),
        key_id: text(&created.body["keys"][0]["id"]),
    }
}

/// How a token is received that the holder of a key sends.
async fn create_status(vault: &TestVault, key: &str) -> StatusCode {
    let client = vault.client_with(Some(key));
    let new = json!({"type": "token", "data": 1});
    client.post("/tokens", new).await.status
}

fn ids_of(listed: &[Value]) -> Vec<&str> {
    listed
        .iter()
        .map(|item| item["id"].as_str().unwrap())
        .collect()
}

/// Covers 13.2, 13.3, 13.4.
#[tokio::test]
async fn an_application_is_made_with_a_key_that_is_shown_once() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let manager = manager(&vault, &tenant).await;
    let own = manager.get("/applications/key").await.id();

    let mut new = creator();
    new["rules"] = json!([rule(1, "/PCI/", "mask", &["token:read", "token:search"])]);
    new["unknown"] = json!("ignored");
    new["expires_at"] = json!(null);
    let created = manager.post("/applications", new).await;

    assert_eq!(created.status, StatusCode::CREATED);
    let id = created.id();
    let location = format!("{}/applications/{id}", vault.base_url);
    assert_eq!(created.header("location"), location);
    let key = created.body["key"].as_str().unwrap().to_owned();
    let (start, random) = key.split_at("key_test_us_pvt_".len());
    assert_eq!(start, "key_test_us_pvt_");
    assert!(
        random.len() == 55 && random.as_bytes()[22] == b'.',
        "{random}"
    );
    assert_eq!(created.body["keys"].as_array().unwrap().len(), 1);
    assert_eq!(created.body["keys"][0]["key"], key);
    assert_eq!(created.body["keys"][0]["created_by"], own);
    assert_eq!(created.body["created_by"], own);
    for id in [&id, created.body["keys"][0]["id"].as_str().unwrap()] {
        assert_eq!(id.parse::<uuid::Uuid>().unwrap().get_version_num(), 4);
    }
    insta::assert_snapshot!(
        created.told(&["id", "tenant_id", "key", "keys", "created_by", "created_at"]), @r#"
    {
      "id": "[id]",
      "tenant_id": "[tenant_id]",
      "name": "Checkout",
      "key": "[key]",
      "keys": "[keys]",
      "type": "private",
      "permissions": [
        "token:create"
      ],
      "rules": [
        {
          "description": "A rule",
          "priority": 1,
          "container": "/pci/",
          "transform": "mask",
          "permissions": [
            "token:read",
            "token:search"
          ]
        }
      ],
      "created_by": "[created_by]",
      "created_at": "[created_at]"
    }
    "#);
    assert_eq!(create_status(&vault, &key).await, StatusCode::CREATED);
}

/// Covers 13.3.
#[tokio::test]
async fn no_later_answer_shows_the_key_and_nobody_keeps_it() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let manager = manager(&vault, &tenant).await;
    let created = manager.post("/applications", creator()).await;
    let (id, key) = (
        created.id(),
        created.body["key"].as_str().unwrap().to_owned(),
    );
    let random = key.rsplit('_').next().unwrap();

    let mut expected = created.body.clone();
    expected.as_object_mut().unwrap().shift_remove("key");
    let first = expected["keys"][0].as_object_mut().unwrap();
    first.shift_remove("key");
    assert_eq!(
        first.keys().collect::<Vec<_>>(),
        ["id", "tenant_id", "version", "created_by", "created_at"]
    );
    assert_eq!(first["version"], "2");
    assert_eq!(first["tenant_id"], tenant.id.uuid.to_string());
    let path = format!("/applications/{id}");
    let itself = vault.client_with(Some(&key));
    assert_eq!(manager.get(&path).await.body, expected);
    assert_eq!(itself.get("/applications/key").await.body, expected);
    let listed = manager.get("/applications").await;
    assert_eq!(listed.items()[0], expected);
    let kept = vault.database.connect().await;
    let kept = kept
        .query("select application_key::text from application_key", &[])
        .await
        .unwrap();
    let rows: String = kept.iter().map(|row| row.get::<_, String>(0)).collect();
    assert!(!rows.contains(&random[10..22]) && !rows.contains(&random[23..]));
}

/// Covers 13.3, 13.4.
#[tokio::test]
async fn keys_say_what_they_are_for_and_are_made_only_when_wanted() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let manager = manager(&vault, &tenant).await;

    let kinds = [
        ("private", "token:read", "key_test_us_pvt_", 55),
        ("public", "token:create", "key_test_us_pub_", 22),
        ("management", "log:read", "key_test_us_mgt_", 55),
    ];
    for (kind, permission, start, length) in kinds {
        let new = changed(json!({"type": kind, "permissions": [permission], "create_key": true}));
        let made = make(&manager, new).await;
        let random = made.key.strip_prefix(start).expect(kind);
        assert_eq!(random.len(), length, "{kind}");
        let itself = vault.client_with(Some(&made.key));
        assert_eq!(itself.get("/applications/key").await.body["type"], kind);
    }
    let keyless = changed(json!({"create_key": false}));
    let keyless = manager.post("/applications", keyless).await;
    assert_eq!(keyless.status, StatusCode::CREATED);
    assert_eq!(keyless.body["keys"], json!([]));
    assert_eq!(keyless.body.get("key"), None);
    let path = format!("/applications/{}/keys", keyless.id());
    assert_eq!(manager.get(&path).await.body, json!([]));
}

/// Changes of a body that is right, and the attributes that a 400 must then name.
fn mistakes() -> Vec<(Value, &'static str)> {
    let fine = rule(1, "/", "mask", &["token:read"]);
    let same = rule(1, "/a/", "mask", &["token:read"]);
    vec![
        (json!({"name": null}), "name"),
        (json!({"name": ""}), "name"),
        (json!({"name": "n".repeat(201)}), "name"),
        (json!({"name": "two\nlines"}), "name"),
        (json!({"name": "card 4242 4242 4242 4242"}), "name"),
        (json!({"type": null}), "type"),
        (json!({"type": "expiring"}), "type"),
        (json!({"type": "Private"}), "type"),
        (json!({"permissions": []}), "permissions"),
        (json!({"permissions": null}), "permissions"),
        (json!({"permissions": ["token:pci:read"]}), "permissions"),
        (json!({"permissions": ["token:juggle"]}), "permissions"),
        (json!({"permissions": ["application:read"]}), "permissions"),
        (
            json!({"permissions": vec!["token:read"; 51]}),
            "permissions",
        ),
        (json!({"permissions": "token:read"}), "permissions"),
        (json!({"permissions": [1]}), "permissions[0]"),
        (
            json!({"type": "public", "permissions": ["token:read"]}),
            "permissions",
        ),
        (
            json!({"type": "management", "permissions": ["log:read"], "rules": [fine]}),
            "rules",
        ),
        (json!({"rules": [fine, same]}), "rules[1].priority"),
        (
            json!({"rules": [rule(1, "/", "mask", &[])]}),
            "rules[0].permissions",
        ),
        (
            json!({"rules": [rule(1, "/", "mask", &["documents:read"])]}),
            "rules[0].permissions",
        ),
        (
            json!({"rules": [rule(1, "pci", "mask", &["token:read"])]}),
            "rules[0].container",
        ),
        (
            json!({"rules": [rule(1, "/", "blur", &["token:read"])]}),
            "rules[0].transform",
        ),
        (
            json!({"rules": [rule(0, "/", "mask", &["token:read"])]}),
            "rules[0].priority",
        ),
        (json!({"rules": [{"priority": "1"}]}), "rules[0].priority"),
        (json!({"rules": [[]]}), "rules[0]"),
        (json!({"create_key": "yes"}), "create_key"),
        (json!({"expires_at": "tomorrow"}), "expires_at"),
        (json!({"expires_at": "2020-01-01T00:00:00Z"}), "expires_at"),
        (
            json!({"name": "", "type": "expiring", "permissions": ["x"], "expires_at": "x",
                "rules": [{"transform": "blur", "permissions": ["log:read"]}]}),
            "expires_at name permissions rules[0].container rules[0].description \
             rules[0].permissions rules[0].priority rules[0].transform type",
        ),
    ]
}

/// Covers 13.5, 13.6, 13.7, 13.8.
#[tokio::test]
async fn what_breaks_a_rule_is_named_all_at_once() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let manager = manager(&vault, &tenant).await;
    for (changes, expected) in mistakes() {
        let refused = manager
            .post("/applications", changed(changes.clone()))
            .await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{changes}");
        let mut paths = refused.refused();
        paths.sort_unstable();
        assert_eq!(paths.join(" "), expected, "{changes}: {}", refused.body);
        let text = String::from_utf8(refused.bytes).unwrap();
        assert!(!text.contains("juggle") && !text.contains("4242"), "{text}");
    }

    let longest = changed(json!({"name": "é".repeat(200), "permissions": vec!["token:read"; 50]}));
    let longest = manager.post("/applications", longest).await;
    assert_eq!(longest.status, StatusCode::CREATED);
    assert_eq!(longest.body["permissions"], json!(["token:read"]));
    let webhooks = changed(json!({"type": "management", "permissions": ["webhooks:read"]}));
    let webhooks = manager.post("/applications", webhooks).await;
    assert_eq!(webhooks.body["permissions"], json!(["webhook:read"]));
}

#[tokio::test]
async fn bodies_are_json_and_are_looked_at_after_the_permission() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let manager = manager(&vault, &tenant).await;
    let cases = [
        ("text/plain", "{}", StatusCode::UNSUPPORTED_MEDIA_TYPE),
        ("application/json", "{", StatusCode::BAD_REQUEST),
        ("application/json", "[]", StatusCode::BAD_REQUEST),
        ("application/json", "", StatusCode::BAD_REQUEST),
        (
            "application/merge-patch+json",
            "{}",
            StatusCode::BAD_REQUEST,
        ),
    ];
    for (media, body, expected) in cases {
        let created = manager.post_text("/applications", body, media).await;
        let request = manager.request(Method::PUT, &format!("/applications/{NOWHERE}"));
        let request = request.header("content-type", media).body(body);
        let updated = manager.send(request).await;
        assert_eq!(created.status, expected, "{media} {body}");
        // What is wrong with the body is told before the application is looked for.
        assert_eq!(updated.status, expected, "{media} {body}");
    }
    let reader = grants(&[Permission::ApplicationRead]);
    let reader = vault
        .holder(&tenant, ApplicationKind::Management, reader)
        .await;
    let reader = vault.client_with(Some(&reader.key));
    for (method, path) in [
        (Method::POST, "/applications".to_owned()),
        (Method::PUT, format!("/applications/{NOWHERE}")),
    ] {
        let request = reader.request(method.clone(), &path);
        let request = request.header("content-type", "text/plain").body("{");
        let refused = reader.send(request).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{method} {path}");
    }
}

/// Covers 13.10, 13.11.
#[tokio::test]
async fn lists_go_page_by_page_until_an_empty_one() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let manager = manager(&vault, &tenant).await;
    let mut made = vec![manager.get("/applications/key").await.id()];
    for number in 0..4 {
        let kind = ["private", "public"][number % 2];
        made.push(make(&manager, changed(json!({"type": kind}))).await.id);
    }
    made.reverse();

    let pages = [
        ("", 5, (1, 20, 1)),
        ("?size=2", 2, (1, 2, 3)),
        ("?size=2&page=2&start=ignored&start=twice", 2, (2, 2, 3)),
        ("?size=2&page=3", 1, (3, 2, 3)),
        ("?size=2&page=4", 0, (4, 2, 3)),
        ("?page=2147483647&size=100", 0, (2_147_483_647, 100, 1)),
        ("?size=0", 0, (1, 0, 0)),
    ];
    let mut seen = Vec::new();
    for (query, count, (page, size, total)) in pages {
        let listed = manager.get(&format!("/applications{query}")).await;
        assert_eq!(listed.status, StatusCode::OK);
        assert_eq!(listed.items().len(), count, "{query}");
        let expected = json!({"total_items": 5, "page_number": page, "page_size": size,
            "total_pages": total});
        assert_eq!(listed.body["pagination"], expected, "{query}");
        if query.starts_with("?size=2") {
            seen.extend(ids_of(listed.items()).into_iter().map(str::to_owned));
        }
    }
    assert_eq!(seen, made, "the newest first, each once");

    let filters = [
        (
            format!("?id={}&id={NOWHERE}&id={}", made[4], made[0]),
            vec![0, 4],
        ),
        ("?type=public".to_owned(), vec![0, 2]),
        ("?type=public&type=management".to_owned(), vec![0, 2, 4]),
        (format!("?type=private&id={}", made[0]), vec![]),
    ];
    for (query, expected) in filters {
        let listed = manager.get(&format!("/applications{query}")).await;
        let expected: Vec<&str> = expected.into_iter().map(|at: usize| &*made[at]).collect();
        assert_eq!(ids_of(listed.items()), expected, "{query}");
        let total = expected.len();
        assert_eq!(listed.body["pagination"]["total_items"], total, "{query}");
    }
    let refused = manager
        .get("/applications?id=x&type=expiring&page=0&size=101")
        .await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    assert_eq!(refused.refused(), ["id", "page", "size", "type"]);
}

/// Covers 13.13, 13.14.
#[tokio::test]
async fn an_update_replaces_grants_and_what_was_taken_away_is_gone_at_once() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let manager = manager(&vault, &tenant).await;
    let own = manager.get("/applications/key").await.id();
    let rules = json!([rule(1, "/a/", "reveal", &["token:read"])]);
    let made = make(&manager, changed(json!({"rules": rules}))).await;
    assert_eq!(create_status(&vault, &made.key).await, StatusCode::CREATED);

    let change = json!({"name": "Reader", "permissions": ["token:read"], "type": "management",
        "rules": null, "expires_at": "2020-01-01"});
    let updated = manager.put(&made.path, change).await;

    assert_eq!(updated.status, StatusCode::OK, "{}", updated.body);
    assert_eq!(
        create_status(&vault, &made.key).await,
        StatusCode::FORBIDDEN
    );
    assert_eq!(updated.body["name"], "Reader");
    assert_eq!(updated.body["type"], "private");
    assert_eq!(updated.body["permissions"], json!(["token:read"]));
    assert_eq!(updated.body["rules"], json!([]));
    assert_eq!(updated.body["modified_by"], own);
    assert!(updated.body["modified_at"].as_str() > updated.body["created_at"].as_str());
    assert_eq!(updated.body.get("expires_at"), None);
    assert_eq!(
        ids_of(updated.body["keys"].as_array().unwrap()),
        [&made.key_id]
    );
    assert_eq!(manager.get(&made.path).await.body, updated.body);

    // Only what its type may have; and what is refused changes nothing.
    for (change, expected) in [
        (
            json!({"name": "x", "permissions": ["log:read"]}),
            "permissions",
        ),
        (json!({"name": "x"}), "permissions"),
        (json!({"permissions": ["token:read"]}), "name"),
        (
            json!({"name": "x", "rules": [{"priority": 0}]}),
            "rules[0].container",
        ),
    ] {
        let refused = manager.put(&made.path, change.clone()).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{change}");
        assert_eq!(refused.refused()[0], expected, "{change}");
    }
    assert_eq!(manager.get(&made.path).await.body, updated.body);
    let rules = json!([rule(1, "/", "mask", &["token:create"])]);
    let rules = json!({"name": "Ruled", "rules": rules});
    assert_eq!(manager.put(&made.path, rules).await.status, StatusCode::OK);
    assert_eq!(create_status(&vault, &made.key).await, StatusCode::CREATED);
}

/// Covers 13.9.
#[tokio::test]
async fn rules_decide_by_priority_in_whatever_order_they_came() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let manager = manager(&vault, &tenant).await;
    let rules = json!([
        rule(4, "/users/", "mask", &["token:read"]),
        rule(1, "/", "mask", &["token:create"]),
        rule(3, "/users/employees/", "reveal", &["token:read"]),
        rule(2, "/Users/Government/", "redact", &["token:read"]),
    ]);
    let made = make(
        &manager,
        changed(json!({"permissions": [], "rules": rules})),
    )
    .await;
    let client = vault.client_with(Some(&made.key));

    let shown = manager.get(&made.path).await.body["rules"].clone();
    let priorities: Vec<_> = shown
        .as_array()
        .unwrap()
        .iter()
        .map(|r| &r["priority"])
        .collect();
    assert_eq!(priorities, [1, 2, 3, 4]);
    let cases = [
        ("/users/government/", Some(json!(null))),
        ("/users/employees/hq/", Some(json!("alpha"))),
        ("/users/", Some(json!("XXXha"))),
        ("/bounty-hunters/", None),
    ];
    for (container, expected) in cases {
        let new = json!({"type": "token", "data": "alpha", "containers": [container],
            "mask": "{{ data | reveal_last: 2 }}"});
        let id = client.post("/tokens", new).await.id();
        let read = client.get(&format!("/tokens/{id}")).await;
        match expected {
            Some(data) => assert_eq!(read.body.get("data").unwrap_or(&json!(null)), &data),
            None => assert_eq!(read.status, StatusCode::FORBIDDEN),
        }
    }
    assert_eq!(client.get("/v2/tokens").await.items().len(), 3);
}

/// Covers 13.15, 13.16.
#[tokio::test]
async fn a_deleted_application_takes_its_keys_along_and_leaves_its_tokens() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let manager = manager(&vault, &tenant).await;
    let reader = vault.client(&tenant, everything(Transform::Reveal)).await;
    let made = make(&manager, creator()).await;
    let keys = format!("{}/keys", made.path);
    let second = manager.send(manager.request(Method::POST, &keys)).await;
    let second = second.body["key"].as_str().unwrap().to_owned();
    let client = vault.client_with(Some(&made.key));
    let token = client
        .post("/tokens", json!({"type": "token", "data": 1}))
        .await
        .id();
    assert_eq!(create_status(&vault, &second).await, StatusCode::CREATED);

    let deleted = manager.delete(&made.path).await;

    assert_eq!(deleted.status, StatusCode::NO_CONTENT);
    assert!(deleted.bytes.is_empty());
    for key in [&made.key, &second] {
        assert_eq!(create_status(&vault, key).await, StatusCode::UNAUTHORIZED);
    }
    let database = vault.database.connect().await;
    let left = "select (select count(*) from application where application_id = $1)
        + (select count(*) from application_key where application_id = $1)";
    let id: uuid::Uuid = made.id.parse().unwrap();
    let left: i64 = database.query_one(left, &[&id]).await.unwrap().get(0);
    assert_eq!(left, 0);
    assert_eq!(
        reader.get(&format!("/tokens/{token}")).await.body["data"],
        1
    );
    let change = json!({"name": "x", "permissions": ["token:read"]});
    for gone in [
        manager.get(&made.path).await,
        manager.put(&made.path, change).await,
        manager.delete(&made.path).await,
        manager.get(&keys).await,
        manager.send(manager.request(Method::POST, &keys)).await,
    ] {
        assert_eq!(gone.status, StatusCode::NOT_FOUND);
        assert_eq!(gone.body["code"], "not_found");
    }
}

/// I16.
///
/// Covers 13.16.
#[tokio::test]
async fn a_deleted_key_is_dead_on_every_node_within_five_seconds() {
    let vault = TestVault::start().await;
    let other = vault.second_node().await;
    let tenant = vault.tenant().await;
    let manager = manager(&vault, &tenant).await;
    let deletions: [fn(&Made) -> String; 2] = [
        |made| made.path.clone(),
        |made| format!("{}/keys/{}", made.path, made.key_id),
    ];
    for deletion in deletions {
        let made = make(&manager, creator()).await;
        let nodes = [&vault, &other].map(|node| node.client_with(Some(&made.key)));
        for node in &nodes {
            assert_eq!(node.get("/applications/key").await.status, StatusCode::OK);
        }

        let deleting = async {
            // While both nodes know the key well.
            tokio::time::sleep(Duration::from_millis(300)).await;
            let deleted = manager.delete(&deletion(&made)).await;
            assert_eq!(deleted.status, StatusCode::NO_CONTENT);
            Instant::now()
        };
        let [here, there] = &nodes;
        let (here, there, deleted) = tokio::join!(hammer(here), hammer(there), deleting);

        let [here, there] = [here, there].map(|last| last.saturating_duration_since(deleted));
        println!("the last request that got in was sent {here:?} and {there:?} after the deletion");
        assert_eq!(
            here,
            Duration::ZERO,
            "where it was deleted it is dead at once"
        );
        assert!(there <= Duration::from_secs(5), "{there:?}");
    }
}

/// Asks again and again until it is refused for good, and tells when the last request that got in was
/// sent.
async fn hammer(client: &Client) -> Instant {
    let started = Instant::now();
    let mut last = started;
    let mut refused = 0;
    while refused < 20 {
        let asked = Instant::now();
        match client.get("/permissions").await.status {
            StatusCode::OK => (last, refused) = (asked, 0),
            StatusCode::UNAUTHORIZED => refused += 1,
            other => panic!("{other}"),
        }
        assert!(
            started.elapsed() < Duration::from_secs(30),
            "the key still works"
        );
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    last
}

/// A look-up that began before the deletion may end after it, and must not count then: neither for
/// those who joined it, nor for those who come later.
///
/// Covers 13.16.
#[tokio::test]
async fn a_key_that_is_deleted_while_it_is_looked_up_is_dead_at_once() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let manager = manager(&vault, &tenant).await;
    let made = make(&manager, creator()).await;
    let client = vault.client_with(Some(&made.key));
    let ask = async || client.get("/permissions").await.status;
    // From here on every look-up sees the rows of when it began, and takes a second.
    let slow = "alter table tenant rename to quick_tenant;
        create view tenant as select * from quick_tenant where pg_sleep(1) is not null";
    let database = vault.database.connect().await;
    database.batch_execute(slow).await.unwrap();

    let deleting = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let deleted = manager.delete(&made.path).await;
        assert_eq!(deleted.status, StatusCode::NO_CONTENT);
        ask().await
    };
    let started = Instant::now();
    let (before, joined) = tokio::join!(ask(), deleting);
    let took = started.elapsed();
    let later = ask().await;

    assert_eq!(before, StatusCode::OK, "it began before the deletion");
    assert!(took > Duration::from_secs(1), "{took:?}");
    assert_eq!(joined, StatusCode::UNAUTHORIZED);
    assert_eq!(later, StatusCode::UNAUTHORIZED);
}

/// Covers 13.18, 13.19.
#[tokio::test]
async fn an_application_has_three_keys_at_most() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let manager = manager(&vault, &tenant).await;
    let made = make(&manager, creator()).await;
    let path = format!("{}/keys", made.path);
    let further = async || manager.send(manager.request(Method::POST, &path)).await;

    let mut keys = vec![made.key.clone()];
    for _ in 0..2 {
        let created = further().await;
        assert_eq!(created.status, StatusCode::CREATED);
        let location = format!("{}{path}/{}", vault.base_url, created.id());
        assert_eq!(created.header("location"), location);
        keys.push(created.body["key"].as_str().unwrap().to_owned());
    }
    let fourth = further().await;

    assert_eq!(fourth.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(fourth.body["title"], "Unprocessable Entity");
    assert!(
        fourth.body["detail"]
            .as_str()
            .unwrap()
            .contains("at most 3 keys")
    );
    for key in keys {
        assert_eq!(create_status(&vault, &key).await, StatusCode::CREATED);
    }
    manager.delete(&format!("{path}/{}", made.key_id)).await;
    assert_eq!(further().await.status, StatusCode::CREATED);
}

/// Covers 13.19.
#[tokio::test]
async fn of_eight_keys_that_are_asked_for_at_once_three_are_made() {
    let vault = TestVault::start_patient().await;
    let other = vault.second_node().await;
    let tenant = vault.tenant().await;
    let manager = manager(&vault, &tenant).await;
    for _ in 0..5 {
        let new = changed(json!({"create_key": false}));
        let id = manager.post("/applications", new).await.id();
        let path = format!("/applications/{id}/keys");
        let asked = (0..8).map(|number| {
            let node = [&vault.base_url, &other.base_url][number % 2];
            let client = manager.at(node);
            let path = path.clone();
            async move { client.send(client.request(Method::POST, &path)).await }
        });
        let answers: Vec<Answer> = JoinSet::from_iter(asked).join_all().await;

        let count = |status: StatusCode| answers.iter().filter(|a| a.status == status).count();
        assert_eq!(count(StatusCode::CREATED), 3);
        assert_eq!(count(StatusCode::UNPROCESSABLE_ENTITY), 5);
        assert_eq!(manager.get(&path).await.body.as_array().unwrap().len(), 3);
        for created in answers.iter().filter(|a| a.status == StatusCode::CREATED) {
            let key = created.body["key"].as_str().unwrap();
            assert_eq!(create_status(&other, key).await, StatusCode::CREATED);
        }
    }
}

/// Covers 13.20, 13.21.
#[tokio::test]
async fn keys_are_listed_read_and_deleted_one_by_one() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let manager = manager(&vault, &tenant).await;
    let made = make(&manager, creator()).await;
    let path = format!("{}/keys", made.path);
    let second = manager.send(manager.request(Method::POST, &path)).await;
    let (second_id, second_key) = (second.id(), second.body["key"].as_str().unwrap().to_owned());

    let all = manager.get(&path).await;
    assert_eq!(
        ids_of(all.body.as_array().unwrap()),
        [&made.key_id, &second_id]
    );
    let mut expected = second.body.clone();
    expected.as_object_mut().unwrap().shift_remove("key");
    assert_eq!(all.body[1], expected);
    let one = format!("{path}/{second_id}");
    assert_eq!(manager.get(&one).await.body, expected);
    let filters = [
        (format!("?id={second_id}"), vec![&second_id]),
        (
            format!("?id={second_id}&id={}", made.key_id),
            vec![&made.key_id, &second_id],
        ),
        (format!("?id={NOWHERE}"), vec![]),
        (
            "?type=private&type=public".to_owned(),
            vec![&made.key_id, &second_id],
        ),
        ("?type=public".to_owned(), vec![]),
    ];
    for (query, expected) in filters {
        let listed = manager.get(&format!("{path}{query}")).await;
        assert_eq!(ids_of(listed.body.as_array().unwrap()), expected, "{query}");
    }
    let refused = manager.get(&format!("{path}?id=x&type=expiring")).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    assert_eq!(refused.refused(), ["id", "type"]);

    assert_eq!(
        create_status(&vault, &second_key).await,
        StatusCode::CREATED
    );
    assert_eq!(manager.delete(&one).await.status, StatusCode::NO_CONTENT);
    assert_eq!(
        create_status(&vault, &second_key).await,
        StatusCode::UNAUTHORIZED
    );
    assert_eq!(create_status(&vault, &made.key).await, StatusCode::CREATED);
    // A key belongs to its application: under another one it is as unknown as any.
    let other = make(&manager, creator()).await;
    let unknown = [
        one,
        format!("{path}/{NOWHERE}"),
        format!("{path}/nothing"),
        format!("{}/keys/{}", other.path, made.key_id),
    ];
    let bytes = manager.get(&unknown[0]).await.bytes;
    for path in unknown {
        for gone in [manager.get(&path).await, manager.delete(&path).await] {
            assert_eq!(gone.status, StatusCode::NOT_FOUND, "{path}");
            assert_eq!(gone.bytes, bytes, "{path}");
        }
    }
    let nowhere = format!("/applications/{NOWHERE}/keys/{}", made.key_id);
    for gone in [manager.get(&nowhere).await, manager.delete(&nowhere).await] {
        assert_eq!(gone.status, StatusCode::NOT_FOUND);
    }
    assert_eq!(create_status(&vault, &made.key).await, StatusCode::CREATED);
}

/// Covers 13.17.
#[tokio::test]
async fn an_application_ends_at_its_instant_and_is_swept_with_its_keys() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let manager = manager(&vault, &tenant).await;
    let database = vault.database.connect().await;
    let soon = "select now() + interval '2 seconds'";
    let ends: jiff::Timestamp = database.query_one(soon, &[]).await.unwrap().get(0);
    let ended = Instant::now() + Duration::from_secs(2);
    let made = make(&manager, changed(json!({"expires_at": ends.to_string()}))).await;
    let later = changed(json!({"expires_at": "8/26/2090 7:23:57 PM -07:00"}));
    let later = make(&manager, later).await;
    assert_eq!(
        manager.get(&later.path).await.body["expires_at"],
        "2090-08-27T02:23:57+00:00"
    );

    let client = vault.client_with(Some(&made.key));
    let mut got_in = 0;
    loop {
        let asked = Instant::now();
        match client.get("/permissions").await.status {
            StatusCode::OK => got_in += 1,
            other => {
                assert_eq!(other, StatusCode::UNAUTHORIZED);
                break;
            }
        }
        assert!(asked < ended, "it got in {:?} late", asked - ended);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(got_in > 10, "{got_in}");
    let change = json!({"name": "x", "permissions": ["token:read"]});
    let keys = format!("{}/keys", made.path);
    for gone in [
        manager.get(&made.path).await,
        manager.put(&made.path, change).await,
        manager.delete(&made.path).await,
        manager.get(&keys).await,
        manager.send(manager.request(Method::POST, &keys)).await,
    ] {
        assert_eq!(gone.status, StatusCode::NOT_FOUND);
    }
    assert_eq!(
        manager.get("/applications").await.body["pagination"]["total_items"],
        2
    );

    let node = ids::new_uuid();
    assert!(
        jobs::sweep_once(&vault.vault, node)
            .await
            .unwrap()
            .is_some()
    );

    let left = "select count(*) from application a full join application_key k
        on a.application_id = k.application_id
        where coalesce(a.application_id, k.application_id) = $1";
    for (made, expected) in [(&made, 0_i64), (&later, 1)] {
        let id: uuid::Uuid = made.id.parse().unwrap();
        let left: i64 = database.query_one(left, &[&id]).await.unwrap().get(0);
        assert_eq!(left, expected);
    }
    assert_eq!(create_status(&vault, &later.key).await, StatusCode::CREATED);
    let recorded = manager.get(&format!("/logs?entity_id={}", made.id)).await;
    assert_eq!(recorded.items()[0]["operation"], "expire");
    assert_eq!(recorded.items()[0]["actor_type"], "system");
}

/// Covers 13.12.
#[tokio::test]
async fn every_key_finds_its_own_application() {
    let vault = TestVault::start().await;
    let other = vault.second_node().await;
    let tenant = vault.tenant().await;
    for kind in ApplicationKind::ALL {
        let one = match kind {
            ApplicationKind::Management => Permission::LogRead,
            _ => Permission::TokenCreate,
        };
        let holder = vault.holder(&tenant, kind, grants(&[one])).await;
        let own = vault.client_with(Some(&holder.key));
        let own = own.get("/applications/key").await;
        assert_eq!(own.status, StatusCode::OK);
        assert_eq!(own.id(), holder.application.to_string());
        // An operator made it, who has no id.
        assert_eq!(own.body.get("created_by"), None);
        assert!(!String::from_utf8_lossy(&own.bytes).contains(&holder.key));
    }
    // A node that still remembers the key of an application that is gone finds nothing.
    let manager = manager(&vault, &tenant).await;
    let made = make(&manager, creator()).await;
    let remembering = other.client_with(Some(&made.key));
    assert_eq!(
        remembering.get("/applications/key").await.status,
        StatusCode::OK
    );
    manager.delete(&made.path).await;
    let gone = remembering.get("/applications/key").await;
    assert_eq!(gone.status, StatusCode::UNAUTHORIZED);
}

/// Covers 13.22.
#[tokio::test]
async fn regenerating_a_key_is_gone_and_says_what_to_use() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let manager = manager(&vault, &tenant).await;
    let made = make(&manager, creator()).await;

    let path = format!("{}/regenerate", made.path);
    let gone = manager.send(manager.request(Method::POST, &path)).await;

    assert_eq!(gone.status, StatusCode::GONE);
    assert_eq!(gone.body["title"], "Gone");
    let detail = gone.body["detail"].as_str().unwrap();
    assert!(detail.contains("POST /applications/{id}/keys"), "{detail}");
    assert_eq!(create_status(&vault, &made.key).await, StatusCode::CREATED);
}

/// Covers 13.23.
#[tokio::test]
async fn what_there_is_to_grant_is_listed_for_any_key() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = vault.client(&tenant, grants(&[Permission::TokenUse])).await;

    let all = client.get("/permissions").await;
    let of = async |kind: &str| {
        let path = format!("/permissions?application_type={kind}");
        let listed = client.get(&path).await;
        let names = listed.body.as_array().unwrap().iter().map(|item| {
            let types = item["application_types"].as_array().unwrap();
            assert!(types.contains(&json!(kind)));
            item["type"].as_str().unwrap().to_owned()
        });
        names.collect::<Vec<_>>()
    };

    assert_eq!(
        all.body[0],
        json!({"type": "token:create", "description": "Create tokens",
            "application_types": ["public", "private"]})
    );
    let (public, private, management) = (
        of("public").await,
        of("private").await,
        of("management").await,
    );
    assert_eq!(all.body.as_array().unwrap().len(), 71);
    assert_eq!((public.len(), private.len(), management.len()), (7, 39, 33));
    assert!(private.contains(&"orchestration:connection_formulas".to_owned()));
    assert!(management.contains(&"tenant:invitation:create".to_owned()));
    let refused = client.get("/permissions?application_type=expiring").await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    assert_eq!(refused.refused(), ["application_type"]);
}

/// Covers 13.24.
#[tokio::test]
async fn every_template_makes_an_application_as_it_stands() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let manager = manager(&vault, &tenant).await;
    let anyone = vault.client(&tenant, grants(&[Permission::TokenUse])).await;

    let listed = anyone.get("/application-templates").await;
    let templates = listed.body.as_array().unwrap();

    assert_eq!(templates.len(), 10);
    for template in templates {
        let name = template["name"].as_str().unwrap();
        let path = format!(
            "/application-templates/{}",
            template["id"].as_str().unwrap()
        );
        assert_eq!(anyone.get(&path).await.body, *template, "{name}");
        let new = json!({"name": name, "type": template["application_type"],
            "permissions": template["permissions"], "rules": template["rules"]});
        let made = manager.post("/applications", new).await;
        assert_eq!(made.status, StatusCode::CREATED, "{name}: {}", made.body);
        assert_eq!(made.body["rules"], template["rules"], "{name}");
        assert_eq!(made.body["permissions"], template["permissions"], "{name}");
        assert_eq!(template["is_starter"], name == "Full Access");
    }
    insta::assert_snapshot!(serde_json::to_string_pretty(&templates[1]).unwrap(), @r#"
    {
      "id": "db9148c1-a55f-4164-b830-a20ab6d720ae",
      "name": "Collect PCI Data",
      "description": "Take cards from browsers and apps",
      "application_type": "public",
      "template_type": "payments",
      "is_starter": false,
      "rules": [
        {
          "description": "Collect PCI data",
          "priority": 1,
          "container": "/pci/",
          "transform": "mask",
          "permissions": [
            "token:create",
            "token:update"
          ]
        }
      ],
      "permissions": []
    }
    "#);
    for unknown in [NOWHERE, "nothing"] {
        let missing = anyone
            .get(&format!("/application-templates/{unknown}"))
            .await;
        assert_eq!(missing.status, StatusCode::NOT_FOUND);
    }
}

/// Covers 13.1.
#[tokio::test]
async fn each_operation_asks_for_its_own_permission() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let manager = manager(&vault, &tenant).await;
    let management = ApplicationKind::Management;
    let all = ALL_PERMISSIONS.iter().copied();
    let all: Vec<Permission> = all.filter(|one| one.fits(management)).collect();

    for Door {
        method,
        path,
        needs,
    } in DOORS
    {
        let [needed] = needs.permissions() else {
            continue;
        };
        if !path.starts_with("/applications") {
            continue;
        }
        assert_eq!(needed.kinds(), [management]);
        let others = all.iter().copied().filter(|other| other != needed);
        let others: Vec<Permission> = others.collect();
        for (held, is_welcome) in [(&others[..], false), (&[*needed][..], true)] {
            let made = make(&manager, creator()).await;
            let path = path
                .replace("{id}", &made.id)
                .replace("{key_id}", &made.key_id);
            let holder = vault.holder(&tenant, management, grants(held)).await;
            let client = vault.client_with(Some(&holder.key));
            let request = client.request(method.clone(), &path);
            let request = request.header("content-type", "application/json");
            let answer = client.send(request.body(creator().to_string())).await;
            let case = format!("{method} {path} {}", answer.body);
            assert_eq!(answer.status.is_success(), is_welcome, "{case}");
            assert_eq!(
                answer.status == StatusCode::FORBIDDEN,
                !is_welcome,
                "{case}"
            );
        }
    }
}

/// Covers 13.25.
#[tokio::test]
async fn applications_of_other_tenants_do_not_exist() {
    let vault = TestVault::start().await;
    let (one, two) = (vault.tenant().await, vault.tenant().await);
    let (owner, stranger) = (manager(&vault, &one).await, manager(&vault, &two).await);
    let made = make(&owner, creator()).await;
    let before = owner.get(&made.path).await.body;
    let body = json!({"name": "Mine", "permissions": ["token:read"]});

    let mut tried = 0;
    for Door { method, path, .. } in DOORS {
        if !path.starts_with("/applications/{id}") || path.ends_with("/regenerate") {
            continue;
        }
        let ask = async |id: &str, key_id: &str| {
            let path = path.replace("{id}", id).replace("{key_id}", key_id);
            let request = stranger.request(method.clone(), &path);
            let request = request.header("content-type", "application/json");
            stranger.send(request.body(body.to_string())).await
        };
        let (foreign, unknown) = (
            ask(&made.id, &made.key_id).await,
            ask(NOWHERE, NOWHERE).await,
        );
        assert_eq!(foreign.status, StatusCode::NOT_FOUND, "{method} {path}");
        assert_eq!(foreign.bytes, unknown.bytes, "{method} {path}");
        tried += 1;
    }

    assert_eq!(tried, 7);
    let listed = stranger.get(&format!("/applications?id={}", made.id)).await;
    assert_eq!(listed.body["pagination"]["total_items"], 0);
    assert_eq!(listed.items(), [json!(null); 0]);
    let all = stranger.get("/applications?size=100").await;
    assert!(!String::from_utf8_lossy(&all.bytes).contains(&made.id));
    assert_eq!(owner.get(&made.path).await.body, before);
    assert_eq!(create_status(&vault, &made.key).await, StatusCode::CREATED);
}

/// Covers 13.26.
#[tokio::test]
async fn what_was_changed_by_sql_is_refused_and_can_be_deleted() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let manager = manager(&vault, &tenant).await;
    let database = vault.database.connect().await;
    let everything = r#"{"permissions":["token:create","token:delete"],"rules":[]}"#;
    let attacks = [
        format!("update application set grants = '{everything}' where application_id = $1"),
        "update application set name = 'another' where application_id = $1".to_owned(),
        "update application set kind = 3 where application_id = $1".to_owned(),
        "update application set kind = 99 where application_id = $1".to_owned(),
        "update application set expires_at = '2090-01-01' where application_id = $1".to_owned(),
    ];
    for attack in attacks {
        let made = make(&manager, creator()).await;
        let id: uuid::Uuid = made.id.parse().unwrap();
        assert_eq!(database.execute(&attack, &[&id]).await.unwrap(), 1);

        let keys = format!("{}/keys", made.path);
        let change = json!({"name": "x", "permissions": ["token:read"]});
        for refused in [
            manager.get(&made.path).await,
            manager.get("/applications").await,
            manager.put(&made.path, change).await,
            manager.get(&keys).await,
            manager.send(manager.request(Method::POST, &keys)).await,
            manager.get(&format!("{keys}/{}", made.key_id)).await,
        ] {
            assert_eq!(refused.body["code"], "altered_row", "{attack}");
        }
        assert_eq!(
            create_status(&vault, &made.key).await,
            StatusCode::UNAUTHORIZED
        );
        assert_eq!(
            manager.delete(&made.path).await.status,
            StatusCode::NO_CONTENT
        );
    }

    let made = make(&manager, creator()).await;
    let id: uuid::Uuid = made.key_id.parse().unwrap();
    let attack = "update application_key set expires_at = '2090-01-01' where key_id = $1";
    assert_eq!(database.execute(attack, &[&id]).await.unwrap(), 1);
    let one = format!("{}/keys/{}", made.path, made.key_id);
    for refused in [manager.get(&made.path).await, manager.get(&one).await] {
        assert_eq!(refused.body["code"], "altered_row");
    }
    assert_eq!(manager.delete(&one).await.status, StatusCode::NO_CONTENT);
    assert_eq!(manager.get(&made.path).await.status, StatusCode::OK);
}

/// Covers 13.27.
#[tokio::test]
async fn what_is_done_to_applications_and_keys_is_recorded() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let manager = manager(&vault, &tenant).await;
    let own = manager.get("/applications/key").await.id();
    let made = make(&manager, creator()).await;
    let keys = format!("{}/keys", made.path);
    let second = manager
        .send(manager.request(Method::POST, &keys))
        .await
        .id();
    manager.get(&made.path).await;
    manager.get(&format!("{keys}/{second}")).await;
    manager.get("/applications").await;
    manager.get(&keys).await;
    let change = json!({"name": "x", "permissions": ["token:read"]});
    manager.put(&made.path, change).await;
    manager.put(&made.path, json!({"name": "x"})).await;
    manager.delete(&format!("{keys}/{second}")).await;
    manager.delete(&format!("{keys}/{second}")).await;
    manager.delete(&made.path).await;
    vault.vault.audit.flush().await.unwrap();

    let told = async |id: &str| {
        let listed = manager.get(&format!("/logs?entity_id={id}")).await;
        let words = listed.items().iter().map(|record| {
            assert_eq!(record["actor_id"], own);
            format!("{}: {}", record["entity_type"], record["message"])
        });
        words.collect::<Vec<_>>().join("; ").replace('"', "")
    };
    assert_eq!(
        told(&made.id).await,
        "application: Application deleted; application: Application updated; \
         application: Application retrieved; application: Application created"
    );
    assert_eq!(
        told(&second).await,
        "application_key: Application key deleted; application_key: Application key retrieved; \
         application_key: Application key created"
    );
    assert_eq!(
        told(&made.key_id).await,
        "application_key: Application key deleted; application_key: Application key created"
    );
}
