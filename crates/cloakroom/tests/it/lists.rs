//! Lists of tokens, in both versions: filters, order, pages, and who sees what.

use std::collections::{BTreeMap, BTreeSet};

use cloakroom::access::{Grants, Permission, Transform};
use cloakroom::config::Deprecation;
use http::StatusCode;
use serde_json::{Value, json};

use crate::support::{Answer, Client, Shelf, TestDatabase, TestVault, everything, grants, rule};

/// The worked example of the interface document: what each rule makes of the same data.
const SECRET: &str = "secret value";
const MASK: &str = "{{ data | reveal_last: 4 }}";
const MASKED: &str = "XXXXXXXXalue";

/// A few tokens that differ in everything a filter can name.
async fn furnish(client: Client) -> Shelf {
    let mut shelf = Shelf::new(client);
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
        shelf.put(name, new).await;
    }
    shelf
}

/// Covers 4.4, 4.6, 4.7, 4.8, 4.10, 4.13.
#[tokio::test]
async fn each_filter_finds_what_it_names_and_nothing_else() {
    let vault = TestVault::start().await;
    let shelf = furnish(vault.revealing_client().await).await;
    let print = |name: &str| shelf.bodies[name]["fingerprint"].as_str().unwrap();
    let (twin, card, number) = (print("twin 1"), print("card"), print("number"));
    let everything = "twin 2, number, ab, twin 1, card, a/b, a, a-b, root";

    let cases = [
        ("", everything),
        ("container=/", everything),
        ("color=red&page=0", everything),
        ("container=/a/", "twin 1, card, a/b, a"),
        ("container=%2FA%2F", "twin 1, card, a/b, a"),
        ("container=/a/b/", "a/b"),
        ("container=/nothing/", ""),
        ("type=token", "twin 2, ab, twin 1, a/b, a, a-b, root"),
        ("type=card", "card"),
        ("type=bank", ""),
        ("type=token&container=/a/", "twin 1, a/b, a"),
        ("container=/c/&type=card", ""),
        (&format!("fingerprint={twin}"), "twin 2, twin 1"),
        (&format!("fingerprint={twin}&container=/t/"), "twin 2"),
        // Another type gives another fingerprint, of the same number.
        (&format!("fingerprint={card}"), "card"),
        (&format!("fingerprint={number}"), "number"),
        (&format!("fingerprint={}", twin.to_lowercase()), ""),
        ("fingerprint=AKCU1", ""),
        ("metadata.Key=Value", "ab, a"),
        ("metadata.Key=Value&container=/a/", "a"),
        ("metadata[Key]=Value", "ab, a"),
        ("metadata%5BKey%5D=Value", "ab, a"),
        ("metadata=%7B%22Key%22%3A%22Value%22%7D", "ab, a"),
        // Case counts, in the key and in the value.
        ("metadata.key=value", "a/b"),
        ("metadata.key=Value", ""),
        ("metadata.Key=value", ""),
        ("metadata.n=1", "a/b"),
        ("metadata.n=", ""),
    ];
    for (query, expected) in cases {
        let listed = shelf.client.get(&format!("/v2/tokens?{query}")).await;
        assert_eq!(listed.status, StatusCode::OK, "{query}: {}", listed.body);
        assert_eq!(shelf.names(&listed).join(", "), expected, "{query}");
    }
}

/// Covers 4.6.
#[tokio::test]
async fn a_fingerprint_is_compared_to_its_end() {
    let vault = TestVault::start().await;
    let shelf = furnish(vault.revealing_client().await).await;
    let print = shelf.bodies["twin 1"]["fingerprint"].as_str().unwrap();
    let mut bytes = bs58::decode(print).into_vec().unwrap();
    bytes[31] ^= 1;
    let other = bs58::encode(bytes).into_string();

    let listed = shelf
        .client
        .get(&format!("/v2/tokens?fingerprint={other}"))
        .await;

    assert_eq!(shelf.names(&listed), Vec::<&str>::new());
}

/// Covers 4.9, 4.10, 4.11, 4.12.
#[tokio::test]
async fn what_cannot_be_asked_together_is_refused() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let long = format!("start={}", "a".repeat(501));

    let cases = [
        ("container=/a/&container=/a/", "container"),
        ("type=card&type=card", "type"),
        ("fingerprint=a&fingerprint=a", "fingerprint"),
        ("size=1&size=1", "size"),
        ("start=a&start=a", "start"),
        ("metadata.a=1&metadata.a=1", "metadata"),
        ("metadata.a=1&metadata[b]=2", "metadata"),
        (
            "metadata=%7B%22a%22%3A%221%22%2C%22b%22%3A%222%22%7D",
            "metadata",
        ),
        ("type=card&fingerprint=a", "fingerprint type"),
        ("type=card&metadata.a=1", "metadata type"),
        ("fingerprint=a&metadata[a]=1", "fingerprint metadata"),
        ("id=c06d0789-0a38-40be-b7cc-c28a718f76f1", "id"),
        ("container=pci", "container"),
        ("container=", "container"),
        ("type=Card", "type"),
        ("type=", "type"),
        ("fingerprint=a-b", "fingerprint"),
        ("metadata=x", "metadata"),
        ("size=101", "size"),
        ("size=-1", "size"),
        ("size=x", "size"),
        ("start=x", "start"),
        (&long, "start"),
        ("container=x&size=x&type=x", "container size type"),
    ];
    for (query, expected) in cases {
        let listed = client.get(&format!("/v2/tokens?{query}")).await;
        assert_eq!(listed.status, StatusCode::BAD_REQUEST, "{query}");
        assert_eq!(listed.refused().join(" "), expected, "{query}");
    }
}

/// Covers 4.4, 4.5, 4.14.
#[tokio::test]
async fn a_container_is_listed_only_where_the_caller_may_read() {
    use Permission::{TokenCreate, TokenRead};
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let writer = vault.client(&tenant, everything(Transform::Reveal)).await;
    let mut shelf = Shelf::new(writer);
    for container in ["/a/", "/a/b/", "/ab/", "/c/"] {
        shelf
            .put(container, json!({"containers": [container], "data": 1}))
            .await;
    }
    let mut granted = grants(&[]);
    granted.rules = vec![
        rule(1, "/a/", Transform::Mask, &[TokenRead]),
        rule(2, "/c/", Transform::Mask, &[TokenCreate]),
    ];
    let reader = vault.client(&tenant, granted).await;

    let cases = [
        ("", Some("/a/b/, /a/")),
        ("?type=token", Some("/a/b/, /a/")),
        ("?container=/a/", Some("/a/b/, /a/")),
        ("?container=/a/b/", Some("/a/b/")),
        ("?container=/a/nothing/", Some("")),
        ("?container=/", None),
        ("?container=/ab/", None),
        ("?container=/c/", None),
        ("?container=/nothing/", None),
    ];
    for (query, expected) in cases {
        let listed = reader.get(&format!("/v2/tokens{query}")).await;
        match expected {
            Some(names) => assert_eq!(shelf.names(&listed).join(", "), names, "{query}"),
            None => assert_eq!(listed.status, StatusCode::FORBIDDEN, "{query}"),
        }
    }
}

/// Covers 1.2, 1.3, 4.14.
#[tokio::test]
async fn a_key_that_may_read_nowhere_learns_nothing_of_lists() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let stranger = vault
        .client(
            &tenant,
            grants(&[Permission::TokenCreate, Permission::TokenSearch]),
        )
        .await;

    for path in [
        "/v2/tokens",
        "/v2/tokens?size=x",
        "/v2/tokens?container=/a/",
        "/tokens",
        "/tokens?size=x",
        "/tokens?id=abc",
    ] {
        let refused = stranger.get(path).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{path}");
    }
}

/// Covers 4.15.
#[tokio::test]
async fn lists_go_down_by_container_then_time_then_id() {
    let vault = TestVault::start().await;
    let mut shelf = Shelf::new(vault.revealing_client().await);
    let paths = ["/", "/a-b/", "/a/", "/a/b/", "/a0/", "/a_/", "/ab/", "/b/"];
    for path in paths {
        for n in 0..4 {
            let name = format!("{path} {n}");
            shelf
                .put(&name, json!({"containers": [path], "data": n}))
                .await;
            // The last two of each container share a moment.
            shelf.date(&vault, &name, 100 + n.min(2)).await;
        }
    }

    let listed = shelf.client.get("/v2/tokens?size=100").await;

    let mut expected = Vec::new();
    for path in paths.into_iter().rev() {
        let name = |n: usize| format!("{path} {n}");
        let mut tied = [name(2), name(3)];
        tied.sort_by_key(|name| std::cmp::Reverse(shelf.id(name).to_owned()));
        expected.extend(tied);
        expected.extend([name(1), name(0)]);
    }
    assert_eq!(shelf.names(&listed), expected);
}

fn transforms() -> Grants {
    use Permission::{TokenCreate, TokenRead};
    let mut granted = grants(&[]);
    granted.rules = vec![
        rule(1, "/", Transform::Mask, &[TokenCreate]),
        rule(2, "/users/government/", Transform::Redact, &[TokenRead]),
        rule(3, "/users/employees/", Transform::Reveal, &[TokenRead]),
        rule(4, "/users/", Transform::Mask, &[TokenRead]),
    ];
    granted
}

/// Covers 4.16.
#[tokio::test]
async fn each_item_appears_as_the_rule_for_its_container_says() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = vault.client(&tenant, transforms()).await;
    for container in [
        "/users/government/",
        "/users/employees/hq/",
        "/users/",
        "/bounty-hunters/",
    ] {
        let new = json!({"type": "token", "data": SECRET, "mask": MASK,
            "containers": [container], "metadata": {"k": "v"}});
        assert_eq!(
            client.post("/tokens", new).await.status,
            StatusCode::CREATED
        );
    }
    let bare = json!({"type": "token", "data": SECRET, "containers": ["/users/bare/"]});
    client.post("/tokens", bare).await;

    let expected = [
        ("/users/government/", None, true),
        ("/users/employees/hq/", Some(json!(SECRET)), true),
        ("/users/bare/", None, false),
        ("/users/", Some(json!(MASKED)), true),
    ];
    let listed = client.get("/v2/tokens").await;
    let shown: Vec<_> = listed.items().iter().map(seen).collect();
    assert_eq!(shown, expected.clone());
    // The older list shows the same, newest first.
    let old = client.get("/tokens").await;
    let shown: BTreeSet<String> = old
        .items()
        .iter()
        .map(|item| format!("{:?}", seen(item)))
        .collect();
    assert_eq!(
        shown,
        expected.iter().map(|item| format!("{item:?}")).collect()
    );
    assert_eq!(old.body["pagination"]["total_items"], 4);
    // What the rule does not touch is there whatever happens to the data.
    assert_eq!(listed.items()[0]["metadata"], json!({"k": "v"}));
    assert_eq!(listed.items()[0].get("_extras"), None);
}

/// Where a token lies, what is seen of its data, and whether its mask is.
fn seen(item: &Value) -> (&str, Option<Value>, bool) {
    let container = item["containers"][0].as_str().unwrap();
    (
        container,
        item.get("data").cloned(),
        item.get("mask").is_some(),
    )
}

/// Covers 4.14, 4.15, 4.16.
#[tokio::test]
async fn several_rules_apart_from_each_other_make_one_list() {
    use Permission::{TokenCreate, TokenRead};
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let writer = vault.client(&tenant, grants(&[TokenCreate])).await;
    let mut shelf = Shelf::new(writer);
    let paths = [
        "/z/",
        "/d/x/y/",
        "/d/x/",
        "/d/",
        "/c/",
        "/b/inner/",
        "/b/",
        "/a/",
        "/",
    ];
    for path in paths {
        for n in 0..2 {
            let new = json!({"containers": [path], "data": SECRET, "mask": MASK});
            shelf.put(&format!("{path}{n}"), new).await;
        }
    }
    let mut granted = grants(&[]);
    granted.rules = vec![
        rule(1, "/b/inner/", Transform::Reveal, &[TokenRead]),
        rule(2, "/d/x/", Transform::Redact, &[TokenRead]),
        rule(3, "/b/", Transform::Mask, &[TokenRead]),
        rule(4, "/z/", Transform::Mask, &[TokenRead]),
        rule(5, "/empty/", Transform::Mask, &[TokenRead]),
        rule(6, "/a/", Transform::Mask, &[TokenCreate]),
    ];
    let reader = vault.client(&tenant, granted).await;
    let expected = [
        "/z/1",
        "/z/0",
        "/d/x/y/1",
        "/d/x/y/0",
        "/d/x/1",
        "/d/x/0",
        "/b/inner/1",
        "/b/inner/0",
        "/b/1",
        "/b/0",
    ];

    for size in [1, 3, 10, 100] {
        let pages = walk(&reader, "", size).await;
        let items: Vec<&Value> = pages.iter().flatten().collect();
        let names: Vec<&str> = items.iter().map(|item| shelf.name(item)).collect();
        assert_eq!(names, expected, "{size}");
        for item in items {
            let data = match item["containers"][0].as_str().unwrap() {
                "/d/x/" | "/d/x/y/" => None,
                "/b/inner/" => Some(json!(SECRET)),
                _ => Some(json!(MASKED)),
            };
            assert_eq!(item.get("data"), data.as_ref(), "{item}");
        }
    }
}

/// Covers 4.16.
#[tokio::test]
async fn plain_permissions_show_the_rest_masked() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let mut granted = grants(&[Permission::TokenCreate, Permission::TokenRead]);
    granted.rules = vec![rule(1, "/a/", Transform::Reveal, &[Permission::TokenRead])];
    let client = vault.client(&tenant, granted).await;
    let mut shelf = Shelf::new(client);
    for path in ["/a/", "/b/"] {
        let new = json!({"containers": [path], "data": SECRET, "mask": MASK});
        shelf.put(path, new).await;
    }

    let listed = shelf.client.get("/v2/tokens").await;

    let shown: Vec<_> = listed.items().iter().map(seen).collect();
    assert_eq!(
        shown,
        [
            ("/b/", Some(json!(MASKED)), true),
            ("/a/", Some(json!(SECRET)), true)
        ]
    );
}

/// Covers 4.14.
#[tokio::test]
async fn a_list_holds_nothing_of_other_tenants() {
    let vault = TestVault::start().await;
    let shelf = furnish(vault.revealing_client().await).await;
    let other = vault.revealing_client().await;
    let print = shelf.bodies["twin 1"]["fingerprint"].as_str().unwrap();

    for query in [
        "".to_owned(),
        "type=token".to_owned(),
        "container=/a/".to_owned(),
        "metadata.Key=Value".to_owned(),
        format!("fingerprint={print}"),
    ] {
        let listed = other.get(&format!("/v2/tokens?{query}")).await;
        assert_eq!(listed.body["data"], json!([]), "{query}");
    }
    let old = other.get(&format!("/tokens?id={}", shelf.id("a"))).await;
    assert_eq!(old.body["pagination"]["total_items"], 0);
}

/// Every page of a list, each as its items; the last page has no `next`.
async fn walk(client: &Client, filter: &str, size: usize) -> Vec<Vec<Value>> {
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

/// Containers, and tokens in them of which several share a moment.
async fn stack(vault: &TestVault, client: Client) -> Shelf {
    let mut shelf = Shelf::new(client);
    for (place, path) in ["/w/b/", "/w/a/c/", "/w/a/", "/w/"].into_iter().enumerate() {
        for n in 0..5_i64 {
            let name = format!("{place}.{n}");
            let new = json!({"containers": [path], "data": "same", "metadata": {"K": "V"}});
            shelf.put(&name, new).await;
            shelf.date(vault, &name, n / 3).await;
        }
    }
    shelf
}

/// Covers 4.15, 4.17, 4.18.
#[tokio::test]
async fn pages_hold_every_token_once_while_others_come_and_go() {
    let vault = TestVault::start().await;
    let shelf = stack(&vault, vault.revealing_client().await).await;
    let print = shelf.bodies["0.0"]["fingerprint"].as_str().unwrap();
    let filters = [
        "".to_owned(),
        "container=/w/".to_owned(),
        "type=token".to_owned(),
        "metadata.K=V".to_owned(),
        format!("fingerprint={print}"),
        format!("fingerprint={print}&container=/w/"),
    ];
    let whole = walk(&shelf.client, "", 100).await.concat();
    assert_eq!(whole.len(), 20);

    for filter in &filters {
        for size in [1, 3, 100] {
            let seen = walk_disturbed(&shelf.client, filter, size).await;
            let again: Vec<&str> = whole
                .iter()
                .map(|item| item["id"].as_str().unwrap())
                .collect();
            let kept: Vec<&String> = seen
                .iter()
                .filter(|id| again.contains(&id.as_str()))
                .collect();
            assert_eq!(kept, again, "{filter} {size}");
            let distinct: BTreeSet<&String> = seen.iter().collect();
            assert_eq!(distinct.len(), seen.len(), "{filter} {size}");
        }
    }
}

/// The ids on all pages, while tokens that are like the others are created before and behind each
/// page, and deleted, the one at the end of the page first.
async fn walk_disturbed(client: &Client, filter: &str, size: usize) -> Vec<String> {
    let disturb = async |path: &str| {
        let new = json!({"type": "token", "containers": [path], "data": "same",
            "metadata": {"K": "V"}});
        client.post("/tokens", new).await.id()
    };
    let mut extra: BTreeSet<String> = BTreeSet::new();
    for path in ["/w/b/", "/w/a/c/", "/w/a/", "/w/"] {
        extra.insert(disturb(path).await);
    }
    let (mut seen, mut start) = (Vec::new(), String::new());
    loop {
        let page = client
            .get(&format!("/v2/tokens?{filter}&size={size}&start={start}"))
            .await;
        seen.extend(
            page.items()
                .iter()
                .map(|item| item["id"].as_str().unwrap().to_owned()),
        );
        let last = seen.last().filter(|last| extra.contains(*last)).cloned();
        if let Some(gone) = last.or_else(|| extra.first().cloned()) {
            client.delete(&format!("/tokens/{gone}")).await;
            extra.remove(&gone);
        }
        let Some(next) = page.body["pagination"]["next"].as_str() else {
            break;
        };
        start = next.to_owned();
        // At the very top and at the very bottom of the order.
        for path in ["/w/b/", "/w/"] {
            let fresh = disturb(path).await;
            if extra.len() < 4 {
                extra.insert(fresh);
            } else {
                client.delete(&format!("/tokens/{fresh}")).await;
            }
        }
    }
    for gone in extra {
        client.delete(&format!("/tokens/{gone}")).await;
    }
    seen
}

/// Covers 4.18.
#[tokio::test]
async fn a_cursor_continues_only_the_list_it_came_from() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let shelf = stack(
        &vault,
        vault.client(&tenant, everything(Transform::Reveal)).await,
    )
    .await;
    let client = &shelf.client;
    let other = stack(&vault, vault.revealing_client().await).await.client;
    let first = client.get("/v2/tokens?metadata.K=V&size=2").await;
    let next = first.body["pagination"]["next"].as_str().unwrap();
    let search = client
        .post(
            "/v2/tokens/search",
            json!({"query": "metadata.K:V", "size": 2}),
        )
        .await;
    let foreign = search.body["pagination"]["next"].as_str().unwrap();
    let mut changed = next.to_owned().into_bytes();
    changed[40] = if changed[40] == b'A' { b'B' } else { b'A' };
    let changed = String::from_utf8(changed).unwrap();

    let is_safe = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    assert!(next.chars().all(is_safe) && next.len() <= 500, "{next}");
    let ids = |answer: &Answer| -> Vec<String> {
        answer
            .items()
            .iter()
            .map(|item| item["id"].to_string())
            .collect()
    };
    // Another size, or another spelling of the same filter, is the same list.
    let second = client
        .get(&format!("/v2/tokens?metadata.K=V&size=3&start={next}"))
        .await;
    let spelled = client
        .get(&format!("/v2/tokens?metadata[K]=V&size=3&start={next}"))
        .await;
    assert_eq!(ids(&second).len(), 3);
    assert_eq!(ids(&second), ids(&spelled));
    assert!(ids(&first).iter().all(|id| !ids(&second).contains(id)));

    let cases = [
        (client, format!("size=2&start={next}")),
        (client, format!("metadata.K=v&start={next}")),
        (client, format!("metadata.k=V&start={next}")),
        (client, format!("metadata.K=V&container=/w/&start={next}")),
        (client, format!("type=token&start={next}")),
        (client, format!("metadata.K=V&start={changed}")),
        (
            client,
            format!("metadata.K=V&start={}", &next[..next.len() - 1]),
        ),
        (client, format!("metadata.K=V&start={next}A")),
        (client, format!("metadata.K=V&start={foreign}")),
        (client, "start=AgAAAA%3D%3D".to_owned()),
        (&other, format!("metadata.K=V&start={next}")),
    ];
    for (client, query) in cases {
        let refused = client.get(&format!("/v2/tokens?{query}")).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{query}");
        assert_eq!(refused.refused(), ["start"], "{query}");
    }
}

/// Covers 4.16, 4.18.
#[tokio::test]
async fn a_cursor_widens_nobodys_view() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let shelf = stack(
        &vault,
        vault.client(&tenant, everything(Transform::Reveal)).await,
    )
    .await;
    let first = shelf.client.get("/v2/tokens?size=1").await;
    let next = first.body["pagination"]["next"].as_str().unwrap();
    let mut granted = grants(&[]);
    granted.rules = vec![rule(
        1,
        "/w/a/c/",
        Transform::Mask,
        &[Permission::TokenRead],
    )];
    let narrow = vault.client(&tenant, granted).await;

    let rest = narrow
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
    let sizes: Vec<usize> = walk(&client, "", 7).await.iter().map(Vec::len).collect();
    assert_eq!(sizes, [7, 7, 7]);
    let empty = client.get("/v2/tokens?size=0").await;
    assert_eq!(
        empty.body,
        json!({"pagination": {"page_size": 0}, "data": []})
    );
}

/// Covers 4.17, 8.10.
#[tokio::test]
async fn lists_follow_a_token_that_changes_expires_or_goes() {
    let vault = TestVault::start().await;
    let mut shelf = Shelf::new(vault.revealing_client().await);
    for name in ["stays", "moves", "expires", "goes"] {
        let new = json!({"containers": ["/b/"], "data": "same", "metadata": {"k": "v"},
            "expires_at": "2040-01-01T00:00:00Z"});
        shelf.put(name, new).await;
    }
    let client = &shelf.client;
    let moved = json!({"containers": ["/a/"], "metadata": {"k": "w"}});
    client
        .patch(&format!("/tokens/{}", shelf.id("moves")), moved)
        .await;
    client
        .delete(&format!("/tokens/{}", shelf.id("goes")))
        .await;
    shelf.expire(&vault, "expires").await;
    let print = shelf.bodies["stays"]["fingerprint"].as_str().unwrap();

    let cases = [
        ("/v2/tokens?", "stays, moves"),
        ("/v2/tokens?type=token", "stays, moves"),
        ("/v2/tokens?container=/b/", "stays"),
        ("/v2/tokens?container=/a/", "moves"),
        ("/v2/tokens?metadata.k=v", "stays"),
        ("/v2/tokens?metadata.k=w", "moves"),
        (&format!("/v2/tokens?fingerprint={print}"), "stays, moves"),
        ("/tokens?", "moves, stays"),
        ("/tokens?metadata.k=V", "stays"),
        ("/tokens?metadata.K=w", "moves"),
        (&format!("/tokens?id={}", shelf.id("expires")), ""),
    ];
    for (path, expected) in cases {
        let listed = client.get(path).await;
        assert_eq!(shelf.names(&listed).join(", "), expected, "{path}");
        if let Some(total) = listed.body["pagination"].get("total_items") {
            assert_eq!(*total, listed.items().len(), "{path}");
        }
    }
}

/// Covers 4.7, 4.20.
#[tokio::test]
async fn any_text_in_metadata_leaves_lists_alone() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let metadata = json!({"a": "1", "nul": "\u{0}", "quote\"": "\\\u{1F511}"});
    let created = client
        .post(
            "/tokens",
            json!({"type": "token", "data": 1, "metadata": metadata}),
        )
        .await;

    for query in [
        "/v2/tokens?metadata.a=1",
        "/tokens?metadata.A=1",
        "/v2/tokens?metadata.quote%22=%5C%F0%9F%94%91",
    ] {
        let listed = client.get(query).await;
        assert_eq!(listed.status, StatusCode::OK, "{query}: {}", listed.body);
        assert_eq!(listed.items()[0]["id"], created.body["id"], "{query}");
    }
}

// The first version.

/// Covers 4.23.
#[tokio::test]
async fn the_older_list_is_by_time_alone_and_counts_its_pages() {
    let vault = TestVault::start().await;
    let mut shelf = Shelf::new(vault.revealing_client().await);
    for (n, path) in ["/b/", "/a/", "/c/", "/a/", "/b/", "/d/", "/a/"]
        .iter()
        .enumerate()
    {
        let name = n.to_string();
        shelf
            .put(&name, json!({"containers": [path], "data": n}))
            .await;
        shelf.date(&vault, &name, i64::try_from(n).unwrap()).await;
    }

    let cases = [
        ("", "6, 5, 4, 3, 2, 1, 0", (1, 20, 1)),
        ("?page=1&size=3", "6, 5, 4", (1, 3, 3)),
        ("?page=2&size=3", "3, 2, 1", (2, 3, 3)),
        ("?page=3&size=3&start=x", "0", (3, 3, 3)),
        // Clients stop only at an empty page.
        ("?page=4&size=3", "", (4, 3, 3)),
        ("?page=2147483647&size=100", "", (2_147_483_647, 100, 1)),
        ("?size=7", "6, 5, 4, 3, 2, 1, 0", (1, 7, 1)),
        ("?size=0", "", (1, 0, 0)),
        ("/?page=2&size=6", "0", (2, 6, 2)),
    ];
    for (query, expected, (number, size, pages)) in cases {
        let listed = shelf.client.get(&format!("/tokens{query}")).await;
        assert_eq!(shelf.names(&listed).join(", "), expected, "{query}");
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
async fn the_older_list_breaks_ties_the_same_way_each_time() {
    let vault = TestVault::start().await;
    let shelf = stack(&vault, vault.revealing_client().await).await;
    let page = async |size: usize, number: usize, filter: &str| {
        let path = format!("/tokens?size={size}&page={number}&{filter}");
        let listed = shelf.client.get(&path).await;
        shelf
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
async fn the_older_list_finds_by_ids_what_the_caller_may_see() {
    use Permission::TokenRead;
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let writer = vault.client(&tenant, everything(Transform::Reveal)).await;
    let mut shelf = Shelf::new(writer);
    for (name, path) in [("one", "/a/"), ("two", "/a/"), ("hidden", "/b/")] {
        let new = json!({"containers": [path], "data": name, "metadata": {"Name": name}});
        shelf.put(name, new).await;
    }
    shelf
        .put(
            "named",
            json!({"id": "my own id", "containers": ["/a/"], "data": 1}),
        )
        .await;
    let mut granted = grants(&[]);
    granted.rules = vec![rule(1, "/a/", Transform::Mask, &[TokenRead])];
    let reader = vault.client(&tenant, granted).await;
    let (one, two, hidden) = (shelf.id("one"), shelf.id("two"), shelf.id("hidden"));
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
        assert_eq!(shelf.names(&listed).join(", "), expected, "{query}");
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
async fn the_older_list_compares_metadata_without_regard_to_case() {
    let vault = TestVault::start().await;
    let mut shelf = Shelf::new(vault.revealing_client().await);
    let tokens = [
        ("lower", json!({"color": "red", "size": "xl"})),
        ("mixed", json!({"Color": "Red", "SIZE": "s"})),
        // One entry in two spellings is still one entry.
        (
            "both",
            json!({"color": "red", "COLOR": "RED", "Color": "Blue"}),
        ),
        ("accents", json!({"farbe": "GRÜN"})),
        ("bare", Value::Null),
    ];
    for (name, metadata) in tokens {
        shelf
            .put(name, json!({"data": name, "metadata": metadata}))
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
        // Only the first of a repeated key counts.
        (
            "metadata.color=red&metadata.Color=blue",
            "both, mixed, lower",
        ),
        ("metadata.color=blue&metadata.Color=red", "both"),
        ("metadata.FARBE=gr%C3%BCn", "accents"),
        // The same letter, written as two characters.
        ("metadata.farbe=GRU%CC%88N", "accents"),
        ("metadata.color=", ""),
    ];
    for (query, expected) in cases {
        let listed = shelf.client.get(&format!("/tokens?{query}")).await;
        assert_eq!(shelf.names(&listed).join(", "), expected, "{query}");
        assert_eq!(
            listed.body["pagination"]["total_items"],
            listed.items().len(),
            "{query}"
        );
    }
}

/// Covers 4.16, 4.23.
#[tokio::test]
async fn the_older_list_counts_only_what_its_caller_may_see() {
    use Permission::TokenRead;
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let writer = vault.client(&tenant, everything(Transform::Reveal)).await;
    let mut shelf = Shelf::new(writer);
    for path in ["/a/", "/a/b/", "/ab/", "/c/", "/d/e/", "/d/f/"] {
        for n in 0..3 {
            let new = json!({"containers": [path], "data": SECRET, "metadata": {"k": "V"}});
            shelf.put(&format!("{path}{n}"), new).await;
        }
    }
    let mut granted = grants(&[]);
    granted.rules = vec![
        rule(1, "/a/", Transform::Reveal, &[TokenRead]),
        rule(2, "/a/b/", Transform::Mask, &[TokenRead]),
        rule(3, "/d/e/", Transform::Redact, &[TokenRead]),
    ];
    let reader = vault.client(&tenant, granted).await;
    let by_path = |answer: &Answer| {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for item in answer.items() {
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
async fn what_the_older_list_cannot_read_is_refused() {
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
        let refused = client.get(&format!("/tokens?{query}")).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{query}");
        assert_eq!(refused.refused().join(" "), expected, "{query}");
    }
}

/// Covers 4.25.
#[tokio::test]
async fn the_older_operations_say_that_they_are_deprecated_and_what_follows_them() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;

    let list = client.get("/tokens").await;
    let search = client.post("/tokens/search", json!({})).await;

    for (answer, successor) in [(&list, "/v2/tokens"), (&search, "/v2/tokens/search")] {
        assert_eq!(answer.status, StatusCode::OK);
        assert_eq!(answer.header("deprecation"), "@1735862400");
        assert_eq!(answer.header("sunset"), "Sat, 01 Mar 2025 00:00:00 GMT");
        let link = format!("<{}{successor}>; rel=\"successor-version\"", vault.base_url);
        assert_eq!(answer.header("link"), link);
    }
    let newer = client.get("/v2/tokens").await;
    assert_eq!(newer.header("deprecation"), "");
}

/// Covers 4.25.
#[tokio::test]
async fn the_older_operations_can_be_switched_off() {
    let vault = TestVault::start_with(TestDatabase::create().await, |config| {
        config.deprecated.v1_tokens = Deprecation::Gone;
    })
    .await;
    let client = vault.revealing_client().await;

    let list = client.get("/tokens").await;
    let search = client.post("/tokens/search", json!({})).await;

    for (answer, successor) in [(&list, "/v2/tokens"), (&search, "/v2/tokens/search")] {
        assert_eq!(answer.status, StatusCode::GONE);
        assert_eq!(answer.body["title"], "Gone");
        let detail = answer.body["detail"].as_str().unwrap();
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
