//! Pages and cursors of searches.

use cloakroom_testkit::{Client, NamedTokens, TestVault};
use http::StatusCode;
use serde_json::{Value, json};

use super::{V1, V2, search};

/// Tokens in several containers, some with the same creation time.
async fn create_ties(vault: &TestVault, client: Client) -> NamedTokens {
    let mut tokens = NamedTokens::new(client);
    for (place, path) in ["/b/", "/a/c/", "/a/", "/"].into_iter().enumerate() {
        for n in 0..4_i64 {
            let name = format!("{place}.{n}");
            let new = json!({"containers": [path], "data": "same", "metadata": {"K": "V"},
                "search_indexes": ["{{ data }}"]});
            tokens.create_at(vault, &name, n / 2, new).await;
        }
    }
    tokens
}

/// Covers 10.14, 10.15, 10.16.
#[tokio::test]
async fn pages_contain_every_token_once_in_order() {
    let vault = TestVault::start().await;
    let tokens = create_ties(&vault, vault.revealing_client().await).await;
    let listed = tokens.client.get("/v2/tokens?size=100").await;
    let expected = tokens.names(&listed);

    for query in [
        "",
        "type:token",
        "data:same",
        "metadata.K:V",
        "data:same AND container:/",
    ] {
        for size in [1, 3, 100] {
            let (mut names, mut start) = (Vec::new(), Value::Null);
            loop {
                let body = json!({"query": query, "size": size, "start": start});
                let page = tokens.client.post(V2, body).await;
                names.extend(tokens.names(&page).into_iter().map(str::to_owned));
                assert_eq!(page.body["pagination"]["page_size"], page.items().len());
                match page.body["pagination"].get("next") {
                    None => break,
                    Some(next) => start = next.clone(),
                }
            }
            assert_eq!(names, expected, "{query} {size}");
        }
    }
    // Version 1 orders by time across containers.
    for query in ["", "data:same", "metadata.k:v"] {
        let whole = search(&tokens.client, V1, query).await;
        let whole = tokens.names(&whole);
        assert!(
            whole[..8].iter().all(|name| name.ends_with(['2', '3'])),
            "{whole:?}"
        );
        let mut names = Vec::new();
        for page in 1..=6 {
            let body = json!({"query": query, "size": 3, "page": page});
            let found = tokens.client.post(V1, body).await;
            names.extend(tokens.names(&found).into_iter().map(str::to_owned));
        }
        assert_eq!(names, whole, "{query}");
    }
}

/// Covers 10.16.
#[tokio::test]
async fn cursors_are_bound_to_their_search() {
    let vault = TestVault::start().await;
    let tokens = create_ties(&vault, vault.revealing_client().await).await;
    let client = &tokens.client;
    let other = create_ties(&vault, vault.revealing_client().await)
        .await
        .client;
    let first = client
        .post(V2, json!({"query": "data:same", "size": 2}))
        .await;
    let next = first.body["pagination"]["next"]
        .as_str()
        .unwrap()
        .to_owned();
    let listed = client.get("/v2/tokens?size=2").await;
    let list_cursor = listed.body["pagination"]["next"]
        .as_str()
        .unwrap()
        .to_owned();
    let tampered = format!("{}{}", &next[1..], &next[..1]);

    let same = json!({"query": "  data:\"same\"", "start": next});
    assert_eq!(client.post(V2, same).await.items().len(), 14);
    let cases = [
        (client, "data:other", &next),
        (client, "", &next),
        (client, "metadata.K:V", &next),
        (client, "data:same AND container:/", &next),
        (client, "data:same", &tampered),
        (client, "", &list_cursor),
        (&other, "data:same", &next),
    ];
    for (client, query, start) in cases {
        let rejected = client
            .post(V2, json!({"query": query, "start": start}))
            .await;
        assert_eq!(rejected.status, StatusCode::BAD_REQUEST, "{query}");
        assert_eq!(rejected.refused(), ["start"], "{query}");
    }
}
