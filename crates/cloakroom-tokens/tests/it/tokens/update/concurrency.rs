//! Concurrent updates.

use std::collections::BTreeSet;

use cloakroom::access::Transform;
use cloakroom_testkit::{Client, TestResponse, TestVault, everything};
use http::StatusCode;
use serde_json::{Value, json};

use super::{assert_consistent, id_of, row_version};
use crate::tokens::{create, setup};

/// Sends `count` patches concurrently and returns the responses in the order of their numbers.
async fn update_concurrently(
    client: &Client,
    count: usize,
    patch: impl Fn(usize) -> (String, Value),
) -> Vec<TestResponse> {
    let mut requests = tokio::task::JoinSet::new();
    for number in 0..count {
        let (client, (path, patch)) = (client.clone(), patch(number));
        requests.spawn(async move { (number, client.patch(&path, patch).await) });
    }
    let mut responses = requests.join_all().await;
    responses.sort_by_key(|(number, _)| *number);
    responses
        .into_iter()
        .map(|(_, response)| response)
        .collect()
}

/// Covers 5.2.
#[tokio::test]
async fn concurrent_updates_are_all_applied() {
    let (vault, _, client) = setup().await;
    let path = create(&client, json!({"type": "token", "data": {"first": true}})).await;

    let patch = |number: usize| {
        let index = format!("{{{{ data.k{number} }}}}");
        let data = json!({ format!("k{number}"): format!("v{number}") });
        (
            path.clone(),
            json!({"data": data, "search_indexes": [index]}),
        )
    };
    let responses = update_concurrently(&client, 64, patch).await;

    for (number, response) in responses.iter().enumerate() {
        assert_eq!(
            response.status,
            StatusCode::OK,
            "{number}: {}",
            response.body
        );
        assert_eq!(
            response.body["data"][format!("k{number}")],
            format!("v{number}")
        );
    }
    let times: BTreeSet<&str> = responses
        .iter()
        .map(|response| response.body["modified_at"].as_str().unwrap())
        .collect();
    let read = client.get(&path).await;
    assert_eq!(read.body["data"].as_object().unwrap().len(), 65);
    assert_eq!(read.body["modified_at"].as_str(), times.last().copied());
    assert_eq!(row_version(&vault, &path).await, 65);
    assert_consistent(&vault).await;
}

/// Covers 5.2.
#[tokio::test]
async fn concurrent_updates_on_two_nodes_are_all_applied() {
    let (vault, tenant, client) = setup().await;
    let second = vault.second_node().await;
    let other = second.client(&tenant, everything(Transform::Reveal)).await;
    let path = create(&client, json!({"type": "token", "data": {}})).await;

    let patch = |node: &'static str| {
        let path = path.clone();
        move |number: usize| {
            let name = format!("{node}{number}");
            (path.clone(), json!({"data": {name: number}}))
        }
    };
    let (here, there) = tokio::join!(
        update_concurrently(&client, 16, patch("here")),
        update_concurrently(&other, 16, patch("there")),
    );

    for response in here.into_iter().chain(there) {
        assert_eq!(response.status, StatusCode::OK, "{}", response.body);
    }
    let read = client.get(&path).await;
    assert_eq!(read.body["data"].as_object().unwrap().len(), 32);
    assert_eq!(row_version(&vault, &path).await, 33);
}

/// Covers 5.5.
#[tokio::test]
async fn concurrent_metadata_updates_are_applied_up_to_the_limit() {
    let (vault, _, client) = setup().await;
    let path = create(&client, json!({"type": "token", "data": 1})).await;

    let patch = |number: usize| {
        let metadata = json!({ format!("k{number}"): number.to_string() });
        (path.clone(), json!({ "metadata": metadata }))
    };
    let responses = update_concurrently(&client, 64, patch).await;

    let read = client.get(&path).await;
    let stored = read.body["metadata"].as_object().unwrap();
    for (number, response) in responses.iter().enumerate() {
        match stored.get(&format!("k{number}")) {
            Some(value) => {
                assert_eq!(response.status, StatusCode::OK, "{number}");
                assert_eq!(*value, number.to_string());
            }
            // The limit is 50 entries.
            None => assert_eq!(
                response.refused(),
                ["metadata"],
                "{number}: {}",
                response.body
            ),
        }
    }
    assert_eq!(stored.len(), 50);
    assert_eq!(row_version(&vault, &path).await, 51);
    assert_consistent(&vault).await;
}

/// Covers 5.19.
#[tokio::test]
async fn concurrent_updates_to_the_same_data_leave_one_winner() {
    let (vault, _, client) = setup().await;
    let mut paths = Vec::new();
    for number in 0..16 {
        paths.push(create(&client, json!({"type": "token", "data": number})).await);
    }

    let patch = |number: usize| {
        let patch = json!({"data": "same", "deduplicate_token": true});
        (paths[number].clone(), patch)
    };
    let responses = update_concurrently(&client, paths.len(), patch).await;

    let mut ids = BTreeSet::new();
    for (number, response) in responses.iter().enumerate() {
        assert_eq!(response.status, StatusCode::OK, "{}", response.body);
        ids.insert(response.id());
        let won = response.id() == id_of(&paths[number]);
        assert_eq!(response.body["_extras"]["deduplicated"], !won);
        let data = client.get(&paths[number]).await.body["data"].clone();
        assert_eq!(data, if won { json!("same") } else { json!(number) });
    }
    assert_eq!(ids.len(), 1);
    assert_consistent(&vault).await;
}

/// Covers 7.6, 7.13.
#[tokio::test]
async fn concurrent_creates_that_update_a_duplicate_are_all_applied() {
    let vault = TestVault::start_with_long_timeouts().await;
    let settings = [
        ("deduplicate_tokens", "true"),
        ("token_deduplication_behavior", "update_existing"),
    ];
    let tenant = vault.tenant_with(&settings).await;
    let client = vault.client(&tenant, everything(Transform::Reveal)).await;

    let mut creating = tokio::task::JoinSet::new();
    for number in 0..32 {
        let client = client.clone();
        let metadata = json!({ format!("k{number}"): "v" });
        let new = json!({"type": "token", "data": "same", "metadata": metadata});
        creating.spawn(async move { client.post("/tokens", new).await });
    }
    let responses = creating.join_all().await;

    for response in &responses {
        assert_eq!(response.status, StatusCode::CREATED, "{}", response.body);
        assert_eq!(response.id(), responses[0].id());
    }
    let path = format!("/tokens/{}", responses[0].id());
    let read = client.get(&path).await;
    assert_eq!(read.body["metadata"].as_object().unwrap().len(), 32);
    assert_eq!(row_version(&vault, &path).await, 32);
    assert_consistent(&vault).await;
}
