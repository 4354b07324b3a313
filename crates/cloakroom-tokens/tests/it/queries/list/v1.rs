//! The deprecated v1 list.

use std::collections::BTreeMap;

use cloakroom::access::{Permission, Transform};
use cloakroom::config::Deprecation;
use cloakroom_testkit::{
    NamedTokens, TestDatabase, TestResponse, TestVault, everything, grants, rule,
};
use http::StatusCode;
use serde_json::{Value, json};

use super::{SECRET, create_ties};

/// Covers 4.23.
#[tokio::test]
async fn v1_lists_are_ordered_by_time_and_count_pages() {
    let vault = TestVault::start().await;
    let mut tokens = NamedTokens::new(vault.revealing_client().await);
    for (n, path) in ["/b/", "/a/", "/c/", "/a/", "/b/", "/d/", "/a/"]
        .iter()
        .enumerate()
    {
        let name = n.to_string();
        let new = json!({"containers": [path], "data": n});
        let seconds = i64::try_from(n).unwrap();
        tokens.create_at(&vault, &name, seconds, new).await;
    }

    let cases = [
        ("", "6, 5, 4, 3, 2, 1, 0", (1, 20, 1)),
        ("?page=1&size=3", "6, 5, 4", (1, 3, 3)),
        ("?page=2&size=3", "3, 2, 1", (2, 3, 3)),
        ("?page=3&size=3&start=x", "0", (3, 3, 3)),
        // The official clients stop at an empty page.
        ("?page=4&size=3", "", (4, 3, 3)),
        ("?page=2147483647&size=100", "", (2_147_483_647, 100, 1)),
        ("?size=7", "6, 5, 4, 3, 2, 1, 0", (1, 7, 1)),
        ("?size=0", "", (1, 0, 0)),
        ("/?page=2&size=6", "0", (2, 6, 2)),
    ];
    for (query, expected, (number, size, pages)) in cases {
        let listed = tokens.client.get(&format!("/tokens{query}")).await;
        assert_eq!(tokens.names(&listed).join(", "), expected, "{query}");
        let pagination = json!({"total_items": 7, "page_number": number, "page_size": size,
            "total_pages": pages});
        assert_eq!(listed.body["pagination"], pagination, "{query}");
    }
    let nothing = vault.revealing_client().await.get("/tokens").await;
    let pagination = json!({"total_items": 0, "page_number": 1, "page_size": 20, "total_pages": 0});
    assert_eq!(nothing.body, json!({"pagination": pagination, "data": []}));
}

/// Covers 4.23.
#[tokio::test]
async fn v1_lists_break_ties_deterministically() {
    let vault = TestVault::start().await;
    let tokens = create_ties(&vault, vault.revealing_client().await).await;
    let page = async |size: usize, number: usize, filter: &str| {
        let path = format!("/tokens?size={size}&page={number}&{filter}");
        let listed = tokens.client.get(&path).await;
        tokens
            .names(&listed)
            .into_iter()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };

    for filter in ["", "metadata.k=v"] {
        let whole = page(100, 1, filter).await;
        assert_eq!(whole.len(), 20);
        for size in [1, 3, 7] {
            let mut parts = Vec::new();
            for number in 1..=20_usize.div_ceil(size) {
                parts.extend(page(size, number, filter).await);
            }
            assert_eq!(parts, whole, "{filter} {size}");
        }
    }
}

/// Covers 4.19, 4.24.
#[tokio::test]
async fn v1_lists_filter_by_visible_ids() {
    use Permission::TokenRead;
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let writer = vault.client(&tenant, everything(Transform::Reveal)).await;
    let mut tokens = NamedTokens::new(writer);
    for (name, path) in [("one", "/a/"), ("two", "/a/"), ("hidden", "/b/")] {
        let new = json!({"containers": [path], "data": name, "metadata": {"Name": name}});
        tokens.create(name, new).await;
    }
    tokens
        .create(
            "named",
            json!({"id": "my own id", "containers": ["/a/"], "data": 1}),
        )
        .await;
    let mut granted = grants(&[]);
    granted.rules = vec![rule(1, "/a/", Transform::Mask, &[TokenRead])];
    let reader = vault.client(&tenant, granted).await;
    let (one, two, hidden) = (tokens.id("one"), tokens.id("two"), tokens.id("hidden"));
    let unknown = "c06d0789-0a38-40be-b7cc-c28a718f76f1";

    let cases = [
        (format!("id={one}"), "one", 1),
        (format!("id={one}&id={two}&id={one}"), "two, one", 2),
        (
            format!("id={one}&id={hidden}&id={unknown}&id=no-such"),
            "one",
            1,
        ),
        (format!("id={hidden}"), "", 0),
        ("id=my%20own%20id".to_owned(), "named", 1),
        (format!("id=my+own+id&id={two}"), "named, two", 2),
        (format!("id={one}&id={two}&size=1"), "two", 2),
        (format!("id={one}&id={two}&size=1&page=2"), "one", 2),
        (format!("id={one}&id={two}&size=1&page=3"), "", 2),
        (format!("id={one}&id={two}&metadata.name=TWO"), "two", 1),
        (format!("id={one}&metadata.name=two"), "", 0),
    ];
    for (query, expected, total) in cases {
        let listed = reader.get(&format!("/tokens?{query}")).await;
        assert_eq!(tokens.names(&listed).join(", "), expected, "{query}");
        assert_eq!(listed.body["pagination"]["total_items"], total, "{query}");
    }
    let ids = |count: usize| vec![format!("id={unknown}"); count].join("&");
    let most = reader.get(&format!("/tokens?{}", ids(100))).await;
    let more = reader.get(&format!("/tokens?{}", ids(101))).await;
    assert_eq!(most.status, StatusCode::OK);
    assert_eq!(more.refused(), ["id"]);
}

/// Covers 4.20, 4.21, 4.22.
#[tokio::test]
async fn v1_lists_compare_metadata_case_insensitively() {
    let vault = TestVault::start().await;
    let mut tokens = NamedTokens::new(vault.revealing_client().await);
    let entries = [
        ("lower", json!({"color": "red", "size": "xl"})),
        ("mixed", json!({"Color": "Red", "SIZE": "s"})),
        // Keys that differ only in case are one entry.
        (
            "both",
            json!({"color": "red", "COLOR": "RED", "Color": "Blue"}),
        ),
        ("accents", json!({"farbe": "GRÜN"})),
        ("bare", Value::Null),
    ];
    for (name, metadata) in entries {
        tokens
            .create(name, json!({"data": name, "metadata": metadata}))
            .await;
    }

    let cases = [
        ("metadata.color=red", "both, mixed, lower"),
        ("metadata.COLOR=RED", "both, mixed, lower"),
        ("metadata[Color]=rEd", "both, mixed, lower"),
        (
            "metadata=%7B%22COLOR%22%3A%22red%22%7D",
            "both, mixed, lower",
        ),
        ("metadata.color=red&metadata.size=XL", "lower"),
        ("metadata.size=S&metadata.color=red", "mixed"),
        (
            "metadata=%7B%22color%22%3A%22red%22%2C%22size%22%3A%22s%22%7D",
            "mixed",
        ),
        ("metadata.color=red&metadata.size=m", ""),
        // Only the first value of a repeated key counts.
        (
            "metadata.color=red&metadata.Color=blue",
            "both, mixed, lower",
        ),
        ("metadata.color=blue&metadata.Color=red", "both"),
        ("metadata.FARBE=gr%C3%BCn", "accents"),
        // The same letter, decomposed.
        ("metadata.farbe=GRU%CC%88N", "accents"),
        ("metadata.color=", ""),
    ];
    for (query, expected) in cases {
        let listed = tokens.client.get(&format!("/tokens?{query}")).await;
        assert_eq!(tokens.names(&listed).join(", "), expected, "{query}");
        assert_eq!(
            listed.body["pagination"]["total_items"],
            listed.items().len(),
            "{query}"
        );
    }
}

/// Covers 4.16, 4.23.
#[tokio::test]
async fn v1_lists_count_only_visible_tokens() {
    use Permission::TokenRead;
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let writer = vault.client(&tenant, everything(Transform::Reveal)).await;
    let mut tokens = NamedTokens::new(writer);
    for path in ["/a/", "/a/b/", "/ab/", "/c/", "/d/e/", "/d/f/"] {
        for n in 0..3 {
            let new = json!({"containers": [path], "data": SECRET, "metadata": {"k": "V"}});
            tokens.create(&format!("{path}{n}"), new).await;
        }
    }
    let mut granted = grants(&[]);
    granted.rules = vec![
        rule(1, "/a/", Transform::Reveal, &[TokenRead]),
        rule(2, "/a/b/", Transform::Mask, &[TokenRead]),
        rule(3, "/d/e/", Transform::Redact, &[TokenRead]),
    ];
    let reader = vault.client(&tenant, granted).await;
    let by_path = |response: &TestResponse| {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for item in response.items() {
            *counts
                .entry(item["containers"][0].as_str().unwrap().to_owned())
                .or_default() += 1;
        }
        counts.into_iter().collect::<Vec<_>>()
    };

    for query in ["", "metadata.K=v"] {
        let listed = reader.get(&format!("/tokens?{query}")).await;
        let expected = [("/a/", 3), ("/a/b/", 3), ("/d/e/", 3)];
        assert_eq!(
            by_path(&listed),
            expected.map(|(path, n)| (path.to_owned(), n)),
            "{query}"
        );
        let page = reader.get(&format!("/tokens?size=4&page=3&{query}")).await;
        let pagination = json!({"total_items": 9, "page_number": 3, "page_size": 4,
            "total_pages": 3});
        assert_eq!(page.body["pagination"], pagination, "{query}");
        assert_eq!(page.items().len(), 1, "{query}");
    }
}

/// Covers 4.23.
#[tokio::test]
async fn v1_lists_reject_invalid_parameters() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;

    let cases = [
        ("page=0", "page"),
        ("page=2147483648", "page"),
        ("page=x&size=101", "page size"),
        ("size=-1", "size"),
        ("metadata=x", "metadata"),
        ("metadata.=v", "metadata"),
        ("id=", "id"),
    ];
    for (query, expected) in cases {
        let rejected = client.get(&format!("/tokens?{query}")).await;
        assert_eq!(rejected.status, StatusCode::BAD_REQUEST, "{query}");
        assert_eq!(rejected.refused().join(" "), expected, "{query}");
    }
}

/// Covers 4.25.
#[tokio::test]
async fn v1_operations_return_deprecation_headers() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;

    let list = client.get("/tokens").await;
    let search = client.post("/tokens/search", json!({})).await;

    for (response, successor) in [(&list, "/v2/tokens"), (&search, "/v2/tokens/search")] {
        assert_eq!(response.status, StatusCode::OK);
        assert_eq!(response.header("deprecation"), "@1735862400");
        assert_eq!(response.header("sunset"), "Sat, 01 Mar 2025 00:00:00 GMT");
        let link = format!("<{}{successor}>; rel=\"successor-version\"", vault.base_url);
        assert_eq!(response.header("link"), link);
    }
    let v2 = client.get("/v2/tokens").await;
    assert_eq!(v2.header("deprecation"), "");
}

/// Covers 4.25.
#[tokio::test]
async fn v1_operations_can_be_disabled() {
    let vault = TestVault::start_with(TestDatabase::create().await, |config| {
        config.deprecated.v1_tokens = Deprecation::Gone;
    })
    .await;
    let client = vault.revealing_client().await;

    let list = client.get("/tokens").await;
    let search = client.post("/tokens/search", json!({})).await;

    for (response, successor) in [(&list, "/v2/tokens"), (&search, "/v2/tokens/search")] {
        assert_eq!(response.status, StatusCode::GONE);
        assert_eq!(response.body["title"], "Gone");
        let detail = response.body["detail"].as_str().unwrap();
        assert!(detail.contains(&format!("{successor}.")), "{detail}");
    }
    assert_eq!(client.get("/v2/tokens").await.status, StatusCode::OK);
    let created = client
        .post("/tokens", json!({"type": "token", "data": 1}))
        .await;
    assert_eq!(created.status, StatusCode::CREATED);
    let found = client.get(&format!("/tokens/{}", created.id())).await;
    assert_eq!(found.status, StatusCode::OK);
}
