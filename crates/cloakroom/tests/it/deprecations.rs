//! What is deprecated: one test for each row of the table, and what clients and operators are told.

use std::collections::BTreeMap;

use cloakroom::access::{ApplicationKind, Permission, Tenant, Transform};
use cloakroom::applications;
use cloakroom::config::Deprecation as Mode;
use cloakroom::deprecations::{self, ALL, Deprecated, Treatment};
use cloakroom_crypto::Sensitive;
use http::{Method, StatusCode};
use metrics_exporter_prometheus::PrometheusBuilder;
use serde_json::{Value, json};

use crate::support::{Answer, Client, TestDatabase, TestVault, everything, grants};

/// A vault, a tenant of it, and an application that may do everything with tokens.
struct Office {
    vault: TestVault,
    tenant: Tenant,
    client: Client,
}

impl Office {
    async fn open() -> Self {
        Self::open_with(Mode::Serve).await
    }

    async fn open_with(mode: Mode) -> Self {
        let vault = TestVault::start_with(TestDatabase::create().await, |config| {
            config.deprecated.v1_tokens = mode;
        })
        .await;
        let tenant = vault.tenant().await;
        let client = vault.client(&tenant, everything(Transform::Reveal)).await;
        Self {
            vault,
            tenant,
            client,
        }
    }

    async fn manager(&self) -> Client {
        let granted = grants(&[
            Permission::ApplicationCreate,
            Permission::ApplicationUpdate,
            Permission::ApplicationRead,
        ]);
        let kind = ApplicationKind::Management;
        let holder = self.vault.holder(&self.tenant, kind, granted).await;
        self.vault.client_with(Some(&holder.key))
    }

    /// What the tenant has used so far, and how often.
    async fn used(&self) -> BTreeMap<String, u64> {
        let vault = &self.vault.vault;
        vault.deprecations.write(vault).await.unwrap();
        let used = deprecations::list(vault, self.tenant.id).await.unwrap();
        let mut calls = BTreeMap::new();
        for one in used {
            *calls.entry(one.name).or_default() += one.calls;
        }
        calls
    }

    /// The answer says what the row says, and the call was counted, as the only one.
    async fn require_told(&self, answer: &Answer, deprecated: Deprecated) {
        let is_operation = !deprecated.row().operations.is_empty();
        require_headers(&self.vault, answer, is_operation.then_some(deprecated));
        let expected = BTreeMap::from([(deprecated.row().name.to_owned(), 1)]);
        assert_eq!(self.used().await, expected);
    }
}

/// Deprecated operations say so, and nothing else does.
fn require_headers(vault: &TestVault, answer: &Answer, operation: Option<Deprecated>) {
    let Some(row) = operation.map(Deprecated::row) else {
        for name in ["deprecation", "sunset", "link"] {
            assert_eq!(answer.header(name), "");
        }
        return;
    };
    let since = row.since.map(|day| {
        let since = day.to_zoned(jiff::tz::TimeZone::UTC).unwrap();
        format!("@{}", since.timestamp().as_second())
    });
    assert_eq!(answer.header("deprecation"), since.unwrap_or_default());
    let until = row
        .until
        .map(|day| day.strftime("%a, %d %b %Y 00:00:00 GMT"));
    let until = until.map(|until| until.to_string());
    assert_eq!(answer.header("sunset"), until.unwrap_or_default());
    let link = row.successor.map(|path| {
        let base_url = &vault.base_url;
        format!("<{base_url}{path}>; rel=\"successor-version\"")
    });
    assert_eq!(answer.header("link"), link.unwrap_or_default());
}

async fn bare(client: &Client, method: Method, path: &str) -> Answer {
    client.send(client.request(method, path)).await
}

/// Covers 26.1, 26.2.
#[tokio::test]
async fn list_tokens_v1_is_served_or_gone() {
    let office = Office::open().await;
    let served = office.client.get("/tokens").await;
    assert_eq!(served.status, StatusCode::OK);
    office.require_told(&served, Deprecated::ListTokensV1).await;

    let office = Office::open_with(Mode::Gone).await;
    let gone = office.client.get("/tokens").await;
    assert_eq!(gone.status, StatusCode::GONE);
    let detail = "This is gone (List Tokens v1): use GET /v2/tokens.";
    assert_eq!(gone.body["detail"], detail);
    office.require_told(&gone, Deprecated::ListTokensV1).await;
}

/// Covers 26.1, 26.2.
#[tokio::test]
async fn search_tokens_v1_is_served_or_gone() {
    let office = Office::open().await;
    let query = json!({"query": "metadata.a:1 AND metadata.b:2"});
    let served = office.client.post("/tokens/search", query.clone()).await;
    assert_eq!(served.status, StatusCode::OK);
    let row = Deprecated::SearchTokensV1;
    office.require_told(&served, row).await;

    let office = Office::open_with(Mode::Gone).await;
    let gone = office.client.post("/tokens/search", query).await;
    assert_eq!(gone.status, StatusCode::GONE);
    let detail = "This is gone (Search Tokens v1): use POST /v2/tokens/search.";
    assert_eq!(gone.body["detail"], detail);
    office.require_told(&gone, row).await;
}

/// Covers 26.3.
#[tokio::test]
async fn a_callback_url_of_a_reactor_is_named() {
    for path in ["/reactors/{id}/react", "/reactors/{id}/react-async"] {
        let office = Office::open().await;
        let path = path.replace("{id}", "c06d0789-0a38-40be-b7cc-c28a718f76f1");
        let plain = json!({"args": {"a": 1}, "callback_url": null});
        let unused = office.client.post(&path, plain).await;
        assert_eq!(unused.status, StatusCode::NOT_FOUND);
        assert_eq!(unused.header("deprecation"), "");

        let body = json!({"args": {}, "callback_url": "https://shop.example/done"});
        let refused = office.client.post(&path, body).await;

        assert_eq!(refused.status, StatusCode::BAD_REQUEST);
        let rule = "was removed: use the events of reactors and POST /reactors/{id}/react-async";
        assert_eq!(refused.body["errors"], json!({"callback_url": [rule]}));
        let row = Deprecated::ReactorCallbackUrl;
        office.require_told(&refused, row).await;
    }
}

/// Covers 26.4.
#[tokio::test]
async fn keys_of_the_older_format_work_and_are_told_of() {
    let office = Office::open().await;
    let (vault, tenant) = (&office.vault, &office.tenant);
    let holder = vault
        .holder(
            tenant,
            ApplicationKind::Private,
            everything(Transform::Mask),
        )
        .await;
    let text = "key_N88mVGsp3sCXkykyN2EFED";
    let key = Sensitive::new(text.to_owned());
    let application = holder.application.to_string();
    let imported = applications::import_key(&vault.vault, tenant, &application, &key).await;
    imported.unwrap();

    let older = vault.client_with(Some(text)).get("/v2/tokens").await;
    let newer = vault.client_with(Some(&holder.key)).get("/v2/tokens").await;

    assert_eq!([older.status, newer.status], [StatusCode::OK; 2]);
    assert_eq!(newer.header("deprecation"), "");
    let row = Deprecated::LegacyRateLimits;
    office.require_told(&older, row).await;
}

/// Covers 26.5.
#[tokio::test]
async fn regenerating_a_key_is_gone() {
    let office = Office::open().await;
    let path = "/applications/c06d0789-0a38-40be-b7cc-c28a718f76f1/regenerate";

    let gone = bare(&office.client, Method::POST, path).await;

    assert_eq!(gone.status, StatusCode::GONE);
    let detail = gone.body["detail"].as_str().unwrap();
    assert!(detail.contains("POST /applications/{id}/keys"), "{detail}");
    office.require_told(&gone, Deprecated::RegenerateKey).await;
}

/// Covers 26.6.
#[tokio::test]
async fn complex_queries_are_refused() {
    let office = Office::open().await;
    let client = &office.client;
    let mut expected = BTreeMap::new();
    for query in [
        "type:card",
        "fingerprint:abc",
        "container:\"/pci/high/\"",
        "created_by:abc",
        "created_at:2024",
        "modified_by:abc",
        "modified_at:2024",
        "id:a AND metadata.a:1",
        "data:a AND metadata.a:1",
        "metadata.a:1 OR metadata.b:2",
        "NOT metadata.a:1",
        "-metadata.a:1",
    ] {
        let refused = client.post("/tokens/search", json!({"query": query})).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{query}");
        assert_eq!(refused.refused(), ["query"], "{query}");
        require_headers(&office.vault, &refused, Some(Deprecated::SearchTokensV1));
        for row in [Deprecated::SearchTokensV1, Deprecated::ComplexSearch] {
            *expected.entry(row.row().name.to_owned()).or_default() += 1;
        }
    }
    for query in [
        "id:a",
        "data:a",
        "metadata.a:1",
        "metadata.a:1 AND metadata.b:2",
    ] {
        let served = client.post("/tokens/search", json!({"query": query})).await;
        assert_eq!(served.status, StatusCode::OK, "{query}");
        *expected.entry("search_tokens_v1".to_owned()).or_default() += 1;
    }
    assert_eq!(office.used().await, expected);
}

/// Covers 26.7.
#[tokio::test]
async fn reactor_formulas_are_gone() {
    let id = "c06d0789-0a38-40be-b7cc-c28a718f76f1";
    let row = Deprecated::ReactorFormulas;
    let office = Office::open().await;
    let mut calls = 0;
    for operation in row.row().operations {
        let (method, path) = operation.split_once(' ').unwrap();
        let path = path.replace("{id}", id);
        let gone = bare(&office.client, method.parse().unwrap(), &path).await;
        assert_eq!(gone.status, StatusCode::GONE, "{operation}");
        let detail = "This is gone (Reactor formulas): write the code into the reactor, as `code`.";
        assert_eq!(gone.body["detail"], detail);
        require_headers(&office.vault, &gone, Some(row));
        calls += 1;
    }
    let body = json!({"name": "n", "formula": {"id": id}});
    let one = format!("/reactors/{id}");
    for refused in [
        office.client.post("/reactors", body.clone()).await,
        office.client.put(&one, body.clone()).await,
        office.client.patch(&one, body).await,
    ] {
        assert_eq!(refused.status, StatusCode::BAD_REQUEST);
        let rule = "was removed: write the code into the reactor, as `code`";
        assert_eq!(refused.body["errors"], json!({"formula": [rule]}));
        require_headers(&office.vault, &refused, None);
        calls += 1;
    }
    let code = json!({"name": "n", "code": "module.exports = () => 1", "formula": null});
    let unbuilt = office.client.post("/reactors", code).await;
    assert_eq!(unbuilt.status, StatusCode::NOT_FOUND);
    let expected = BTreeMap::from([(row.row().name.to_owned(), calls)]);
    assert_eq!(office.used().await, expected);
}

/// Covers 26.8.
#[tokio::test]
async fn reactors_of_proxies_are_named() {
    let office = Office::open().await;
    let client = &office.client;
    let one = "/proxies/c06d0789-0a38-40be-b7cc-c28a718f76f1";
    let nulls = json!({"name": "n", "request_reactor_id": null, "response_reactor_id": null});
    let unused = client.post("/proxies", nulls).await;
    assert_eq!(unused.status, StatusCode::NOT_FOUND);
    assert_eq!(unused.header("deprecation"), "");

    let row = Deprecated::ProxyReactors;
    let rule = "was removed: use request_transform and response_transform";
    for attribute in ["request_reactor_id", "response_reactor_id"] {
        let mut body = json!({"name": "n", "destination_url": "https://shop.example"});
        body[attribute] = Value::from("c06d0789-0a38-40be-b7cc-c28a718f76f1");
        for refused in [
            client.post("/proxies", body.clone()).await,
            client.put(one, body.clone()).await,
            client.patch(one, body.clone()).await,
        ] {
            assert_eq!(refused.status, StatusCode::BAD_REQUEST);
            assert_eq!(refused.body["errors"], json!({attribute: [rule]}));
            require_headers(&office.vault, &refused, None);
        }
    }
    let expected = BTreeMap::from([(row.row().name.to_owned(), 6)]);
    assert_eq!(office.used().await, expected);
}

/// Covers 26.9.
#[tokio::test]
async fn privacy_names_a_container_and_is_not_returned() {
    let office = Office::open().await;
    let client = &office.client;
    let create = async |more: Value| {
        let mut body = json!({"type": "token", "data": "d"});
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let answer = client.post("/tokens", body).await;
        assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.body);
        assert!(answer.body.get("privacy").is_none());
        answer
    };

    let both = json!({"classification": "pci", "impact_level": "moderate",
        "restriction_policy": "redact"});
    let named = create(json!({"privacy": both})).await;
    let half = create(json!({"privacy": {"impact_level": "low"}})).await;
    let outvoted = create(json!({"privacy": both, "containers": ["/mine/"]})).await;
    let document = json!({"a": {"type": "token", "data": "d", "privacy": both}});
    let tokenized = client.post("/tokenize", document).await;
    let plain = create(json!({})).await;

    assert_eq!(named.body["containers"], json!(["/pci/moderate/"]));
    assert_eq!(half.body["containers"], json!(["/general/low/"]));
    assert_eq!(outvoted.body["containers"], json!(["/mine/"]));
    assert_eq!(tokenized.body["a"]["containers"], json!(["/pci/moderate/"]));
    let row = Deprecated::TokenPrivacy;
    for answer in [&named, &half, &outvoted, &tokenized] {
        require_headers(&office.vault, answer, None);
    }
    assert_eq!(plain.header("deprecation"), "");
    let expected = BTreeMap::from([(row.row().name.to_owned(), 4)]);
    assert_eq!(office.used().await, expected);
}

/// Covers 26.10.
#[tokio::test]
async fn permissions_by_classification_are_refused() {
    let office = Office::open().await;
    let manager = office.manager().await;
    let app =
        |permissions: Value| json!({"name": "n", "type": "private", "permissions": permissions});
    let made = manager
        .post("/applications", app(json!(["token:read"])))
        .await;
    let path = format!("/applications/{}", made.id());
    let ruled = json!({"name": "n", "type": "private", "rules": [{
        "description": "d", "priority": 1, "container": "/", "transform": "mask",
        "permissions": ["token:pii:read:low"]}]});

    let created = manager
        .post("/applications", app(json!(["token:pci:read:high"])))
        .await;
    let changed = manager.put(&path, app(json!(["token:bank:create"]))).await;
    let in_rule = manager.post("/applications", ruled).await;
    let unknown = manager
        .post("/applications", app(json!(["token:shred"])))
        .await;

    let row = Deprecated::ClassificationPermissions;
    for answer in [&created, &changed, &in_rule] {
        assert_eq!(answer.status, StatusCode::BAD_REQUEST);
        require_headers(&office.vault, answer, None);
    }
    assert_eq!(created.refused(), ["permissions"]);
    assert_eq!(in_rule.refused(), ["rules[0].permissions"]);
    assert_eq!(unknown.status, StatusCode::BAD_REQUEST);
    assert_eq!(unknown.header("deprecation"), "");
    let expected = BTreeMap::from([(row.row().name.to_owned(), 3)]);
    assert_eq!(office.used().await, expected);
}

/// Covers 26.11.
#[tokio::test]
async fn expiring_applications_are_refused() {
    let office = Office::open().await;
    let manager = office.manager().await;
    let body = json!({"name": "n", "type": "expiring", "permissions": ["token:create"]});

    let refused = manager.post("/applications", body).await;

    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    let rule = "was removed: use sessions of a public application";
    assert_eq!(refused.body["errors"]["type"], json!([rule]));
    let row = Deprecated::ExpiringApplications;
    office.require_told(&refused, row).await;
}

/// Covers 26.12.
#[tokio::test]
async fn the_pan_of_a_threeds_session_is_the_id_of_a_token() {
    let office = Office::open().await;
    let granted = grants(&[Permission::TokenCreate, Permission::ThreedsSessionCreate]);
    let client = office.vault.client(&office.tenant, granted).await;
    let card = json!({"type": "card", "data": {"number": "4242424242424242"}});
    let token = client.post("/tokens", card).await.id();
    let session = |name: &str| json!({"type": "merchant", name: token});

    let older = client.post("/3ds/sessions", session("pan")).await;
    let newer = client.post("/3ds/sessions", session("token_id")).await;

    // Whatever becomes of it here, where no network is set up: both names mean the same.
    assert_eq!(older.status, newer.status);
    assert_eq!(older.body["token_id"], newer.body["token_id"]);
    assert_eq!(older.body["pan_token_id"], newer.body["pan_token_id"]);
    assert_eq!(newer.header("deprecation"), "");
    office.require_told(&older, Deprecated::ThreedsPan).await;
}

/// Covers 26.13.
#[tokio::test]
async fn calls_are_counted_by_application_over_all_nodes() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let _counting = metrics::set_default_local_recorder(&recorder);
    let office = Office::open().await;
    let other = office.vault.second_node().await;
    let second = other
        .client(&office.tenant, everything(Transform::Mask))
        .await;
    let stranger = office.vault.tenant().await;
    let strange = office
        .vault
        .client(&stranger, everything(Transform::Mask))
        .await;
    for _ in 0..3 {
        office.client.get("/tokens").await;
        office.client.at(&other.base_url).get("/tokens").await;
        second.get("/tokens").await;
    }
    strange.get("/tokens").await;
    other.vault.deprecations.write(&other.vault).await.unwrap();

    assert_eq!(office.used().await.values().sum::<u64>(), 9);
    let listed = deprecations::list(&other.vault, office.tenant.id)
        .await
        .unwrap();
    let calls: Vec<u64> = listed.iter().map(|used| used.calls).collect();
    assert_eq!(calls, [6, 3]);
    let names = listed.iter().map(|used| used.application_name.as_deref());
    assert!(names.eq([Some("A private application"); 2]));
    assert!(listed.iter().all(|used| used.first_at <= used.last_at));
    let strangers = deprecations::list(&other.vault, stranger.id).await.unwrap();
    assert_eq!(strangers.len(), 1);
    let text = recorder.handle().render();
    for (tenant, calls) in [(&office.tenant, 9), (&stranger, 1)] {
        let labels = format!(
            "deprecation=\"list_tokens_v1\",tenant=\"{}\"",
            tenant.id.uuid
        );
        let line = format!("deprecated_calls_total{{{labels}}} {calls}");
        assert!(text.lines().any(|found| found == line), "{line} in {text}");
    }
}

/// Covers 26.13.
#[tokio::test]
async fn calls_wait_for_a_database_that_is_away() {
    let office = Office::open().await;
    let vault = &office.vault.vault;
    let database = office.vault.database.connect().await;
    office.client.get("/tokens").await;
    database
        .batch_execute("alter table deprecated_call rename to away")
        .await
        .unwrap();

    assert!(vault.deprecations.write(vault).await.is_err());
    office.client.get("/tokens").await;
    database
        .batch_execute("alter table away rename to deprecated_call")
        .await
        .unwrap();

    assert_eq!(
        office.used().await,
        BTreeMap::from([("list_tokens_v1".to_owned(), 2)])
    );
}

/// Covers 26.14.
#[test]
fn the_description_marks_exactly_the_operations_of_the_table() {
    let document = serde_json::to_value(cloakroom::router::document()).unwrap();
    let mut marked = Vec::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            if operation["deprecated"] == true {
                marked.push(format!("{} {path}", method.to_uppercase()));
            }
        }
    }
    let listed = ALL.iter().flat_map(|it| it.row().operations);
    let mut listed: Vec<String> = listed.map(|it| (*it).to_owned()).collect();
    listed.sort();
    marked.sort();

    assert_eq!(marked, listed);
}

/// The specification's own table, row by row.
///
/// Covers 26.14.
#[test]
fn the_table_has_every_row_of_the_specification() {
    let expected = [
        ("list_tokens_v1", "2025-01-03", "2025-03-01", "served"),
        ("search_tokens_v1", "2025-01-03", "2025-03-01", "served"),
        (
            "reactor_callback_url",
            "2024-11-01",
            "2025-01-15",
            "refused",
        ),
        ("legacy_rate_limits", "2024-06-10", "2024-07-16", "accepted"),
        ("regenerate_key", "2024-04-17", "2024-10-17", "gone"),
        ("complex_search", "2024-01-23", "2024-01-23", "refused"),
        ("reactor_formulas", "2023-10-16", "2024-02-14", "gone"),
        ("proxy_reactors", "2022-11-30", "2023-03-31", "refused"),
        ("token_privacy", "2022-10-13", "2023-02-01", "accepted"),
    ];
    let rows = ALL.iter().map(|it| it.row());
    let dated = rows.filter(|row| row.since.is_some() && row.until.is_some());
    let found: Vec<(&str, String, String, &str)> = dated
        .map(|row| {
            let day = |day: Option<jiff::civil::Date>| day.unwrap().to_string();
            (
                row.name,
                day(row.since),
                day(row.until),
                row.treatment.name(),
            )
        })
        .collect();
    let expected = expected.map(|(name, since, until, treatment)| {
        (name, since.to_owned(), until.to_owned(), treatment)
    });
    assert_eq!(found, expected);
    let served = ALL.iter().map(|it| it.row().treatment);
    assert_eq!(
        served
            .filter(|it| matches!(it, Treatment::Served(_)))
            .count(),
        2
    );
}
