//! Replacing a client encryption key while clients use it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use cloakroom::access::Transform;
use cloakroom::{ids, jobs};
use cloakroom_testkit::{Client, encrypt, everything};
use http::StatusCode;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::{create_encrypted, fixture, path_of};

/// Clients that encrypt to the key that is announced to them.
struct Checkout {
    announced: ArcSwap<Value>,
    is_done: AtomicBool,
    created: AtomicUsize,
    rejected: AtomicUsize,
}

impl Checkout {
    /// Creates tokens as a page does that has loaded its key some time ago.
    async fn shop(self: Arc<Self>, client: Client) {
        while !self.is_done.load(Ordering::Relaxed) {
            let loaded = self.announced.load_full();
            let encrypted = encrypt(&loaded, "1");
            sleep(Duration::from_millis(20)).await;
            let response = create_encrypted(&client, &encrypted).await;
            let counter = match response.status {
                StatusCode::CREATED => &self.created,
                _ => &self.rejected,
            };
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until clients have created this many more tokens.
    async fn wait_for(&self, count: usize) {
        let target = self.created.load(Ordering::Relaxed) + count;
        while self.created.load(Ordering::Relaxed) < target {
            let rejected = self.rejected.load(Ordering::Relaxed);
            assert_eq!(rejected, 0, "values were rejected");
            sleep(Duration::from_millis(10)).await;
        }
    }
}

/// Covers 16.18.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_is_replaced_without_a_rejected_value() {
    let fixture = fixture().await;
    let second_node = fixture.vault.second_node().await;
    let mut old = fixture.create_key().await;
    let checkout = Arc::new(Checkout {
        announced: ArcSwap::from_pointee(old.clone()),
        is_done: AtomicBool::new(false),
        created: AtomicUsize::new(0),
        rejected: AtomicUsize::new(0),
    });
    let mut clients = JoinSet::new();
    for node in [&fixture.vault, &second_node] {
        for _ in 0..2 {
            let client = node.client(&fixture.tenant, everything(Transform::Reveal));
            clients.spawn(checkout.clone().shop(client.await));
        }
    }

    for _ in 0..3 {
        checkout.wait_for(8).await;
        let new = fixture.create_key().await;
        checkout.announced.store(Arc::new(new.clone()));
        // Every value that was encrypted to the old key has been sent by now.
        checkout.wait_for(16).await;
        let deleted = fixture.manager.delete(&path_of(&old)).await;
        assert_eq!(deleted.status, StatusCode::NO_CONTENT);
        let late = create_encrypted(&fixture.client, &encrypt(&old, "1")).await;
        assert_eq!(late.refused(), ["encrypted"]);
        old = new;
    }
    checkout.wait_for(8).await;
    checkout.is_done.store(true, Ordering::Relaxed);
    clients.join_all().await;

    assert_eq!(checkout.rejected.load(Ordering::Relaxed), 0);
    let keys = fixture.manager.get("/keys").await;
    assert_eq!(keys.body.as_array().unwrap().len(), 1, "{}", keys.body);
}

/// Covers 16.21.
#[tokio::test]
async fn the_end_of_a_key_is_logged() {
    let fixture = fixture().await;
    let (deleted, expired) = (fixture.create_key().await, fixture.create_key().await);
    fixture.manager.delete(&path_of(&deleted)).await;
    let id = expired["id"].as_str().unwrap();
    let expire = format!("update client_key set expires_at = now() where key_id = '{id}'");
    assert_eq!(fixture.execute(&expire).await, 1);

    jobs::sweep_once(&fixture.vault.vault, ids::new_uuid())
        .await
        .unwrap();

    let database = fixture.vault.database.connect().await;
    let sql = "select entity_id, operation, actor_kind from log where entity_kind = 11 and operation in (4, 9)
               order by operation";
    let entries = database.query(sql, &[]).await.unwrap();
    let entries: Vec<(String, i16, i16)> = entries
        .iter()
        .map(|row| (row.get(0), row.get(1), row.get(2)))
        .collect();
    let id_of = |key: &Value| json!(key["id"]).as_str().unwrap().to_owned();
    // Deleted by an application, expired by the vault.
    let expected = [(id_of(&deleted), 4, 1), (id_of(&expired), 9, 3)];
    assert_eq!(entries, expected);
}
