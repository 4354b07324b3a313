//! Access rules with conditions.

use cloakroom::access::{ApplicationKind, Permission};
use cloakroom_testkit::{Client, TestResponse, grants};
use http::StatusCode;
use serde_json::{Value, json};

use super::{Fixture, condition, rule};

/// Covers 17.6.
#[tokio::test]
async fn conditions_are_allowed_only_in_sessions() {
    let fixture = Fixture::new().await;
    let about = json!({"conditions": [condition("id", "equals", "x")]});
    let management = grants(&[Permission::ApplicationCreate]);
    let management = fixture
        .vault
        .holder(&fixture.tenant, ApplicationKind::Management, management)
        .await;
    let management = fixture.vault.client_with(Some(&management.key));
    let with_conditions = json!({
        "name": "n", "type": "private",
        "rules": [rule(&["token:read"], "mask", about)],
    });
    let response = management.post("/applications", with_conditions).await;
    assert_eq!(
        response.refused(),
        ["rules[0].conditions"],
        "only sessions have conditions"
    );
}

/// The last id contains what other ids start with.
const TOKENS: [(&str, &str); 5] = [
    ("card-1", "/users/eu/"),
    ("card-12", "/users/us/"),
    ("bank-1", "/users/eu/"),
    ("card-3", "/orders/"),
    ("my-card-1", "/all/users/eu/"),
];

/// Conditions, and the tokens that match all of them.
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

/// Verifies each rule against each of five tokens, through every operation.
///
/// Covers 17.7.
#[tokio::test]
async fn conditions_apply_to_every_operation() {
    let fixture = Fixture::new().await;
    for (id, container) in TOKENS {
        fixture.token(id, container).await;
    }
    let all = ["token:read", "token:search", "token:update", "token:delete"];
    for (conditions, expected) in conditions_and_tokens() {
        let rules = json!([rule(&all, "reveal", json!({"conditions": conditions}))]);
        let session = fixture.authorized(json!({"rules": rules})).await;
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
            check_access(&session, id, is_covered, &case).await;
            // Moving a token out of a container that a condition names is forbidden; conditions on ids allow it.
            let path = format!("/tokens/{id}");
            let elsewhere = json!({"containers": ["/elsewhere/"]});
            let moved = session.patch(&path, elsewhere).await.status;
            let may_move = is_covered && !conditions.to_string().contains("container");
            assert_eq!(moved == StatusCode::OK, may_move, "move {case}");
            let back = json!({"containers": [container]});
            fixture.creator.patch(&path, back).await;
        }
    }
    let only = json!({"conditions": [condition("id", "equals", "card-1")]});
    let rules = json!([rule(&all, "reveal", only)]);
    let session = fixture.authorized(json!({"rules": rules})).await;
    for (id, expected) in [
        ("card-12", StatusCode::FORBIDDEN),
        ("card-1", StatusCode::NO_CONTENT),
    ] {
        let deleted = session.delete(&format!("/tokens/{id}")).await;
        assert_eq!(deleted.status, expected, "{id}");
    }
}

/// Reads, detokenizes and updates one token; all succeed or all are forbidden.
async fn check_access(session: &Client, id: &str, is_covered: bool, case: &str) {
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

fn ids(response: &TestResponse) -> Vec<&str> {
    let items = response.items().iter();
    items.map(|token| token["id"].as_str().unwrap()).collect()
}

/// One token that the session covers, and three others that match the same queries.
async fn create_covered_and_other_tokens(fixture: &Fixture) {
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
        let created = fixture.creator.post("/tokens", token).await;
        assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
    }
}

/// Covers 17.13.
#[tokio::test]
async fn lists_with_conditions_reveal_no_other_tokens() {
    let fixture = Fixture::new().await;
    create_covered_and_other_tokens(&fixture).await;
    let both = ["token:read", "token:search"];
    let by_id = json!({"conditions": [condition("id", "equals", "mine")]});
    let by_id = json!({"rules": [rule(&both, "mask", by_id)]});
    let session = fixture.authorized(by_id).await;
    let search = async |path: &str, query: &str| {
        let body = json!({"query": query, "size": 1});
        session.post(path, body).await
    };

    let (v2, v1) = ("/v2/tokens/search", "/tokens/search");
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
        ("search", search(v2, "data:shared").await, true),
        ("foreign", search(v2, "data:foreign").await, false),
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
        ("old search", search(v1, "data:shared").await, true),
        ("old foreign", search(v1, "data:foreign").await, false),
    ];
    for (case, response, is_found) in cases {
        let expected: &[&str] = if is_found { &["mine"] } else { &[] };
        assert_eq!(response.status, StatusCode::OK, "{case}: {}", response.body);
        assert_eq!(ids(&response), expected, "{case}");
        let pagination = &response.body["pagination"];
        assert_eq!(pagination.get("next"), None, "{case}");
        if let Some(total) = pagination.get("total_items") {
            let is_page = is_found || case == "old second page";
            assert_eq!(*total, json!(u8::from(is_page)), "{case}");
        }
    }
    let by_container = json!({"conditions": [condition("container", "equals", "/a/")]});
    let by_container = json!({"rules": [rule(&both, "mask", by_container)]});
    let session = fixture.authorized(by_container).await;
    let elsewhere = session.get("/v2/tokens?container=/c/").await;
    assert_eq!(elsewhere.status, StatusCode::FORBIDDEN);
}

/// Covers 17.14.
#[tokio::test]
async fn pages_with_conditions_are_filled_within_the_scan_limit() {
    let fixture = Fixture::new().await;
    for number in 0..12 {
        fixture.token(&format!("card-{number:02}"), "/a/").await;
        fixture.token(&format!("bank-{number:02}"), "/a/").await;
    }
    let scope = json!({"conditions": [condition("id", "starts_with", "card-")]});
    let rules = json!({"rules": [rule(&["token:read"], "mask", scope)]});
    let session = fixture.authorized(rules).await;

    let mut sizes = Vec::new();
    let mut found: Vec<String> = Vec::new();
    let mut path = "/v2/tokens?size=5".to_owned();
    loop {
        let page = session.get(&path).await;
        sizes.push(page.items().len());
        found.extend(ids(&page).into_iter().map(str::to_owned));
        let Some(next) = page.body["pagination"]["next"].as_str() else {
            break;
        };
        path = format!("/v2/tokens?size=5&start={next}");
    }
    let newest_first: Vec<String> = (0..12).rev().map(|n| format!("card-{n:02}")).collect();
    assert_eq!((sizes, found), (vec![5, 5, 2], newest_first));

    // With a thousand other tokens in front, the first page ends there, and the next one continues.
    let database = fixture.vault.database.connect().await;
    let filler = "create temp table filler as
            select token.* from token, generate_series(1, 1000)
            where alias = 'bank-00';
        update filler set token_id = gen_random_uuid(), alias = null,
            created_at = now() + interval '1 hour';
        insert into token select * from filler";
    database.batch_execute(filler).await.unwrap();
    let first = session.get("/v2/tokens?size=5").await;
    let next = first.body["pagination"]["next"].as_str().unwrap();
    let second = session
        .get(&format!("/v2/tokens?size=5&start={next}"))
        .await;
    assert_eq!((first.status, first.items().len()), (StatusCode::OK, 0));
    assert_eq!(ids(&second)[0], "card-11");
    assert_eq!(second.items().len(), 5);
}
