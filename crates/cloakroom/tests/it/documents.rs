//! Whole documents: every value turned into a token, and back.

use std::collections::BTreeSet;
use std::time::Duration;

use cloakroom::access::{ApplicationKind, Permission, Tenant, Transform};
use http::StatusCode;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::{Answer, Client, TestDatabase, TestVault, everything, grants, rule};

/// A vault, a tenant in it, and someone who may do everything there and sees the data.
async fn start() -> (TestVault, Tenant, Client) {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = vault.client(&tenant, everything(Transform::Reveal)).await;
    (vault, tenant, client)
}

/// Tokenizes a document that must be accepted.
async fn tokenize(client: &Client, document: Value) -> Value {
    let answer = client.post("/tokenize", document.clone()).await;
    assert_eq!(answer.status, StatusCode::OK, "{document}: {}", answer.body);
    answer.body
}

/// Detokenizes a document that must be accepted.
async fn detokenize(client: &Client, document: Value) -> Value {
    let answer = client.post("/detokenize", document.clone()).await;
    assert_eq!(answer.status, StatusCode::OK, "{document}: {}", answer.body);
    answer.body
}

/// Creates a token and gives its id.
async fn create(client: &Client, new: Value) -> String {
    let created = client.post("/tokens", new).await;
    assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
    created.id()
}

async fn read(client: &Client, id: &Value) -> Answer {
    let id = id.as_str().unwrap_or_else(|| panic!("no id: {id}"));
    client.get(&format!("/tokens/{id}")).await
}

/// How many rows there are of tokens and what belongs to them.
async fn kept(vault: &TestVault) -> i64 {
    let count = "select (select count(*) from token) + (select count(*) from term)
        + (select count(*) from claim) + (select count(*) from security_code)";
    let database = vault.database.connect().await;
    database.query_one(count, &[]).await.unwrap().get(0)
}

/// Covers 11.1, 11.2, 11.13.
#[tokio::test]
async fn the_documented_example_is_tokenized_as_documented() {
    let (_vault, _, client) = start().await;
    let document = json!({
        "first_name": "John",
        "primary_card": {"type": "card", "data": {"number": "4242424242424242"}},
        "tags": ["vip", {"type": "token", "data": "x"}],
    });

    let answer = client.post("/tokenize", document).await;

    assert_eq!(answer.status, StatusCode::OK);
    assert_eq!(
        answer.header("content-type"),
        "application/json; charset=utf-8"
    );
    assert_eq!(answer.header("location"), "");
    let names: Vec<&String> = answer.body.as_object().unwrap().keys().collect();
    assert_eq!(names, ["first_name", "primary_card", "tags"]);
    let strings = [
        (&answer.body["first_name"], "John"),
        (&answer.body["tags"][0], "vip"),
    ];
    for (id, data) in strings {
        let uuid: Uuid = id.as_str().unwrap().parse().unwrap();
        assert_eq!(uuid.get_version_num(), 4);
        let token = read(&client, id).await;
        assert_eq!(token.body["type"], "token");
        assert_eq!(token.body["data"], data);
        assert_eq!(token.body["containers"], json!(["/general/high/"]));
    }
    // Tokens stand there as creating them would have answered.
    let card = json!({"type": "card", "data": {"number": "4242424242424242"}});
    let created = client.post("/tokens", card).await.body;
    let (card, x) = (&answer.body["primary_card"], &answer.body["tags"][1]);
    assert_eq!(x["data"], "x");
    for (name, value) in created.as_object().unwrap() {
        if name != "id" && name != "created_at" {
            assert_eq!(&card[name], value, "{name}");
        }
    }
    assert_eq!(
        card.as_object().unwrap().len(),
        created.as_object().unwrap().len()
    );
    assert_eq!(
        read(&client, &card["id"]).await.body["created_at"],
        card["created_at"]
    );
}

/// Covers 11.1, 11.3, 11.4, 11.5, 11.6, 11.7.
#[tokio::test]
async fn the_shape_of_a_document_stays() {
    let (vault, _, client) = start().await;

    // Every `0` stands for an id.
    let cases = [
        ("\"text\"", "0"),
        ("\"\"", "0"),
        ("19.90", "0"),
        ("true", "0"),
        ("false", "0"),
        ("[\"a\"]", "[0]"),
        ("[[[1]],[],{}]", "[[[0]],[],{}]"),
        (
            r#"{"z":1,"a":null,"m":{"y":[null,"b"],"x":{}}}"#,
            r#"{"z":0,"a":null,"m":{"y":[null,0],"x":{}}}"#,
        ),
        ("[null,1,null]", "[null,0,null]"),
        (r#"{"a b":{"":{"c.d":"e"}}}"#, r#"{"a b":{"":{"c.d":0}}}"#),
    ];
    for (document, shape) in cases {
        let answer = client
            .post_text("/tokenize", document, "application/json")
            .await;
        assert_eq!(answer.status, StatusCode::OK, "{document}");
        let mut told = answer.body.clone();
        replace_ids(&mut told);
        assert_eq!(told.to_string(), shape, "{document}");
    }
    let kept = "select count(*) from token where kind = 1";
    let database = vault.database.connect().await;
    let kept: i64 = database.query_one(kept, &[]).await.unwrap().get(0);
    assert_eq!(kept, 11);
}

fn replace_ids(value: &mut Value) {
    match value {
        Value::String(text) if text.parse::<Uuid>().is_ok() => *value = json!(0),
        Value::Array(elements) => elements.iter_mut().for_each(replace_ids),
        Value::Object(members) => members.values_mut().for_each(replace_ids),
        _ => {}
    }
}

/// Covers 11.5, 11.7.
#[tokio::test]
async fn lone_values_keep_their_type_and_text() {
    let (_vault, _, client) = start().await;

    for data in [
        "\"{{ not an expression }}\"",
        "19.90",
        "1e+400",
        "-0",
        "true",
        "false",
        "\"\"",
    ] {
        let answer = client
            .post_text("/tokenize", data, "application/json")
            .await;
        assert_eq!(answer.status, StatusCode::OK, "{data}");

        let token = read(&client, &answer.body).await;

        let text = String::from_utf8(token.bytes).unwrap();
        assert!(
            text.contains(&format!("\"type\":\"token\",\"data\":{data},")),
            "{data} in {text}"
        );
    }
}

/// Covers 11.2, 11.3.
#[tokio::test]
async fn an_object_is_a_token_when_it_has_a_type_and_data() {
    let (_vault, _, client) = start().await;

    // The document, and which of its members became ids: none when it is a token itself.
    let cases = [
        (json!({"type": "token", "data": "x"}), None),
        (
            json!({"type": "token", "data": {"type": "card", "data": 1}}),
            None,
        ),
        (
            json!({"type": "token", "data": false, "other": {"type": "card"}}),
            None,
        ),
        (json!({"type": "card"}), Some(vec!["type"])),
        (
            json!({"type": "visa", "number": "1"}),
            Some(vec!["type", "number"]),
        ),
        (json!({"data": "x"}), Some(vec!["data"])),
        (json!({"type": 1, "data": "x"}), Some(vec!["type", "data"])),
        (json!({"type": null, "data": "x"}), Some(vec!["data"])),
        (
            json!({"Type": "token", "Data": "x"}),
            Some(vec!["Type", "Data"]),
        ),
        (json!({"type": ["token"], "data": "x"}), Some(vec!["data"])),
    ];
    for (document, members) in cases {
        let told = tokenize(&client, document.clone()).await;
        match members {
            None => {
                assert_eq!(told["type"], "token", "{document}");
                assert_eq!(told["data"], document["data"], "{document}");
                assert_eq!(
                    told["_extras"],
                    json!({"deduplicated": false}),
                    "{document}"
                );
                assert_eq!(told.get("other"), None, "{document}");
            }
            Some(members) => {
                for name in members {
                    let token = read(&client, &told[name]).await;
                    assert_eq!(token.body["data"], document[name], "{document}");
                }
                assert_eq!(told.get("_extras"), None, "{document}");
            }
        }
    }
    // What cannot be opened, or not be honoured yet, is refused rather than taken apart.
    let cases = [
        (
            json!({"a": {"type": "card", "encrypted": "e30"}}),
            vec!["a.encrypted"],
        ),
        (
            json!([{"token_intent_id": Uuid::nil()}]),
            vec!["[0].token_intent_id"],
        ),
    ];
    for (document, refused) in cases {
        let answer = client.post("/tokenize", document.clone()).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST);
        assert_eq!(answer.refused(), refused, "{document}");
    }
}

/// Covers 11.2.
#[tokio::test]
async fn a_token_in_a_document_has_all_attributes_of_a_create() {
    let (_vault, _, client) = start().await;
    let document = json!([{
        "id": "order {{ data.order }}",
        "type": "token",
        "data": {"order": "17", "secret": "x"},
        "mask": {"order": "{{ data.order }}"},
        "containers": ["/Orders/"],
        "metadata": {"k": "v", "n": null},
        "search_indexes": ["{{ data.order }}"],
        "fingerprint_expression": "{{ data.secret }}",
        "deduplicate_token": false,
        "expires_at": "8/26/2030 7:23:57 PM -07:00",
        "privacy": {"impact_level": "low"},
    }]);

    let told = tokenize(&client, document).await;
    let mut read = client.get("/tokens/order%2017").await.body;

    let expected = json!({
        "id": "order 17",
        "type": "token",
        "data": {"order": "17", "secret": "x"},
        "mask": {"order": "{{ data.order }}"},
        "containers": ["/orders/"],
        "metadata": {"k": "v"},
        "search_indexes": ["{{ data.order }}"],
        "fingerprint_expression": "{{ data.secret }}",
        "expires_at": "2030-08-26T19:23:57-07:00",
    });
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&told[0][name], value, "{name}");
    }
    read["_extras"] = json!({"deduplicated": false});
    assert_eq!(told[0], read);
    let query = json!({"query": "data:17"});
    let found = client.post("/v2/tokens/search", query).await;
    assert_eq!(found.body["data"][0]["id"], "order 17");
}

/// Covers 11.9.
#[tokio::test]
async fn as_many_tokens_as_the_limit_and_no_more() {
    let default = TestVault::start().await;
    let larger = TestVault::start_with(TestDatabase::create().await, |config| {
        config.quotas.tokenize = 7;
    })
    .await;
    for (vault, limit) in [(&default, 5), (&larger, 7)] {
        let client = vault.revealing_client().await;
        let token = json!({"type": "token", "data": 1});
        let broken = json!({"type": "token", "data": 1, "containers": []});
        let many = |value: &Value, count: usize| Value::Array(vec![value.clone(); count]);

        let too_many = [
            many(&json!("x"), limit + 1),
            many(&token, limit + 1),
            json!({"a": many(&json!("x"), limit), "b": {"c": token}}),
            many(&broken, limit + 1),
            json!([many(&json!(null), 50), many(&json!(1), 50)]),
        ];
        for document in too_many {
            let answer = client.post("/tokenize", document.clone()).await;
            assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{document}");
            assert_eq!(answer.refused(), ["body"], "{document}");
        }
        assert_eq!(kept(vault).await, 0);

        let told = tokenize(
            &client,
            json!([many(&json!("x"), limit - 1), token, null, {}]),
        )
        .await;
        assert!(told[1]["id"].is_string());
        let kept = "select count(*) from token";
        let database = vault.database.connect().await;
        let kept: i64 = database.query_one(kept, &[]).await.unwrap().get(0);
        assert_eq!(kept, i64::try_from(limit).unwrap());
    }
}

/// Covers 11.10.
#[tokio::test]
async fn a_document_without_anything_to_tokenize_is_refused() {
    let (vault, _, client) = start().await;

    for document in [
        "null",
        "{}",
        "[]",
        r#"{"a":null}"#,
        r#"[[],{"b":[null,{}]}]"#,
    ] {
        let answer = client
            .post_text("/tokenize", document, "application/json")
            .await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{document}");
        assert_eq!(answer.refused(), ["body"], "{document}");
    }
    for document in ["", "{", "[1,]", "1 2"] {
        let answer = client
            .post_text("/tokenize", document, "application/json")
            .await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{document}");
        assert_eq!(answer.refused(), ["body"], "{document}");
    }
    let answer = client.post_text("/tokenize", "\"x\"", "text/plain").await;
    assert_eq!(answer.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    assert_eq!(kept(&vault).await, 0);
}

/// Covers 11.8, 11.11.
#[tokio::test]
async fn one_element_that_is_refused_refuses_everything() {
    let (vault, tenant, writer) = start().await;
    let taken = cloakroom::ids::new_uuid().to_string();
    let existing = json!({
        "id": taken,
        "type": "token",
        "data": "there",
        "deduplicate_token": true,
    });
    create(&writer, existing).await;
    let mut granted = grants(&[]);
    granted.rules = vec![
        rule(
            1,
            "/general/",
            Transform::Reveal,
            &[Permission::TokenCreate],
        ),
        rule(2, "/pci/", Transform::Reveal, &[Permission::TokenCreate]),
    ];
    let client = vault.client(&tenant, granted).await;
    let before = kept(&vault).await;

    let token = |changed: Value| {
        let mut token = json!({"type": "token", "data": "x"});
        for (name, value) in changed.as_object().unwrap() {
            token[name] = value.clone();
        }
        token
    };
    let twice = json!([token(json!({"id": "one"})), token(json!({"id": "one"}))]);
    let past = "2020-01-01";
    let invalid = StatusCode::BAD_REQUEST;
    #[rustfmt::skip]
    let cases = [
        (token(json!({"type": "visa"})), invalid),
        (json!({"type": "card", "data": {"number": "1"}}), invalid),
        (token(json!({"search_indexes": ["{{ data.none }}"]})), invalid),
        (token(json!({"id": "{{ data.none }}"})), invalid),
        (token(json!({"expires_at": past})), invalid),
        (token(json!({"expires_at": past, "deduplicate_token": true})), invalid),
        (token(json!({"containers": ["/elsewhere/"]})), StatusCode::FORBIDDEN),
        (token(json!({"type": "bank", "data": bank()})), StatusCode::FORBIDDEN),
        (token(json!({"id": taken})), StatusCode::CONFLICT),
        (twice, StatusCode::CONFLICT),
    ];
    let fine = json!({"type": "token", "data": "fine", "deduplicate_token": true});
    let card = json!({"type": "card", "data": {"number": "4242424242424242", "cvc": "123"}});
    for (refused, status) in cases {
        let orders = [
            json!(["first", fine, card, refused]),
            json!({"a": refused, "b": fine, "c": "last"}),
        ];
        for document in orders {
            let answer = client.post("/tokenize", document.clone()).await;
            assert_eq!(answer.status, status, "{document}: {}", answer.body);
            assert_eq!(answer.body["status"], status.as_u16());
            assert_eq!(kept(&vault).await, before, "{document}");
        }
    }
    // What was refused before is not in the way of what is fine.
    tokenize(&client, json!(["first", fine, card])).await;
}

fn bank() -> Value {
    json!({"routing_number": "021000021", "account_number": "00001"})
}

/// Covers 11.8.
#[tokio::test]
async fn an_id_that_two_elements_want_is_called_taken() {
    let (_vault, _, client) = start().await;
    let token = json!({"id": "order-17", "type": "token", "data": "x"});
    create(
        &client,
        json!({"id": "order-18", "type": "token", "data": "x"}),
    )
    .await;

    let twice = client.post("/tokenize", json!([token, token])).await;
    let mut other = token.clone();
    other["id"] = json!("order-18");
    let taken = client.post("/tokenize", json!([token, other])).await;

    assert_eq!(twice.status, StatusCode::CONFLICT);
    assert_eq!(taken.status, StatusCode::CONFLICT);
    assert_eq!(twice.bytes, taken.bytes);
}

/// Covers 11.14.
#[tokio::test]
async fn a_refusal_names_the_place_of_the_element() {
    let (_vault, _, client) = start().await;
    let card = |number: &str| json!({"type": "card", "data": {"number": number}});
    let past = json!({"type": "token", "data": 1, "expires_at": "2020-01-01"});
    let future = json!({"type": "token", "data": 1, "expires_at": "2040-01-01"});

    let cases = [
        (
            json!({"primary_card": card("1")}),
            vec!["primary_card.data.number"],
        ),
        (
            json!(["a", "b", {"type": "visa", "data": 1}]),
            vec!["[2].type"],
        ),
        (card("1"), vec!["data.number"]),
        (json!([[card("1")]]), vec!["[0][0].data.number"]),
        (json!({"a": [{"b": card("1")}]}), vec!["a[0].b.data.number"]),
        (
            json!({"a": card("1"), "b": {"type": "x", "data": 1, "metadata": {"k": 1}}, "c": 1}),
            vec!["a.data.number", "b.metadata.k", "b.type"],
        ),
        (
            json!({"a": {"type": "token", "data": 1, "containers": "/a/"}}),
            vec!["a.containers"],
        ),
        (
            json!([{"type": "token", "data": "x", "search_indexes": ["{{ data }}", "{{ data.a }}"]}]),
            vec!["[0].search_indexes[1]"],
        ),
        (
            json!([{"type": "token", "data": "x", "fingerprint_expression": "{{ data.a }}"}]),
            vec!["[0].fingerprint_expression"],
        ),
        (
            json!([{"type": "token", "data": "x", "id": "{{ data }}"}]),
            vec!["[0].id"],
        ),
        (
            json!({"a": {"type": "token", "data": null}}),
            vec!["a.data"],
        ),
        (json!([future, past, "x"]), vec!["[1].expires_at"]),
        (
            json!({"a": future, "b": {"c": past}}),
            vec!["b.c.expires_at"],
        ),
    ];
    for (document, refused) in cases {
        let answer = client.post("/tokenize", document.clone()).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{document}");
        assert_eq!(answer.refused(), refused, "{document}");
        let text = String::from_utf8(answer.bytes).unwrap();
        assert!(!text.contains("visa"), "{text}");
    }
}

/// Covers 11.11.
#[tokio::test]
async fn every_destination_needs_the_permission_and_shows_the_data_its_own_way() {
    use Permission::{TokenCreate, TokenRead};
    let (vault, tenant, writer) = start().await;
    let mut granted = grants(&[TokenRead]);
    granted.rules = vec![
        rule(1, "/open/", Transform::Reveal, &[TokenCreate]),
        rule(2, "/closed/", Transform::Redact, &[TokenCreate]),
        rule(3, "/pci/", Transform::Mask, &[TokenCreate]),
    ];
    let client = vault.client(&tenant, granted).await;
    let token = |container: &str| json!({"type": "token", "data": "x", "mask": "m", "containers": [container]});
    let card = json!({"type": "card", "data": {"number": "4242424242424242"}});

    let allowed = json!([token("/open/"), token("/closed/a/"), token("/pci/"), card]);
    let told = tokenize(&client, allowed).await;
    let lone = client.post("/tokenize", json!("x")).await;
    let mixed = client
        .post("/tokenize", json!([token("/open/"), token("/")]))
        .await;
    let reader = vault.client(&tenant, grants(&[TokenRead])).await;
    let reader = reader.post_text("/tokenize", "{", "application/json").await;

    assert_eq!(told[0]["data"], "x");
    assert_eq!(told[1].get("data"), None);
    assert_eq!(told[2]["data"], "m");
    assert_eq!(told[3]["data"]["number"], "XXXXXXXXXXXX4242");
    // A lone value goes to `/general/high/`.
    assert_eq!(lone.status, StatusCode::FORBIDDEN);
    assert_eq!(mixed.status, StatusCode::FORBIDDEN);
    assert_eq!(reader.status, StatusCode::FORBIDDEN);
    let listed = writer.get("/v2/tokens").await;
    assert_eq!(listed.body["data"].as_array().unwrap().len(), 4);
    let public = vault
        .holder(&tenant, ApplicationKind::Public, grants(&[TokenCreate]))
        .await;
    let public = vault.client_with(Some(&public.key));
    let told = tokenize(&public, json!(["x", card])).await;
    assert_eq!(told[1]["data"]["number"], "XXXXXXXXXXXX4242");
}

/// Covers 11.12, 7.2.
#[tokio::test]
async fn equal_elements_become_one_token_where_deduplication_is_on() {
    let (vault, _, client) = start().await;
    let token = |data: &str, deduplicate: bool, container: &str| {
        let containers = json!([container]);
        json!({"type": "token", "data": data, "deduplicate_token": deduplicate, "containers": containers})
    };
    let existing = create(&client, token("old", false, "/a/")).await;

    let document = json!({
        "first": token("new", true, "/a/"),
        "second": [token("new", true, "/a/")],
        "elsewhere": token("new", true, "/b/"),
        "without": token("new", false, "/a/"),
        "met": token("old", true, "/a/"),
    });
    let told = tokenize(&client, document).await;

    let extras = json!({"deduplicated": true, "deduplication_behavior": "read_existing"});
    let fresh = json!({"deduplicated": false});
    assert_eq!(told["first"]["_extras"], fresh);
    assert_eq!(told["second"][0]["_extras"], extras);
    assert_eq!(told["second"][0]["id"], told["first"]["id"]);
    assert_eq!(told["second"][0]["data"], "new");
    assert_eq!(told["met"]["_extras"], extras);
    assert_eq!(told["met"]["id"], existing);
    assert_eq!(told["without"]["_extras"], fresh);
    assert_eq!(told["elsewhere"]["_extras"], fresh);
    let ids = ["first", "elsewhere", "without", "met"].map(|name| told[name]["id"].to_string());
    assert_eq!(BTreeSet::from(ids).len(), 4);

    let tenant = vault.tenant_with(&[("deduplicate_tokens", "true")]).await;
    let client = vault.client(&tenant, everything(Transform::Reveal)).await;
    let ssn = json!({"type": "social_security_number", "data": "078051120"});
    let told = tokenize(&client, json!(["078051120", ssn, "078051120", 7, "7"])).await;
    assert_eq!(told[0], told[2]);
    assert_ne!(told[1]["id"], told[0]);
    let again = tokenize(&client, json!([ssn, "078051120"])).await;
    assert_eq!(again[0]["id"], told[1]["id"]);
    assert_eq!(again[1], told[0]);
}

/// Covers 11.12, 7.9.
#[tokio::test]
async fn an_element_that_meets_a_token_shows_only_what_the_caller_may_read() {
    use Permission::TokenCreate;
    let (vault, tenant, writer) = start().await;
    let public = vault
        .holder(&tenant, ApplicationKind::Public, grants(&[TokenCreate]))
        .await;
    let public = vault.client_with(Some(&public.key));
    let card =
        json!({"type": "card", "data": {"number": "4242424242424242"}, "metadata": {"k": "v"}});
    let existing = writer.post("/tokens", card.clone()).await.body;
    let mut same = card;
    same["deduplicate_token"] = json!(true);

    let told = tokenize(&public, json!({ "card": same })).await;

    let expected = json!({
        "id": existing["id"],
        "tenant_id": existing["tenant_id"],
        "type": "card",
        "fingerprint": existing["fingerprint"],
        "containers": ["/pci/high/"],
        "_extras": {"deduplicated": true, "deduplication_behavior": "read_existing"},
    });
    assert_eq!(told["card"], expected);
}

/// Covers 11.12.
#[tokio::test]
async fn documents_with_the_same_values_at_the_same_moment_share_their_tokens() {
    let vault = TestVault::start_patient().await;
    let tenant = vault.tenant_with(&[("deduplicate_tokens", "true")]).await;
    let client = vault.client(&tenant, everything(Transform::Reveal)).await;
    let words = ["one", "two", "three", "four", "five"];

    let mut tokenizing = tokio::task::JoinSet::new();
    for turn in 0..20 {
        let client = client.clone();
        let mut order = words;
        order.rotate_left(turn % 5);
        if turn % 2 == 0 {
            order.reverse();
        }
        tokenizing.spawn(async move { (order, client.post("/tokenize", json!(order)).await) });
    }

    let mut ids = BTreeSet::new();
    for (order, answer) in tokenizing.join_all().await {
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
        for (word, id) in order.iter().zip(answer.body.as_array().unwrap()) {
            ids.insert((*word, id.to_string()));
        }
    }
    assert_eq!(ids.len(), words.len(), "{ids:?}");
}

/// Covers 12.1.
#[tokio::test]
async fn what_was_tokenized_is_detokenized() {
    let (_vault, _, client) = start().await;
    let document = json!({"a": "text", "b": [19.5, {"c": true}], "d": null, "e": {"f": "g"}});

    let told = tokenize(&client, document.clone()).await;
    let mut expressions = told;
    to_expressions(&mut expressions);
    let answer = client.post("/detokenize", expressions).await;

    assert_eq!(answer.status, StatusCode::OK);
    assert_eq!(
        answer.header("content-type"),
        "application/json; charset=utf-8"
    );
    assert_eq!(answer.body.to_string(), document.to_string());
}

fn to_expressions(value: &mut Value) {
    match value {
        Value::String(id) => *value = json!(format!("{{{{ {id} }}}}")),
        Value::Array(elements) => elements.iter_mut().for_each(to_expressions),
        Value::Object(members) => members.values_mut().for_each(to_expressions),
        _ => {}
    }
}

/// Covers 12.8.
#[tokio::test]
async fn a_value_that_stands_alone_keeps_its_type_and_text_around_it_makes_text() {
    let (_vault, _, client) = start().await;

    let cases = [
        ("\"text\"", "text"),
        ("\"\"", ""),
        ("19.90", "19.90"),
        ("1e+400", "1e+400"),
        ("0", "0"),
        ("true", "true"),
        ("false", "false"),
        ("[1,[2.50,null]]", "[1,[2.50,null]]"),
        (r#"{"z":1,"a":{"b":"c"}}"#, r#"{"z":1,"a":{"b":"c"}}"#),
    ];
    for (data, text) in cases {
        let new = format!(r#"{{"type":"token","data":{data}}}"#);
        let created = client.post_text("/tokens", &new, "application/json").await;
        let id = created.id();

        let alone = [
            format!("{{{{ {id} }}}}"),
            format!("{{{{{id}}}}}"),
            format!("{{{{ token: {id} | json: '$.data' }}}}"),
            format!("{{{{token:{id}|json:'$.data'}}}}"),
        ];
        for expression in alone {
            let told = detokenize(&client, json!({"a": [expression]})).await;
            assert_eq!(told["a"][0].to_string(), data, "{expression}");
        }
        let alone = detokenize(&client, json!(format!("{{{{ {id} }}}}"))).await;
        assert_eq!(alone.to_string(), data);
        let around = [
            (format!("<{{{{ {id} }}}}>"), format!("<{text}>")),
            (format!(" {{{{ {id} }}}}"), format!(" {text}")),
            (
                format!("{{{{ {id} }}}}{{{{ {id} }}}}"),
                format!("{text}{text}"),
            ),
            (format!("a {{{{- {id} -}}}} b"), format!("a{text}b")),
        ];
        for (expression, expected) in around {
            assert_eq!(
                detokenize(&client, json!(expression)).await,
                json!(expected)
            );
        }
    }
}

/// Covers 12.8.
#[tokio::test]
async fn filters_apply_to_what_is_filled_in() {
    let (_vault, _, client) = start().await;
    let data =
        json!({"number": "4242424242424242", "expiration_month": 4, "expiration_year": 2030});
    let card = create(&client, json!({"type": "card", "data": data})).await;
    let name = create(&client, json!({"type": "token", "data": "John Doe"})).await;

    let cases = [
        (
            format!("{{{{ {name} | split: ' ' | last | upcase }}}}"),
            json!("DOE"),
        ),
        (
            format!("{{{{ {card} | json: '$.number' | last4 }}}}"),
            json!("4242"),
        ),
        (
            format!("{{{{ {card} | json: '$.expiration_month' }}}}"),
            json!(4),
        ),
        (
            format!("{{{{ {card} | json: \"$.expiration_month\" | pad_left: 2, '0' }}}}"),
            json!("04"),
        ),
        (
            format!("{{{{ {card} | card_exp: 'MM/YY' }}}}"),
            json!("04/30"),
        ),
        (format!("{{{{ {card} | json: '$.nothing' }}}}"), json!(null)),
        (
            format!("<{{{{ {card} | json: '$.nothing' }}}}>"),
            json!("<>"),
        ),
        (
            format!("{{{{ token: {card} | json: '$.type' }}}}"),
            json!("card"),
        ),
        (
            format!("{{{{ token: {card} | json: '$.containers[0]' }}}}"),
            json!("/pci/high/"),
        ),
    ];
    for (expression, expected) in cases {
        assert_eq!(
            detokenize(&client, json!(expression)).await,
            expected,
            "{expression}"
        );
    }
}

/// Covers 12.2.
#[tokio::test]
async fn as_many_expressions_as_the_limit_and_no_more() {
    let default = TestVault::start().await;
    let larger = TestVault::start_with(TestDatabase::create().await, |config| {
        config.quotas.detokenize = 7;
    })
    .await;
    for (vault, limit) in [(&default, 5), (&larger, 7)] {
        let client = vault.revealing_client().await;
        let id = create(&client, json!({"type": "token", "data": "x"})).await;
        let expression = format!("{{{{ {id} }}}}");

        let fine = [
            (json!(vec![&expression; limit]), json!(vec!["x"; limit])),
            (json!(expression.repeat(limit)), json!("x".repeat(limit))),
        ];
        for (document, expected) in fine {
            assert_eq!(detokenize(&client, document).await, expected);
        }
        // Each occurrence counts, whatever it refers to.
        let too_many = [
            json!(vec![&expression; limit + 1]),
            json!(expression.repeat(limit + 1)),
            json!({"a": vec![&expression; limit], "b": {"c": format!("-{expression}-")}}),
            json!(vec!["{{ unknown }}"; limit + 1]),
        ];
        for document in too_many {
            let answer = client.post("/detokenize", document.clone()).await;
            assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{document}");
            assert_eq!(answer.refused(), ["body"], "{document}");
        }
    }
}

/// Covers 12.3.
#[tokio::test]
async fn ids_that_are_unknown_are_listed() {
    let (vault, _, client) = start().await;
    let known = create(&client, json!({"type": "token", "data": "x"})).await;
    let deleted = create(&client, json!({"type": "token", "data": "x"})).await;
    client.delete(&format!("/tokens/{deleted}")).await;
    let foreign = vault.revealing_client().await;
    let foreign = create(&foreign, json!({"type": "token", "data": "x"})).await;

    let cases = [
        (vec!["order 17"], "order 17"),
        (vec![&known, &deleted], &*deleted),
        (vec![&foreign, &known], &*foreign),
        (vec!["one", &known, "two", "one", "two"], "one, two"),
    ];
    for (ids, listed) in cases {
        let expressions: Vec<String> = ids.iter().map(|id| format!("{{{{ {id} }}}}")).collect();
        let answer = client.post("/detokenize", json!(expressions)).await;
        let detail = format!("Failed to detokenize some tokens: {listed}");
        assert_eq!(answer.status, StatusCode::BAD_REQUEST);
        assert_eq!(answer.body["detail"], detail);
        assert_eq!(answer.body["errors"], json!({}));
    }
    let whole = client
        .post("/detokenize", json!("<{{ token: order 17 }}>"))
        .await;
    assert_eq!(
        whole.body["detail"],
        "Failed to detokenize some tokens: order 17"
    );
}

/// Covers 12.3, 8.11.
#[tokio::test]
async fn an_expired_token_is_unknown() {
    let (vault, _, client) = start().await;
    let database = vault.database.connect().await;
    let now: jiff::Timestamp = database
        .query_one("select now()", &[])
        .await
        .unwrap()
        .get(0);
    let soon = (now + jiff::SignedDuration::from_secs(2)).to_string();
    let id = create(
        &client,
        json!({"type": "token", "data": "x", "expires_at": soon}),
    )
    .await;
    let expression = json!(format!("{{{{ {id} }}}}"));

    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    let answer = loop {
        let answer = client.post("/detokenize", expression.clone()).await;
        if answer.status != StatusCode::OK {
            break answer;
        }
        assert_eq!(answer.body, "x");
        assert!(std::time::Instant::now() < deadline, "it does not expire");
        tokio::time::sleep(Duration::from_millis(100)).await;
    };

    assert_eq!(answer.status, StatusCode::BAD_REQUEST);
    let detail = format!("Failed to detokenize some tokens: {id}");
    assert_eq!(answer.body["detail"], detail);
}

/// Covers 12.4.
#[tokio::test]
async fn one_token_that_may_not_be_read_refuses_everything() {
    use Permission::{TokenRead, TokenSearch};
    let (vault, tenant, writer) = start().await;
    let mut granted = grants(&[TokenSearch]);
    granted.rules = vec![rule(1, "/open/", Transform::Reveal, &[TokenRead])];
    let client = vault.client(&tenant, granted).await;
    let token = |container: &str| json!({"type": "token", "data": "x", "containers": [container]});
    let open = create(&writer, token("/open/")).await;
    let closed = create(&writer, token("/closed/")).await;

    let alone = detokenize(&client, json!([format!("{{{{ {open} }}}}")])).await;
    let documents = [
        json!([format!("{{{{ {open} }}}}"), format!("{{{{ {closed} }}}}")]),
        json!(format!("{{{{ token: {closed} | json: '$.id' }}}}")),
        json!(format!("{{{{ {closed} }}}}")),
    ];

    assert_eq!(alone, json!(["x"]));
    for document in documents {
        let answer = client.post("/detokenize", document).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN);
        assert!(!String::from_utf8(answer.bytes).unwrap().contains("\"x\""));
    }
    // Who may read nothing at all is refused before the document is looked at.
    let searcher = vault.client(&tenant, grants(&[TokenSearch])).await;
    for document in ["{", "\"{{ nothing }}\"", "1"] {
        let answer = searcher
            .post_text("/detokenize", document, "application/json")
            .await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN);
    }
}

/// Covers 12.5.
#[tokio::test]
async fn a_value_is_what_a_read_would_show() {
    use Permission::{TokenRead, TokenUse};
    let (vault, tenant, writer) = start().await;
    let by_rule = |transform| {
        let mut granted = grants(&[TokenUse]);
        granted.rules = vec![rule(1, "/", transform, &[TokenRead])];
        granted
    };
    let new = json!({"type": "token", "data": "12345678", "mask": "{{ data | reveal_last: 4 }}"});
    let masked = create(&writer, new).await;
    let bare = create(&writer, json!({"type": "token", "data": "12345678"})).await;
    let document = json!([
        format!("{{{{ {masked} }}}}"),
        format!("<{{{{ {masked} }}}}>"),
        format!("{{{{ token: {masked} | json: '$.data' }}}}"),
        format!("{{{{ {bare} }}}}"),
        format!("<{{{{ {bare} | json: '$.a' }}}}>"),
    ]);

    let cases = [
        (
            grants(&[TokenRead]),
            json!(["XXXX5678", "<XXXX5678>", "XXXX5678", null, "<>"]),
        ),
        (
            by_rule(Transform::Mask),
            json!(["XXXX5678", "<XXXX5678>", "XXXX5678", null, "<>"]),
        ),
        (
            by_rule(Transform::Redact),
            json!([null, "<>", null, null, "<>"]),
        ),
        (
            by_rule(Transform::Reveal),
            json!(["12345678", "<12345678>", "12345678", "12345678", "<>"]),
        ),
    ];
    for (granted, expected) in cases {
        let client = vault.client(&tenant, granted).await;
        assert_eq!(detokenize(&client, document.clone()).await, expected);
    }
}

/// Covers 12.6, 12.7.
#[tokio::test]
async fn a_whole_token_is_what_a_read_shows_and_what_is_known_of_a_card() {
    use Permission::TokenRead;
    let (vault, tenant, writer) = start().await;
    let masking = vault.client(&tenant, grants(&[TokenRead])).await;
    let mut redacting = grants(&[]);
    redacting.rules = vec![rule(1, "/", Transform::Redact, &[TokenRead])];
    let redacting = vault.client(&tenant, redacting).await;
    let card =
        json!({"number": "4242424242424242", "expiration_month": 4, "expiration_year": 2030});
    let amex = json!("378282246310005");

    let cases = [
        ("card", card.clone(), Some(("42424242", "4242"))),
        ("card_number", amex, Some(("378282", "0005"))),
        ("network_token", card, None),
        ("bank", bank(), None),
        ("token", json!({"a": [1.5]}), None),
    ];
    for (kind, data, details) in cases {
        let new = json!({"type": kind, "data": data, "metadata": {"k": "v"}});
        let id = create(&writer, new).await;
        for client in [&writer, &masking, &redacting] {
            let read = client.get(&format!("/tokens/{id}")).await.body;
            let expression = json!({"it": format!("{{{{ token: {id} }}}}")});
            let mut whole = detokenize(client, expression).await["it"].take();

            let enrichments = whole.as_object_mut().unwrap().shift_remove("enrichments");
            assert_eq!(whole, read, "{kind}");
            let told = enrichments.map(|told| told["card_details"].clone());
            let expected = details.map(|(bin, last4)| json!({"bin": bin, "last4": last4}));
            assert_eq!(told, expected, "{kind}");
            assert_eq!(read.get("enrichments"), None, "{kind}");
            assert_eq!(whole.get("_extras"), None, "{kind}");
        }
        if let Some((bin, _)) = details {
            let path = "$.enrichments.card_details.bin";
            let expression = format!("{{{{ token: {id} | json: '{path}' }}}}");
            assert_eq!(detokenize(&masking, json!(expression)).await, bin);
        }
    }
}

/// Covers 12.9.
#[tokio::test]
async fn what_is_not_a_token_is_refused() {
    let (_vault, _, client) = start().await;
    let id = create(&client, json!({"type": "token", "data": "x"})).await;

    let unavailable = ["token_intent", "config"];
    for kind in unavailable {
        for expression in [
            format!("{{{{ {kind}: {id} }}}}"),
            format!("<{{{{{kind}:{id}|x}}}}>"),
        ] {
            let answer = client
                .post("/detokenize", json!({"a": ["b", expression]}))
                .await;
            assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{expression}");
            assert_eq!(answer.refused(), ["a[1]"], "{expression}");
        }
    }
    for kind in ["network_token", "apple_pay", "google_pay"] {
        let answer = client
            .post("/detokenize", json!(format!("{{{{ {kind}: {id} }}}}")))
            .await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{kind}");
        let detail = format!("Failed to detokenize some tokens: {id}");
        assert_eq!(answer.body["detail"], detail, "{kind}");
    }
    // Properties of a token are reached by filters alone: this is another id.
    for other in [
        format!("{id}.data"),
        format!("{id}[0]"),
        format!("\"{id}\""),
        format!("tokens: {id}"),
    ] {
        let answer = client
            .post("/detokenize", json!(format!("{{{{ {other} }}}}")))
            .await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{other}");
        let detail = format!("Failed to detokenize some tokens: {other}");
        assert_eq!(answer.body["detail"], detail, "{other}");
    }
}

/// Covers 12.8.
#[tokio::test]
async fn expressions_that_are_wrong_are_named_by_their_place() {
    let (_vault, _, client) = start().await;
    let id = create(&client, json!({"type": "token", "data": {"a": [1, 2]}})).await;

    let cases = [
        (json!("{{ }}"), "body"),
        (json!("{{ token: }}"), "body"),
        (
            json!({"a": {"b": format!("{{{{ {id} | '$.data' }}}}")}}),
            "a.b",
        ),
        (
            json!([1, format!("{{{{ {id} | no_such_filter }}}}")]),
            "[1]",
        ),
        (json!([[format!("{{{{ {id} | json }}}}")]]), "[0][0]"),
        (
            json!({"a": format!("{{{{ {id} | hmac: 'sha-256', 'k' }}}}")}),
            "a",
        ),
        (json!(format!("{{{{ {id} | json: '$.a[*]' }}}}")), "body"),
        (
            json!({"a": [1, {"b": format!("{{{{ {id} | to_number }}}}")}]}),
            "a[1].b",
        ),
        (json!([format!("<{{{{ {id} | to_string }}}}>")]), "[0]"),
    ];
    for (document, place) in cases {
        let answer = client.post("/detokenize", document.clone()).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{document}");
        assert_eq!(answer.refused(), [place], "{document}");
    }
    for document in ["", "{", "[1,]"] {
        let answer = client
            .post_text("/detokenize", document, "application/json")
            .await;
        assert_eq!(answer.refused(), ["body"], "{document}");
    }
    let answer = client.post_text("/detokenize", "\"x\"", "text/plain").await;
    assert_eq!(answer.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
}

/// Covers 12.1, 12.10.
#[tokio::test]
async fn everything_else_passes_through() {
    let (_vault, _, client) = start().await;
    let id = create(&client, json!({"type": "token", "data": "x"})).await;

    let texts = [
        "null",
        "true",
        "19.90",
        "\"text\"",
        "\"\"",
        "{}",
        "[]",
        r#""{ {x} }""#,
        r#""{{ unclosed""#,
        r#""closed }}""#,
        r#""{{ x }""#,
        r#"{"z":1e+400,"a":[null,{"b":"é\n"}]}"#,
        r#"{"type":"token","data":"x"}"#,
    ];
    for text in texts {
        let answer = client
            .post_text("/detokenize", text, "application/json")
            .await;
        assert_eq!(answer.status, StatusCode::OK, "{text}");
        assert_eq!(String::from_utf8(answer.bytes).unwrap(), text);
    }
    // Names of members are never looked into.
    let expression = format!("{{{{ {id} }}}}");
    let document = json!({ expression.clone(): { "{{ unknown }}": [expression.clone()] } });
    let expected = json!({ expression: { "{{ unknown }}": ["x"] } });
    assert_eq!(detokenize(&client, document).await, expected);
}

/// Covers 12.8.
#[tokio::test]
async fn what_is_filled_in_is_not_looked_into() {
    let (_vault, _, client) = start().await;
    let secret = create(&client, json!({"type": "token", "data": "secret"})).await;
    let expression = format!("{{{{ {secret} }}}}");
    let data = json!({"a": expression, "{{ key }}": 1});
    let object = create(&client, json!({"type": "token", "data": data})).await;
    let half = create(&client, json!({"type": "token", "data": "{{ "})).await;

    let document = json!([
        format!("{{{{ {object} }}}}"),
        format!("{{{{ {object} | json: '$.a' }}}}"),
        format!("<{{{{ {object} | json: '$.a' }}}}>"),
        format!("{{{{ {half} }}}}{secret} }}}}"),
    ]);
    let told = detokenize(&client, document).await;

    assert_eq!(told[0], data);
    assert_eq!(told[1], expression);
    assert_eq!(told[2], format!("<{expression}>"));
    assert_eq!(told[3], format!("{{{{ {secret} }}}}"));
}

/// Covers 12.8.
#[tokio::test]
async fn names_of_all_kinds_are_found() {
    let (_vault, _, client) = start().await;
    let names = [
        "order 17",
        "john.doe@example.com",
        "käse: 20 €",
        "9EA0B7C7-FB9C-4D6A-8F7B-123456789ABC",
        // Its digits look like a card number.
        "49b56700-4912-4733-8318-9e9a0e055286",
        "-12",
        "'quoted'",
        "token",
        "a - b",
    ];
    for name in names {
        create(&client, json!({"id": name, "type": "token", "data": name})).await;
        for expression in [
            format!("{{{{ {name} }}}}"),
            format!("{{{{token:   {name}|json:'$.data'}}}}"),
        ] {
            let told = detokenize(&client, json!(expression)).await;
            assert_eq!(told, name, "{expression}");
        }
    }
}
