//! Corrupt rows, and stored values that are not ids or cursors.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cloakroom_testkit::TestVault;
use http::StatusCode;
use serde_json::json;

use super::{VICTIM, create_tokens};

#[tokio::test]
async fn encrypted_rows_are_not_valid_cursors() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    create_tokens(&client).await;
    let database = vault.database.connect().await;
    let sealed: Vec<u8> = database
        .query_one("select sealed from token where alias = 'order 17'", &[])
        .await
        .unwrap()
        .get(0);
    let start = URL_SAFE_NO_PAD.encode(sealed);

    let listed = client.get(&format!("/v2/tokens?start={start}")).await;
    let searched = client
        .post("/v2/tokens/search", json!({ "start": start }))
        .await;

    assert_eq!(listed.refused(), ["start"]);
    assert_eq!(searched.refused(), ["start"]);
}

#[tokio::test]
async fn internal_keys_of_named_tokens_are_not_ids() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    create_tokens(&client).await;
    let database = vault.database.connect().await;
    let key: uuid::Uuid = database
        .query_one("select token_id from token where alias = 'order 17'", &[])
        .await
        .unwrap()
        .get(0);
    let path = format!("/tokens/{key}");

    let unknown = client.get("/tokens/nowhere").await;
    let others = [
        client.get(&path).await,
        client.patch(&path, json!({})).await,
        client.delete(&path).await,
    ];
    for other in others {
        assert_eq!(other.status, StatusCode::NOT_FOUND);
        assert_eq!(other.bytes, unknown.bytes);
    }
    let listed = client.get(&format!("/tokens?id={key}")).await;
    assert_eq!(listed.body["data"], json!([]));
    let expression = json!(format!("{{{{ {key} }}}}"));
    let detokenized = client.post("/detokenize", expression).await;
    assert_eq!(detokenized.status, StatusCode::BAD_REQUEST);
    // Both cannot exist; either is known only by its own id.
    let new = json!({"id": key, "type": "token", "data": "by key"});
    assert_eq!(
        client.post("/tokens", new.clone()).await.status,
        StatusCode::CONFLICT
    );
    // The id of a deleted token stays reserved.
    client.delete(VICTIM).await;
    assert_eq!(
        client.post("/tokens", new).await.status,
        StatusCode::CONFLICT
    );
    assert_eq!(client.get(VICTIM).await.bytes, unknown.bytes);
}

/// A row that cannot be decrypted fails its page instead of being omitted: clients that act on a list must not miss
/// items, and an attacker must not be able to hide a token by corrupting it.
#[tokio::test]
async fn corrupt_rows_fail_their_page_and_no_other() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    create_tokens(&client).await;
    let database = vault.database.connect().await;
    let corrupt = "update token set sealed = set_bit(sealed, 400, 1 - get_bit(sealed, 400))
        where alias = 'order 18'";
    assert_eq!(database.execute(corrupt, &[]).await.unwrap(), 1);

    // Order: 20 in /b/, then 19, 18 and 17 in /a/.
    let first = client.get("/v2/tokens?size=2").await;
    let next = first.body["pagination"]["next"].as_str().unwrap();
    let second = client.get(&format!("/v2/tokens?size=1&start={next}")).await;
    let elsewhere = client.get("/v2/tokens?container=/b/").await;
    let others = [
        client.get(VICTIM).await,
        client.post("/detokenize", json!("{{ order 17 }}")).await,
        client.patch(VICTIM, json!({})).await,
        client.get("/tokens?id=order+17&id=order+19").await,
        client
            .post(
                "/v2/tokens/search",
                json!({"query": "data:\"of the victim\""}),
            )
            .await,
    ];

    assert_eq!(first.body["data"][1]["id"], "order 19");
    assert_eq!(second.body["code"], "integrity_error");
    assert_eq!(elsewhere.body["data"][0]["id"], "order 20");
    for other in others {
        assert_eq!(other.status, StatusCode::OK, "{}", other.body);
    }
    let both = json!(["{{ order 17 }}", "{{ order 18 }}"]);
    let both = client.post("/detokenize", both).await;
    assert_eq!(both.body["code"], "integrity_error");
    // It can be deleted without being decrypted, and then the page is complete again.
    let deleted = client.delete("/tokens/order%2018").await;
    assert_eq!(deleted.status, StatusCode::NO_CONTENT);
    let listed = client.get("/v2/tokens").await;
    assert_eq!(listed.body["pagination"]["page_size"], 3);
}
