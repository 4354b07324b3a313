//! Fingerprint expressions and search indexes of cards disclose no hidden digits.

use cloakroom::access::Permission::{TokenSearch, TokenUpdate};
use cloakroom::access::Transform;
use cloakroom_testkit::{Client, TestResponse};
use http::StatusCode;
use serde_json::{Value, json};

use super::{Fixture, NUMBER, card};

/// F2: the fingerprint of a part of a card number discloses that part.
#[tokio::test]
async fn fingerprints_of_cards_cover_the_whole_number() {
    let fixture = Fixture::start().await;
    let updater = fixture
        .client_with_rules(&[("/", Transform::Redact, &[TokenUpdate])])
        .await;
    let pieces = [
        "5",
        "{{ data.number | slice: 3 }}",
        "{{ data.number | slice: 0, 8 }}",
        "{{ data.number | modulo: 97 }}",
        "{{ data.number | remove: '4' }}",
        "{% if data.number contains '246' %}a{% else %}b{% endif %}",
    ];
    for piece in pieces {
        let patch = json!({"fingerprint_expression": piece});
        let by_updater = patch_card(&updater, &fixture, &patch).await;
        assert_eq!(by_updater.status, StatusCode::FORBIDDEN, "{piece}");
        let by_owner = patch_card(&fixture.owner, &fixture, &patch).await;
        assert_eq!(by_owner.status, StatusCode::BAD_REQUEST, "{piece}");
        let mut new = card(NUMBER);
        new["fingerprint_expression"] = json!(piece);
        let created = fixture.owner.post("/tokens", new).await;
        assert_eq!(created.status, StatusCode::BAD_REQUEST, "{piece}");
        assert_eq!(created.refused(), ["fingerprint_expression"]);
    }
    let whole = "{{ data.number }}|{{ data.expiration_month }}";
    let patch = json!({"fingerprint_expression": whole});
    let by_owner = patch_card(&fixture.owner, &fixture, &patch).await;
    assert_eq!(by_owner.status, StatusCode::OK);
}

async fn patch_card(client: &Client, fixture: &Fixture, patch: &Value) -> TestResponse {
    client.patch(&fixture.path(), patch.clone()).await
}

/// F2: a search index of a part discloses it as well; BIN and last four are visible anyway.
#[tokio::test]
async fn search_indexes_of_cards_cover_the_whole_number_or_no_hidden_digit() {
    let fixture = Fixture::start().await;
    let searcher = fixture
        .client_with_rules(&[("/", Transform::Redact, &[TokenUpdate, TokenSearch])])
        .await;
    let cases = [
        ("{{ data.number | slice: 6, 3 }}", false),
        ("{{ data.number | slice: 8 }}", false),
        ("{{ data.number | slice: 0, 9 }}", false),
        ("{{ data.number | last4 }}", true),
        ("{{ data.number | slice: 0, 8 }}", true),
        ("{{ data.number }}", true),
        ("{{ data.expiration_month }}", true),
    ];
    for (expression, is_allowed) in cases {
        let patch = json!({"search_indexes": [expression]});
        let by_searcher = patch_card(&searcher, &fixture, &patch).await;
        assert_eq!(by_searcher.status, StatusCode::FORBIDDEN, "{expression}");
        let by_owner = patch_card(&fixture.owner, &fixture, &patch).await;
        assert_eq!(
            by_owner.status == StatusCode::OK,
            is_allowed,
            "{expression}"
        );
        let mut new = card("4000056655665556");
        new["search_indexes"] = json!([expression]);
        let created = fixture.owner.post("/tokens", new).await;
        assert_eq!(
            created.status == StatusCode::CREATED,
            is_allowed,
            "{expression}"
        );
    }
    let fewer = patch_card(&searcher, &fixture, &json!({"search_indexes": []})).await;
    assert_eq!(fewer.status, StatusCode::OK);
}
