//! Token ids that an expression computes.

use std::collections::BTreeSet;

use cloakroom_testkit::TestVault;
use http::StatusCode;
use serde_json::{Value, json};

use super::create_with_id;

fn is_random_uuid(id: &str) -> bool {
    uuid::Uuid::parse_str(id).is_ok_and(|id| id.get_version_num() == 4)
}

fn person() -> Value {
    json!({
        "ssn": "111-22-3333", "email": "john.doe@gmail.com", "n": 1234, "ok": true, "slash": "a/b",
        "blank": " x", "short": "ab", "card": "4242424242424242", "list": ["a", "b"],
    })
}

/// Covers 9.7, 9.8.
#[tokio::test]
async fn ids_may_be_computed_from_the_data() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;

    let valid = [
        ("{{ data.email }}", "john.doe@gmail.com"),
        ("order {{ data.n }}-{{ data.ok }}", "order 1234-true"),
        ("{{ data.ssn | remove: '-' }}", "111223333"),
        ("{{ data.slash | replace: '/', ' ' | append: '!' }}", "a b!"),
        ("{{ data.list | join: '..' }}", "a..b"),
    ];
    for (expression, expected) in valid {
        let created = create_with_id(&client, expression, person()).await;
        assert_eq!(
            created.status,
            StatusCode::CREATED,
            "{expression}: {}",
            created.body
        );
        assert_eq!(created.body["id"], expected, "{expression}");
    }
    let invalid = [
        "{{ data.slash }}",
        "{{ data.short }}",
        "{{ data.blank }}",
        "{{ data.missing }}",
        "{{ data.card }}",
        "{{ data | stringify }}",
        "{{ data.n | divided_by: 0 }}",
        "{{ data.ssn | alias_preserve_format }}/",
        "{{ data.email }}{",
        "{{ data | nothing }}",
    ];
    for expression in invalid {
        let response = create_with_id(&client, expression, person()).await;
        assert_eq!(
            response.refused(),
            ["id"],
            "{expression}: {}",
            response.body
        );
        assert!(
            !String::from_utf8(response.bytes).unwrap().contains("4242"),
            "{expression}"
        );
    }
}

/// Covers 9.13.
#[tokio::test]
async fn aliases_keep_the_format_of_their_filter() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let alias = async |expression: &str| create_with_id(&client, expression, person()).await.id();

    let ssn = alias("{{ data.ssn | alias_preserve_format: 0, 4 }}").await;
    let parts: Vec<&str> = ssn.split('-').collect();
    let are_digits = |part: &&str| part.bytes().all(|byte| byte.is_ascii_digit());
    assert!(parts.iter().all(are_digits), "{ssn}");
    assert_eq!((parts[0].len(), parts[1].len(), parts[2]), (3, 2, "3333"));
    let name = "{{ data.email | split: '@' | first | alias_preserve_length }}";
    let email = alias(&format!("{name}@{{{{ data.email | split: '@' | last }}}}")).await;
    let (name, domain) = email.split_once('@').unwrap();
    assert_eq!((name.chars().count(), domain), (8, "gmail.com"));
    assert_ne!(name, "john.doe");
    // One in ten candidates would be a valid card number; those are discarded.
    for _ in 0..40 {
        let card = alias("{{ data.card | alias_card: false, true }}").await;
        assert_eq!((card.len(), &card[12..]), (16, "4242"));
    }
}

/// Covers 9.9.
#[tokio::test]
async fn random_aliases_avoid_ids_in_use() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    // One random digit and two fixed letters: ten possible ids.
    let alias = "{{ data | alias_preserve_format: 0, 2 }}";
    let possible: BTreeSet<String> = (0..10).map(|digit| format!("{digit}ab")).collect();

    for id in possible.iter().skip(1) {
        assert_eq!(
            create_with_id(&client, id, json!(1)).await.status,
            StatusCode::CREATED
        );
    }
    // One id is left. Ten attempts find it in two of three cases; otherwise a random UUID is assigned.
    let mut assigned = BTreeSet::new();
    for _ in 0..20 {
        let created = create_with_id(&client, alias, json!("7ab")).await;
        assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
        assert!(assigned.insert(created.id()), "{}", created.id());
    }

    let found = assigned.iter().filter(|id| possible.contains(*id)).count();
    let random = assigned.iter().filter(|id| is_random_uuid(id)).count();
    assert_eq!((found, random), (1, 19), "{assigned:?}");
}

/// Covers 9.10.
#[tokio::test]
async fn deterministic_aliases_conflict_with_ids_in_use() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;

    let first = create_with_id(&client, "u-{{ data.user }}", json!({"user": "ada", "n": 1})).await;
    let second = create_with_id(&client, "u-{{ data.user }}", json!({"user": "ada", "n": 2})).await;
    let other = create_with_id(&client, "u-{{ data.user }}", json!({"user": "bob"})).await;

    assert_eq!(
        (first.status, first.id()),
        (StatusCode::CREATED, "u-ada".to_owned())
    );
    assert_eq!(second.status, StatusCode::CONFLICT);
    assert_eq!(other.status, StatusCode::CREATED);
    assert_eq!(client.get("/tokens/u-ada").await.body["data"]["n"], 1);
}
