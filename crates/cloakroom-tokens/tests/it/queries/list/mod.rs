//! Listing tokens in both API versions.

mod filters;
mod pages;
mod v1;
mod visibility;

use cloakroom_testkit::{Client, NamedTokens, TestVault};
use http::StatusCode;
use serde_json::{Value, json};

/// The data of the worked example in the API documentation.
const SECRET: &str = "secret value";

/// Tokens that differ in every attribute that a filter can name.
async fn create_samples(client: Client) -> NamedTokens {
    let mut tokens = NamedTokens::new(client);
    let card = json!({"number": "4242424242424242", "expiration_month": 12});
    let new = [
        ("root", json!({"containers": ["/"], "data": 1})),
        (
            "a",
            json!({"containers": ["/a/"], "data": 2, "metadata": {"Key": "Value"}}),
        ),
        (
            "a/b",
            json!({"containers": ["/a/b/"], "data": 3, "metadata": {"key": "value", "n": "1"}}),
        ),
        ("a-b", json!({"containers": ["/a-b/"], "data": 4})),
        (
            "ab",
            json!({"containers": ["/ab/"], "data": 5, "metadata": {"Key": "Value"}}),
        ),
        (
            "card",
            json!({"type": "card", "containers": ["/a/c/"], "data": card}),
        ),
        (
            "number",
            json!({"type": "card_number", "containers": ["/c/"], "data": "4242424242424242"}),
        ),
        ("twin 1", json!({"containers": ["/a/t/"], "data": "twin"})),
        ("twin 2", json!({"containers": ["/t/"], "data": "twin"})),
    ];
    for (name, new) in new {
        tokens.create(name, new).await;
    }
    tokens
}

/// The items of every page of a list. The last page has no `next`.
async fn list_pages(client: &Client, filter: &str, size: usize) -> Vec<Vec<Value>> {
    let mut pages = Vec::new();
    let mut start = String::new();
    loop {
        let page = client
            .get(&format!("/v2/tokens?{filter}&size={size}&start={start}"))
            .await;
        assert_eq!(page.status, StatusCode::OK, "{}", page.body);
        let items = page.items().to_vec();
        assert_eq!(page.body["pagination"]["page_size"], items.len());
        pages.push(items);
        match page.body["pagination"].get("next") {
            None => return pages,
            Some(next) => start = next.as_str().unwrap().to_owned(),
        }
    }
}

/// Tokens in several containers, some with the same creation time.
async fn create_ties(vault: &TestVault, client: Client) -> NamedTokens {
    let mut tokens = NamedTokens::new(client);
    for (place, path) in ["/w/b/", "/w/a/c/", "/w/a/", "/w/"].into_iter().enumerate() {
        for n in 0..5_i64 {
            let name = format!("{place}.{n}");
            let new = json!({"containers": [path], "data": "same", "metadata": {"K": "V"}});
            tokens.create_at(vault, &name, n / 3, new).await;
        }
    }
    tokens
}
