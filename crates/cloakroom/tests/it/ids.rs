//! Ids that clients choose, literally or by an expression.

use std::collections::BTreeSet;

use http::StatusCode;
use serde_json::{Value, json};

use crate::support::{Answer, Client, TestVault};

async fn create(client: &Client, id: &str, data: Value) -> Answer {
    client
        .post("/tokens", json!({"id": id, "type": "token", "data": data}))
        .await
}

fn is_random_uuid(id: &str) -> bool {
    uuid::Uuid::parse_str(id).is_ok_and(|id| id.get_version_num() == 4)
}

/// Covers 9.1, 9.2, 9.3, 9.4, 9.15.
#[tokio::test]
async fn a_literal_id_follows_the_rules() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;

    let longest = "\u{e4}".repeat(400);
    let valid = [
        "abc",
        "...",
        "order 17",
        "a@b.c",
        "k\u{e4}se",
        "\u{540d}\u{524d}\u{2603}",
        "a:b;c,d!e$f'g(h)i*j~k`l\"m_n-o.p",
        "Search",
        longest.as_str(),
    ];
    for id in valid {
        let created = create(&client, id, json!(id)).await;
        assert_eq!(
            created.status,
            StatusCode::CREATED,
            "{id}: {}",
            created.body
        );
        assert_eq!(created.body["id"], id);
        let location = created.header("location").to_owned();
        let path = location.strip_prefix(&vault.base_url).unwrap();
        let found = client.get(path).await;
        assert_eq!(
            (found.status, &found.body["data"]),
            (StatusCode::OK, &json!(id)),
            "{path}"
        );
    }
    let too_long = "x".repeat(401);
    let broken = [
        "",
        "a",
        "ab",
        "\u{e4}\u{f6}",
        too_long.as_str(),
        " abc",
        "abc ",
        "\u{a0}abc",
        "abc\u{2003}",
        "a\nbc",
        "abc\n",
        "a\u{0}c",
        "a\u{7f}c",
        "a\u{85}c",
    ];
    for id in broken {
        assert_eq!(
            create(&client, id, json!(1)).await.refused(),
            ["id"],
            "{id:?}"
        );
    }
    // The older search has this address.
    assert_eq!(create(&client, "search", json!(1)).await.refused(), ["id"]);
    for forbidden in "#/\\+?[]|&=%<>{}^".chars() {
        for id in [
            format!("ab{forbidden}cd"),
            format!("{forbidden}abc"),
            format!("abc{forbidden}"),
        ] {
            assert_eq!(
                create(&client, &id, json!(1)).await.refused(),
                ["id"],
                "{id}"
            );
        }
    }
}

/// Covers 9.5, 9.6, 9.14.
#[tokio::test]
async fn an_id_is_taken_once_in_each_tenant() {
    let vault = TestVault::start().await;
    let (client, other) = (
        vault.revealing_client().await,
        vault.revealing_client().await,
    );

    let first = create(&client, "Order 17", json!("first")).await;
    let again = create(&client, "Order 17", json!("second")).await;
    let lower = create(&client, "order 17", json!("lower")).await;
    let foreign = create(&other, "Order 17", json!("foreign")).await;

    assert_eq!(first.status, StatusCode::CREATED);
    assert_eq!(
        (again.status, &again.body["status"]),
        (StatusCode::CONFLICT, &json!(409))
    );
    assert_eq!(
        (lower.status, foreign.status),
        (StatusCode::CREATED, StatusCode::CREATED)
    );
    let read = async |client: &Client, id: &str| {
        client.get(&format!("/tokens/{id}")).await.body["data"].clone()
    };
    assert_eq!(read(&client, "Order%2017").await, "first");
    assert_eq!(read(&client, "order%2017").await, "lower");
    assert_eq!(read(&other, "Order%2017").await, "foreign");

    assert_eq!(
        client.delete("/tokens/Order%2017").await.status,
        StatusCode::NO_CONTENT
    );
    assert_eq!(
        create(&client, "Order 17", json!("third")).await.status,
        StatusCode::CREATED
    );
    assert_eq!(read(&client, "Order%2017").await, "third");
    assert_eq!(read(&other, "Order%2017").await, "foreign");
}

/// Covers 9.5.
#[tokio::test]
async fn of_many_that_want_an_id_at_once_one_gets_it() {
    let vault = TestVault::start_patient().await;
    let node = vault.second_node().await;
    let tenant = vault.tenant().await;
    let holder = vault
        .holder(
            &tenant,
            cloakroom::access::ApplicationKind::Private,
            crate::support::everything(cloakroom::access::Transform::Reveal),
        )
        .await;

    for round in 0..3 {
        let mut creating = tokio::task::JoinSet::new();
        for n in 0..32 {
            let at = [&vault, &node][n % 2];
            let client = at.client_with(Some(&holder.key));
            creating.spawn(async move {
                let answer = create(&client, &format!("wanted {round}"), json!(n)).await;
                (answer.status, n)
            });
        }
        let answers = creating.join_all().await;

        let won: Vec<usize> = answers
            .iter()
            .filter(|(status, _)| *status == StatusCode::CREATED)
            .map(|(_, n)| *n)
            .collect();
        let lost = answers
            .iter()
            .filter(|(status, _)| *status == StatusCode::CONFLICT)
            .count();
        assert_eq!((won.len(), lost), (1, 31), "{answers:?}");
        let client = vault.client_with(Some(&holder.key));
        let found = client.get(&format!("/tokens/wanted%20{round}")).await;
        assert_eq!(found.body["data"], won[0]);
    }
}

fn person() -> Value {
    json!({
        "ssn": "111-22-3333", "email": "john.doe@gmail.com", "n": 1234, "ok": true, "slash": "a/b",
        "blank": " x", "short": "ab", "card": "4242424242424242", "list": ["a", "b"],
    })
}

/// Covers 9.7, 9.8.
#[tokio::test]
async fn an_expression_makes_an_id_of_the_data() {
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
        let created = create(&client, expression, person()).await;
        assert_eq!(
            created.status,
            StatusCode::CREATED,
            "{expression}: {}",
            created.body
        );
        assert_eq!(created.body["id"], expected, "{expression}");
    }
    let broken = [
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
    for expression in broken {
        let answer = create(&client, expression, person()).await;
        assert_eq!(answer.refused(), ["id"], "{expression}: {}", answer.body);
        assert!(
            !String::from_utf8(answer.bytes).unwrap().contains("4242"),
            "{expression}"
        );
    }
}

/// Covers 9.13.
#[tokio::test]
async fn an_alias_keeps_the_format_that_its_filter_promises() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let alias = async |expression: &str| create(&client, expression, person()).await.id();

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
    // One in ten would pass for a card number; those are thrown away.
    for _ in 0..40 {
        let card = alias("{{ data.card | alias_card: false, true }}").await;
        assert_eq!((card.len(), &card[12..]), (16, "4242"));
    }
}

/// Covers 9.9.
#[tokio::test]
async fn an_alias_with_chance_in_it_gives_way_to_what_is_taken() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    // One random digit and two letters that stay: ten ids.
    let alias = "{{ data | alias_preserve_format: 0, 2 }}";
    let possible: BTreeSet<String> = (0..10).map(|digit| format!("{digit}ab")).collect();

    for id in possible.iter().skip(1) {
        assert_eq!(
            create(&client, id, json!(1)).await.status,
            StatusCode::CREATED
        );
    }
    // One is left: ten attempts find it in two of three cases, and are over in the others.
    let mut given = BTreeSet::new();
    for _ in 0..20 {
        let created = create(&client, alias, json!("7ab")).await;
        assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
        assert!(given.insert(created.id()), "{}", created.id());
    }

    let found = given.iter().filter(|id| possible.contains(*id)).count();
    let random = given.iter().filter(|id| is_random_uuid(id)).count();
    assert_eq!((found, random), (1, 19), "{given:?}");
}

/// Covers 9.10.
#[tokio::test]
async fn an_alias_without_chance_in_it_conflicts_with_what_is_taken() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;

    let first = create(&client, "u-{{ data.user }}", json!({"user": "ada", "n": 1})).await;
    let second = create(&client, "u-{{ data.user }}", json!({"user": "ada", "n": 2})).await;
    let other = create(&client, "u-{{ data.user }}", json!({"user": "bob"})).await;

    assert_eq!(
        (first.status, first.id()),
        (StatusCode::CREATED, "u-ada".to_owned())
    );
    assert_eq!(second.status, StatusCode::CONFLICT);
    assert_eq!(other.status, StatusCode::CREATED);
    assert_eq!(client.get("/tokens/u-ada").await.body["data"]["n"], 1);
}

/// Covers 9.11.
#[tokio::test]
async fn a_literal_uuid_is_an_id_like_any_other() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;

    let ids = [
        cloakroom::ids::new_uuid().to_string(),
        cloakroom::ids::new_uuid().to_string().to_uppercase(),
        // By chance their digits could be those of cards: one random UUID in 700 is like this.
        "6cd558d1-bc55-4578-8995-90785f546b5d".to_owned(),
        "7f07db4a-b7b8-4708-8177-000387904d96".to_owned(),
        "33c24237-0392-4264-9b3e-ad7a074844f4".to_owned(),
        "33442303-c54d-4256-8862-73709d1466c7".to_owned(),
    ];
    for id in &ids {
        let created = create(&client, id, json!(id)).await;
        assert_eq!(
            created.status,
            StatusCode::CREATED,
            "{id}: {}",
            created.body
        );
        assert_eq!(created.id(), *id);
        assert_eq!(client.get(&format!("/tokens/{id}")).await.body["data"], *id);
    }
    // What is no UUID but a card number between dashes is refused.
    let card = create(&client, "42424242-4242-4242", json!(1)).await;
    assert_eq!(card.refused(), ["id"]);
    // Another spelling is another name.
    let other = client
        .get(&format!("/tokens/{}", ids[0].to_uppercase()))
        .await;
    assert_eq!(other.status, StatusCode::NOT_FOUND);
}

/// Covers 9.12.
#[tokio::test]
async fn ids_are_encoded_in_addresses_and_decoded_once() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let cases = [
        ("a b@k\u{e4}se", "a%20b%40k%C3%A4se"),
        ("a:b;c,d", "a%3Ab%3Bc%2Cd"),
        ("plain-._~", "plain-._~"),
    ];
    for (id, encoded) in cases {
        let created = create(&client, id, json!(id)).await;
        let expected = format!("{}/tokens/{encoded}", vault.base_url);
        assert_eq!(created.header("location"), expected);
        assert_eq!(
            client.get(&format!("/tokens/{encoded}")).await.body["data"],
            id
        );
    }

    // Clients may leave alone what need not be encoded.
    assert_eq!(
        client.get("/tokens/a%20b@k%c3%a4se").await.status,
        StatusCode::OK
    );
    let not_found = [
        "/tokens/a%2520b%2540k%25C3%25A4se",
        "/tokens/a+b@k%C3%A4se",
        "/tokens/a%20b%40k%E4se",
        "/tokens/a%20b%40k%C3%A4s",
    ];
    for path in not_found {
        let answer = client.get(path).await;
        assert_eq!(
            answer.status,
            StatusCode::NOT_FOUND,
            "{path}: {}",
            answer.body
        );
    }
    // Every route that names a token takes it the same way.
    let updated = client
        .patch("/tokens/a%20b%40k%C3%A4se", json!({"data": "new"}))
        .await;
    assert_eq!(
        (updated.status, updated.id().as_str()),
        (StatusCode::OK, "a b@k\u{e4}se")
    );
    let filled = client
        .post("/detokenize", json!("{{ a b@k\u{e4}se }}"))
        .await;
    assert_eq!(filled.body, "new");
    let listed = client
        .get("/tokens?id=a%20b%40k%C3%A4se&id=a%3Ab%3Bc%2Cd")
        .await;
    assert_eq!(listed.body["data"].as_array().unwrap().len(), 2);
    assert_eq!(
        client.delete("/tokens/a%20b%40k%C3%A4se").await.status,
        StatusCode::NO_CONTENT
    );
}
