//! The response to a create, by attributes, type and transform.

use cloakroom::access::{ApplicationKind, Permission, Transform};
use cloakroom_testkit::{TestVault, everything, grants, rule};
use serde_json::{Value, json};

use super::{create, one_of_each_type, text};

/// Names of an object's members, in alphabetical order.
fn members(value: &Value) -> Vec<&str> {
    let mut names: Vec<&str> = value
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    names.sort_unstable();
    names
}

/// Members of every response, plus `more`, in alphabetical order.
fn members_with(more: &[&'static str]) -> Vec<&'static str> {
    let always = "containers created_at created_by data id search_indexes tenant_id type";
    let mut names: Vec<&str> = always.split(' ').chain(more.iter().copied()).collect();
    names.sort_unstable();
    names
}

/// Covers 2.1, 2.8, 2.9, 2.10, 2.11, 2.12, 2.13, 2.14, 2.16, 2.17, 2.18, 2.19.
#[tokio::test]
async fn responses_contain_only_attributes_that_are_set() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant_with(&[("fingerprint_tokens", "false")]).await;
    let granted = everything(Transform::Reveal);
    let holder = vault
        .holder(&tenant, ApplicationKind::Private, granted)
        .await;
    let client = vault.client_with(Some(&holder.key));
    let whole = json!({
        "type": "token",
        "data": "x",
        "mask": "{{ data }}",
        "containers": ["/Mixed/CASE/"],
        "metadata": {"k": "v"},
        "search_indexes": ["{{ data }}"],
        "fingerprint_expression": "{{ data }}",
        "expires_at": "2040-01-01",
        "privacy": {"classification": "pii", "restriction_policy": "redact"},
        "aliases": ["a"],
        "authentication": {"a": "b"},
    });

    let bare = create(&client, json!({"type": "token", "data": "x"})).await;
    let full = create(&client, whole).await;
    let bare_read = client.get(&format!("/tokens/{}", bare.id())).await;
    let full_read = client.get(&format!("/tokens/{}", full.id())).await;

    let set = [
        "expires_at",
        "fingerprint",
        "fingerprint_expression",
        "mask",
        "metadata",
    ];
    assert_eq!(members(&bare.body), members_with(&["_extras"]));
    assert_eq!(members(&bare_read.body), members_with(&[]));
    assert_eq!(
        members(&full.body),
        members_with(&[&set[..], &["_extras"]].concat())
    );
    assert_eq!(members(&full_read.body), members_with(&set));
    for response in [&bare, &bare_read, &full, &full_read] {
        assert_eq!(response.body["tenant_id"], tenant.id.uuid.to_string());
        assert_eq!(response.body["created_by"], holder.application.to_string());
        assert_eq!(response.body["type"], "token");
    }
    for response in [&bare, &full] {
        assert_eq!(response.body["_extras"], json!({"deduplicated": false}));
    }
    assert_eq!(bare.body["search_indexes"], json!([]));
    assert_eq!(full_read.body["search_indexes"], json!(["{{ data }}"]));
    assert_eq!(full_read.body["containers"], json!(["/mixed/case/"]));
    assert_eq!(full_read.body["metadata"], json!({"k": "v"}));
}

/// Covers 2.15, 2.16.
#[tokio::test]
async fn modified_at_and_modified_by_appear_after_the_first_update() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant_with(&[("fingerprint_tokens", "false")]).await;
    let owner = vault.client(&tenant, everything(Transform::Reveal)).await;
    let granted = everything(Transform::Reveal);
    let holder = vault
        .holder(&tenant, ApplicationKind::Private, granted)
        .await;
    let client = vault.client_with(Some(&holder.key));
    let created = create(&owner, json!({"type": "token", "data": "x"})).await;
    let path = format!("/tokens/{}", created.id());

    let updated = client.patch(&path, json!({})).await;
    let read = client.get(&path).await;
    let again = owner.patch(&path, json!({})).await;

    assert_eq!(
        members(&updated.body),
        members_with(&["_extras", "modified_at", "modified_by"])
    );
    assert_eq!(
        members(&read.body),
        members_with(&["modified_at", "modified_by"])
    );
    assert_eq!(updated.body["modified_by"], holder.application.to_string());
    assert_eq!(again.body["modified_by"], created.body["created_by"]);
    assert!(text(&updated, "modified_at") > text(&created, "created_at"));
    assert!(text(&again, "modified_at") > text(&updated, "modified_at"));
    for response in [&updated, &read, &again] {
        assert_eq!(response.body["created_at"], created.body["created_at"]);
        assert_eq!(response.body["created_by"], created.body["created_by"]);
    }
}

/// Covers 2.4, 2.5, 2.6, 2.7.
#[tokio::test]
async fn type_details_are_returned_in_the_member_of_their_type() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    // Details are returned even if the data is redacted.
    let client = vault.client(&tenant, everything(Transform::Redact)).await;

    let mut described = Vec::new();
    for (kind, data, _) in one_of_each_type() {
        let created = create(&client, json!({"type": kind, "data": data})).await;
        let read = client.get(&format!("/tokens/{}", created.id())).await;
        for name in ["card", "network_token", "bank"] {
            assert_eq!(created.body.get(name), read.body.get(name), "{kind}");
            if let Some(details) = read.body.get(name) {
                described.push((kind, name, details.clone()));
            }
        }
        assert_eq!(read.body.get("enrichments"), None, "{kind}");
    }
    let listed = client.get("/v2/tokens").await;
    let found = client.post("/v2/tokens/search", json!({})).await;
    for page in [listed, found] {
        let items = page.body["data"].as_array().unwrap().clone();
        assert_eq!(items.len(), 9);
        assert!(items.iter().all(|item| item.get("enrichments").is_none()));
    }

    let names: Vec<(&str, &str)> = described
        .iter()
        .map(|(kind, name, _)| (*kind, *name))
        .collect();
    let expected = [
        ("card", "card"),
        ("card_number", "card"),
        ("network_token", "network_token"),
        ("bank", "bank"),
    ];
    assert_eq!(names, expected);
    let (card, network_token) = (&described[0].2, &described[2].2);
    assert_eq!(
        (&card["bin"], &card["last4"]),
        (&json!("42424242"), &json!("4242"))
    );
    assert_eq!(described[1].2, *card);
    // Other members depend on the BIN table.
    for name in ["bin", "last4", "brand", "funding", "authentication"] {
        assert!(network_token.get(name).is_some(), "{name}");
    }
    assert_eq!(network_token["last4"], "4242");
    let bank = json!({"routing_number": "021000021", "account_number_last4": "0001"});
    assert_eq!(described[3].2, bank);
}

/// Covers 3.21, 2.2.
#[tokio::test]
async fn the_response_applies_the_transform_of_the_create_grant() {
    use Permission::{TokenCreate, TokenRead};
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let new =
        json!({"type": "token", "data": "secret value", "mask": "{{ data | reveal_last: 4 }}"});

    let cases = [
        (
            Some(Transform::Reveal),
            Transform::Redact,
            Some("secret value"),
            None,
        ),
        (
            Some(Transform::Redact),
            Transform::Reveal,
            None,
            Some("secret value"),
        ),
        (
            Some(Transform::Mask),
            Transform::Reveal,
            Some("XXXXXXXXalue"),
            Some("secret value"),
        ),
        // A plain permission applies the mask.
        (
            None,
            Transform::Reveal,
            Some("XXXXXXXXalue"),
            Some("secret value"),
        ),
    ];
    for (creating, reading, created, read) in cases {
        let mut granted = match creating {
            Some(_) => grants(&[]),
            None => grants(&[TokenCreate]),
        };
        granted.rules = vec![rule(2, "/", reading, &[TokenRead])];
        granted
            .rules
            .extend(creating.map(|transform| rule(1, "/", transform, &[TokenCreate])));
        let client = vault.client(&tenant, granted).await;

        let response = create(&client, new.clone()).await;
        let location = format!("{}/tokens/{}", vault.base_url, response.id());
        let found = client.get(&format!("/tokens/{}", response.id())).await;

        assert_eq!(response.header("location"), location);
        assert_eq!(
            response.body.get("data").and_then(Value::as_str),
            created,
            "{creating:?}"
        );
        assert_eq!(
            found.body.get("data").and_then(Value::as_str),
            read,
            "{reading:?}"
        );
    }
}
