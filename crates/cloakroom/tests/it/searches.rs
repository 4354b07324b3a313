//! Searches for tokens, in both versions: the query, what it finds, and what is kept for it.

use std::collections::BTreeSet;

use cloakroom::access::{Permission, Transform};
use http::StatusCode;
use serde_json::{Value, json};

use crate::support::{Answer, Client, Shelf, TestVault, everything, grants, rule};

const NEW: &str = "/v2/tokens/search";
const OLD: &str = "/tokens/search";

async fn search(client: &Client, path: &str, query: &str) -> Answer {
    client
        .post(path, json!({"query": query, "size": 100}))
        .await
}

/// Tokens that differ in everything a search can name.
async fn furnish(client: Client) -> Shelf {
    let mut shelf = Shelf::new(client);
    let new = [
        (
            "text",
            json!({"containers": ["/a/"], "data": "Some: \"Text\"", "search_indexes": ["{{ data }}"],
                "metadata": {"Key": "Value", "with space": "a b"}}),
        ),
        (
            "object",
            json!({"containers": ["/a/b/"],
                "data": {"number": 42, "flag": true, "half": 0.5, "name": "Ann", "none": ""},
                "search_indexes": ["{{ data.number }}", "{{ data.flag }}", "{{ data.half }}",
                    "{{ data.name }}"],
                "metadata": {"key": "value", "n": "42"}}),
        ),
        (
            "card",
            json!({"type": "card", "containers": ["/c/"],
                "data": {"number": "4242424242424242", "expiration_month": 4,
                    "expiration_year": 2031},
                "search_indexes": ["{{ data.expiration_month }}", "{{ data.number | last4 }}"]}),
        ),
        (
            "plain",
            json!({"containers": ["/"], "data": "Some: \"Text\"", "search_indexes": []}),
        ),
    ];
    for (name, new) in new {
        shelf.put(name, new).await;
    }
    shelf
}

/// Covers 10.4, 10.6, 10.9, 10.11, 10.12, 10.14, 10.17, 10.18, 10.21.
#[tokio::test]
async fn each_query_finds_what_it_names_and_nothing_else() {
    let vault = TestVault::start().await;
    let shelf = furnish(vault.revealing_client().await).await;
    let print = shelf.bodies["card"]["fingerprint"].as_str().unwrap();
    let everything = "card, object, text, plain";

    let cases = [
        ("", everything),
        ("   ", everything),
        ("container:\"/\"", everything),
        ("container:/a/", "object, text"),
        ("container:\"/A/\"", "object, text"),
        ("container:\"/a/b/\"", "object"),
        ("container:\"/nothing/\"", ""),
        ("type:token", "object, text, plain"),
        ("type:card", "card"),
        ("type:\"bank\"", ""),
        (&format!("fingerprint:{print}"), "card"),
        (
            &format!("fingerprint:{print} AND container:\"/c/\""),
            "card",
        ),
        (&format!("container:/a/ AND fingerprint:{print}"), ""),
        ("metadata.Key:Value", "text"),
        ("metadata.key:value", "object"),
        ("metadata.key:Value", ""),
        ("metadata.with\\ space:\"a b\"", "text"),
        ("metadata.with\\ space:a\\ b", "text"),
        ("metadata.n:42", "object"),
        ("data:Ann", "object"),
        ("data:ann", ""),
        ("data:\"Ann\"", "object"),
        ("data:\"Some: \\\"Text\\\"\"", "text"),
        ("data:Some:\\ \\\"Text\\\"", "text"),
        ("data:Some", ""),
        ("type:token AND container:\"/a/\"", "object, text"),
        ("container:\"/a/\" AND type:token", "object, text"),
        ("  container:\"/a/\"   AND   data:Ann  ", "object"),
        ("container:\"/c/\" AND data:Ann", ""),
        ("metadata.Key:Value AND container:/a/b/", ""),
    ];
    for (query, expected) in cases {
        let found = search(&shelf.client, NEW, query).await;
        assert_eq!(found.status, StatusCode::OK, "{query}: {}", found.body);
        assert_eq!(shelf.names(&found).join(", "), expected, "{query}");
    }
}

/// Covers 10.5, 10.7, 10.10, 10.15, 10.17.
#[tokio::test]
async fn each_older_query_finds_what_it_names_and_nothing_else() {
    let vault = TestVault::start().await;
    let shelf = furnish(vault.revealing_client().await).await;
    let everything = "plain, card, object, text";

    let cases = [
        ("", everything),
        (&format!("id:{}", shelf.id("card")), "card"),
        (&format!("id:\"{}\"", shelf.id("card")), "card"),
        ("id:no-such-token", ""),
        ("data:Ann", "object"),
        ("data:ann", ""),
        ("data:42", "object"),
        // Case does not matter in metadata, neither in keys nor in values.
        ("metadata.key:value", "object, text"),
        ("metadata.KEY:\"VALUE\"", "object, text"),
        ("metadata.key:value AND metadata.N:42", "object"),
        (
            "metadata.n:42 AND metadata.key:value AND metadata.with\\ space:\"A B\"",
            "",
        ),
        (
            "metadata.key:value AND metadata.with\\ space:\"A B\"",
            "text",
        ),
    ];
    for (query, expected) in cases {
        let found = search(&shelf.client, OLD, query).await;
        assert_eq!(found.status, StatusCode::OK, "{query}: {}", found.body);
        assert_eq!(shelf.names(&found).join(", "), expected, "{query}");
        assert_eq!(
            found.body["pagination"]["total_items"],
            found.items().len(),
            "{query}"
        );
    }
}

/// Covers 10.3, 10.4, 10.5, 10.8, 10.19, 10.20.
#[tokio::test]
async fn what_no_query_may_say_is_refused() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let long = format!("data:{}", "a".repeat(196));

    let both = [
        "data:a OR data:b",
        "NOT data:a",
        "-data:a",
        "!data:a",
        "(data:a)",
        "data:[1 TO 2]",
        "data:{1 TO 2}",
        "data:a*",
        "data:a?",
        "data:\"a",
        "data:",
        "data",
        "a",
        "color:red",
        "Data:a",
        "metadata:a",
        "metadata.:a",
        "metadata.k:a and metadata.l:b",
        "data:a AND",
        "AND data:a",
        "data:a AND data:b",
        "data:a b",
        "metadata.k:a AND metadata.k:b",
        "data:a AND metadata.k:b",
        &long,
    ];
    let newer = [
        "id:abc",
        "type:nothing",
        "type:Card",
        "container:pci",
        "fingerprint:a-b",
        "container:\"/a/\" AND container:\"/b/\"",
        "type:card AND fingerprint:a",
        "type:card AND metadata.k:v AND container:\"/a/\"",
        "metadata.k:v AND metadata.l:v",
    ];
    let older = [
        "container:\"/a/\"",
        "type:card",
        "fingerprint:a",
        "id:abc AND id:abd",
        "id:abc AND metadata.k:v",
        "metadata.K:a AND metadata.k:b",
    ];
    let cases = both.iter().flat_map(|query| [(NEW, query), (OLD, query)]);
    let cases = cases.chain(newer.iter().map(|query| (NEW, query)));
    for (path, query) in cases.chain(older.iter().map(|query| (OLD, query))) {
        let refused = search(&client, path, query).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{path} {query}");
        assert_eq!(refused.refused(), ["query"], "{path} {query}");
    }
    let longest = search(&client, NEW, &long[..200]).await;
    assert_eq!(longest.status, StatusCode::OK);
}

/// Covers 10.1, 10.2, 10.17.
#[tokio::test]
async fn a_search_is_a_body_of_its_own() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    client
        .post("/tokens", json!({"type": "token", "data": 1}))
        .await;

    let cases = [
        (NEW, json!({}), Ok(1)),
        (
            NEW,
            json!({"query": null, "start": null, "size": null}),
            Ok(1),
        ),
        (
            NEW,
            json!({"query": "", "start": "", "color": "red"}),
            Ok(1),
        ),
        (NEW, json!({"size": 0}), Ok(0)),
        (NEW, json!({"size": 101}), Err("size")),
        (NEW, json!({"size": -1, "query": "x"}), Err("query size")),
        (NEW, json!({"start": "x"}), Err("start")),
        (NEW, json!({"start": "a".repeat(501)}), Err("start")),
        (NEW, json!({"query": 1}), Err("query")),
        (OLD, json!({}), Ok(1)),
        (
            OLD,
            json!({"query": null, "page": null, "size": null}),
            Ok(1),
        ),
        (OLD, json!({"page": 2, "size": 1}), Ok(0)),
        (OLD, json!({"size": 0}), Ok(0)),
        (OLD, json!({"page": 0}), Err("page")),
        (
            OLD,
            json!({"page": 2_147_483_648_u32, "size": 101}),
            Err("page size"),
        ),
    ];
    for (path, body, expected) in cases {
        let found = client.post(path, body.clone()).await;
        match expected {
            Ok(count) => assert_eq!(found.items().len(), count, "{path} {body}"),
            Err(refused) => assert_eq!(found.refused().join(" "), refused, "{path} {body}"),
        }
    }
    for path in [NEW, OLD] {
        let text = client.post_text(path, "{}", "text/plain").await;
        assert_eq!(text.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
        let broken = client.post_text(path, "{", "application/json").await;
        assert_eq!(broken.status, StatusCode::BAD_REQUEST);
    }
}

/// Covers 3.20, 3.29, 10.11, 10.23.
#[tokio::test]
async fn data_is_found_by_what_its_search_indexes_give() {
    let vault = TestVault::start().await;
    let shelf = furnish(vault.revealing_client().await).await;

    // Numbers and booleans are found as text.
    let cases = [
        ("42", "object"),
        ("true", "object"),
        ("0.5", "object"),
        ("4", "card"),
        ("4242", "card"),
        ("04", ""),
        ("True", ""),
        // Only indexes are found by, not the data itself.
        ("4242424242424242", ""),
        ("2031", ""),
    ];
    for (value, expected) in cases {
        for path in [NEW, OLD] {
            let found = search(&shelf.client, path, &format!("data:{value}")).await;
            assert_eq!(shelf.names(&found).join(", "), expected, "{path} {value}");
        }
    }
    // What an index gives is compared as text, whatever its expression was.
    let mut shelf = shelf;
    let new = json!({"data": {"a": "Ann"}, "search_indexes": ["{{ data.a | append: '' }}"]});
    shelf.put("other", new).await;
    let found = search(&shelf.client, NEW, "data:Ann").await;
    assert_eq!(shelf.names(&found), ["other", "object"]);
}

/// Covers 3.15.
#[tokio::test]
async fn an_index_that_gives_nothing_is_refused() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let create = async |data: Value| {
        let new = json!({"type": "token", "data": data,
            "search_indexes": ["{{ data.a }}", "{{ data.b }}"]});
        client.post("/tokens", new).await
    };

    assert_eq!(
        create(json!({"a": 1})).await.refused(),
        ["search_indexes[1]"]
    );
    assert_eq!(
        create(json!({"a": "", "b": 1})).await.refused(),
        ["search_indexes[0]"]
    );
    assert_eq!(
        create(json!({"a": 1, "b": 1})).await.status,
        StatusCode::CREATED
    );
}

/// Covers 10.11.
#[tokio::test]
async fn a_social_security_number_is_found_with_and_without_dashes_and_by_its_end() {
    let vault = TestVault::start().await;
    let mut shelf = Shelf::new(vault.revealing_client().await);
    let ssn = json!({"type": "social_security_number", "data": "078-05-1120"});
    shelf.put("ssn", ssn.clone()).await;
    shelf
        .put(
            "ein",
            json!({"type": "employer_id_number", "data": "12-3451120"}),
        )
        .await;
    let mut bare = ssn;
    bare["search_indexes"] = json!([]);
    shelf.put("bare", bare).await;

    let cases = [
        ("078-05-1120", "ssn"),
        ("078051120", "ssn"),
        ("1120", "ein, ssn"),
        ("12-3451120", "ein"),
        ("123451120", "ein"),
        ("078", ""),
    ];
    for (value, expected) in cases {
        let found = search(&shelf.client, NEW, &format!("data:{value}")).await;
        assert_eq!(shelf.names(&found).join(", "), expected, "{value}");
    }
}

/// Covers 5.14, 8.10, 10.11.
#[tokio::test]
async fn nothing_is_found_by_what_a_token_no_longer_has() {
    let vault = TestVault::start().await;
    let mut shelf = Shelf::new(vault.revealing_client().await);
    for name in ["changed", "cleared", "deleted", "expired"] {
        let new = json!({"data": {"v": "before"}, "search_indexes": ["{{ data.v }}"],
            "metadata": {"State": "Before"}, "expires_at": "2040-01-01T00:00:00Z"});
        shelf.put(name, new).await;
    }
    let path = |name: &str| format!("/tokens/{}", shelf.id(name));
    let client = &shelf.client;
    let change = json!({"data": {"v": "after"}, "metadata": {"State": "After"}});
    let changed = client.patch(&path("changed"), change).await;
    let clear = json!({"search_indexes": null, "metadata": null});
    let cleared = client.patch(&path("cleared"), clear).await;
    let deleted = client.delete(&path("deleted")).await;
    shelf.expire(&vault, "expired").await;

    assert_eq!(
        (changed.status, cleared.status),
        (StatusCode::OK, StatusCode::OK)
    );
    assert_eq!(deleted.status, StatusCode::NO_CONTENT);
    let was = shelf.bodies["changed"]["fingerprint"].as_str().unwrap();
    let is = changed.body["fingerprint"].as_str().unwrap();
    let cases = [
        (NEW, "data:before".to_owned(), ""),
        (NEW, "data:after".to_owned(), "changed"),
        (NEW, "metadata.State:Before".to_owned(), ""),
        (NEW, "metadata.State:After".to_owned(), "changed"),
        (NEW, format!("fingerprint:{was}"), "cleared"),
        (NEW, format!("fingerprint:{is}"), "changed"),
        (NEW, String::new(), "cleared, changed"),
        (OLD, "data:before".to_owned(), ""),
        (OLD, "metadata.state:before".to_owned(), ""),
        (OLD, "metadata.state:after".to_owned(), "changed"),
        (OLD, String::new(), "cleared, changed"),
        (OLD, format!("id:{}", shelf.id("expired")), ""),
    ];
    for (path, query, expected) in cases {
        let found = search(client, path, &query).await;
        assert_eq!(shelf.names(&found).join(", "), expected, "{path} {query}");
        let total = found.body["pagination"].get("total_items");
        assert!(
            total.is_none_or(|total| *total == found.items().len()),
            "{path} {query}"
        );
    }
    // No terms are left behind: every row belongs to a token that lists it.
    cloakroom::tokens::sweep(&vault.vault).await.unwrap();
    let database = vault.database.connect().await;
    let sql = "select count(*) filter (where token.token_id is null), count(*)
        from term
        left join token on token.token_id = term.token_id and term.term = any(token.terms)";
    let row = database.query_one(sql, &[]).await.unwrap();
    assert_eq!(row.get::<_, i64>(0), 0);
    // Two fingerprints, one index, one entry in two spellings.
    assert_eq!(row.get::<_, i64>(1), 5);
}

/// Covers 10.12.
#[tokio::test]
async fn a_moved_token_is_found_where_it_went() {
    let vault = TestVault::start().await;
    let mut shelf = Shelf::new(vault.revealing_client().await);
    let new = json!({"containers": ["/a/"], "data": "x", "search_indexes": ["{{ data }}"],
        "metadata": {"k": "v"}});
    shelf.put("token", new).await;
    let path = format!("/tokens/{}", shelf.id("token"));
    shelf
        .client
        .patch(&path, json!({"containers": ["/b/"]}))
        .await;

    for term in ["data:x", "metadata.k:v", "type:token"] {
        for (container, expected) in [("/a/", vec![]), ("/b/", vec!["token"])] {
            let query = format!("{term} AND container:\"{container}\"");
            let found = search(&shelf.client, NEW, &query).await;
            assert_eq!(shelf.names(&found), expected, "{query}");
        }
    }
}

/// What the table of terms holds of one tenant: the terms, and everything as text.
async fn kept(
    vault: &TestVault,
    tenant: &cloakroom::access::Tenant,
) -> (BTreeSet<Vec<u8>>, String) {
    let database = vault.database.connect().await;
    let sql = "select term, term::text from term where tenant_id = $1";
    let rows = database.query(sql, &[&tenant.id.number]).await.unwrap();
    let terms = rows.iter().map(|row| row.get(0)).collect();
    let sql = "select coalesce(string_agg(to_jsonb(term)::text, ' '), '') from term
        where tenant_id = $1";
    let text = database
        .query_one(sql, &[&tenant.id.number])
        .await
        .unwrap()
        .get(0);
    (terms, text)
}

/// Covers 10.22.
#[tokio::test]
async fn the_table_of_terms_holds_keyed_digests_and_no_value() {
    let vault = TestVault::start().await;
    let tenants = [vault.tenant().await, vault.tenant().await];
    let new = json!({"type": "token", "data": "guessable value", "containers": ["/a/"],
        "search_indexes": ["{{ data }}", "{{ data | last4 }}"], "metadata": {"Level": "Gold"}});
    for tenant in &tenants {
        let client = vault.client(tenant, everything(Transform::Reveal)).await;
        for _ in 0..2 {
            let created = client.post("/tokens", new.clone()).await;
            assert_eq!(created.status, StatusCode::CREATED);
        }
    }

    let (ours, text) = kept(&vault, &tenants[0]).await;
    let (theirs, _) = kept(&vault, &tenants[1]).await;

    // Fingerprint, two indexes, and the entry with and without its case: the same in both tokens,
    // and others in another tenant.
    assert_eq!((ours.len(), theirs.len()), (5, 5));
    assert!(ours.is_disjoint(&theirs));
    assert!(ours.iter().all(|term| term.len() == 16));
    for value in ["guessable value", "alue", "Level", "level", "Gold", "gold"] {
        let hex: String = value.bytes().map(|byte| format!("{byte:02x}")).collect();
        assert!(
            !text.contains(value) && !text.contains(&hex),
            "{value} in {text}"
        );
    }
}

/// Covers 10.12, 10.13, 10.24.
#[tokio::test]
async fn found_tokens_appear_as_the_rule_for_searching_says() {
    use Permission::{TokenCreate, TokenRead, TokenSearch};
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let writer = vault.client(&tenant, grants(&[TokenCreate])).await;
    for container in ["/a/", "/a/b/", "/c/", "/d/"] {
        let new = json!({"type": "token", "data": "secret value", "containers": [container],
            "mask": "{{ data | reveal_last: 4 }}", "search_indexes": ["{{ data | last4 }}"]});
        assert_eq!(
            writer.post("/tokens", new).await.status,
            StatusCode::CREATED
        );
    }
    let mut granted = grants(&[]);
    granted.rules = vec![
        rule(1, "/a/b/", Transform::Redact, &[TokenSearch]),
        rule(2, "/a/", Transform::Reveal, &[TokenRead]),
        rule(3, "/a/", Transform::Mask, &[TokenSearch]),
        rule(4, "/c/", Transform::Reveal, &[TokenSearch]),
        rule(5, "/d/", Transform::Reveal, &[TokenRead]),
    ];
    let reader = vault.client(&tenant, granted).await;
    let shown = |answer: &Answer| -> Vec<String> {
        let tell = |item: &Value| {
            let data = item.get("data").map_or("-", |data| data.as_str().unwrap());
            format!("{} {data}", item["containers"][0].as_str().unwrap())
        };
        answer.items().iter().map(tell).collect()
    };
    let found = ["/c/ secret value", "/a/b/ -", "/a/ XXXXXXXXalue"];

    for query in ["", "data:alue", "type:token"] {
        assert_eq!(shown(&search(&reader, NEW, query).await), found, "{query}");
    }
    let old = search(&reader, OLD, "data:alue").await;
    assert_eq!(shown(&old), found);
    assert_eq!(old.body["pagination"]["total_items"], 3);
    let listed = reader.get("/v2/tokens").await;
    let read = ["/d/ secret value", "/a/b/ secret value", "/a/ secret value"];
    assert_eq!(shown(&listed), read);
    // Plain permission: everything, masked.
    let plain = vault.client(&tenant, grants(&[TokenSearch])).await;
    let all = shown(&search(&plain, NEW, "data:alue").await);
    assert!(
        all.len() == 4 && all.iter().all(|item| item.ends_with(" XXXXXXXXalue")),
        "{all:?}"
    );

    let cases = [
        ("container:\"/a/\"", StatusCode::OK),
        ("container:\"/a/b/\" AND data:alue", StatusCode::OK),
        ("container:\"/\"", StatusCode::FORBIDDEN),
        ("container:\"/d/\"", StatusCode::FORBIDDEN),
        ("data:alue AND container:\"/d/\"", StatusCode::FORBIDDEN),
    ];
    for (query, status) in cases {
        assert_eq!(search(&reader, NEW, query).await.status, status, "{query}");
    }
}

/// Covers 1.7, 1.8, 10.13.
#[tokio::test]
async fn a_key_that_may_search_nowhere_learns_nothing_of_searches() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let stranger = vault
        .client(
            &tenant,
            grants(&[Permission::TokenCreate, Permission::TokenRead]),
        )
        .await;

    for path in [NEW, OLD] {
        for body in [
            json!({}),
            json!({"query": "("}),
            json!({"size": 101}),
            json!([]),
        ] {
            let refused = stranger.post(path, body.clone()).await;
            assert_eq!(refused.status, StatusCode::FORBIDDEN, "{path} {body}");
        }
    }
}

/// Covers 10.13.
#[tokio::test]
async fn a_search_finds_nothing_of_other_tenants() {
    let vault = TestVault::start().await;
    let shelf = furnish(vault.revealing_client().await).await;
    let other = vault.revealing_client().await;
    let print = shelf.bodies["card"]["fingerprint"].as_str().unwrap();

    for query in [
        "",
        "data:Ann",
        "metadata.Key:Value",
        &format!("fingerprint:{print}"),
    ] {
        assert_eq!(search(&other, NEW, query).await.items().len(), 0, "{query}");
    }
    for query in [
        "",
        "data:Ann",
        "metadata.key:value",
        &format!("id:{}", shelf.id("card")),
    ] {
        let found = search(&other, OLD, query).await;
        assert_eq!(found.body["pagination"]["total_items"], 0, "{query}");
    }
}

/// Tokens in several containers, some of which share a moment.
async fn stack(vault: &TestVault, client: Client) -> Shelf {
    let mut shelf = Shelf::new(client);
    for (place, path) in ["/b/", "/a/c/", "/a/", "/"].into_iter().enumerate() {
        for n in 0..4_i64 {
            let name = format!("{place}.{n}");
            let new = json!({"containers": [path], "data": "same", "metadata": {"K": "V"},
                "search_indexes": ["{{ data }}"]});
            shelf.put(&name, new).await;
            shelf.date(vault, &name, n / 2).await;
        }
    }
    shelf
}

/// Covers 10.14, 10.15, 10.16.
#[tokio::test]
async fn pages_of_a_search_hold_every_token_once_and_in_order() {
    let vault = TestVault::start().await;
    let shelf = stack(&vault, vault.revealing_client().await).await;
    let listed = shelf.client.get("/v2/tokens?size=100").await;
    let expected = shelf.names(&listed);

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
                let page = shelf.client.post(NEW, body).await;
                names.extend(shelf.names(&page).into_iter().map(str::to_owned));
                assert_eq!(page.body["pagination"]["page_size"], page.items().len());
                match page.body["pagination"].get("next") {
                    None => break,
                    Some(next) => start = next.clone(),
                }
            }
            assert_eq!(names, expected, "{query} {size}");
        }
    }
    // The older one is by time across containers.
    for query in ["", "data:same", "metadata.k:v"] {
        let whole = search(&shelf.client, OLD, query).await;
        let whole = shelf.names(&whole);
        assert!(
            whole[..8].iter().all(|name| name.ends_with(['2', '3'])),
            "{whole:?}"
        );
        let mut names = Vec::new();
        for page in 1..=6 {
            let body = json!({"query": query, "size": 3, "page": page});
            let found = shelf.client.post(OLD, body).await;
            names.extend(shelf.names(&found).into_iter().map(str::to_owned));
        }
        assert_eq!(names, whole, "{query}");
    }
}

/// Covers 10.16.
#[tokio::test]
async fn a_cursor_continues_only_the_search_it_came_from() {
    let vault = TestVault::start().await;
    let shelf = stack(&vault, vault.revealing_client().await).await;
    let client = &shelf.client;
    let other = stack(&vault, vault.revealing_client().await).await.client;
    let first = client
        .post(NEW, json!({"query": "data:same", "size": 2}))
        .await;
    let next = first.body["pagination"]["next"]
        .as_str()
        .unwrap()
        .to_owned();
    let listed = client.get("/v2/tokens?size=2").await;
    let foreign = listed.body["pagination"]["next"]
        .as_str()
        .unwrap()
        .to_owned();
    let changed = format!("{}{}", &next[1..], &next[..1]);

    let same = json!({"query": "  data:\"same\"", "start": next});
    assert_eq!(client.post(NEW, same).await.items().len(), 14);
    let cases = [
        (client, "data:other", &next),
        (client, "", &next),
        (client, "metadata.K:V", &next),
        (client, "data:same AND container:/", &next),
        (client, "data:same", &changed),
        (client, "", &foreign),
        (&other, "data:same", &next),
    ];
    for (client, query, start) in cases {
        let refused = client
            .post(NEW, json!({"query": query, "start": start}))
            .await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{query}");
        assert_eq!(refused.refused(), ["start"], "{query}");
    }
}
