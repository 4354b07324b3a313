//! Every column of a table with sealed data is authenticated, or listed here with the reason why not.
//!
//! The columns come from the schema, so a new column fails these tests until it is bound or listed.

use cloakroom_testkit::{Client, TestResponse, TestVault};
use http::{Method, StatusCode};
use serde_json::{Value, json};
use tokio_postgres::Client as Database;

use super::intent_client;

const CARD: &str = "4242424242424242";

/// Keys of rows: a row under another key is another entity, which `altered_rows.rs` and `cross_tenant.rs` cover.
const KEYS: &[&str] = &["tenant_id", "token_id", "intent_id", "scope"];

/// Alterations of one column: its name and an expression for its new value.
async fn alterations(database: &Database, table: &str, except: &[&str]) -> Vec<(String, String)> {
    let sql = "select column_name::text, udt_name::text, is_nullable = 'YES'
        from information_schema.columns
        where table_schema = current_schema() and table_name = $1
        order by ordinal_position";
    let mut alterations = Vec::new();
    for row in database.query(sql, &[&table]).await.unwrap() {
        let (name, kind): (String, String) = (row.get(0), row.get(1));
        if KEYS.contains(&&*name) || except.contains(&&*name) {
            continue;
        }
        let other = match &*kind {
            "int2" | "int4" | "int8" => format!("coalesce({name}, 0) + 1"),
            "timestamptz" => format!("coalesce({name}, now()) + interval '1 microsecond'"),
            "uuid" => "gen_random_uuid()".to_owned(),
            "text" => format!("coalesce({name}, '') || ' '"),
            "bytea" => format!("coalesce(set_byte({name}, 8, get_byte({name}, 8) # 1), 'x')"),
            "_bytea" => format!("array_append({name}, {name}[1])"),
            kind => panic!("no alteration for {table}.{name} of the type {kind}"),
        };
        alterations.push((name.clone(), other));
        if row.get(2) {
            alterations.push((name, "null".to_owned()));
        } else if kind == "_bytea" {
            alterations.push((name, "'{}'".to_owned()));
        }
    }
    assert!(!alterations.is_empty(), "{table}");
    alterations
}

/// Alters each column of the only row of `table`, and passes the response of `read` to `is_rejected`.
async fn alter_each(
    vault: &TestVault,
    table: &str,
    except: &[&str],
    read: impl AsyncFn() -> TestResponse,
    is_rejected: impl Fn(&TestResponse) -> bool,
) {
    let database = vault.database.connect().await;
    let backup = format!("create temp table saved as select * from {table}");
    database.batch_execute(&backup).await.unwrap();
    let before = read().await;
    assert!(
        before.status.is_success() && !is_rejected(&before),
        "{}",
        before.body
    );
    let alterations = alterations(&database, table, except).await;
    for (column, value) in &alterations {
        let sql = format!("update {table} set {column} = {value}");
        // A check constraint rejects some alterations.
        if database.execute(&sql, &[]).await.is_err() {
            continue;
        }
        let response = read().await;
        assert!(
            is_rejected(&response),
            "{sql}: {} {}",
            response.status,
            response.body
        );
        let restore = format!("delete from {table}; insert into {table} select * from saved");
        database.batch_execute(&restore).await.unwrap();
    }
    let after = read().await;
    assert!(
        after.status.is_success() && !is_rejected(&after),
        "{}",
        after.body
    );
    println!("{table}: {} alterations rejected", alterations.len());
}

fn is_integrity_error(response: &TestResponse) -> bool {
    response.status == StatusCode::INTERNAL_SERVER_ERROR
        && response.body["code"] == "integrity_error"
}

/// A card in which no column is empty.
async fn create_card(client: &Client) -> String {
    let new = json!({
        "id": "card 1",
        "type": "card",
        "data": {"number": CARD, "expiration_month": 12, "expiration_year": 2040, "cvc": "123"},
        "mask": {"number": "{{ data.number | reveal_last: 4 }}"},
        "metadata": {"order": "17"},
        "fingerprint_expression": "{{ data.number }}",
        "search_indexes": ["{{ data.expiration_year }}"],
        "containers": ["/a/"],
        "expires_at": "2040-01-01T00:00:00+02:00",
        "deduplicate_token": true,
    });
    let created = client.post("/tokens", new).await;
    assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
    let updated = client
        .patch("/tokens/card%201", json!({"metadata": {"order": "18"}}))
        .await;
    assert_eq!(updated.status, StatusCode::OK, "{}", updated.body);
    created.body["fingerprint"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn every_column_of_a_token_is_authenticated() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    create_card(&client).await;

    let reads: [&str; 3] = ["/tokens/card%201", "/tokens?id=card+1", "/v2/tokens"];
    for path in reads {
        // An altered type or path only removes the token from a list.
        let is_hidden = |response: &TestResponse| response.items().is_empty();
        let is_list = path != reads[0];
        let rejected = |response: &TestResponse| {
            is_integrity_error(response) || (is_list && is_hidden(response))
        };
        alter_each(
            &vault,
            "token",
            &[],
            async || client.get(path).await,
            rejected,
        )
        .await;
    }
}

#[tokio::test]
async fn every_column_of_a_security_code_is_authenticated() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    create_card(&client).await;

    let read = async || client.get("/tokens/card%201").await;
    let has_no_code = |response: &TestResponse| response.body["data"]["cvc"] == Value::Null;
    alter_each(&vault, "security_code", &[], read, has_no_code).await;
}

#[tokio::test]
async fn every_column_of_an_intent_is_authenticated() {
    let vault = TestVault::start().await;
    let client = intent_client(&vault).await;
    let card =
        json!({"number": CARD, "expiration_month": 12, "expiration_year": 2040, "cvc": "123"});
    let created = client
        .post("/token-intents", json!({"type": "card", "data": card}))
        .await;
    assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
    let id = created.id();

    // The security code can be deleted earlier, so it is bound to the intent by itself.
    let code = ["code_key_id", "code_sealed", "code_until"];
    let path = format!("/token-intents/{id}");
    let read = async || client.get(&path).await;
    alter_each(&vault, "token_intent", &code, read, is_integrity_error).await;

    let whole = json!(format!("{{{{ token_intent: {id} }}}}"));
    let read = async || client.post("/detokenize", whole.clone()).await;
    let others = [
        "kind",
        "fingerprint",
        "sealed",
        "created_by",
        "created_at",
        "expires_at",
    ];
    let has_no_code = |response: &TestResponse| response.body["data"]["cvc"] == Value::Null;
    alter_each(&vault, "token_intent", &others, read, has_no_code).await;
}

#[tokio::test]
async fn every_column_of_a_stored_response_is_authenticated() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let new = json!({"type": "token", "data": "secret"});
    let post = async || {
        let request = client.request(Method::POST, "/tokens");
        let request = request.header("bt-idempotency-key", "k");
        client.send(request.json(&new)).await
    };
    assert_eq!(post().await.status, StatusCode::CREATED);

    alter_each(&vault, "reply", &[], post, is_integrity_error).await;
}

/// A row of `term` has no MAC: the token itself says which terms it has.
#[tokio::test]
async fn a_forged_term_does_not_place_a_token_into_a_search_result() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let fingerprint = create_card(&client).await;
    let other = json!({"id": "bait", "type": "token", "data": "x", "containers": ["/a/"],
        "metadata": {"order": "99"}, "search_indexes": ["{{ data }}"], "fingerprint_expression": "{{ data }}"});
    assert_eq!(
        client.post("/tokens", other).await.status,
        StatusCode::CREATED
    );
    let database = vault.database.connect().await;
    // The card gets the terms of the other token.
    let forge = "insert into term
        select card.tenant_id, unnest(bait.terms), card.path, card.created_at, card.token_id
        from token card, token bait
        where card.alias = 'card 1' and bait.alias = 'bait'";
    assert_eq!(database.execute(forge, &[]).await.unwrap(), 3);
    let bait = client.get("/tokens/bait").await.body["fingerprint"].clone();

    let search = |query: &str| json!({ "query": query });
    let searches = [
        client
            .post("/v2/tokens/search", search("metadata.order:99"))
            .await,
        client.post("/v2/tokens/search", search("data:x")).await,
        client
            .post("/tokens/search", search("metadata.order:99"))
            .await,
        client.post("/tokens/search", search("data:x")).await,
        client.get("/v2/tokens?metadata.order=99").await,
        client.get("/tokens?metadata.order=99").await,
    ];
    for (number, response) in searches.iter().enumerate() {
        assert!(is_integrity_error(response), "{number}: {}", response.body);
    }
    // The statement compares the whole fingerprint, so the forged term finds nothing.
    let by_fingerprint = format!("/v2/tokens?fingerprint={}", bait.as_str().unwrap());
    assert_eq!(client.get(&by_fingerprint).await.items().len(), 1);
    let own = client
        .get(&format!("/v2/tokens?fingerprint={fingerprint}"))
        .await;
    assert_eq!(own.items().len(), 1);
}

/// A claim only reserves a fingerprint: which token is the duplicate comes from the tokens.
#[tokio::test]
async fn a_forged_claim_does_not_return_another_token() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let note = |data: &str| json!({"type": "token", "data": data, "deduplicate_token": true});
    let victim = client.post("/tokens", note("a")).await.id();
    let other = client.post("/tokens", note("b")).await.id();
    let database = vault.database.connect().await;
    let forge = format!("update claim set token_id = '{victim}' where token_id = '{other}'");
    assert_eq!(database.execute(&forge, &[]).await.unwrap(), 1);

    assert_eq!(client.post("/tokens", note("b")).await.id(), other);
    assert_eq!(client.post("/tokens", note("a")).await.id(), victim);
}
