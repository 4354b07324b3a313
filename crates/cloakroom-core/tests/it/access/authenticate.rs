//! Authentication with API keys.

use std::time::{Duration, Instant};

use cloakroom_testkit::TestVault;
use http::StatusCode;

use super::{create_status, creator};

#[tokio::test]
async fn a_deleted_key_is_rejected_within_five_seconds() {
    let vault = TestVault::start().await;
    let holder = creator(&vault).await;
    assert_eq!(
        create_status(&vault, &holder.key).await,
        StatusCode::CREATED
    );

    let database = vault.database.connect().await;
    database
        .execute("delete from application_key", &[])
        .await
        .unwrap();
    let deleted = Instant::now();
    let mut last_accepted = Duration::ZERO;
    loop {
        // The time at which an accepted request was sent counts, not its duration.
        let sent_at = deleted.elapsed();
        if create_status(&vault, &holder.key).await != StatusCode::CREATED {
            break;
        }
        last_accepted = sent_at;
        assert!(sent_at < Duration::from_secs(20), "the key still works");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }

    assert!(last_accepted <= Duration::from_secs(5), "{last_accepted:?}");
}

#[tokio::test]
async fn an_expired_key_is_rejected() {
    let vault = TestVault::start().await;
    let holder = creator(&vault).await;

    let database = vault.database.connect().await;
    let expire = "update application_key set expires_at = now() - interval '1 second'";
    database.execute(expire, &[]).await.unwrap();

    assert_eq!(
        create_status(&vault, &holder.key).await,
        StatusCode::UNAUTHORIZED
    );
}

#[tokio::test]
async fn keys_are_stored_as_digests_only() {
    let vault = TestVault::start().await;
    let holder = creator(&vault).await;

    let database = vault.database.connect().await;
    let row = database
        .query_one("select application_key::text from application_key", &[])
        .await
        .unwrap();

    let stored: String = row.get(0);
    let random = holder.key.rsplit('_').next().unwrap();
    for secret in [&random[..10], &random[10..22], &random[23..]] {
        assert!(!stored.contains(secret));
        assert!(!stored.contains(&hex::encode(secret)));
    }
}

#[tokio::test]
async fn a_request_with_two_keys_is_unauthorized() {
    let vault = TestVault::start().await;
    let (one, two) = (creator(&vault).await, creator(&vault).await);

    let client = vault.client_with(Some(&one.key));
    let request = client
        .request(http::Method::POST, "/tokens")
        .header("bt-api-key", &two.key)
        .header("content-type", "application/json")
        .body(r#"{"type":"token","data":1}"#);

    assert_eq!(client.send(request).await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn wrong_secrets_and_unknown_keys_cost_the_same_lookups() {
    let vault = TestVault::start().await;
    let holder = creator(&vault).await;
    assert_eq!(
        create_status(&vault, &holder.key).await,
        StatusCode::CREATED
    );
    let wrong = format!("{}{}", &holder.key[..holder.key.len() - 4], "0000");

    // The valid key is cached; a wrong secret must not hit that cache entry.
    vault
        .database
        .connect()
        .await
        .execute("drop table application_key", &[])
        .await
        .unwrap();
    let cached = create_status(&vault, &holder.key).await;
    let rejected = create_status(&vault, &wrong).await;

    assert_eq!(cached, StatusCode::CREATED);
    assert_eq!(
        rejected,
        StatusCode::INTERNAL_SERVER_ERROR,
        "the database was queried"
    );
}
