//! Order, pages and cursors of token lists.

use std::collections::BTreeSet;

use cloakroom::access::{Permission, Transform};
use cloakroom_testkit::{Client, NamedTokens, TestResponse, TestVault, everything, grants, rule};
use http::StatusCode;
use serde_json::{Value, json};

use super::{create_ties, list_pages};

/// Covers 4.15.
#[tokio::test]
async fn lists_are_ordered_by_container_time_and_id_descending() {
    let vault = TestVault::start().await;
    let mut tokens = NamedTokens::new(vault.revealing_client().await);
    let paths = ["/", "/a-b/", "/a/", "/a/b/", "/a0/", "/a_/", "/ab/", "/b/"];
    for path in paths {
        for n in 0..4 {
            let name = format!("{path} {n}");
            let new = json!({"containers": [path], "data": n});
            // The last two of each container have the same creation time.
            tokens.create_at(&vault, &name, 100 + n.min(2), new).await;
        }
    }

    let listed = tokens.client.get("/v2/tokens?size=100").await;

    let mut expected = Vec::new();
    for path in paths.into_iter().rev() {
        let name = |n: usize| format!("{path} {n}");
        let mut tied = [name(2), name(3)];
        tied.sort_by_key(|name| std::cmp::Reverse(tokens.id(name).to_owned()));
        expected.extend(tied);
        expected.extend([name(1), name(0)]);
    }
    assert_eq!(tokens.names(&listed), expected);
}

/// Covers 4.15, 4.17, 4.18.
#[tokio::test]
async fn pages_contain_every_token_once_during_concurrent_writes() {
    let vault = TestVault::start().await;
    let tokens = create_ties(&vault, vault.revealing_client().await).await;
    let fingerprint = tokens.bodies["0.0"]["fingerprint"].as_str().unwrap();
    let filters = [
        "".to_owned(),
        "container=/w/".to_owned(),
        "type=token".to_owned(),
        "metadata.K=V".to_owned(),
        format!("fingerprint={fingerprint}"),
        format!("fingerprint={fingerprint}&container=/w/"),
    ];
    let whole = list_pages(&tokens.client, "", 100).await.concat();
    assert_eq!(whole.len(), 20);

    for filter in &filters {
        for size in [1, 3, 100] {
            let ids = list_ids_during_writes(&tokens.client, filter, size).await;
            let expected: Vec<&str> = whole
                .iter()
                .map(|item| item["id"].as_str().unwrap())
                .collect();
            let found: Vec<&String> = ids
                .iter()
                .filter(|id| expected.contains(&id.as_str()))
                .collect();
            assert_eq!(found, expected, "{filter} {size}");
            let distinct: BTreeSet<&String> = ids.iter().collect();
            assert_eq!(distinct.len(), ids.len(), "{filter} {size}");
        }
    }
}

/// The ids on all pages, while matching tokens are created before and after each page and deleted again, starting
/// with the one at the end of the page.
async fn list_ids_during_writes(client: &Client, filter: &str, size: usize) -> Vec<String> {
    let insert = async |path: &str| {
        let new = json!({"type": "token", "containers": [path], "data": "same",
            "metadata": {"K": "V"}});
        client.post("/tokens", new).await.id()
    };
    let mut extra: BTreeSet<String> = BTreeSet::new();
    for path in ["/w/b/", "/w/a/c/", "/w/a/", "/w/"] {
        extra.insert(insert(path).await);
    }
    let (mut ids, mut start) = (Vec::new(), String::new());
    loop {
        let page = client
            .get(&format!("/v2/tokens?{filter}&size={size}&start={start}"))
            .await;
        ids.extend(
            page.items()
                .iter()
                .map(|item| item["id"].as_str().unwrap().to_owned()),
        );
        let last = ids.last().filter(|last| extra.contains(*last)).cloned();
        if let Some(removed) = last.or_else(|| extra.first().cloned()) {
            client.delete(&format!("/tokens/{removed}")).await;
            extra.remove(&removed);
        }
        let Some(next) = page.body["pagination"]["next"].as_str() else {
            break;
        };
        start = next.to_owned();
        // At the very start and the very end of the order.
        for path in ["/w/b/", "/w/"] {
            let fresh = insert(path).await;
            if extra.len() < 4 {
                extra.insert(fresh);
            } else {
                client.delete(&format!("/tokens/{fresh}")).await;
            }
        }
    }
    for removed in extra {
        client.delete(&format!("/tokens/{removed}")).await;
    }
    ids
}

/// Covers 4.18.
#[tokio::test]
async fn cursors_are_bound_to_their_list() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let tokens = create_ties(
        &vault,
        vault.client(&tenant, everything(Transform::Reveal)).await,
    )
    .await;
    let client = &tokens.client;
    let other = create_ties(&vault, vault.revealing_client().await)
        .await
        .client;
    let first = client.get("/v2/tokens?metadata.K=V&size=2").await;
    let next = first.body["pagination"]["next"].as_str().unwrap();
    let search = client
        .post(
            "/v2/tokens/search",
            json!({"query": "metadata.K:V", "size": 2}),
        )
        .await;
    let search_cursor = search.body["pagination"]["next"].as_str().unwrap();
    let mut tampered = next.to_owned().into_bytes();
    tampered[40] = if tampered[40] == b'A' { b'B' } else { b'A' };
    let tampered = String::from_utf8(tampered).unwrap();

    let is_safe = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    assert!(next.chars().all(is_safe) && next.len() <= 500, "{next}");
    let ids = |response: &TestResponse| -> Vec<String> {
        response
            .items()
            .iter()
            .map(|item| item["id"].to_string())
            .collect()
    };
    // Another page size, or an equivalent filter, is the same list.
    let second = client
        .get(&format!("/v2/tokens?metadata.K=V&size=3&start={next}"))
        .await;
    let equivalent = client
        .get(&format!("/v2/tokens?metadata[K]=V&size=3&start={next}"))
        .await;
    assert_eq!(ids(&second).len(), 3);
    assert_eq!(ids(&second), ids(&equivalent));
    assert!(ids(&first).iter().all(|id| !ids(&second).contains(id)));

    let cases = [
        (client, format!("size=2&start={next}")),
        (client, format!("metadata.K=v&start={next}")),
        (client, format!("metadata.k=V&start={next}")),
        (client, format!("metadata.K=V&container=/w/&start={next}")),
        (client, format!("type=token&start={next}")),
        (client, format!("metadata.K=V&start={tampered}")),
        (
            client,
            format!("metadata.K=V&start={}", &next[..next.len() - 1]),
        ),
        (client, format!("metadata.K=V&start={next}A")),
        (client, format!("metadata.K=V&start={search_cursor}")),
        (client, "start=AgAAAA%3D%3D".to_owned()),
        (&other, format!("metadata.K=V&start={next}")),
    ];
    for (client, query) in cases {
        let rejected = client.get(&format!("/v2/tokens?{query}")).await;
        assert_eq!(rejected.status, StatusCode::BAD_REQUEST, "{query}");
        assert_eq!(rejected.refused(), ["start"], "{query}");
    }
}

/// Covers 4.16, 4.18.
#[tokio::test]
async fn cursors_do_not_widen_permissions() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let tokens = create_ties(
        &vault,
        vault.client(&tenant, everything(Transform::Reveal)).await,
    )
    .await;
    let first = tokens.client.get("/v2/tokens?size=1").await;
    let next = first.body["pagination"]["next"].as_str().unwrap();
    let mut granted = grants(&[]);
    granted.rules = vec![rule(
        1,
        "/w/a/c/",
        Transform::Mask,
        &[Permission::TokenRead],
    )];
    let restricted = vault.client(&tenant, granted).await;

    let rest = restricted
        .get(&format!("/v2/tokens?size=100&start={next}"))
        .await;

    let containers: Vec<&Value> = rest
        .items()
        .iter()
        .map(|item| &item["containers"][0])
        .collect();
    assert_eq!(containers, vec!["/w/a/c/"; 5]);
}

/// Covers 4.17, 4.18.
#[tokio::test]
async fn the_last_page_has_no_next_and_a_page_may_be_empty() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let pagination = async |query: &str| {
        let listed = client.get(&format!("/v2/tokens?{query}")).await;
        let has_next = listed.body["pagination"].get("next").is_some();
        (listed.items().len(), has_next)
    };
    assert_eq!(pagination("").await, (0, false));
    for n in 0..21 {
        client
            .post("/tokens", json!({"type": "token", "data": n}))
            .await;
    }

    let cases = [
        ("", (20, true)),
        ("size=21", (21, false)),
        ("size=20", (20, true)),
        ("size=100", (21, false)),
        ("size=0", (0, false)),
        ("size=20&start=", (20, true)),
    ];
    for (query, expected) in cases {
        assert_eq!(pagination(query).await, expected, "{query}");
    }
    let sizes: Vec<usize> = list_pages(&client, "", 7)
        .await
        .iter()
        .map(Vec::len)
        .collect();
    assert_eq!(sizes, [7, 7, 7]);
    let empty = client.get("/v2/tokens?size=0").await;
    assert_eq!(
        empty.body,
        json!({"pagination": {"page_size": 0}, "data": []})
    );
}
