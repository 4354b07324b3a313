//! Changing and deleting tokens: what a merge patch does to each attribute, and what follows from it.

use std::collections::BTreeSet;
use std::time::Duration;

use cloakroom::access::{ApplicationKind, Permission, Tenant, Transform};
use http::{Method, StatusCode};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::{Answer, Chance, Client, TestVault, everything, grants, rule};

/// A vault, a tenant in it, and someone who may do everything there and sees the data.
async fn start() -> (TestVault, Tenant, Client) {
    let vault = TestVault::start_patient().await;
    let tenant = vault.tenant().await;
    let client = vault.client(&tenant, everything(Transform::Reveal)).await;
    (vault, tenant, client)
}

/// Creates a token and gives its address.
async fn create(client: &Client, new: Value) -> String {
    let created = client.post("/tokens", new).await;
    assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
    format!("/tokens/{}", created.id())
}

/// Sends a patch that must be accepted.
async fn change(client: &Client, path: &str, patch: Value) -> Answer {
    let answer = client.patch(path, patch.clone()).await;
    assert_eq!(answer.status, StatusCode::OK, "{patch}: {}", answer.body);
    answer
}

/// The ids that a search finds.
async fn found(client: &Client, query: &str) -> BTreeSet<String> {
    let answer = client
        .post("/v2/tokens/search", json!({ "query": query }))
        .await;
    assert_eq!(answer.status, StatusCode::OK, "{query}: {}", answer.body);
    let tokens = answer.body["data"].as_array().unwrap();
    let ids = tokens.iter().map(|token| token["id"].as_str().unwrap());
    ids.map(str::to_owned).collect()
}

fn id_of(path: &str) -> String {
    path.strip_prefix("/tokens/").unwrap().to_owned()
}

fn uuid_of(path: &str) -> Uuid {
    id_of(path).parse().unwrap()
}

async fn row_version(vault: &TestVault, path: &str) -> i32 {
    let select = "select row_version from token where token_id = $1";
    let database = vault.database.connect().await;
    let row = database.query_one(select, &[&uuid_of(path)]).await.unwrap();
    row.get(0)
}

/// Covers 5.1.
#[tokio::test]
async fn only_a_merge_patch_changes_a_token() {
    let (vault, _, client) = start().await;
    let path = create(&client, json!({"type": "token", "data": {"a": 1}})).await;
    let send = async |path: &str, media: Option<&str>, body: &'static str| {
        let request = client.request(Method::PATCH, path).body(body);
        let request = match media {
            Some(media) => request.header("content-type", media),
            None => request,
        };
        client.send(request).await
    };

    let refused = [
        None,
        Some(""),
        Some("application/json"),
        Some("text/json"),
        Some("application/json-patch+json"),
        Some("application/merge-patch"),
        Some("application/merge-patch+xml"),
        Some("application/merge-patch+json+json"),
        Some("application/x-merge-patch+json"),
        Some("merge-patch+json"),
        Some("text/plain; application/merge-patch+json"),
        Some("application/json, application/merge-patch+json"),
        Some("multipart/form-data; boundary=x"),
    ];
    for media in refused {
        let answer = send(&path, media, r#"{"data":{"a":2}}"#).await;
        assert_eq!(
            answer.status,
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "{media:?}"
        );
        assert_eq!(answer.body["title"], "Unsupported Media Type", "{media:?}");
    }
    // Neither the body nor the token is looked at before that.
    for (path, body) in [(path.as_str(), "{"), ("/tokens/nowhere", "{}")] {
        let answer = send(path, Some("application/json"), body).await;
        assert_eq!(answer.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    }
    assert_eq!(row_version(&vault, &path).await, 1);

    let accepted = [
        "application/merge-patch+json",
        "application/merge-patch+json; charset=utf-8",
        "application/merge-patch+json;charset=UTF-8;x=\"y\"",
        "application/merge-patch+json ; charset=utf-8",
        "Application/Merge-Patch+JSON",
        "APPLICATION/MERGE-PATCH+JSON; CHARSET=UTF-8",
    ];
    for (count, media) in (2..).zip(accepted) {
        let answer = send(&path, Some(media), r#"{"data":{"a":2}}"#).await;
        assert_eq!(answer.status, StatusCode::OK, "{media}");
        assert_eq!(row_version(&vault, &path).await, count, "{media}");
    }
}

/// Covers 5.3.
#[tokio::test]
async fn a_patch_is_an_object_of_the_documented_types() {
    let (vault, _, client) = start().await;
    let path = create(&client, json!({"type": "token", "data": {"a": 1}})).await;

    let cases = [
        ("", "body"),
        ("{", "body"),
        ("[]", "body"),
        ("null", "body"),
        ("\"x\"", "body"),
        (r#"{"data":1,"data":2}"#, "body"),
        (r#"{"metadata":"x"}"#, "metadata"),
        (r#"{"metadata":[]}"#, "metadata"),
        (r#"{"metadata":{"k":1}}"#, "metadata.k"),
        (r#"{"containers":"/a/"}"#, "containers"),
        (r#"{"containers":[]}"#, "containers"),
        (r#"{"containers":["/a/","/b/"]}"#, "containers"),
        (r#"{"containers":["a"]}"#, "containers[0]"),
        (r#"{"containers":[null]}"#, "containers[0]"),
        (r#"{"search_indexes":"{{ data }}"}"#, "search_indexes"),
        (
            r#"{"search_indexes":["{{ data }}","{{ data | x }}"]}"#,
            "search_indexes[1]",
        ),
        (r#"{"fingerprint_expression":7}"#, "fingerprint_expression"),
        (
            r#"{"fingerprint_expression":"{{ data | x }}"}"#,
            "fingerprint_expression",
        ),
        (
            r#"{"fingerprint_expression":"{{ data.nothing }}"}"#,
            "fingerprint_expression",
        ),
        (r#"{"deduplicate_token":"true"}"#, "deduplicate_token"),
        (r#"{"expires_at":7}"#, "expires_at"),
        (r#"{"expires_at":"soon"}"#, "expires_at"),
        (r#"{"expires_at":"2020-01-01"}"#, "expires_at"),
        (r#"{"mask":"{{ data | x }}"}"#, "mask"),
        (r#"{"mask":{"a":["{{ data | x }}"]}}"#, "mask.a[0]"),
    ];
    for (patch, refused) in cases {
        let answer = client.patch_text(&path, patch).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{patch}");
        assert_eq!(answer.refused(), [refused], "{patch}");
    }
    // All of them are named at once.
    let patch = json!({"data": null, "containers": [], "expires_at": "soon", "metadata": {"k": 1}});
    for path in [path.as_str(), "/tokens/nowhere"] {
        let refused = client.patch(path, patch.clone()).await;
        assert_eq!(
            refused.refused(),
            ["containers", "data", "expires_at", "metadata.k"]
        );
    }
    assert_eq!(row_version(&vault, &path).await, 1);
}

/// Covers 5.3.
#[tokio::test]
async fn what_is_wrong_whatever_the_token_is_told_before_it_is_looked_for() {
    use Permission::TokenUpdate;
    let (vault, tenant, writer) = start().await;
    let mut elsewhere = grants(&[]);
    elsewhere.rules = vec![rule(1, "/elsewhere/", Transform::Reveal, &[TokenUpdate])];
    let stranger = vault.client(&tenant, elsewhere).await;
    let forbidden = create(&writer, json!({"type": "token", "data": 1})).await;

    let cases = [
        (json!({"data": null}), "data"),
        (json!({"mask": "{{ data | x }}"}), "mask"),
        (json!({"metadata": {"k": 1}}), "metadata.k"),
        (json!({"containers": []}), "containers"),
        (
            json!({"search_indexes": ["{{ data | x }}"]}),
            "search_indexes[0]",
        ),
        (
            json!({"fingerprint_expression": "{{ data | x }}"}),
            "fingerprint_expression",
        ),
        (json!({"expires_at": "soon"}), "expires_at"),
    ];
    for (patch, refused) in cases {
        for path in ["/tokens/nowhere", &forbidden] {
            let answer = stranger.patch(path, patch.clone()).await;
            assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{path} {patch}");
            assert_eq!(answer.refused(), [refused], "{path} {patch}");
        }
    }
}

/// Covers 5.12.
#[tokio::test]
async fn what_is_not_patched_keeps_its_text() {
    let (_vault, _, client) = start().await;
    let data = r#"{"a": 1E5, "b" : "\u00e9", "c":[ ]}"#;
    let new = format!(r#"{{"type":"token","data":{data}}}"#);
    let created = client.post_text("/tokens", &new, "application/json").await;
    let path = format!("/tokens/{}", created.id());

    for patch in [
        json!({}),
        json!({"metadata": {"k": "v"}}),
        json!({"containers": ["/a/"]}),
    ] {
        let changed = change(&client, &path, patch).await;
        let text = String::from_utf8(changed.bytes).unwrap();
        assert!(text.contains(data), "{text}");
    }
}

/// Covers 5.2.
#[tokio::test]
async fn data_is_merged_and_what_is_no_object_replaces_it() {
    let (_vault, _, client) = start().await;

    // Numbers keep their digits; an exponent comes back in one spelling, because it is parsed.
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
    for (kept, patch, merged) in cases {
        let new = format!(r#"{{"type":"token","data":{kept}}}"#);
        let created = client.post_text("/tokens", &new, "application/json").await;
        let path = format!("/tokens/{}", created.id());

        let changed = client
            .patch_text(&path, &format!(r#"{{"data":{patch}}}"#))
            .await;
        let again = client.patch_text(&path, r#"{"metadata":{"k":"v"}}"#).await;
        let read = client.get(&path).await;

        for answer in [changed, again, read] {
            assert_eq!(answer.status, StatusCode::OK, "{kept} {patch}");
            let text = String::from_utf8(answer.bytes).unwrap();
            let expected = format!("\"data\":{merged},");
            assert!(text.contains(&expected), "{kept} {patch} in {text}");
        }
    }
}

/// Covers 5.3.
#[tokio::test]
async fn data_cannot_become_null() {
    let (vault, _, client) = start().await;
    let path = create(&client, json!({"type": "token", "data": {"a": 1}})).await;

    let answer = client.patch(&path, json!({"data": null})).await;

    assert_eq!(answer.status, StatusCode::BAD_REQUEST);
    assert_eq!(answer.refused(), ["data"]);
    assert_eq!(row_version(&vault, &path).await, 1);
    assert_eq!(client.get(&path).await.body["data"], json!({"a": 1}));
}

/// Covers 5.4.
#[tokio::test]
async fn a_mask_is_merged_and_null_removes_it() {
    let (vault, tenant, client) = start().await;
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
        let changed = change(&client, &path, json!({"mask": patch})).await;
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
async fn a_mask_of_the_type_can_be_changed_in_part_and_removed_for_good() {
    let (vault, tenant, client) = start().await;
    let reader = vault
        .client(&tenant, grants(&[Permission::TokenRead]))
        .await;
    let data =
        json!({"number": "4242424242424242", "expiration_month": 12, "expiration_year": 2030});
    let path = create(&client, json!({"type": "card", "data": data})).await;

    let patch = json!({"mask": {"number": "{{ data.number | card_mask: 'true', 'true' }}"}});
    change(&client, &path, patch).await;
    let masked = reader.get(&path).await;
    change(&client, &path, json!({"mask": null})).await;
    change(&client, &path, json!({})).await;
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
async fn metadata_is_merged_and_null_removes() {
    let (_vault, _, client) = start().await;
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
        let changed = change(&client, &path, json!({"metadata": patch})).await;
        let read = client.get(&path).await;
        for answer in [changed, read] {
            let told = answer.body.get("metadata").map(Value::to_string);
            assert_eq!(told.as_deref(), expected, "{patch}");
        }
    }

    change(&client, &path, json!({"metadata": {"d": null, "e": "new"}})).await;
    assert_eq!(found(&client, "metadata.e:new").await, id);
    assert!(found(&client, "metadata.b:2").await.is_empty());
    assert!(found(&client, "metadata.a:5").await.is_empty());
    assert!(found(&client, "metadata.d:\"\"").await.is_empty());
}

/// Covers 5.6.
#[tokio::test]
async fn a_container_is_replaced_and_null_goes_back_to_the_types_own() {
    let (_vault, _, client) = start().await;
    let new =
        json!({"type": "card", "data": {"number": "4242424242424242"}, "containers": ["/a/"]});
    let path = create(&client, new).await;
    let id = BTreeSet::from([id_of(&path)]);
    let number = client.get(&path).await.body["fingerprint"].clone();

    let steps = [
        (json!(["/B/c/"]), "/b/c/"),
        (json!(["/"]), "/"),
        (json!(null), "/pci/high/"),
        (json!(["/a/"]), "/a/"),
    ];
    for (containers, expected) in steps {
        let changed = change(&client, &path, json!({ "containers": containers })).await;
        let read = client.get(&path).await;
        assert_eq!(changed.body["containers"], json!([expected]));
        assert_eq!(read.body["containers"], json!([expected]));
        assert_eq!(read.body["fingerprint"], number);
        let number = number.as_str().unwrap();
        for query in [
            format!("container:\"{expected}\""),
            format!("container:\"{expected}\" AND fingerprint:{number}"),
        ] {
            assert_eq!(found(&client, &query).await, id, "{query}");
        }
    }
    assert!(found(&client, "container:\"/b/\"").await.is_empty());
    assert!(found(&client, "container:\"/pci/\"").await.is_empty());
}

/// Covers 5.7.
#[tokio::test]
async fn search_indexes_are_replaced_and_null_clears_them() {
    let (_vault, _, client) = start().await;
    let new = json!({
        "type": "token",
        "data": {"a": "one", "b": "two"},
        "search_indexes": ["{{ data.a }}"],
    });
    let path = create(&client, new).await;
    let ssn = create(
        &client,
        json!({"type": "social_security_number", "data": "078-05-1120"}),
    )
    .await;
    let is_found = async |path: &str, query: &str| {
        found(&client, &format!("data:{query}")).await == BTreeSet::from([id_of(path)])
    };

    assert!(is_found(&path, "one").await && !is_found(&path, "two").await);
    let steps = [
        (json!(["{{ data.b }}"]), false, true),
        (json!(["{{ data.b }}", "{{ data.a }}"]), true, true),
        (json!([]), false, false),
        (json!(["{{ data.a }}"]), true, false),
        (json!(null), false, false),
    ];
    for (indexes, one, two) in steps {
        let changed = change(&client, &path, json!({ "search_indexes": indexes })).await;
        let shown = indexes.as_array().cloned().unwrap_or_default();
        assert_eq!(changed.body["search_indexes"], Value::Array(shown));
        assert_eq!(is_found(&path, "one").await, one, "{indexes}");
        assert_eq!(is_found(&path, "two").await, two, "{indexes}");
    }
    // Those of the type are cleared as well, and do not come back.
    assert!(is_found(&ssn, "078051120").await);
    change(&client, &ssn, json!({"search_indexes": null})).await;
    let changed = change(&client, &ssn, json!({"data": "123-45-6789"})).await;
    assert_eq!(changed.body["search_indexes"], json!([]));
    for query in ["078051120", "1120", "123456789"] {
        assert!(!is_found(&ssn, query).await, "{query}");
    }
}

/// Covers 5.8.
#[tokio::test]
async fn a_fingerprint_expression_is_replaced_and_null_goes_back_to_the_types_own() {
    let (_vault, _, client) = start().await;
    let data = json!({"number": "4242424242424242", "expiration_month": 12});
    let fingerprint = async |expression: Value| {
        let new = json!({"type": "card", "data": data, "fingerprint_expression": expression});
        client.post("/tokens", new).await.body["fingerprint"].clone()
    };
    let path = create(&client, json!({"type": "card", "data": data})).await;

    let month = "{{ data.expiration_month }}";
    for expression in [
        json!(month),
        json!(null),
        json!("{{ data.number }}|"),
        json!(null),
    ] {
        let patch = json!({ "fingerprint_expression": expression });
        let changed = change(&client, &path, patch).await;

        let shown = expression.as_str().unwrap_or("{{ data.number }}");
        assert_eq!(changed.body["fingerprint_expression"], shown);
        assert_eq!(changed.body["fingerprint"], fingerprint(expression).await);
    }
}

/// Covers 5.8, 5.14.
#[tokio::test]
async fn a_tenant_that_wants_no_fingerprints_gets_them_only_where_asked() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant_with(&[("fingerprint_tokens", "false")]).await;
    let client = vault.client(&tenant, everything(Transform::Reveal)).await;
    let path = create(&client, json!({"type": "token", "data": "x"})).await;

    let cases = [
        (json!({}), None),
        (json!({"data": "y"}), None),
        (
            json!({"fingerprint_expression": "{{ data }}"}),
            Some("{{ data }}"),
        ),
        (json!({"data": "z"}), Some("{{ data }}")),
        (
            json!({"fingerprint_expression": null}),
            Some("{{ data | stringify }}"),
        ),
    ];
    for (patch, expression) in cases {
        let changed = change(&client, &path, patch.clone()).await;
        let shown = changed.body["fingerprint_expression"].as_str();
        assert_eq!(shown, expression, "{patch}");
        assert_eq!(
            changed.body["fingerprint"].is_string(),
            expression.is_some()
        );
    }
    let other = create(&client, json!({"type": "token", "data": "w"})).await;
    let deduplicated = change(&client, &other, json!({"deduplicate_token": true})).await;
    assert!(deduplicated.body["fingerprint"].is_string());
}

/// Covers 5.10.
#[tokio::test]
async fn an_expiry_is_replaced_and_null_removes_it() {
    let (_vault, _, client) = start().await;
    let path = create(&client, json!({"type": "token", "data": 1})).await;

    let steps = [
        (
            json!("8/26/2030 7:23:57 PM -07:00"),
            Some("2030-08-26T19:23:57-07:00"),
        ),
        (json!("2031-01-01"), Some("2031-01-01T00:00:00+00:00")),
        (json!(null), None),
        (
            json!("2032-01-01T00:00:00.5Z"),
            Some("2032-01-01T00:00:00.5+00:00"),
        ),
    ];
    for (expiry, expected) in steps {
        let changed = change(&client, &path, json!({ "expires_at": expiry })).await;
        let kept = change(&client, &path, json!({})).await;
        let read = client.get(&path).await;
        for answer in [changed, kept, read] {
            let told = answer.body.get("expires_at").and_then(Value::as_str);
            assert_eq!(told, expected, "{expiry}");
        }
    }
    let past = client
        .patch(&path, json!({"expires_at": "2020-01-01"}))
        .await;
    assert_eq!(past.refused(), ["expires_at"]);
    let read = client.get(&path).await;
    assert_eq!(read.body["expires_at"], "2032-01-01T00:00:00.5+00:00");
}

/// Covers 5.22.
#[tokio::test]
async fn an_expired_token_cannot_be_changed_and_one_given_less_time_is_gone_in_time() {
    let (vault, _, client) = start().await;
    let path = create(&client, json!({"type": "token", "data": 1})).await;

    change(
        &client,
        &path,
        json!({"expires_at": in_seconds(&vault, 2).await}),
    )
    .await;
    wait_until_gone(&client, &path).await;
    let late = client.patch(&path, json!({"expires_at": null})).await;
    let unknown = client.patch("/tokens/nowhere", json!({})).await;

    assert_eq!(late.status, StatusCode::NOT_FOUND);
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
    assert_eq!(late.bytes, unknown.bytes);
}

/// A moment by the database's clock.
async fn in_seconds(vault: &TestVault, seconds: i64) -> String {
    let database = vault.database.connect().await;
    let row = database.query_one("select now()", &[]).await.unwrap();
    let now: jiff::Timestamp = row.get(0);
    (now + jiff::SignedDuration::from_secs(seconds)).to_string()
}

async fn wait_until_gone(client: &Client, path: &str) {
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    while client.get(path).await.status != StatusCode::NOT_FOUND {
        assert!(
            std::time::Instant::now() < deadline,
            "{path} is still there"
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Covers 5.11.
#[tokio::test]
async fn id_and_type_and_what_is_unknown_are_ignored() {
    let (_vault, _, client) = start().await;
    let path = create(&client, json!({"type": "token", "data": "x"})).await;
    let before = client.get(&path).await;
    let patch = json!({
        "id": Uuid::nil(),
        "type": "card",
        "tenant_id": Uuid::nil(),
        "fingerprint": "x",
        "created_by": Uuid::nil(),
        "created_at": "2020-01-01",
        "modified_by": Uuid::nil(),
        "privacy": {"impact_level": "low"},
        "encrypted": "e30",
        "_extras": {"deduplicated": true},
        "nonsense": [1],
    });

    let changed = change(&client, &path, patch).await;
    let mut after = client.get(&path).await;

    assert_eq!(changed.body["_extras"], json!({"deduplicated": false}));
    let modified_by = after.body["modified_by"].take();
    assert_ne!(modified_by, json!(Uuid::nil()));
    for (name, value) in before.body.as_object().unwrap() {
        assert_eq!(&after.body[name], value, "{name}");
    }
}

/// Covers 5.12.
#[tokio::test]
async fn an_empty_patch_still_tells_who_and_when() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = vault.client(&tenant, everything(Transform::Reveal)).await;
    let updater = vault
        .holder(
            &tenant,
            ApplicationKind::Private,
            everything(Transform::Reveal),
        )
        .await;
    let path = create(
        &client,
        json!({"type": "token", "data": "x", "metadata": {"k": "v"}}),
    )
    .await;
    let before = client.get(&path).await;

    let changed = change(&vault.client_with(Some(&updater.key)), &path, json!({})).await;
    let after = client.get(&path).await;

    assert_eq!(before.body.get("modified_by"), None);
    assert_eq!(before.body.get("modified_at"), None);
    assert_eq!(after.body["modified_by"], json!(updater.application));
    assert!(after.body["modified_at"].as_str() > before.body["created_at"].as_str());
    assert_eq!(after.body["modified_at"], changed.body["modified_at"]);
    let mut rest = after.body.clone();
    rest.as_object_mut()
        .unwrap()
        .retain(|name, _| !name.starts_with("modified_"));
    assert_eq!(rest, before.body);

    let again = change(&client, &path, json!({})).await;
    assert!(again.body["modified_at"].as_str() > after.body["modified_at"].as_str());
    assert_eq!(again.body["modified_by"], before.body["created_by"]);
}

/// Covers 5.13.
#[tokio::test]
async fn merged_data_must_follow_the_rules_of_its_type() {
    let (vault, _, client) = start().await;
    let card =
        json!({"number": "4242424242424242", "expiration_month": 12, "expiration_year": 2030});
    let bank = json!({"routing_number": "021000021", "account_number": "00001"});

    #[rustfmt::skip]
    let cases = [
        ("card", &card, json!({"number": "4242424242424241"}), "data.number"),
        ("card", &card, json!({"number": null}), "data.number"),
        ("card", &card, json!({"expiration_month": 13}), "data.expiration_month"),
        ("card", &card, json!({"cvc": "12"}), "data.cvc"),
        ("card", &card, json!("4242424242424242"), "data"),
        ("bank", &bank, json!({"routing_number": "021000022"}), "data.routing_number"),
        ("bank", &bank, json!({"account_number": null}), "data.account_number"),
        ("card_number", &json!("4242424242424242"), json!("4242424242424241"), "data"),
        ("card_number", &json!("4242424242424242"), json!({"number": "4242424242424242"}), "data"),
        ("us_bank_routing_number", &json!("021000021"), json!("021000022"), "data"),
        ("us_bank_account_number", &json!("00001"), json!("1"), "data"),
        ("social_security_number", &json!("078-05-1120"), json!("078-05-112"), "data"),
        ("employer_id_number", &json!("12-3456789"), json!(123456789), "data"),
    ];
    for (kind, data, patch, refused) in cases {
        let path = create(&client, json!({"type": kind, "data": data})).await;

        let answer = client
            .patch(&path, json!({"data": patch, "metadata": {"k": "v"}}))
            .await;

        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{kind} {patch}");
        assert_eq!(answer.refused(), [refused], "{kind} {patch}");
        assert_eq!(row_version(&vault, &path).await, 1);
        let read = client.get(&path).await;
        assert_eq!(&read.body["data"], data);
        assert_eq!(read.body.get("metadata"), None);
    }
}

/// Covers 5.13, 5.14.
#[tokio::test]
async fn merged_data_must_give_what_the_token_is_found_by() {
    let (_vault, _, client) = start().await;
    let new = json!({
        "type": "token",
        "data": {"a": "x"},
        "search_indexes": ["{{ data.a }}"],
        "fingerprint_expression": "{{ data.a }}",
    });
    let path = create(&client, new).await;
    let refused = client.patch(&path, json!({"data": {"a": null}})).await;
    assert_eq!(
        refused.refused(),
        ["fingerprint_expression", "search_indexes[0]"]
    );
    assert_eq!(client.get(&path).await.body["data"], json!({"a": "x"}));
}

/// Covers 5.13.
#[tokio::test]
async fn what_is_merged_has_the_size_of_any_other_data() {
    let (vault, _, client) = start().await;
    let half = 512 * 1024;
    let path = create(
        &client,
        json!({"type": "token", "data": {"a": "x".repeat(half)}}),
    )
    .await;
    // {"a":"…","b":"…"}
    let room = 1024 * 1024 - half - 15;

    let refused = client
        .patch(&path, json!({"data": {"b": "x".repeat(room + 1)}}))
        .await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    assert_eq!(refused.refused(), ["data"]);
    assert_eq!(row_version(&vault, &path).await, 1);

    let accepted = client
        .patch(&path, json!({"data": {"b": "x".repeat(room)}}))
        .await;
    assert_eq!(accepted.status, StatusCode::OK);
    assert_eq!(
        client.get(&path).await.body["data"].to_string().len(),
        1024 * 1024
    );
}

/// Covers 5.14, 5.17.
#[tokio::test]
async fn fingerprint_search_indexes_and_details_follow_the_data() {
    let (_vault, _, client) = start().await;
    let numbers = ["4242424242424242", "378282246310005"];
    let new = |number: &str| {
        json!({
            "type": "card",
            "data": {"number": number, "expiration_month": 12, "expiration_year": 2030},
            "search_indexes": ["{{ data.number }}", "{{ data.number | last4 }}"],
        })
    };
    let path = create(&client, new(numbers[0])).await;
    let twin = create(&client, new(numbers[1])).await;
    let before = client.get(&path).await;

    let changed = change(&client, &path, json!({"data": {"number": numbers[1]}})).await;
    let twin = client.get(&twin).await;

    let kept = json!({"number": numbers[1], "expiration_month": 12, "expiration_year": 2030});
    assert_eq!(changed.body["data"], kept);
    assert_ne!(changed.body["fingerprint"], before.body["fingerprint"]);
    assert_eq!(changed.body["fingerprint"], twin.body["fingerprint"]);
    assert_eq!(changed.body["card"]["bin"], "378282");
    assert_eq!(changed.body["card"]["last4"], "0005");
    assert_eq!(changed.body["card"], twin.body["card"]);
    let both = BTreeSet::from([id_of(&path), twin.id()]);
    for query in [numbers[1], "0005"] {
        assert_eq!(found(&client, &format!("data:{query}")).await, both);
    }
    for query in [numbers[0], "4242"] {
        assert!(found(&client, &format!("data:{query}")).await.is_empty());
    }
    let fingerprint = |answer: &Answer| {
        let text = answer.body["fingerprint"].as_str().unwrap();
        format!("fingerprint:{text}")
    };
    assert_eq!(found(&client, &fingerprint(&changed)).await, both);
    assert!(found(&client, &fingerprint(&before)).await.is_empty());

    let changed = change(&client, &path, json!({"data": {"expiration_month": 1}})).await;
    assert_eq!(changed.body["card"]["expiration_month"], 1);
    let bank = json!({"routing_number": "021000021", "account_number": "00001"});
    let path = create(&client, json!({"type": "bank", "data": bank})).await;
    let changed = change(&client, &path, json!({"data": {"account_number": "98765"}})).await;
    let details = json!({"routing_number": "021000021", "account_number_last4": "8765"});
    assert_eq!(changed.body["bank"], details);
}

/// Covers 5.14.
#[tokio::test]
async fn a_fingerprint_may_depend_on_metadata() {
    let (_vault, _, client) = start().await;
    let new = |customer: &str| {
        json!({
            "type": "token",
            "data": "x",
            "metadata": {"customer": customer},
            "fingerprint_expression": "{{ data }}/{{ metadata.customer }}",
        })
    };
    let path = create(&client, new("one")).await;
    let twin = create(&client, new("two")).await;
    let before = client.get(&path).await;

    let changed = change(&client, &path, json!({"metadata": {"customer": "two"}})).await;

    let twin = client.get(&twin).await;
    assert_ne!(changed.body["fingerprint"], before.body["fingerprint"]);
    assert_eq!(changed.body["fingerprint"], twin.body["fingerprint"]);
}

/// Covers 5.15.
#[tokio::test]
async fn a_mask_shows_the_data_as_it_is_now() {
    let (vault, tenant, client) = start().await;
    let reader = vault
        .client(&tenant, grants(&[Permission::TokenRead]))
        .await;
    let mask = "{{ data | reveal_last: 4 }}";
    let new = json!({"type": "token", "data": "abcdefgh", "mask": mask});
    let path = create(&client, new).await;

    let before = reader.get(&path).await;
    change(&client, &path, json!({"data": "12345678"})).await;
    let after = reader.get(&path).await;

    assert_eq!(before.body["data"], "XXXXefgh");
    assert_eq!(after.body["data"], "XXXX5678");
    assert_eq!(after.body["mask"], mask);
}

/// Covers 5.16.
#[tokio::test]
async fn the_answer_shows_what_the_grant_for_updating_shows() {
    use Permission::{TokenRead, TokenUpdate};
    let (vault, tenant, writer) = start().await;
    let by_rule = |transform| {
        let mut granted = grants(&[]);
        granted.rules = vec![
            rule(1, "/", Transform::Reveal, &[TokenRead]),
            rule(2, "/", transform, &[TokenUpdate]),
        ];
        granted
    };

    let cases = [
        (grants(&[TokenUpdate]), Some("XXXX5678")),
        (by_rule(Transform::Redact), None),
        (by_rule(Transform::Mask), Some("XXXX5678")),
        (by_rule(Transform::Reveal), Some("12345678")),
    ];
    for (granted, expected) in cases {
        let client = vault.client(&tenant, granted).await;
        let new = json!({"type": "token", "data": "x", "mask": "{{ data | reveal_last: 4 }}"});
        let path = create(&writer, new).await;

        let changed = change(&client, &path, json!({"data": "12345678"})).await;

        assert_eq!(changed.body.get("data").and_then(Value::as_str), expected);
        assert_eq!(changed.body["_extras"], json!({"deduplicated": false}));
    }
    let public = vault
        .holder(&tenant, ApplicationKind::Public, grants(&[TokenUpdate]))
        .await;
    let path = create(&writer, json!({"type": "token", "data": "x"})).await;
    let public = vault.client_with(Some(&public.key));
    let changed = change(&public, &path, json!({"data": "y"})).await;
    assert_eq!(changed.body.get("data"), None);
}

/// Covers 5.6, 5.16, 5.23.
#[tokio::test]
async fn moving_a_token_needs_the_permission_at_both_ends() {
    use Permission::TokenUpdate;
    let (vault, tenant, writer) = start().await;
    let in_containers = |rules: &[(&str, Transform)]| {
        let mut granted = grants(&[]);
        granted.rules = (1..)
            .zip(rules)
            .map(|(priority, (path, transform))| rule(priority, path, *transform, &[TokenUpdate]))
            .collect();
        granted
    };
    let (mask, reveal) = (Transform::Mask, Transform::Reveal);

    let cases = [
        (vec![("/a/", reveal)], "/a/", "/a/sub/", Some(json!("x"))),
        (vec![("/a/", reveal)], "/a/", "/b/", None),
        (vec![("/b/", reveal)], "/a/", "/b/", None),
        (vec![("/b/", reveal)], "/a/", "/a/", None),
        (vec![("/a/sub/", reveal)], "/a/sub/", "/a/", None),
        (
            vec![("/a/", mask), ("/b/", reveal)],
            "/a/",
            "/b/",
            Some(json!("x")),
        ),
        (
            vec![("/a/", reveal), ("/b/", mask)],
            "/a/",
            "/b/",
            Some(json!("m")),
        ),
    ];
    for (rules, from, to, shown) in cases {
        let case = format!("{rules:?} {from} {to}");
        let client = vault.client(&tenant, in_containers(&rules)).await;
        let new = json!({"type": "token", "data": "x", "mask": "m", "containers": [from]});
        let path = create(&writer, new).await;

        let answer = client.patch(&path, json!({"containers": [to]})).await;

        let moved = shown.is_some();
        let expected = if moved {
            StatusCode::OK
        } else {
            StatusCode::FORBIDDEN
        };
        assert_eq!(answer.status, expected, "{case}");
        assert_eq!(answer.body.get("data"), shown.as_ref(), "{case}");
        let lies = if moved { to } else { from };
        assert_eq!(
            writer.get(&path).await.body["containers"],
            json!([lies]),
            "{case}"
        );
        assert_eq!(
            row_version(&vault, &path).await,
            if moved { 2 } else { 1 },
            "{case}"
        );
    }
    // To where null would move it, too.
    let client = vault
        .client(&tenant, in_containers(&[("/a/", reveal)]))
        .await;
    let path = create(
        &writer,
        json!({"type": "token", "data": 1, "containers": ["/a/"]}),
    )
    .await;
    let answer = client.patch(&path, json!({"containers": null})).await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN);
}

/// Covers 5.19, 7.2, 7.3.
#[tokio::test]
async fn an_update_that_makes_two_tokens_equal_returns_the_other_one() {
    let (vault, _, client) = start().await;
    let new = |data: &str, container: &str| {
        let metadata = json!({"of": data});
        json!({"type": "token", "data": data, "containers": [container], "metadata": metadata})
    };
    let other = create(&client, new("other", "/a/")).await;
    let mine = create(&client, new("mine", "/a/")).await;
    let before = client.get(&mine).await;
    let patch = json!({"data": "other", "metadata": {"n": "1"}, "deduplicate_token": true});

    let met = change(&client, &mine, patch).await;
    let moved = create(&client, new("other", "/b/")).await;
    let moves_in = json!({"containers": ["/a/"], "deduplicate_token": true});
    let met_by_moving = change(&client, &moved, moves_in).await;

    let extras = json!({"deduplicated": true, "deduplication_behavior": "read_existing"});
    for met in [met, met_by_moving] {
        assert_eq!(met.id(), id_of(&other));
        assert_eq!(met.body["_extras"], extras);
        assert_eq!(met.body["data"], "other");
        assert_eq!(met.body["metadata"], json!({"of": "other"}));
        assert_eq!(met.body.get("modified_at"), None);
    }
    assert_eq!(client.get(&mine).await.bytes, before.bytes);
    assert_eq!(row_version(&vault, &other).await, 1);
    assert_eq!(row_version(&vault, &moved).await, 1);
    // Elsewhere, as another type, and without deduplication, nothing is equal.
    let elsewhere = json!({"data": "other", "containers": ["/c/"], "deduplicate_token": true});
    assert_eq!(change(&client, &mine, elsewhere).await.id(), id_of(&mine));
    let without = json!({"containers": ["/a/"], "deduplicate_token": false});
    assert_eq!(change(&client, &mine, without).await.id(), id_of(&mine));
    let ssn = json!({"type": "social_security_number", "data": "078051120", "containers": ["/a/"]});
    let ssn = create(&client, ssn).await;
    let ein = json!({"type": "employer_id_number", "data": "123456789", "containers": ["/a/"]});
    let ein = create(&client, ein).await;
    let patch = json!({"data": "078051120", "deduplicate_token": true});
    assert_eq!(change(&client, &ein, patch).await.id(), id_of(&ein));
    assert_eq!(client.get(&ssn).await.body.get("modified_at"), None);
}

/// Covers 5.19, 7.4, 7.15.
#[tokio::test]
async fn the_oldest_of_several_equal_tokens_is_the_one_that_is_met() {
    let (_vault, _, client) = start().await;
    let mut equal = Vec::new();
    for _ in 0..3 {
        equal.push(create(&client, json!({"type": "token", "data": "same"})).await);
    }
    let mine = create(&client, json!({"type": "token", "data": "mine"})).await;
    let patch = json!({"data": "same", "deduplicate_token": true});

    let met = change(&client, &mine, patch.clone()).await;
    client.delete(&equal[0]).await;
    let next = change(&client, &mine, patch).await;

    assert_eq!(met.id(), id_of(&equal[0]));
    assert_eq!(next.id(), id_of(&equal[1]));
}

/// Covers 5.9, 7.1.
#[tokio::test]
async fn deduplication_is_decided_by_the_request_and_else_by_the_tenant() {
    let vault = TestVault::start().await;
    for setting in [true, false] {
        let tenant = vault
            .tenant_with(&[("deduplicate_tokens", &setting.to_string())])
            .await;
        let client = vault.client(&tenant, everything(Transform::Reveal)).await;
        create(&client, json!({"type": "token", "data": "other"})).await;

        let cases = [
            (json!({"data": "other", "deduplicate_token": null}), setting),
            (json!({"data": "other"}), setting),
            (json!({"data": "other", "deduplicate_token": true}), true),
            (json!({"data": "other", "deduplicate_token": false}), false),
        ];
        for (number, (patch, expected)) in cases.into_iter().enumerate() {
            let mine = create(&client, json!({"type": "token", "data": number})).await;
            let changed = change(&client, &mine, patch.clone()).await;
            let case = format!("{setting} {patch}");
            assert_eq!(changed.body["_extras"]["deduplicated"], expected, "{case}");
            assert_eq!(changed.id() != id_of(&mine), expected, "{case}");
            client.delete(&mine).await;
        }
    }
}

/// Covers 5.20, 7.8, 7.9.
#[tokio::test]
async fn whoever_may_not_read_the_other_token_learns_only_that_it_is_there() {
    use Permission::{TokenRead, TokenUpdate};
    let (vault, tenant, writer) = start().await;
    let other = json!({
        "type": "token",
        "data": "the secret",
        "mask": "{{ data | reveal_last: 4 }}",
        "metadata": {"k": "v"},
        "search_indexes": ["{{ data }}"],
        "fingerprint_expression": "{{ data | downcase }}",
        "expires_at": "2040-01-01",
    });
    let other = client_sees(&writer, &create(&writer, other).await).await;
    let mut elsewhere = grants(&[]);
    elsewhere.rules = vec![
        rule(1, "/", Transform::Reveal, &[TokenUpdate]),
        rule(2, "/elsewhere/", Transform::Reveal, &[TokenRead]),
    ];
    let public = vault
        .holder(&tenant, ApplicationKind::Public, grants(&[TokenUpdate]))
        .await;
    let strangers = [
        vault.client(&tenant, elsewhere).await,
        vault.client_with(Some(&public.key)),
    ];
    let mine = json!({
        "type": "token",
        "data": "mine",
        "fingerprint_expression": "{{ data | downcase }}",
    });
    let mine = create(&writer, mine).await;
    let patch = json!({"data": "THE SECRET", "deduplicate_token": true});

    for stranger in strangers {
        let met = change(&stranger, &mine, patch.clone()).await;

        let expected = json!({
            "id": other["id"],
            "tenant_id": other["tenant_id"],
            "type": "token",
            "fingerprint": other["fingerprint"],
            "containers": ["/general/high/"],
            "_extras": {"deduplicated": true, "deduplication_behavior": "read_existing"},
        });
        assert_eq!(met.body, expected);
    }
    let mut granted = grants(&[TokenUpdate]);
    granted.rules = vec![rule(1, "/", Transform::Mask, &[TokenRead])];
    let masked = vault.client(&tenant, granted).await;
    let met = change(&masked, &mine, patch).await;
    assert_eq!(met.body["data"], "XXXXXXcret");
    assert_eq!(met.body["metadata"], json!({"k": "v"}));
    assert_eq!(writer.get(&mine).await.body["data"], "mine");
}

async fn client_sees(client: &Client, path: &str) -> Value {
    client.get(path).await.body
}

/// Covers 5.21.
#[tokio::test]
async fn a_token_never_collides_with_itself() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant_with(&[("deduplicate_tokens", "true")]).await;
    let client = vault.client(&tenant, everything(Transform::Reveal)).await;
    let path = create(&client, json!({"type": "token", "data": {"a": 1}})).await;

    let own = [
        json!({}),
        json!({"data": {"a": 1}}),
        json!({"data": {"a": 2}}),
        json!({"data": {"a": 1}}),
        json!({"containers": ["/b/"]}),
        json!({"containers": null}),
        json!({"metadata": {"k": "v"}}),
        json!({"fingerprint_expression": "{{ data.a }}"}),
        json!({"deduplicate_token": false}),
        json!({"deduplicate_token": true}),
    ];
    for (version, patch) in (2..).zip(own) {
        let changed = change(&client, &path, patch.clone()).await;
        assert_eq!(changed.id(), id_of(&path), "{patch}");
        assert_eq!(
            changed.body["_extras"],
            json!({"deduplicated": false}),
            "{patch}"
        );
        assert_eq!(row_version(&vault, &path).await, version, "{patch}");
    }
}

/// Covers 5.19, 7.14.
#[tokio::test]
async fn an_expired_token_is_met_by_nobody_and_stands_in_nobodys_way() {
    let (vault, _, client) = start().await;
    let expires_at = in_seconds(&vault, 2).await;
    let brief = json!({
        "type": "token",
        "data": "same",
        "deduplicate_token": true,
        "expires_at": expires_at,
    });
    let brief = create(&client, brief).await;
    let mine = create(&client, json!({"type": "token", "data": "mine"})).await;
    wait_until_gone(&client, &brief).await;

    let patch = json!({"data": "same", "deduplicate_token": true});
    let changed = change(&client, &mine, patch).await;

    assert_eq!(changed.id(), id_of(&mine));
    assert_eq!(changed.body["data"], "same");
    assert_eq!(changed.body["_extras"], json!({"deduplicated": false}));
}

/// Covers 5.22, 5.23.
#[tokio::test]
async fn a_token_that_the_caller_may_not_update_is_forbidden_and_stays() {
    use Permission::{TokenRead, TokenUpdate};
    let (vault, tenant, writer) = start().await;
    let mut elsewhere = grants(&[TokenRead]);
    elsewhere.rules = vec![rule(1, "/elsewhere/", Transform::Reveal, &[TokenUpdate])];
    let elsewhere = vault.client(&tenant, elsewhere).await;
    let nowhere = vault.client(&tenant, grants(&[TokenRead])).await;
    let path = create(&writer, json!({"type": "token", "data": "x"})).await;

    let here = elsewhere.patch(&path, json!({"data": "y"})).await;
    let unknown = elsewhere.patch("/tokens/nowhere", json!({})).await;
    let probing = nowhere.patch("/tokens/nowhere", json!({})).await;

    assert_eq!(here.status, StatusCode::FORBIDDEN);
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
    // Who may change nothing at all cannot find out what there is.
    assert_eq!(probing.status, StatusCode::FORBIDDEN);
    assert_eq!(row_version(&vault, &path).await, 1);
}

/// Sends a patch for each number at once, and gives the answers in the order of the numbers.
async fn change_at_once(
    client: &Client,
    count: usize,
    patch: impl Fn(usize) -> (String, Value),
) -> Vec<Answer> {
    let mut changing = tokio::task::JoinSet::new();
    for number in 0..count {
        let (client, (path, patch)) = (client.clone(), patch(number));
        changing.spawn(async move { (number, client.patch(&path, patch).await) });
    }
    let mut answers = changing.join_all().await;
    answers.sort_by_key(|(number, _)| *number);
    answers.into_iter().map(|(_, answer)| answer).collect()
}

/// Covers 5.2.
#[tokio::test]
async fn changes_at_the_same_moment_all_survive() {
    let (vault, _, client) = start().await;
    let path = create(&client, json!({"type": "token", "data": {"first": true}})).await;

    let patch = |number: usize| {
        let index = format!("{{{{ data.k{number} }}}}");
        let data = json!({ format!("k{number}"): format!("v{number}") });
        (
            path.clone(),
            json!({"data": data, "search_indexes": [index]}),
        )
    };
    let answers = change_at_once(&client, 64, patch).await;

    for (number, answer) in answers.iter().enumerate() {
        assert_eq!(answer.status, StatusCode::OK, "{number}: {}", answer.body);
        assert_eq!(
            answer.body["data"][format!("k{number}")],
            format!("v{number}")
        );
    }
    let times: BTreeSet<&str> = answers
        .iter()
        .map(|answer| answer.body["modified_at"].as_str().unwrap())
        .collect();
    let read = client.get(&path).await;
    assert_eq!(read.body["data"].as_object().unwrap().len(), 65);
    assert_eq!(read.body["modified_at"].as_str(), times.last().copied());
    assert_eq!(row_version(&vault, &path).await, 65);
    assert_consistent(&vault).await;
}

/// Covers 5.2.
#[tokio::test]
async fn changes_on_two_nodes_at_the_same_moment_all_survive() {
    let (vault, tenant, client) = start().await;
    let second = vault.second_node().await;
    let other = second.client(&tenant, everything(Transform::Reveal)).await;
    let path = create(&client, json!({"type": "token", "data": {}})).await;

    let patch = |node: &'static str| {
        let path = path.clone();
        move |number: usize| {
            let name = format!("{node}{number}");
            (path.clone(), json!({"data": {name: number}}))
        }
    };
    let (here, there) = tokio::join!(
        change_at_once(&client, 16, patch("here")),
        change_at_once(&other, 16, patch("there")),
    );

    for answer in here.into_iter().chain(there) {
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
    }
    let read = client.get(&path).await;
    assert_eq!(read.body["data"].as_object().unwrap().len(), 32);
    assert_eq!(row_version(&vault, &path).await, 33);
}

/// Covers 5.5.
#[tokio::test]
async fn metadata_added_at_the_same_moment_survives_up_to_its_limit() {
    let (vault, _, client) = start().await;
    let path = create(&client, json!({"type": "token", "data": 1})).await;

    let patch = |number: usize| {
        let metadata = json!({ format!("k{number}"): number.to_string() });
        (path.clone(), json!({ "metadata": metadata }))
    };
    let answers = change_at_once(&client, 64, patch).await;

    let read = client.get(&path).await;
    let kept = read.body["metadata"].as_object().unwrap();
    for (number, answer) in answers.iter().enumerate() {
        match kept.get(&format!("k{number}")) {
            Some(value) => {
                assert_eq!(answer.status, StatusCode::OK, "{number}");
                assert_eq!(*value, number.to_string());
            }
            // Fifty entries are the most that there may be.
            None => assert_eq!(answer.refused(), ["metadata"], "{number}: {}", answer.body),
        }
    }
    assert_eq!(kept.len(), 50);
    assert_eq!(row_version(&vault, &path).await, 51);
    assert_consistent(&vault).await;
}

/// Covers 5.19.
#[tokio::test]
async fn of_tokens_that_become_equal_at_the_same_moment_one_does() {
    let (vault, _, client) = start().await;
    let mut paths = Vec::new();
    for number in 0..16 {
        paths.push(create(&client, json!({"type": "token", "data": number})).await);
    }

    let patch = |number: usize| {
        let patch = json!({"data": "same", "deduplicate_token": true});
        (paths[number].clone(), patch)
    };
    let answers = change_at_once(&client, paths.len(), patch).await;

    let mut ids = BTreeSet::new();
    for (number, answer) in answers.iter().enumerate() {
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
        ids.insert(answer.id());
        let won = answer.id() == id_of(&paths[number]);
        assert_eq!(answer.body["_extras"]["deduplicated"], !won);
        let data = client.get(&paths[number]).await.body["data"].clone();
        assert_eq!(data, if won { json!("same") } else { json!(number) });
    }
    assert_eq!(ids.len(), 1);
    assert_consistent(&vault).await;
}

/// Covers 7.6, 7.13.
#[tokio::test]
async fn creates_that_change_an_equal_token_at_the_same_moment_all_survive() {
    let vault = TestVault::start_patient().await;
    let settings = [
        ("deduplicate_tokens", "true"),
        ("token_deduplication_behavior", "update_existing"),
    ];
    let tenant = vault.tenant_with(&settings).await;
    let client = vault.client(&tenant, everything(Transform::Reveal)).await;

    let mut creating = tokio::task::JoinSet::new();
    for number in 0..32 {
        let client = client.clone();
        let metadata = json!({ format!("k{number}"): "v" });
        let new = json!({"type": "token", "data": "same", "metadata": metadata});
        creating.spawn(async move { client.post("/tokens", new).await });
    }
    let answers = creating.join_all().await;

    for answer in &answers {
        assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.body);
        assert_eq!(answer.id(), answers[0].id());
    }
    let path = format!("/tokens/{}", answers[0].id());
    let read = client.get(&path).await;
    assert_eq!(read.body["metadata"].as_object().unwrap().len(), 32);
    assert_eq!(row_version(&vault, &path).await, 32);
    assert_consistent(&vault).await;
}

/// Covers 7.11, 8.8.
#[tokio::test]
async fn an_expiry_in_the_past_is_named_whatever_deduplication_does() {
    let vault = TestVault::start().await;
    for behavior in ["read_existing", "update_existing"] {
        let tenant = vault
            .tenant_with(&[("token_deduplication_behavior", behavior)])
            .await;
        let client = vault.client(&tenant, everything(Transform::Reveal)).await;
        let new = |data: &str, expires_at: Value| {
            let deduplicate = json!(true);
            json!({"type": "token", "data": data, "deduplicate_token": deduplicate, "expires_at": expires_at})
        };
        let path = create(&client, new("there", json!(null))).await;

        let fresh = client
            .post("/tokens", new("new", json!("2020-01-01")))
            .await;
        let met = client
            .post("/tokens", new("there", json!("2020-01-01")))
            .await;
        let patch = json!({"data": "other", "deduplicate_token": true, "expires_at": "2020-01-01"});
        let changed = client.patch(&path, patch).await;

        assert_eq!(fresh.refused(), ["expires_at"], "{behavior}");
        assert_eq!(changed.refused(), ["expires_at"], "{behavior}");
        match behavior {
            // What is asked of a token that is only read is ignored.
            "read_existing" => assert_eq!(met.status, StatusCode::CREATED),
            _ => assert_eq!(met.refused(), ["expires_at"]),
        }
        assert_eq!(row_version(&vault, &path).await, 1);
    }
}

/// What tables say of tokens agrees: no term and no claim without its token, and none missing.
async fn assert_consistent(vault: &TestVault) {
    let database = vault.database.connect().await;
    let checks = [
        (
            "terms without a token that has them where it lies",
            "select count(*) from term where not exists (
                select from token join container using (tenant_id, container_id)
                where token.tenant_id = term.tenant_id and token.token_id = term.token_id
                  and token.created_at = term.created_at and container.path = term.path
                  and term.term = any(token.terms))",
        ),
        (
            "tokens whose terms are not in the table, or there twice",
            "select count(*) from token where cardinality(terms) <> (
                select count(distinct term) from term
                where term.tenant_id = token.tenant_id and term.token_id = token.token_id)",
        ),
        (
            "claims without a token of that fingerprint in that container",
            "select count(*) from claim where not exists (
                select from token
                where token.tenant_id = claim.tenant_id and token.token_id = claim.token_id
                  and token.container_id = claim.container_id
                  and token.fingerprint = claim.fingerprint)",
        ),
    ];
    for (what, check) in checks {
        let count: i64 = database.query_one(check, &[]).await.unwrap().get(0);
        assert_eq!(count, 0, "{what}");
    }
}

/// A token that is changed at random, and what its row cannot tell about how it came about.
struct Subject {
    path: String,
    kind: &'static str,
    /// Only what was given: defaults of the type are absent.
    search_indexes: Option<Value>,
    fingerprint_expression: Option<Value>,
    claims: bool,
}

impl Subject {
    async fn create(client: &Client, kind: &'static str) -> Self {
        let data = match kind {
            "card" => json!({"number": "4242424242424242"}),
            "social_security_number" => json!("078-05-1120"),
            _ => json!({"a": "1"}),
        };
        Self {
            path: create(client, json!({"type": kind, "data": data})).await,
            kind,
            search_indexes: None,
            fingerprint_expression: None,
            claims: false,
        }
    }

    /// Few values, so that tokens become equal often.
    fn random_patch(&self, chance: &mut Chance) -> Value {
        let mut patch = json!({});
        if chance.one_in(2) {
            let digit = *chance.pick(&["1", "2", "3"]);
            patch["data"] = match self.kind {
                "card" => {
                    let numbers = ["4242424242424242", "5555555555554444", "378282246310005"];
                    json!({"number": chance.pick(&numbers), "expiration_month": digit})
                }
                "social_security_number" => json!(format!("{digit}00-00-0000")),
                _ if chance.one_in(4) => json!({"b": null}),
                _ => json!({ *chance.pick(&["a", "b"]): digit }),
            };
        }
        if chance.one_in(3) {
            let value = chance.pick(&[json!("1"), json!("2"), json!(null)]).clone();
            let entry = json!({ *chance.pick(&["k", "l", "m"]): value });
            patch["metadata"] = chance.pick(&[entry.clone(), entry, json!(null)]).clone();
        }
        if chance.one_in(3) {
            let containers = [json!(["/x/"]), json!(["/x/y/"]), json!(null)];
            patch["containers"] = chance.pick(&containers).clone();
        }
        if chance.one_in(4) {
            let indexes = [
                json!(["{{ data | stringify }}"]),
                json!(["{{ data.a }}", "{{ data | stringify | upcase }}"]),
                json!([]),
                json!(null),
            ];
            patch["search_indexes"] = chance.pick(&indexes).clone();
        }
        if chance.one_in(5) {
            let expressions = [
                json!("{{ data | stringify }}"),
                json!("{{ metadata.k }}"),
                json!(null),
            ];
            patch["fingerprint_expression"] = chance.pick(&expressions).clone();
        }
        if chance.one_in(2) {
            patch["deduplicate_token"] = json!(chance.one_in(2));
        }
        if chance.one_in(6) {
            patch["mask"] = chance
                .pick(&[json!("m"), json!({"a": "{{ data }}"}), json!(null)])
                .clone();
        }
        patch
    }

    /// Sends a random patch and notes what it did.
    async fn change(&mut self, client: &Client, chance: &mut Chance) {
        let patch = self.random_patch(chance);
        let before = client.get(&self.path).await;
        let answer = client.patch(&self.path, patch.clone()).await;
        let after = client.get(&self.path).await;
        let met = answer.body["_extras"]["deduplicated"] == true;
        if met || answer.status == StatusCode::BAD_REQUEST {
            assert_eq!(after.bytes, before.bytes, "{patch}");
            return;
        }
        assert_eq!(answer.status, StatusCode::OK, "{patch}: {}", answer.body);
        let place = |answer: &Answer| {
            let names = ["fingerprint", "containers"];
            names.map(|name| answer.body[name].clone())
        };
        self.claims &= place(&before) == place(&after);
        self.claims |= patch["deduplicate_token"] == true && after.body["fingerprint"].is_string();
        match patch.get("search_indexes") {
            Some(Value::Null) => self.search_indexes = Some(json!([])),
            Some(given) => self.search_indexes = Some(given.clone()),
            None => {}
        }
        match patch.get("fingerprint_expression") {
            Some(Value::Null) => self.fingerprint_expression = None,
            Some(given) => self.fingerprint_expression = Some(given.clone()),
            None => {}
        }
    }

    /// Compares what this token is found by with that of a new token of the same state.
    async fn check(&self, client: &Client, database: &tokio_postgres::Client) {
        let told = client.get(&self.path).await.body;
        let mut twin = json!({"deduplicate_token": false});
        for name in ["type", "data", "metadata", "containers"] {
            twin[name] = told[name].clone();
        }
        twin["search_indexes"] = json!(self.search_indexes);
        twin["fingerprint_expression"] = json!(self.fingerprint_expression);
        let path = create(client, twin).await;
        let equal = client.get(&path).await.body;

        let same = [
            "fingerprint",
            "fingerprint_expression",
            "search_indexes",
            "card",
            "metadata",
        ];
        for name in same {
            assert_eq!(told[name], equal[name], "{name} of {told}");
        }
        let terms = terms_of(database, &self.path).await;
        assert_eq!(terms, terms_of(database, &path).await, "terms of {told}");
        client.delete(&path).await;
        let claims: i64 = database
            .query_one(
                "select count(*) from claim where token_id = $1",
                &[&uuid_of(&self.path)],
            )
            .await
            .unwrap()
            .get(0);
        assert_eq!(claims, i64::from(self.claims), "claims of {told}");
    }
}

/// The terms of a token in the table, with the paths they stand at.
async fn terms_of(database: &tokio_postgres::Client, path: &str) -> Vec<(Vec<u8>, String)> {
    let select = "select term, path from term where token_id = $1 order by term, path";
    let rows = database.query(select, &[&uuid_of(path)]).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

/// Covers 5.14, 7.15.
#[tokio::test]
async fn after_any_changes_a_token_is_found_by_what_it_is_and_nothing_else() {
    let (vault, _, client) = start().await;
    let database = vault.database.connect().await;
    let mut chance = Chance::new();
    let mut subjects = Vec::new();
    for kind in ["token", "token", "card", "card", "social_security_number"] {
        subjects.push(Subject::create(&client, kind).await);
    }

    for round in 1..=150 {
        let subject = &mut subjects[chance.below(5)];
        subject.change(&client, &mut chance).await;
        if round % 10 == 0 {
            for subject in &subjects {
                subject.check(&client, &database).await;
            }
            assert_consistent(&vault).await;
        }
    }

    for subject in &subjects {
        let deleted = client.delete(&subject.path).await;
        assert_eq!(deleted.status, StatusCode::NO_CONTENT);
    }
    let left = "select (select count(*) from token) + (select count(*) from term)
        + (select count(*) from claim) + (select count(*) from security_code)";
    let left: i64 = database.query_one(left, &[]).await.unwrap().get(0);
    assert_eq!(left, 0);
}

/// Covers 6.1, 6.2.
#[tokio::test]
async fn deleting_answers_with_nothing_and_once() {
    let (_vault, _, client) = start().await;
    let uuid = create(&client, json!({"type": "token", "data": 1})).await;
    create(
        &client,
        json!({"id": "order 17", "type": "token", "data": 1}),
    )
    .await;

    for path in [uuid.as_str(), "/tokens/order%2017"] {
        let deleted = client.delete(path).await;
        assert_eq!(deleted.status, StatusCode::NO_CONTENT);
        assert!(deleted.bytes.is_empty());
        let unknown = client.delete("/tokens/nowhere").await;
        assert_eq!(unknown.status, StatusCode::NOT_FOUND);
        let others = [
            client.delete(path).await,
            client.get(path).await,
            client.patch(path, json!({})).await,
        ];
        for gone in others {
            assert_eq!(gone.status, StatusCode::NOT_FOUND);
            assert_eq!(gone.bytes, unknown.bytes);
        }
    }
}

/// Covers 6.3.
#[tokio::test]
async fn a_token_that_the_caller_may_not_delete_is_forbidden_and_stays() {
    use Permission::{TokenDelete, TokenRead, TokenUpdate};
    let (vault, tenant, writer) = start().await;
    let mut elsewhere = grants(&[TokenRead, TokenUpdate]);
    elsewhere.rules = vec![rule(1, "/elsewhere/", Transform::Reveal, &[TokenDelete])];
    let elsewhere = vault.client(&tenant, elsewhere).await;
    let nowhere = vault
        .client(&tenant, grants(&[TokenRead, TokenUpdate]))
        .await;
    let path = create(&writer, json!({"type": "token", "data": "x"})).await;

    let here = elsewhere.delete(&path).await;
    let unknown = elsewhere.delete("/tokens/nowhere").await;
    let probing = nowhere.delete("/tokens/nowhere").await;

    assert_eq!(here.status, StatusCode::FORBIDDEN);
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
    assert_eq!(probing.status, StatusCode::FORBIDDEN);
    assert_eq!(writer.get(&path).await.body["data"], "x");
    // Once it lies where the permission is held, it goes.
    change(&writer, &path, json!({"containers": ["/elsewhere/sub/"]})).await;
    assert_eq!(elsewhere.delete(&path).await.status, StatusCode::NO_CONTENT);
}

/// Covers 6.4.
#[tokio::test]
async fn nothing_of_a_deleted_token_is_left_in_any_table() {
    let (vault, _, client) = start().await;
    let new = json!({
        "id": "order 17",
        "type": "card",
        "data": {"number": "4242424242424242", "cvc": "123"},
        "metadata": {"customer": "a customer of ours"},
        "search_indexes": ["{{ data.number | last4 }}"],
        "deduplicate_token": true,
    });
    let created = client.post("/tokens", new.clone()).await;
    change(
        &client,
        "/tokens/order%2017",
        json!({"metadata": {"more": "v"}}),
    )
    .await;
    let database = vault.database.connect().await;
    let row = "select token_id::text, encode(sealed, 'hex'), encode(fingerprint, 'hex') from token";
    let row = database.query_one(row, &[]).await.unwrap();
    let mut traces: Vec<String> = (0..3).map(|column| row.get(column)).collect();
    traces.extend(["order 17", "a customer of ours"].map(str::to_owned));
    for (term, _) in terms_of_key(&database, &traces[0]).await {
        traces.push(term);
    }

    let before = rows_with(&database, &traces).await;
    let deleted = client.delete("/tokens/order%2017").await;

    let tables: BTreeSet<&str> = before.iter().map(String::as_str).collect();
    let expected = ["claim", "log", "security_code", "term", "token"];
    assert_eq!(tables, BTreeSet::from(expected));
    assert_eq!(deleted.status, StatusCode::NO_CONTENT);
    // What was done to it stays on record, by its name.
    let left: BTreeSet<String> = rows_with(&database, &traces).await.into_iter().collect();
    assert_eq!(left, BTreeSet::from(["log".to_owned()]));
    // Nobody meets it, finds it or can use it any more, and its name is free.
    assert!(found(&client, "data:4242").await.is_empty());
    let detokenized = client.post("/detokenize", json!("{{ order 17 }}")).await;
    assert_eq!(detokenized.status, StatusCode::BAD_REQUEST);
    let again = client.post("/tokens", new).await;
    assert_eq!(again.status, StatusCode::CREATED);
    assert_eq!(again.id(), "order 17");
    assert_eq!(again.body["_extras"], json!({"deduplicated": false}));
    assert_eq!(
        again.body["metadata"],
        json!({"customer": "a customer of ours"})
    );
    assert_eq!(again.body["fingerprint"], created.body["fingerprint"]);
    assert_eq!(again.body.get("modified_at"), None);
}

async fn terms_of_key(database: &tokio_postgres::Client, key: &str) -> Vec<(String, String)> {
    let select = "select encode(term, 'hex'), path from term where token_id::text = $1";
    let rows = database.query(select, &[&key]).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

/// The tables of the rows that hold any of these texts.
async fn rows_with(database: &tokio_postgres::Client, texts: &[String]) -> Vec<String> {
    let tables = "select table_name::text from information_schema.tables
        where table_schema = 'public' and table_name !~ '^log_[0-9]+$' order by 1";
    let mut found = Vec::new();
    for row in database.query(tables, &[]).await.unwrap() {
        let table: String = row.get(0);
        let rows = format!("select row_to_json(it)::text from {table} it");
        for row in database.query(&rows, &[]).await.unwrap() {
            let text: String = row.get(0);
            if texts.iter().any(|trace| text.contains(trace)) {
                found.push(table.clone());
            }
        }
    }
    found
}

/// Covers 6.5.
#[tokio::test]
async fn the_id_of_a_deleted_token_is_free() {
    let (_vault, _, client) = start().await;
    let id = cloakroom::ids::new_uuid().to_string();
    for id in [id.as_str(), "order-17"] {
        let path = format!("/tokens/{id}");
        for round in 0..3 {
            let new = json!({"id": id, "type": "token", "data": round});
            create(&client, new.clone()).await;
            let taken = client.post("/tokens", new).await;
            assert_eq!(taken.status, StatusCode::CONFLICT);
            assert_eq!(client.get(&path).await.body["data"], round);
            client.delete(&path).await;
        }
    }
}
