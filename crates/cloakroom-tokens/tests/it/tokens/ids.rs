//! Client-chosen token ids.

use cloakroom::access::{ApplicationKind, Transform};
use cloakroom_testkit::{Client, TestVault, everything};
use http::StatusCode;
use serde_json::json;

use super::create_with_id;

/// Covers 9.1, 9.3.
#[tokio::test]
async fn literal_ids_may_contain_spaces_signs_and_any_letters() {
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
        let created = create_with_id(&client, id, json!(id)).await;
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
}

/// Covers 9.1, 9.2, 9.4, 9.15.
#[tokio::test]
async fn invalid_literal_ids_are_rejected() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;

    let too_long = "x".repeat(401);
    let invalid = [
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
    for id in invalid {
        assert_eq!(
            create_with_id(&client, id, json!(1)).await.refused(),
            ["id"],
            "{id:?}"
        );
    }
    // Reserved: `/tokens/search` is the v1 search endpoint.
    assert_eq!(
        create_with_id(&client, "search", json!(1)).await.refused(),
        ["id"]
    );
    for forbidden in "#/\\+?[]|&=%<>{}^".chars() {
        for id in [
            format!("ab{forbidden}cd"),
            format!("{forbidden}abc"),
            format!("abc{forbidden}"),
        ] {
            assert_eq!(
                create_with_id(&client, &id, json!(1)).await.refused(),
                ["id"],
                "{id}"
            );
        }
    }
}

/// Covers 9.5, 9.6.
#[tokio::test]
async fn ids_are_unique_within_a_tenant() {
    let vault = TestVault::start().await;
    let (client, other) = (
        vault.revealing_client().await,
        vault.revealing_client().await,
    );

    let first = create_with_id(&client, "Order 17", json!("first")).await;
    let again = create_with_id(&client, "Order 17", json!("second")).await;
    let lower = create_with_id(&client, "order 17", json!("lower")).await;
    let foreign = create_with_id(&other, "Order 17", json!("foreign")).await;

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
        create_with_id(&client, "Order 17", json!("third"))
            .await
            .status,
        StatusCode::CONFLICT
    );
    assert_eq!(read(&client, "Order%2017").await, json!(null));
    assert_eq!(read(&other, "Order%2017").await, "foreign");
}

/// Covers 9.5.
#[tokio::test]
async fn concurrent_creates_with_one_id_have_one_winner() {
    let vault = TestVault::start_with_long_timeouts().await;
    let node = vault.second_node().await;
    let tenant = vault.tenant().await;
    let holder = vault
        .holder(
            &tenant,
            ApplicationKind::Private,
            everything(Transform::Reveal),
        )
        .await;

    for round in 0..3 {
        let mut requests = tokio::task::JoinSet::new();
        for n in 0..32 {
            let at = [&vault, &node][n % 2];
            let client = at.client_with(Some(&holder.key));
            requests.spawn(async move {
                let response = create_with_id(&client, &format!("wanted {round}"), json!(n)).await;
                (response.status, n)
            });
        }
        let responses = requests.join_all().await;

        let winners: Vec<usize> = responses
            .iter()
            .filter(|(status, _)| *status == StatusCode::CREATED)
            .map(|(_, n)| *n)
            .collect();
        let conflicts = responses
            .iter()
            .filter(|(status, _)| *status == StatusCode::CONFLICT)
            .count();
        assert_eq!((winners.len(), conflicts), (1, 31), "{responses:?}");
        let client = vault.client_with(Some(&holder.key));
        let found = client.get(&format!("/tokens/wanted%20{round}")).await;
        assert_eq!(found.body["data"], winners[0]);
    }
}

/// Covers 9.11.
#[tokio::test]
async fn literal_uuids_are_ordinary_ids() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;

    let ids = [
        cloakroom::ids::new_uuid().to_string(),
        cloakroom::ids::new_uuid().to_string().to_uppercase(),
        // Digits that could be card numbers by chance, as in one of 700 random UUIDs.
        "6cd558d1-bc55-4578-8995-90785f546b5d".to_owned(),
        "7f07db4a-b7b8-4708-8177-000387904d96".to_owned(),
        "33c24237-0392-4264-9b3e-ad7a074844f4".to_owned(),
        "33442303-c54d-4256-8862-73709d1466c7".to_owned(),
    ];
    for id in &ids {
        let created = create_with_id(&client, id, json!(id)).await;
        assert_eq!(
            created.status,
            StatusCode::CREATED,
            "{id}: {}",
            created.body
        );
        assert_eq!(created.id(), *id);
        assert_eq!(client.get(&format!("/tokens/{id}")).await.body["data"], *id);
    }
    // A card number between dashes is not a UUID and is rejected.
    let card = create_with_id(&client, "42424242-4242-4242", json!(1)).await;
    assert_eq!(card.refused(), ["id"]);
    // UUIDs are compared case-sensitively.
    let other = client
        .get(&format!("/tokens/{}", ids[0].to_uppercase()))
        .await;
    assert_eq!(other.status, StatusCode::NOT_FOUND);
}

/// Covers 9.12.
#[tokio::test]
async fn ids_are_percent_encoded_in_urls_and_decoded_once() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let cases = [
        ("a b@k\u{e4}se", "a%20b%40k%C3%A4se"),
        ("a:b;c,d", "a%3Ab%3Bc%2Cd"),
        ("plain-._~", "plain-._~"),
    ];
    for (id, encoded) in cases {
        let created = create_with_id(&client, id, json!(id)).await;
        let expected = format!("{}/tokens/{encoded}", vault.base_url);
        assert_eq!(created.header("location"), expected);
        assert_eq!(
            client.get(&format!("/tokens/{encoded}")).await.body["data"],
            id
        );
    }

    // Clients need not encode characters that are safe.
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
        let response = client.get(path).await;
        assert_eq!(
            response.status,
            StatusCode::NOT_FOUND,
            "{path}: {}",
            response.body
        );
    }
    // Every operation that names a token decodes the id the same way.
    let updated = client
        .patch("/tokens/a%20b%40k%C3%A4se", json!({"data": "new"}))
        .await;
    assert_eq!(
        (updated.status, updated.id().as_str()),
        (StatusCode::OK, "a b@k\u{e4}se")
    );
    let detokenized = client
        .post("/detokenize", json!("{{ a b@k\u{e4}se }}"))
        .await;
    assert_eq!(detokenized.body, "new");
    let listed = client
        .get("/tokens?id=a%20b%40k%C3%A4se&id=a%3Ab%3Bc%2Cd")
        .await;
    assert_eq!(listed.body["data"].as_array().unwrap().len(), 2);
    assert_eq!(
        client.delete("/tokens/a%20b%40k%C3%A4se").await.status,
        StatusCode::NO_CONTENT
    );
}
