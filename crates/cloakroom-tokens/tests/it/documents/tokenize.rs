//! Tokenizing documents: shape, elements and limits.

use cloakroom_testkit::{Client, TestDatabase, TestResponse, TestVault};
use http::StatusCode;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{count_rows, start, tokenize};

async fn read(client: &Client, id: &Value) -> TestResponse {
    let id = id.as_str().unwrap_or_else(|| panic!("no id: {id}"));
    client.get(&format!("/tokens/{id}")).await
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

    let response = client.post("/tokenize", document).await;

    assert_eq!(response.status, StatusCode::OK);
    assert_eq!(
        response.header("content-type"),
        "application/json; charset=utf-8"
    );
    assert_eq!(response.header("location"), "");
    let names: Vec<&String> = response.body.as_object().unwrap().keys().collect();
    assert_eq!(names, ["first_name", "primary_card", "tags"]);
    let strings = [
        (&response.body["first_name"], "John"),
        (&response.body["tags"][0], "vip"),
    ];
    for (id, data) in strings {
        let uuid: Uuid = id.as_str().unwrap().parse().unwrap();
        assert_eq!(uuid.get_version_num(), 4);
        let token = read(&client, id).await;
        assert_eq!(token.body["type"], "token");
        assert_eq!(token.body["data"], data);
        assert_eq!(token.body["containers"], json!(["/general/high/"]));
    }
    // Token elements equal the response of a create.
    let card = json!({"type": "card", "data": {"number": "4242424242424242"}});
    let created = client.post("/tokens", card).await.body;
    let (card, x) = (&response.body["primary_card"], &response.body["tags"][1]);
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
async fn tokenize_preserves_the_shape_of_a_document() {
    let (vault, _, client) = start().await;

    // `0` represents an id.
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
        let response = client
            .post_text("/tokenize", document, "application/json")
            .await;
        assert_eq!(response.status, StatusCode::OK, "{document}");
        let mut actual = response.body.clone();
        replace_ids(&mut actual);
        assert_eq!(actual.to_string(), shape, "{document}");
    }
    let count = "select count(*) from token where kind = 1";
    let database = vault.database.connect().await;
    let count: i64 = database.query_one(count, &[]).await.unwrap().get(0);
    assert_eq!(count, 11);
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
async fn scalars_keep_their_type_and_text() {
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
        let response = client
            .post_text("/tokenize", data, "application/json")
            .await;
        assert_eq!(response.status, StatusCode::OK, "{data}");

        let token = read(&client, &response.body).await;

        let text = String::from_utf8(token.bytes).unwrap();
        assert!(
            text.contains(&format!("\"type\":\"token\",\"data\":{data},")),
            "{data} in {text}"
        );
    }
}

/// Covers 11.2, 11.3.
#[tokio::test]
async fn an_object_with_type_and_data_is_a_token() {
    let (_vault, _, client) = start().await;

    // The document and the members that become ids; `None` if the document itself is a token.
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
        let body = tokenize(&client, document.clone()).await;
        match members {
            None => {
                assert_eq!(body["type"], "token", "{document}");
                assert_eq!(body["data"], document["data"], "{document}");
                assert_eq!(
                    body["_extras"],
                    json!({"deduplicated": false}),
                    "{document}"
                );
                assert_eq!(body.get("other"), None, "{document}");
            }
            Some(members) => {
                for name in members {
                    let token = read(&client, &body[name]).await;
                    assert_eq!(token.body["data"], document[name], "{document}");
                }
                assert_eq!(body.get("_extras"), None, "{document}");
            }
        }
    }
}

/// Such objects are not tokenized member by member.
///
/// Covers 11.15.
#[tokio::test]
async fn undecryptable_values_and_unknown_intents_are_rejected() {
    let (_vault, _, client) = start().await;

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
    for (document, rejected) in cases {
        let response = client.post("/tokenize", document.clone()).await;
        assert_eq!(response.status, StatusCode::BAD_REQUEST);
        assert_eq!(response.refused(), rejected, "{document}");
    }
}

/// Covers 11.2.
#[tokio::test]
async fn token_elements_accept_all_attributes_of_a_create() {
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

    let body = tokenize(&client, document).await;
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
        assert_eq!(&body[0][name], value, "{name}");
    }
    read["_extras"] = json!({"deduplicated": false});
    assert_eq!(body[0], read);
    let query = json!({"query": "data:17"});
    let found = client.post("/v2/tokens/search", query).await;
    assert_eq!(found.body["data"][0]["id"], "order 17");
}

/// Covers 11.9.
#[tokio::test]
async fn tokenize_accepts_up_to_the_limit_of_tokens() {
    let default = TestVault::start().await;
    let larger = TestVault::start_with(TestDatabase::create().await, |config| {
        config.quotas.tokenize = 7;
    })
    .await;
    for (vault, limit) in [(&default, 5), (&larger, 7)] {
        let client = vault.revealing_client().await;
        let token = json!({"type": "token", "data": 1});
        let invalid = json!({"type": "token", "data": 1, "containers": []});
        let many = |value: &Value, count: usize| Value::Array(vec![value.clone(); count]);

        let too_many = [
            many(&json!("x"), limit + 1),
            many(&token, limit + 1),
            json!({"a": many(&json!("x"), limit), "b": {"c": token}}),
            many(&invalid, limit + 1),
            json!([many(&json!(null), 50), many(&json!(1), 50)]),
        ];
        for document in too_many {
            let response = client.post("/tokenize", document.clone()).await;
            assert_eq!(response.status, StatusCode::BAD_REQUEST, "{document}");
            assert_eq!(response.refused(), ["body"], "{document}");
        }
        assert_eq!(count_rows(vault).await, 0);

        let body = tokenize(
            &client,
            json!([many(&json!("x"), limit - 1), token, null, {}]),
        )
        .await;
        assert!(body[1]["id"].is_string());
        let count = "select count(*) from token";
        let database = vault.database.connect().await;
        let count: i64 = database.query_one(count, &[]).await.unwrap().get(0);
        assert_eq!(count, i64::try_from(limit).unwrap());
    }
}
