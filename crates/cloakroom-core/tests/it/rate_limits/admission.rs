//! Isolation of other tenants from a noisy one.

use std::time::Duration;

use cloakroom::access::Transform;
use cloakroom_testkit::{Client, TestDatabase, TestVault, everything};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

/// Permits of the node: fewer than the other tenants' concurrent requests, so that it is busy even without the noisy
/// tenant.
const PLACES: usize = 4;
const OTHERS: usize = 8;
/// Concurrent requests of each other tenant and of the noisy one.
const LOAD: usize = 2;
const NOISE: usize = 20 * LOAD;
const ROUND: Duration = Duration::from_secs(1);
const ROUNDS: usize = 6;

async fn vault(places: usize) -> TestVault {
    TestVault::start_with(TestDatabase::create().await, |config| {
        config.database.max_connections = 8;
        config.database.acquire_timeout = Duration::from_secs(60);
        config.database.write_deadline = Duration::from_secs(60);
        config.limits.running_requests = Some(places);
        config.limits.sharing_requests = places;
    })
    .await
}

async fn client(vault: &TestVault) -> Client {
    let tenant = vault.tenant().await;
    vault.client(&tenant, everything(Transform::Mask)).await
}

/// Creates tokens sequentially from each of several clients until `until`, and returns the latencies.
async fn keep(client: &Client, clients: usize, until: Instant) -> Vec<Duration> {
    let mut asking = JoinSet::new();
    for _ in 0..clients {
        let client = client.clone();
        asking.spawn(async move {
            let mut taken = Vec::new();
            while Instant::now() < until {
                let sent = Instant::now();
                let answer = client
                    .post("/tokens", json!({"type": "token", "data": "x"}))
                    .await;
                assert!(answer.status.is_success(), "{}", answer.body);
                taken.push(sent.elapsed());
            }
            taken
        });
    }
    asking.join_all().await.concat()
}

fn p99(taken: &mut [Duration]) -> Duration {
    taken.sort();
    taken[taken.len() * 99 / 100]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_whose_requests_hang_leaves_the_others_their_places() {
    let vault = vault(PLACES).await;
    let (noisy, quiet) = (client(&vault).await, client(&vault).await);
    keep(&quiet, 2, Instant::now() + ROUND).await;
    let token = noisy
        .post("/tokens", json!({"type": "token", "data": "x"}))
        .await
        .id();
    let meddler = vault.database.connect().await;
    meddler
        .batch_execute("begin; select 1 from token for update")
        .await
        .unwrap();

    let mut hanging = JoinSet::new();
    for _ in 0..40 {
        let (noisy, path) = (noisy.clone(), format!("/tokens/{token}"));
        hanging.spawn(async move { noisy.delete(&path).await.status });
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    let kept = timeout(Duration::from_secs(30), async {
        for _ in 0..5 {
            let answer = quiet
                .post("/tokens", json!({"type": "token", "data": "x"}))
                .await;
            assert!(answer.status.is_success(), "{}", answer.body);
        }
    });
    let kept = kept.await;
    meddler.batch_execute("rollback").await.unwrap();
    let ended = hanging.join_all().await;

    assert!(kept.is_ok());
    assert_eq!(ended.iter().filter(|status| status.is_success()).count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_at_twenty_times_the_load_leaves_the_others_p99_below_double() {
    let vault = vault(PLACES).await;
    let noisy = client(&vault).await;
    let mut others = Vec::new();
    for _ in 0..OTHERS {
        others.push(client(&vault).await);
    }
    let all_others = async |until| {
        let asking: JoinSet<_> = others
            .iter()
            .cloned()
            .map(|other| async move { keep(&other, LOAD, until).await })
            .collect();
        asking.join_all().await.concat()
    };
    // Warm up connections and keys, which are not part of the measurement.
    let until = Instant::now() + ROUND;
    tokio::join!(keep(&noisy, PLACES, until), all_others(until));

    let (mut without, mut with) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        without.extend(all_others(Instant::now() + ROUND).await);
        let until = Instant::now() + ROUND;
        let (_, taken) = tokio::join!(keep(&noisy, NOISE, until), all_others(until));
        with.extend(taken);
    }

    let (calm, loud) = (p99(&mut without), p99(&mut with));
    let (few, many) = (with.len(), without.len());
    println!("p99 {calm:?} of {many} without, {loud:?} of {few} with the noisy tenant");
    assert!(loud < 2 * calm, "{calm:?} {loud:?}");
}
