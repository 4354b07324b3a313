//! Encryption of stored responses, and data that they must not contain.

use cloakroom::access::Transform;
use cloakroom::keys::{RootKey, RootKeys};
use cloakroom_crypto::{Request as RequestPurpose, TenantKek, WrapContext, mac};
use cloakroom_testkit::everything;
use http::{Method, StatusCode};
use serde_json::json;

use super::{CARD, Fixture, count, post, replayable, send};

#[tokio::test]
async fn stored_responses_are_encrypted_and_authenticated() {
    let fixture = Fixture::start().await;
    let body = json!({"type": "card", "data": {"number": CARD}});
    let first = post(&fixture.private, "/tokens", "k", body.clone()).await;
    post(&fixture.private, "/tokens", "other", body.clone()).await;
    assert_eq!(first.body["data"]["number"], "XXXXXXXXXXXX4242");

    let plaintext_rows = "reply where position('4242'::bytea in sealed) > 0 or position('number'::bytea in sealed) > 0";
    let plaintext_rows = count(&fixture.database, plaintext_rows).await;
    let mut responses = Vec::new();
    for change in [
        "update reply set sealed = (select sealed from reply r where r.scope <> reply.scope)",
        "update reply set status = 200",
        "update reply set fence = fence + 1",
        "update reply set until = until + interval '1 microsecond'",
        "update reply set request_mac = sha256(request_mac)",
        "update reply set sealed = set_byte(sealed, 60, get_byte(sealed, 60) # 1)",
    ] {
        let backup = "create table if not exists before as select * from reply;";
        fixture
            .database
            .batch_execute(&format!("{backup} {change}"))
            .await
            .unwrap();
        responses.push(post(&fixture.private, "/tokens", "k", body.clone()).await);
        let restore = "truncate reply; insert into reply select * from before";
        fixture.database.batch_execute(restore).await.unwrap();
    }
    let restored = post(&fixture.private, "/tokens", "k", body).await;

    assert_eq!(plaintext_rows, 0);
    for response in responses {
        assert_eq!(response.status, StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(response.body["code"], "integrity_error");
    }
    assert_eq!(replayable(&restored), replayable(&first));
}

/// Covers 21.10.
///
/// A stored response would outlive the retention of the security code, so it does not contain it.
#[tokio::test]
async fn security_codes_are_not_replayed() {
    let fixture = Fixture::start().await;
    let revealing = everything(Transform::Reveal);
    let client = fixture.vault.client(&fixture.tenant, revealing).await;
    let card = json!({"type": "card", "data": {"number": CARD, "cvc": "737"}});
    let first = post(&client, "/tokens", "k", card.clone()).await;
    let again = post(&client, "/tokens", "k", card.clone()).await;
    let path = format!("/tokens/{}", first.id());
    let patch = json!({"metadata": {"a": "b"}});
    let patched = send(&client, &Method::PATCH, &path, "k", &patch).await;
    let patched_again = send(&client, &Method::PATCH, &path, "k", &patch).await;
    let document = json!([card]);
    let tokenized = post(&client, "/tokenize", "k", document.clone()).await;
    let tokenized_again = post(&client, "/tokenize", "k", document).await;

    for (mut shown, replayed) in [
        (first, again),
        (patched, patched_again),
        (tokenized, tokenized_again),
    ] {
        let data = match shown.body.is_array() {
            true => &mut shown.body[0]["data"],
            false => &mut shown.body["data"],
        };
        assert_eq!(data["cvc"], "737");
        // Revealed data is not stored: the replay is masked.
        *data = json!({
            "number": "XXXXXXXXXXXX4242", "expiration_month": null, "expiration_year": null,
        });
        assert_eq!(shown.body, replayed.body);
    }
}

/// I07: requests that differ only in the security code have the same digest.
#[tokio::test]
async fn request_digests_do_not_depend_on_security_codes() {
    let fixture = Fixture::start().await;
    let mut digests = Vec::new();
    for code in ["737", "738"] {
        let card = |name: &str| json!({"type": "card", "data": {"number": CARD, name: code}});
        let escaped = card("cvc").to_string().replace("cvc", "\\u0063vc");
        let bodies = [
            card("cvc").to_string(),
            json!([card("cvc")]).to_string(),
            escaped,
        ];
        for (body, path) in bodies
            .iter()
            .zip(["/tokens", "/tokenize", "/token-intents"])
        {
            let request = fixture.private.request(Method::POST, path);
            let request = request
                .header("bt-idempotency-key", "k")
                .header("content-type", "application/json");
            let made = fixture.private.send(request.body(body.clone())).await;
            assert!(made.status.is_success(), "{}", made.body);
        }
        let sql = "with gone as (delete from reply returning *)
            select encode(request_mac, 'hex') from gone order by scope";
        let rows = fixture.database.query(sql, &[]).await.unwrap();
        digests.push(rows.iter().map(|row| row.get(0)).collect::<Vec<String>>());
    }
    assert_eq!(digests[0].len(), 3);
    assert_eq!(digests[0], digests[1]);
}

/// The digest of a body with a card number can be computed only with a key that is destroyed with its tenant.
#[tokio::test]
async fn request_digests_use_a_key_of_the_tenant() {
    let fixture = Fixture::start().await;
    let body = json!({"type": "card", "data": {"number": CARD}});
    post(&fixture.private, "/tokens", "k", body.clone()).await;
    let database = &fixture.database;
    let row =
        "select scope, request_mac, tenant_id, public_id from reply join tenant using (tenant_id)";
    let row = database.query_one(row, &[]).await.unwrap();
    let (scope, request_mac): (Vec<u8>, Vec<u8>) = (row.get(0), row.get(1));
    let (number, tenant): (i32, uuid::Uuid) = (row.get(2), row.get(3));
    let context = WrapContext {
        environment: "test",
        tenant: Some(tenant.into_bytes()),
        version: 1,
    };
    let wrapped = async |purpose: i16| -> Vec<u8> {
        let sql = "select wrapped from tenant_key where tenant_id = $1 and purpose = $2";
        let row = database.query_one(sql, &[&number, &purpose]).await.unwrap();
        row.get(0)
    };
    let root = RootKey::load(&fixture.vault.vault.config.root_key).unwrap();
    let kek = RootKeys::new(root)
        .unwrap::<TenantKek>(&wrapped(2).await, &context)
        .await
        .unwrap();
    let key =
        cloakroom_crypto::unwrap::<_, RequestPurpose>(&kek, &context, &wrapped(12).await).unwrap();

    let text = body.to_string();
    let parts: [&[u8]; 2] = [&scope, text.as_bytes()];
    assert_eq!(mac(&key, "reply.request.v1", &parts)[..], request_mac);
}

/// Covers 21.12.
///
/// A stored response would keep a key for a day that is stored nowhere else but as a digest.
#[tokio::test]
async fn keys_and_secrets_are_not_replayed() {
    let fixture = Fixture::start().await;
    let client = &fixture.management;
    let application = json!({"name": "A", "type": "public", "permissions": ["token:create"]});
    let other = post(client, "/applications", "other", application.clone()).await;
    let keys = format!("/applications/{}/keys", other.id());
    let proxy = json!({"name": "P", "destination_url": "https://example.com/v1", "configuration": {"secret": "s3cret"}});
    let proxy_id = post(client, "/proxies", "other", proxy.clone()).await.id();
    let rotate = format!("/proxies/{proxy_id}/rotate-key");
    let hook = json!({"name": "W", "url": "https://example.com/hook", "events": ["token.created"]});
    let cases = [
        ("/applications", application, &["key", "keys"][..]),
        (&keys, json!({}), &["key"]),
        ("/proxies", proxy, &["key", "configuration"]),
        (&rotate, json!({}), &["key", "configuration"]),
        ("/webhooks", hook, &["secret"]),
    ];
    for (path, body, secrets) in cases {
        let first = post(client, path, "k", body.clone()).await;
        let again = post(client, path, "k", body).await;

        assert!(first.status.is_success(), "{path}: {}", first.body);
        assert_eq!(again.status, first.status, "{path}: {}", again.body);
        let mut expected = first.body.clone();
        for name in secrets {
            let members = expected.as_object_mut().unwrap();
            assert!(members.remove(*name).is_some(), "{path} {name}");
        }
        assert_eq!(again.body, expected, "{path}");
    }
}
