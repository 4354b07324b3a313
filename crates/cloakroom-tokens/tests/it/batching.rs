//! Requests that are batched get the responses that they would get alone.

use std::collections::BTreeSet;
use std::time::Duration;

use cloakroom::access::Transform;
use cloakroom::audit;
use cloakroom_testkit::{Client, TestResponse, TestVault, everything};
use futures_util::future::join_all;
use http::{Method, StatusCode};
use metrics::LocalRecorderGuard;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle, PrometheusRecorder};
use serde_json::{Value, json};

/// A distinct token for each number, of six kinds with different optional attributes.
fn new(number: u32) -> Value {
    let metadata = json!({"order": number.to_string()});
    match number % 6 {
        0 => json!({"type": "token", "data": number, "metadata": metadata}),
        1 => json!({"id": format!("alias-{number}"), "type": "token", "data": number}),
        2 => {
            json!({"type": "token", "data": format!("d{number}"), "mask": "{{ data | reveal_last: 1 }}",
            "search_indexes": ["{{ data }}"], "expires_at": "2099-12-31T23:59:59+01:00"})
        }
        3 => json!({"type": "card", "containers": [format!("/c{}/", number % 4)],
            "data": {"number": "4242424242424242", "expiration_month": 12, "cvc": "123"}}),
        4 => json!({"type": "token", "data": {"n": number}, "deduplicate_token": true}),
        _ => json!({"type": "bank", "data": {"routing_number": "021000021",
            "account_number": format!("{number:05}")}, "metadata": metadata}),
    }
}

async fn create_all(client: &Client, bodies: &[Value]) -> Vec<TestResponse> {
    join_all(
        bodies
            .iter()
            .map(|body| client.post("/tokens", body.clone())),
    )
    .await
}

/// The rows of tokens in the database, by table.
async fn rows(vault: &TestVault) -> Vec<i64> {
    let database = vault.database.connect().await;
    let tables = ["token", "term", "claim", "security_code", "log"];
    let mut counts = Vec::new();
    for table in tables {
        let count = format!("select count(*) from {table}");
        counts.push(database.query_one(&count, &[]).await.unwrap().get(0));
    }
    counts
}

/// Batches of a batcher so far, and the items in them.
fn batches(metrics: &PrometheusHandle, batcher: &str) -> (f64, f64) {
    let text = metrics.render();
    let value = |kind: &str| -> f64 {
        let start = format!("cloakroom_batch_items_{kind}{{batcher=\"{batcher}\"}} ");
        let line = text.lines().find_map(|line| line.strip_prefix(&start));
        line.map_or(0.0, |value| value.parse().unwrap())
    };
    (value("count"), value("sum"))
}

/// All requests were processed, in at most half as many batches.
fn assert_batched(metrics: &PrometheusHandle, batcher: &str, requests: usize) {
    let (batches, items) = batches(metrics, batcher);
    assert!(items >= requests as f64, "{items} of {requests}");
    assert!(batches * 2.0 < items, "{batches} batches for {items}");
}

/// A vault and its metrics, which no other test writes to.
async fn vault_with_metrics() -> (TestVault, PrometheusHandle, LocalRecorderGuard<'static>) {
    let recorder: &'static PrometheusRecorder =
        Box::leak(Box::new(PrometheusBuilder::new().build_recorder()));
    let guard = metrics::set_default_local_recorder(recorder);
    (
        TestVault::start_with_long_timeouts().await,
        recorder.handle(),
        guard,
    )
}

#[tokio::test]
async fn batched_creates_equal_single_ones() {
    let alone = TestVault::start().await;
    let (crowd, counts, _guard) = vault_with_metrics().await;
    let bodies: Vec<Value> = (0..120).map(new).collect();
    let lonely = alone.revealing_client().await;
    let mut one_by_one = Vec::new();
    for body in &bodies {
        one_by_one.push(lonely.post("/tokens", body.clone()).await);
    }
    let client = crowd.revealing_client().await;
    let together = create_all(&client, &bodies).await;

    assert_batched(&counts, "token_writes", bodies.len());
    let unstable = ["id", "tenant_id", "created_at", "created_by", "fingerprint"];
    for (one, other) in one_by_one.iter().zip(&together) {
        assert_eq!(other.status, StatusCode::CREATED, "{}", other.body);
        assert_eq!(one.told(&unstable), other.told(&unstable));
    }
    alone.vault.audit.flush().await.unwrap();
    crowd.vault.audit.flush().await.unwrap();
    assert_eq!(rows(&alone).await, rows(&crowd).await);
    let paths = together
        .iter()
        .map(|answer| format!("/tokens/{}", answer.id()));
    let paths: Vec<String> = paths.collect();
    let read = join_all(paths.iter().map(|path| client.get(path))).await;
    assert_batched(&counts, "token_reads", paths.len());
    for (created, read) in together.iter().zip(&read) {
        assert_eq!(read.status, StatusCode::OK, "{}", read.body);
        let mut created = created.body.clone();
        created.as_object_mut().unwrap().remove("_extras");
        assert_eq!(created, read.body);
    }
    let found = audit::verify(&crowd.vault.audit, None, |_| {})
        .await
        .unwrap();
    assert!(found.findings.is_empty(), "{:?}", found.findings);
}

#[tokio::test]
async fn a_rejected_item_does_not_fail_its_batch() {
    let (vault, counts, _guard) = vault_with_metrics().await;
    let client = vault.revealing_client().await;
    for round in 0..5 {
        let taken = json!({"id": format!("taken-{round}"), "type": "token", "data": 1});
        assert_eq!(
            client.post("/tokens", taken.clone()).await.status,
            StatusCode::CREATED
        );
        let mut bodies: Vec<Value> = (0..30)
            .map(|number| match number % 2 {
                0 => json!({"type": "token", "data": number}),
                // Batched with the one whose id is taken.
                _ => {
                    json!({"id": format!("own-{round}-{number}"), "type": "token", "data": number})
                }
            })
            .collect();
        bodies.insert(15, taken);
        bodies.push(json!({"type": "token", "data": 1, "expires_at": "2001-01-01T00:00:00Z"}));

        let answers = create_all(&client, &bodies).await;

        let mut ids = BTreeSet::new();
        for (position, answer) in answers.iter().enumerate() {
            let expected = match position {
                15 => StatusCode::CONFLICT,
                31 => StatusCode::BAD_REQUEST,
                _ => StatusCode::CREATED,
            };
            assert_eq!(answer.status, expected, "{position}: {}", answer.body);
            if answer.status == StatusCode::CREATED {
                ids.insert(answer.id());
            }
        }
        assert_eq!(ids.len(), 30);
    }
    assert_batched(&counts, "token_writes", 5 * 32);
    assert_eq!(rows(&vault).await[0], 5 * 31);
    let found = audit::verify(&vault.vault.audit, None, |_| {})
        .await
        .unwrap();
    assert!(found.findings.is_empty(), "{:?}", found.findings);
}

#[tokio::test]
async fn batched_reads_of_several_tenants_stay_apart() {
    let (vault, counts, _guard) = vault_with_metrics().await;
    let mut clients = Vec::new();
    for number in 0..3 {
        let tenant = vault.tenant().await;
        let client = vault.client(&tenant, everything(Transform::Reveal)).await;
        let own = json!({"id": "same", "type": "token", "data": number});
        assert_eq!(
            client.post("/tokens", own).await.status,
            StatusCode::CREATED
        );
        clients.push(client);
    }
    let asked = (0..90).map(async |number: usize| {
        let client = &clients[number % 3];
        let path = if number % 5 == 4 {
            "/tokens/other"
        } else {
            "/tokens/same"
        };
        (number, client.get(path).await)
    });
    for (number, answer) in join_all(asked).await {
        match number % 5 {
            4 => assert_eq!(answer.status, StatusCode::NOT_FOUND),
            _ => assert_eq!(answer.body["data"], json!(number % 3)),
        }
    }
    assert_batched(&counts, "token_reads", 90);
}

#[tokio::test]
async fn batched_creates_of_several_tenants_stay_apart() {
    let (vault, counts, _guard) = vault_with_metrics().await;
    let mut clients = Vec::new();
    for _ in 0..3 {
        let tenant = vault.tenant().await;
        clients.push(vault.client(&tenant, everything(Transform::Reveal)).await);
    }
    let asked = (0..90).map(async |number: usize| {
        let body = json!({"id": format!("number-{}", number / 3), "type": "token", "data": number,
            "metadata": {"of": "all"}, "deduplicate_token": true});
        clients[number % 3].post("/tokens", body).await
    });
    for (number, answer) in join_all(asked).await.iter().enumerate() {
        assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.body);
        assert_eq!(answer.body["data"], json!(number));
    }
    assert_batched(&counts, "token_writes", 90);
    for (own, client) in clients.iter().enumerate() {
        let search = json!({"query": "metadata.of:all", "size": 100});
        let page = client.post("/v2/tokens/search", search).await;
        let found: BTreeSet<u64> = page
            .items()
            .iter()
            .map(|item| item["data"].as_u64().unwrap())
            .collect();
        let expected: BTreeSet<u64> = (0..30).map(|number| 3 * number + own as u64).collect();
        assert_eq!(found, expected);
    }
}

#[tokio::test]
async fn batched_creates_of_one_id_conflict_except_for_one() {
    let (vault, counts, _guard) = vault_with_metrics().await;
    let client = vault.revealing_client().await;
    let bodies: Vec<Value> = (0..60)
        .map(|number| {
            json!({"id": format!("id-{}", number % 3), "type": "card",
            "data": {"number": "4242424242424242", "cvc": format!("{number:03}")}})
        })
        .collect();

    let answers = create_all(&client, &bodies).await;

    for id in 0..3 {
        let same = answers.iter().skip(id).step_by(3);
        let created = same.clone().filter(|it| it.status == StatusCode::CREATED);
        let taken = same.filter(|it| it.status == StatusCode::CONFLICT);
        assert_eq!((created.count(), taken.count()), (1, 19));
    }
    assert_batched(&counts, "token_writes", 60);
    let kept = rows(&vault).await;
    assert_eq!((kept[0], kept[3]), (3, 3));
    let created = "select count(*) from log where operation = 1 and entity_kind = 2";
    let database = vault.database.connect().await;
    let created: i64 = database.query_one(created, &[]).await.unwrap().get(0);
    assert_eq!(created, 3);
}

/// Creates a token with an idempotency key.
async fn create_once(client: &Client, number: usize) -> TestResponse {
    let request = client
        .request(Method::POST, "/tokens")
        .header("bt-idempotency-key", format!("key-{number}"))
        .header("content-type", "application/json");
    let body = json!({"type": "token", "data": number});
    client.send(request.body(body.to_string())).await
}

/// Blocks writes of tokens until the transaction is dropped.
async fn hold_tokens(database: &mut tokio_postgres::Client) -> tokio_postgres::Transaction<'_> {
    let lock = database.transaction().await.unwrap();
    lock.batch_execute("lock table token in exclusive mode")
        .await
        .unwrap();
    lock
}

#[tokio::test]
async fn a_lost_lease_fails_its_own_request_only() {
    let (vault, _, _guard) = vault_with_metrics().await;
    let client = vault.revealing_client().await;
    let mut guard = vault.database.connect().await;
    let lock = hold_tokens(&mut guard).await;
    let steal = async {
        let leases = "select count(*) from reply_lease";
        while lock.query_one(leases, &[]).await.unwrap().get::<_, i64>(0) < 20 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        // All writes are blocked by now, some alone and the others in a batch.
        tokio::time::sleep(Duration::from_millis(200)).await;
        let stolen = "update reply_lease set fence = fence + 1
                      where ctid = (select max(ctid) from reply_lease) returning true";
        let stolen = lock.query(stolen, &[]).await.unwrap().len();
        lock.commit().await.unwrap();
        stolen
    };

    let asked = join_all((0..20).map(|number| create_once(&client, number)));
    let (answers, stolen) = tokio::join!(asked, steal);

    assert_eq!(stolen, 1);
    let created = answers.iter().filter(|it| it.status == StatusCode::CREATED);
    let refused = answers
        .iter()
        .filter(|it| it.status == StatusCode::CONFLICT);
    assert_eq!((created.count(), refused.count()), (19, 1));
    assert_eq!(rows(&vault).await[0], 19);
}

#[tokio::test]
async fn batched_reads_return_large_tokens_whole() {
    let (vault, counts, _guard) = vault_with_metrics().await;
    let client = vault.revealing_client().await;
    let large = "x".repeat(200_000);
    let bodies: Vec<Value> = (0..30)
        .map(|number| match number % 10 {
            0 => json!({"type": "token", "data": format!("{number}{large}")}),
            _ => json!({"type": "token", "data": number.to_string()}),
        })
        .collect();
    let created = create_all(&client, &bodies).await;
    let paths: Vec<String> = created
        .iter()
        .map(|answer| format!("/tokens/{}", answer.id()))
        .collect();

    let read = join_all(paths.iter().map(|path| client.get(path))).await;

    assert_batched(&counts, "token_reads", 30);
    for (body, read) in bodies.iter().zip(&read) {
        assert_eq!(body["data"], read.body["data"]);
    }
}

#[tokio::test]
async fn stored_responses_are_batched_with_their_writes() {
    let (vault, counts, _guard) = vault_with_metrics().await;
    // Revealed data is not stored, so that a replay would differ from the first response.
    let tenant = vault.tenant().await;
    let client = vault.client(&tenant, everything(Transform::Mask)).await;

    let first = join_all((0..60).map(|number| create_once(&client, number))).await;
    let again = join_all((0..60).map(|number| create_once(&client, number))).await;

    assert_batched(&counts, "token_writes", 60);

    for (first, again) in first.iter().zip(&again) {
        assert_eq!(first.status, StatusCode::CREATED, "{}", first.body);
        assert_eq!(first.bytes, again.bytes);
    }
    assert_eq!(rows(&vault).await[0], 60);
}

#[tokio::test]
async fn hanging_batches_do_not_block_others_and_their_outcome_is_unknown() {
    let vault = TestVault::start_with_long_timeouts().await;
    let client = vault.revealing_client().await;
    let seen = client.post("/tokens", json!({"type": "token", "data": 1}));
    let path = format!("/tokens/{}", seen.await.id());
    let bodies: Vec<Value> = (0..20)
        .map(|number| json!({"type": "token", "data": number}))
        .collect();
    let mut guard = vault.database.connect().await;
    let lock = hold_tokens(&mut guard).await;

    let reads_and_end = async {
        // The writes fill all slots by now, and have given them up as slow batches.
        tokio::time::sleep(Duration::from_millis(300)).await;
        let read = client.get(&path).await;
        let cut = "select pg_terminate_backend(pid) from pg_stat_activity
                   where datname = current_database() and wait_event_type = 'Lock'";
        let mut cut_off = 0;
        while cut_off < 2 {
            cut_off += lock.query(cut, &[]).await.unwrap().len();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        read
    };
    let (answers, read) = tokio::join!(create_all(&client, &bodies), reads_and_end);
    lock.rollback().await.unwrap();

    assert_eq!(read.status, StatusCode::OK, "{}", read.body);
    let mut codes = BTreeSet::new();
    for answer in &answers {
        assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
        codes.insert(answer.body["code"].as_str().unwrap());
    }
    // A statement that was still being prepared has not written anything.
    assert!(codes.remove("outcome_unknown"), "{codes:?}");
    assert!(codes.is_subset(&BTreeSet::from(["database_unavailable"])));
    assert_eq!(rows(&vault).await[0], 1);
    assert_eq!(
        client.post("/tokens", bodies[0].clone()).await.status,
        StatusCode::CREATED
    );
}
