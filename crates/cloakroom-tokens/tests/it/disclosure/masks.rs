//! Masks disclose no hidden data.

use cloakroom::access::Permission::{TokenCreate, TokenRead, TokenUpdate};
use cloakroom::access::Transform;
use cloakroom_testkit::grants;
use http::StatusCode;
use serde_json::json;

use super::{Fixture, NUMBER, card, text};

/// BIN and last four, visible without `reveal`.
const TRUNCATED: &str = "41472024••••1053";

/// F1: a caller with `token:update` chose a mask that reveals the number.
#[tokio::test]
async fn changing_a_mask_requires_reveal() {
    let fixture = Fixture::start().await;
    let path = fixture.path();
    let masks = [
        json!("{{ data }}"),
        json!({"number": "{{ data.number | slice: 0, 12 }}"}),
        json!("{{ data.number | split: '' | join: '-' }}"),
    ];
    let collects = grants(&[TokenCreate, TokenUpdate]);
    let public = fixture.public(collects.clone()).await;
    let private = fixture.vault.client(&fixture.tenant, collects).await;

    for client in [public, private] {
        for mask in &masks {
            let changed = client.patch(&path, json!({"mask": mask})).await;

            assert_eq!(changed.status, StatusCode::FORBIDDEN, "{mask}");
            assert!(text(&changed).contains("mask"), "{}", text(&changed));
        }
        // Updates that disclose nothing more are allowed.
        let renamed = client.patch(&path, json!({"metadata": {"a": "b"}})).await;
        assert_eq!(renamed.status, StatusCode::OK);
        let hidden = client.patch(&path, json!({"mask": null})).await;
        assert_eq!(hidden.status, StatusCode::OK);
        assert_eq!(hidden.body.get("data"), None);
    }
    let shown = json!({"mask": {"number": "{{ data.number | last4 }}"}});
    let by_owner = fixture.owner.patch(&path, shown).await;
    assert_eq!(by_owner.status, StatusCode::OK);
}

/// F1: masks of card types are evaluated on the truncated number, whatever the expression.
#[tokio::test]
async fn card_masks_show_at_most_bin_and_last_four() {
    let fixture = Fixture::start().await;
    let reader = fixture
        .client_with_rules(&[("/", Transform::Mask, &[TokenRead])])
        .await;
    let numbers = [
        (NUMBER, TRUNCATED),
        ("378282246310005", "378282•••••0005"),
        ("4222222222222", "422222•••2222"),
        ("6304000000000000018", "63040000•••••••0018"),
    ];
    let masks = [
        "{{ data }}",
        "{{ data.number }}",
        "{{ data.number | slice: 0, 12 }}{{ data.number | slice: 12, 7 }}",
        "{% assign n = data.number | split: '' %}{% for d in n %}{{ d }},{% endfor %}",
        "{{ data.number | plus: 1 }}",
        "{{ data | stringify | base64_encode }}",
        "{{ data.number | sha256 }}",
        "{% if data.number contains '246' %}yes{% else %}no{% endif %}",
    ];
    for (number, truncated) in numbers {
        let mut shown = Vec::new();
        for mask in masks {
            let mut new = card(number);
            new["mask"] = json!(mask);
            let created = fixture.owner.post("/tokens", new).await;
            // Masks with unknown filters are rejected.
            if created.status == StatusCode::BAD_REQUEST {
                continue;
            }
            let found = reader.get(&format!("/tokens/{}", created.id())).await;
            shown.push((mask, found.body["data"].clone()));
        }
        assert!(5 <= shown.len(), "{shown:?}");
        assert_eq!(shown[0].1["number"], truncated);
        assert_eq!(shown[1].1, truncated);
        // No mask distinguishes this number from another one with the same BIN and last four.
        let hidden = truncated.chars().zip(number.chars());
        let other: String = hidden
            .map(|(shown, digit)| match (shown, digit) {
                ('•', '9') => '0',
                ('•', digit) => char::from(digit as u8 + 1),
                (shown, _) => shown,
            })
            .collect();
        for (mask, data) in shown {
            let data = data.to_string();
            let digits: String = data.chars().filter(char::is_ascii_digit).collect();
            assert!(!digits.contains(number), "{mask}: {data}");
            assert!(!data.contains(&other), "{mask}: {data}");
        }
    }
}
