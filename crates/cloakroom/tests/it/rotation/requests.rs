//! Rotation of the key that identifies requests with idempotency keys: a retry finds its first execution.

use cloakroom::rate_limits;
use cloakroom::rotation::{self, Phase};
use cloakroom_crypto::KeyPurpose;
use cloakroom_testkit::{Client, TestResponse};
use futures_util::future::join_all;
use serde_json::json;

use super::Fixture;

async fn create(client: &Client, key: &str) -> TestResponse {
    let request = client
        .request(http::Method::POST, "/tokens")
        .header("bt-idempotency-key", key)
        .header("content-type", "application/json");
    let new = json!({"type": "token", "data": key});
    client.send(request.body(new.to_string())).await
}

/// Sends the same request to two nodes at once, and again until both have an answer; returns how many were executed twice.
async fn create_pairs(one: &Client, other: &Client, name: &str) -> usize {
    let pairs = (0..60).map(|number| async move {
        let key = format!("{name} {number}");
        let finish = async |client: &Client| {
            loop {
                let response = create(client, &key).await;
                if response.status != 409 {
                    assert_eq!(response.status, 201, "{}", response.body);
                    return response.id();
                }
            }
        };
        let (one, other) = tokio::join!(finish(one), finish(other));
        usize::from(one != other)
    });
    join_all(pairs).await.into_iter().sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_returns_the_first_response_while_the_key_is_rotated() {
    let fixture = Fixture::create(1).await;
    let vault = &fixture.vault.vault;
    let other = fixture.vault.second_node().await;
    let on_other = fixture.client.at(&other.base_url);
    let (purpose, tenant) = (KeyPurpose::Request, fixture.tenant.id);
    let learn = async || {
        let written = rate_limits::write_heartbeat(&other.vault.rate_limits).await;
        written.unwrap();
    };
    learn().await;
    let mut first = vec![("before".to_owned(), create(&on_other, "before").await.id())];

    rotation::start(vault, tenant, purpose, "tests")
        .await
        .unwrap();
    vault.keys.evict(tenant).await;
    for phase in [Phase::Added, Phase::Promoted, Phase::Closed, Phase::Proving] {
        fixture.advance_to(phase).await;
        let name = format!("{phase:?}");
        assert_eq!(
            create_pairs(&fixture.client, &on_other, &name).await,
            0,
            "{name}"
        );
        first.push((name.clone(), create(&fixture.client, &name).await.id()));
        for client in [&fixture.client, &on_other] {
            for (key, id) in &first {
                let again = create(client, key).await;
                assert_eq!(again.id(), *id, "{key} in {phase:?}");
            }
        }
        learn().await;
    }

    // Stored responses keep the old key until they have expired.
    for _ in 0..3 {
        rotation::work(vault, super::HOLDER).await.unwrap();
    }
    assert_eq!(fixture.phase().await, Phase::Proving);
    let early = rotation::retire(vault, tenant, purpose).await.unwrap_err();
    assert!(
        early.to_string().contains("the scan is not complete"),
        "{early}"
    );
    let leases: i64 = fixture
        .database
        .query_one("select count(*) from reply_lease", &[])
        .await
        .unwrap()
        .get(0);
    assert_eq!(leases, 0);
    fixture
        .execute("update reply set until = now() - interval '1 second'")
        .await;
    // Scans are repeated once a minute.
    fixture
        .execute("update key_rotation set phase_at = now()")
        .await;
    fixture.advance_to(Phase::Proved).await;
    learn().await;
    let (version, _) = rotation::retire(vault, tenant, purpose).await.unwrap();
    assert_eq!(version, 1);
    assert_eq!(create_pairs(&fixture.client, &on_other, "after").await, 0);
}

/// A node that dies between the response and the release of the other lease leaves that lease.
#[tokio::test]
async fn a_lease_under_the_other_version_does_not_hide_the_response() {
    let fixture = Fixture::create(1).await;
    let vault = &fixture.vault.vault;
    let (purpose, tenant) = (KeyPurpose::Request, fixture.tenant.id);
    rotation::start(vault, tenant, purpose, "tests")
        .await
        .unwrap();
    fixture.advance_to(Phase::Promoted).await;
    fixture
        .execute("create table left_over as select * from reply_lease")
        .await;
    // Keeps a copy of every lease that is deleted.
    fixture
        .database
        .batch_execute(
            "create function keep() returns trigger language plpgsql security definer as
                'begin insert into left_over select old.*; return old; end';
            create trigger keep before delete on reply_lease for each row execute function keep();",
        )
        .await
        .unwrap();
    let first = create(&fixture.client, "once").await;
    fixture
        .execute("insert into reply_lease select * from left_over on conflict do nothing")
        .await;

    let again = create(&fixture.client, "once").await;

    assert_eq!(again.id(), first.id());
}
