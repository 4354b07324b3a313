//! Merging data, masks and metadata.

use std::collections::BTreeSet;

use cloakroom::access::Permission;
use cloakroom_testkit::grants;
use http::StatusCode;
use serde_json::{Value, json};

use super::{id_of, row_version};
use crate::tokens::{create, search_ids, send_patch, setup};

/// Covers 5.12.
#[tokio::test]
async fn unpatched_data_is_returned_verbatim() {
    let (_vault, _, client) = setup().await;
    let data = r#"{"a": 1E5, "b" : "\u00e9", "c":[ ]}"#;
    let new = format!(r#"{{"type":"token","data":{data}}}"#);
    let created = client.post_text("/tokens", &new, "application/json").await;
    let path = format!("/tokens/{}", created.id());

    for patch in [
        json!({}),
        json!({"metadata": {"k": "v"}}),
        json!({"containers": ["/a/"]}),
    ] {
        let changed = send_patch(&client, &path, patch).await;
        let text = String::from_utf8(changed.bytes).unwrap();
        assert!(text.contains(data), "{text}");
    }
}

/// Covers 5.2.
#[tokio::test]
async fn objects_are_merged_into_data_and_other_values_replace_it() {
    let (_vault, _, client) = setup().await;

    // Numbers keep their digits. Exponents are parsed, so they are returned in one notation.
    let cases = [
        (
            r#"{"myData":"a"}"#,
            r#"{"myNewData":"b"}"#,
            r#"{"myData":"a","myNewData":"b"}"#,
        ),
        (
            r#"{"a":1,"b":2,"c":3}"#,
            r#"{"b":null}"#,
            r#"{"a":1,"c":3}"#,
        ),
        (
            r#"{"a":1,"b":2,"c":3}"#,
            r#"{"a":9,"d":null}"#,
            r#"{"a":9,"b":2,"c":3}"#,
        ),
        (
            r#"{"z":1.50,"a":{"y":1e+2,"x":"k"}}"#,
            r#"{"a":{"x":null,"n":[1.0,null]},"b":true}"#,
            r#"{"z":1.50,"a":{"y":1e+2,"n":[1.0,null]},"b":true}"#,
        ),
        (
            r#"{"a":{"b":{"c":1,"d":2}}}"#,
            r#"{"a":{"b":{"c":null}}}"#,
            r#"{"a":{"b":{"d":2}}}"#,
        ),
        (r#"{"a":null}"#, r#"{"b":1}"#, r#"{"a":null,"b":1}"#),
        (r#"{"a":[1,2]}"#, r#"{"a":[3]}"#, r#"{"a":[3]}"#),
        (r#"{"a":{"b":1}}"#, r#"{"a":"x"}"#, r#"{"a":"x"}"#),
        (r#"{"a":1}"#, r#"{}"#, r#"{"a":1}"#),
        (r#"{"a":1}"#, r#""text""#, r#""text""#),
        (r#"{"a":1}"#, r#"[1,{"b":null}]"#, r#"[1,{"b":null}]"#),
        (r#"{"a":1}"#, "19.90", "19.90"),
        (r#"{"a":1}"#, "false", "false"),
        (r#""text""#, r#""""#, r#""""#),
        (r#""text""#, r#"{"a":{"b":null,"c":0}}"#, r#"{"a":{"c":0}}"#),
        (r#"[1]"#, r#"{"a":1}"#, r#"{"a":1}"#),
        (
            r#"{"n":123456789012345678901234567890,"m":1E400}"#,
            r#"{"o":-0.10000000000000000001}"#,
            r#"{"n":123456789012345678901234567890,"m":1e+400,"o":-0.10000000000000000001}"#,
        ),
    ];
    for (stored, patch, merged) in cases {
        let new = format!(r#"{{"type":"token","data":{stored}}}"#);
        let created = client.post_text("/tokens", &new, "application/json").await;
        let path = format!("/tokens/{}", created.id());

        let changed = client
            .patch_text(&path, &format!(r#"{{"data":{patch}}}"#))
            .await;
        let again = client.patch_text(&path, r#"{"metadata":{"k":"v"}}"#).await;
        let read = client.get(&path).await;

        for response in [changed, again, read] {
            assert_eq!(response.status, StatusCode::OK, "{stored} {patch}");
            let text = String::from_utf8(response.bytes).unwrap();
            let expected = format!("\"data\":{merged},");
            assert!(text.contains(&expected), "{stored} {patch} in {text}");
        }
    }
}

/// Covers 5.3.
#[tokio::test]
async fn data_cannot_become_null() {
    let (vault, _, client) = setup().await;
    let path = create(&client, json!({"type": "token", "data": {"a": 1}})).await;

    let response = client.patch(&path, json!({"data": null})).await;

    assert_eq!(response.status, StatusCode::BAD_REQUEST);
    assert_eq!(response.refused(), ["data"]);
    assert_eq!(row_version(&vault, &path).await, 1);
    assert_eq!(client.get(&path).await.body["data"], json!({"a": 1}));
}

/// Covers 5.4.
#[tokio::test]
async fn masks_are_merged_and_null_removes_them() {
    let (vault, tenant, client) = setup().await;
    let reader = vault
        .client(&tenant, grants(&[Permission::TokenRead]))
        .await;
    let (one, two) = ("{{ data.one }}", "{{ data.two | reveal_last: 4 }}");
    let new = json!({
        "type": "token",
        "data": {"one": "open", "two": "wxyz1234"},
        "mask": {"one": one},
    });
    let path = create(&client, new).await;

    let steps = [
        (
            json!({"two": two}),
            json!({"one": one, "two": two}),
            json!({"one": "open", "two": "XXXX1234"}),
        ),
        (
            json!({}),
            json!({"one": one, "two": two}),
            json!({"one": "open", "two": "XXXX1234"}),
        ),
        (
            json!({"one": null}),
            json!({"two": two}),
            json!({"two": "XXXX1234"}),
        ),
        (
            json!({"two": "X", "n": 7}),
            json!({"two": "X", "n": 7}),
            json!({"two": "X", "n": 7}),
        ),
        (json!(one), json!(one), json!("open")),
        (json!(null), json!(null), json!(null)),
        (
            json!({"a": {"b": one, "c": null}}),
            json!({"a": {"b": one}}),
            json!({"a": {"b": "open"}}),
        ),
        (json!([one]), json!([one]), json!(["open"])),
    ];
    for (patch, mask, masked) in steps {
        let changed = send_patch(&client, &path, json!({"mask": patch})).await;
        let read = reader.get(&path).await;

        assert_eq!(changed.body["mask"], mask, "{patch}");
        assert_eq!(read.body["mask"], mask, "{patch}");
        assert_eq!(read.body["data"], masked, "{patch}");
        assert_eq!(read.body.get("mask").is_some(), !mask.is_null(), "{patch}");
        assert_eq!(read.body.get("data").is_some(), !mask.is_null(), "{patch}");
    }
}

/// Covers 5.4.
#[tokio::test]
async fn the_default_mask_of_a_type_can_be_patched_and_removed() {
    let (vault, tenant, client) = setup().await;
    let reader = vault
        .client(&tenant, grants(&[Permission::TokenRead]))
        .await;
    let data =
        json!({"number": "4242424242424242", "expiration_month": 12, "expiration_year": 2030});
    let path = create(&client, json!({"type": "card", "data": data})).await;

    let patch = json!({"mask": {"number": "{{ data.number | card_mask: 'true', 'true' }}"}});
    send_patch(&client, &path, patch).await;
    let masked = reader.get(&path).await;
    send_patch(&client, &path, json!({"mask": null})).await;
    send_patch(&client, &path, json!({})).await;
    let redacted = reader.get(&path).await;

    let expected =
        json!({"number": "42424242XXXX4242", "expiration_month": 12, "expiration_year": 2030});
    assert_eq!(masked.body["data"], expected);
    assert_eq!(redacted.status, StatusCode::OK);
    assert_eq!(redacted.body.get("data"), None);
    assert_eq!(redacted.body.get("mask"), None);
}

/// Covers 5.5.
#[tokio::test]
async fn metadata_is_merged_and_null_removes_entries() {
    let (_vault, _, client) = setup().await;
    let new = json!({"type": "token", "data": 1, "metadata": {"b": "2", "a": "1"}});
    let path = create(&client, new).await;
    let id = BTreeSet::from([id_of(&path)]);

    let steps = [
        (json!({"c": "3"}), Some(r#"{"b":"2","a":"1","c":"3"}"#)),
        (json!({}), Some(r#"{"b":"2","a":"1","c":"3"}"#)),
        (json!({"b": "4"}), Some(r#"{"b":"4","a":"1","c":"3"}"#)),
        (
            json!({"b": null, "none": null}),
            Some(r#"{"a":"1","c":"3"}"#),
        ),
        (json!({"a": null, "c": null}), None),
        (json!({"a": "5"}), Some(r#"{"a":"5"}"#)),
        (json!(null), None),
        (json!({"d": ""}), Some(r#"{"d":""}"#)),
    ];
    for (patch, expected) in steps {
        let changed = send_patch(&client, &path, json!({"metadata": patch})).await;
        let read = client.get(&path).await;
        for response in [changed, read] {
            let metadata = response.body.get("metadata").map(Value::to_string);
            assert_eq!(metadata.as_deref(), expected, "{patch}");
        }
    }

    send_patch(&client, &path, json!({"metadata": {"d": null, "e": "new"}})).await;
    assert_eq!(search_ids(&client, "metadata.e:new").await, id);
    assert!(search_ids(&client, "metadata.b:2").await.is_empty());
    assert!(search_ids(&client, "metadata.a:5").await.is_empty());
    assert!(search_ids(&client, "metadata.d:\"\"").await.is_empty());
}

/// Covers 5.15.
#[tokio::test]
async fn masks_apply_to_the_updated_data() {
    let (vault, tenant, client) = setup().await;
    let reader = vault
        .client(&tenant, grants(&[Permission::TokenRead]))
        .await;
    let mask = "{{ data | reveal_last: 4 }}";
    let new = json!({"type": "token", "data": "abcdefgh", "mask": mask});
    let path = create(&client, new).await;

    let before = reader.get(&path).await;
    send_patch(&client, &path, json!({"data": "12345678"})).await;
    let after = reader.get(&path).await;

    assert_eq!(before.body["data"], "XXXXefgh");
    assert_eq!(after.body["data"], "XXXX5678");
    assert_eq!(after.body["mask"], mask);
}
