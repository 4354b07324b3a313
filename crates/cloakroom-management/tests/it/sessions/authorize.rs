//! Creating and authorizing sessions.

use std::time::Duration;

use cloakroom::access::{ApplicationKind, Permission};
use cloakroom_testkit::{TestDatabase, TestVault, grants};
use http::StatusCode;
use serde_json::{Value, json};

use super::{Fixture, client_of, condition, create, rule};

const UNKNOWN_NONCE: &str = "1111111111111111111111";

/// Covers 17.1.
#[tokio::test]
async fn only_public_keys_create_sessions_and_private_keys_authorize_them() {
    let fixture = Fixture::new().await;

    let created = create(&fixture.browser).await;

    assert_eq!(created.status, StatusCode::CREATED);
    let key = created.body["session_key"].as_str().unwrap();
    assert!(key.starts_with("key_test_us_ses_"), "{key}");
    assert_eq!(created.body["nonce"].as_str().unwrap().len(), 22);
    let expires_at: jiff::Timestamp = created.body["expires_at"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    let left = expires_at.duration_since(fixture.now().await).as_secs();
    assert!((170..=181).contains(&left), "{left}");
    let management = client_of(
        &fixture,
        ApplicationKind::Management,
        Permission::TenantRead,
    )
    .await;
    let session = fixture
        .authorized(json!({"permissions": ["token:create"]}))
        .await;
    for (kind, client) in [
        ("private", &fixture.server),
        ("management", &management),
        ("session", &session),
    ] {
        assert_eq!(create(client).await.status, StatusCode::FORBIDDEN, "{kind}");
    }
    let body = json!({"nonce": created.body["nonce"], "permissions": ["token:read"]});
    for (kind, client) in [
        ("public", &fixture.browser),
        ("management", &management),
        ("session", &session),
    ] {
        let response = client.post("/sessions/authorize", body.clone()).await;
        assert_eq!(response.status, StatusCode::FORBIDDEN, "{kind}");
    }
}

/// Covers 17.2, 17.3.
#[tokio::test]
async fn sessions_have_exactly_the_permissions_that_were_granted() {
    let fixture = Fixture::new().await;
    let path = fixture.token("card-1", "/pci/high/").await;
    let (session, nonce) = fixture.session().await;

    for path in [
        &path,
        "/v2/tokens",
        "/permissions",
        "/applications/key",
        "/nowhere-at-all",
    ] {
        let response = session.get(path).await;
        let expected = match path {
            "/nowhere-at-all" => StatusCode::NOT_FOUND,
            _ => StatusCode::FORBIDDEN,
        };
        assert_eq!(response.status, expected, "{path}");
    }
    let scope = json!({"container": "/pci/"});
    let permissions = ["token:read", "token:search", "token:delete", "token:use"];
    let rules = json!([rule(&permissions, "reveal", scope)]);
    let body = json!({"nonce": nonce, "rules": rules});
    let other = fixture.vault.second_node().await;
    let elsewhere = other.client_with(Some(session.key().unwrap()));
    assert_eq!(elsewhere.get(&path).await.status, StatusCode::FORBIDDEN);
    assert_eq!(
        fixture
            .server
            .post("/sessions/authorize", body)
            .await
            .status,
        StatusCode::OK
    );

    for node in [&session, &elsewhere] {
        assert_eq!(
            node.get(&path).await.body["data"],
            "secret",
            "on every node immediately"
        );
    }
    let own = json!({"type": "token", "data": "x"});
    let created = session.post("/tokens", own).await;
    assert_eq!(
        created.status,
        StatusCode::FORBIDDEN,
        "the grants of the application do not apply"
    );
    assert_eq!(session.delete(&path).await.status, StatusCode::NO_CONTENT);
}

/// Covers 2.22, 17.4.
#[tokio::test]
async fn session_activity_is_attributed_to_its_application() {
    let fixture = Fixture::new().await;
    let session = fixture
        .authorized(json!({"permissions": ["token:create"]}))
        .await;

    let token = session
        .post("/tokens", json!({"type": "token", "data": "x"}))
        .await;

    assert_eq!(token.body["created_by"], fixture.browser_id);
    let logs = client_of(&fixture, ApplicationKind::Management, Permission::LogRead).await;
    let entries = logs.get(&format!("/logs?entity_id={}", token.id())).await;
    assert_eq!(entries.items()[0]["actor_id"], fixture.browser_id);
    let sessions = logs.get("/logs?entity_type=session").await;
    let messages: Vec<&Value> = sessions.items().iter().map(|it| &it["message"]).collect();
    assert_eq!(messages, ["Session authorized", "Session created"]);
}

/// Covers 17.5.
#[tokio::test]
async fn nonces_are_used_once_under_concurrency() {
    let fixture = Fixture::new().await;
    let other = fixture.vault.second_node().await;
    let nodes = [
        fixture.server.clone(),
        other.client_with(Some(fixture.server.key().unwrap())),
    ];
    let (_, nonce) = fixture.session().await;
    let mut requests = tokio::task::JoinSet::new();
    for index in 0..16 {
        let (client, nonce) = (nodes[index % 2].clone(), nonce.clone());
        requests.spawn(async move {
            let body = json!({"nonce": nonce, "permissions": ["token:read"]});
            client.post("/sessions/authorize", body).await.status
        });
    }
    let responses = requests.join_all().await;
    let count = |status| responses.iter().filter(|it| **it == status).count();
    assert_eq!(
        (count(StatusCode::OK), count(StatusCode::CONFLICT)),
        (1, 15)
    );

    let body = |nonce: &str| json!({"nonce": nonce, "permissions": ["token:read"]});
    let unknown = fixture
        .server
        .post("/sessions/authorize", body(UNKNOWN_NONCE))
        .await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
    let (_, foreign) = Fixture::new().await.session().await;
    let foreign = fixture
        .server
        .post("/sessions/authorize", body(&foreign))
        .await;
    assert_eq!(foreign.bytes, unknown.bytes, "a nonce of another vault");
    let tenant = fixture.vault.tenant().await;
    let other_tenant = fixture
        .vault
        .client(&tenant, grants(&[Permission::TokenRead]))
        .await;
    let (_, nonce) = fixture.session().await;
    let other_tenant = other_tenant.post("/sessions/authorize", body(&nonce)).await;
    assert_eq!(
        other_tenant.bytes, unknown.bytes,
        "a nonce of another tenant"
    );
}

/// Covers 17.6.
#[tokio::test]
async fn invalid_grants_are_rejected_by_attribute() {
    let fixture = Fixture::new().await;
    let in_a_day = fixture.now().await + Duration::from_secs(24 * 3600 + 60);
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
    ];
    assert_rejected(&fixture, &cases).await;
}

/// Covers 17.6.
#[tokio::test]
async fn invalid_rules_are_rejected_by_attribute() {
    let fixture = Fixture::new().await;
    let container = || json!({"container": "/a/"});
    let read = ["token:read"];
    let conditions =
        |conditions: Value| json!([rule(&read, "mask", json!({"conditions": conditions}))]);
    let cases = [
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
            json!({"rules": [rule(&read, "mask", json!({
                "container": "/a/", "conditions": [condition("id", "equals", "x")],
            }))]}),
            "rules[0].container",
        ),
    ];
    assert_rejected(&fixture, &cases).await;
}

/// Authorizes a session with each body, and asserts that the attribute is reported as invalid.
async fn assert_rejected(fixture: &Fixture, cases: &[(Value, &str)]) {
    let (_, nonce) = fixture.session().await;
    for (body, invalid) in cases {
        let mut body = body.clone();
        if body.get("nonce").is_none() {
            body["nonce"] = json!(nonce);
        }
        let response = fixture
            .server
            .post("/sessions/authorize", body.clone())
            .await;
        assert_eq!(response.status, StatusCode::BAD_REQUEST, "{body}");
        assert!(
            response.refused().contains(invalid),
            "{body}: {:?}",
            response.refused()
        );
    }
}

/// Covers 17.11.
#[tokio::test]
async fn sessions_exceed_the_authorizing_key_only_without_require_subset() {
    for is_required in [true, false] {
        let vault = TestVault::start_with(TestDatabase::create().await, |config| {
            config.sessions.require_subset = is_required;
        })
        .await;
        let mut fixture = Fixture::on(vault).await;
        let masked = grants(&[Permission::TokenRead]);
        fixture.server = fixture.vault.client(&fixture.tenant, masked).await;
        let path = fixture.token("card-1", "/a/").await;
        let scope = || json!({"container": "/a/"});
        let beyond = [
            (json!({"permissions": ["token:create"]}), "permissions"),
            (
                json!({"rules": [rule(&["token:delete"], "redact", scope())]}),
                "rules[0].permissions",
            ),
            (
                json!({"rules": [rule(&["token:read"], "reveal", scope())]}),
                "rules[0].permissions",
            ),
        ];
        let (mut session, mut nonce) = fixture.session().await;
        for (mut body, name) in beyond {
            body["nonce"] = json!(nonce);
            let response = fixture.server.post("/sessions/authorize", body).await;
            match is_required {
                true => assert_eq!(response.refused(), [name]),
                false => {
                    assert_eq!(response.status, StatusCode::OK, "{}", response.body);
                    let read = session.get(&path).await;
                    let is_last = name != "permissions" && read.status == StatusCode::OK;
                    assert!(!is_last || read.body["data"] == "secret");
                    (session, nonce) = fixture.session().await;
                }
            }
        }
        let body = json!({"nonce": nonce, "rules": [rule(&["token:read"], "mask", scope())]});
        let authorized = fixture.server.post("/sessions/authorize", body).await;
        assert_eq!(authorized.status, StatusCode::OK);
        assert_eq!(session.get(&path).await.body["data"], "se");
    }
}
