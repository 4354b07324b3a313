//! Search indexes and the stored terms.

use std::collections::BTreeSet;

use cloakroom::access::Transform;
use cloakroom_testkit::{NamedTokens, TestVault, everything};
use http::StatusCode;
use serde_json::{Value, json};

use super::{V1, V2, create_samples, search};

/// Covers 3.20, 3.29, 10.11, 10.23.
#[tokio::test]
async fn data_is_found_by_search_index_values() {
    let vault = TestVault::start().await;
    let tokens = create_samples(vault.revealing_client().await).await;

    // Numbers and booleans are indexed as text.
    let cases = [
        ("42", "object"),
        ("true", "object"),
        ("0.5", "object"),
        ("4", "card"),
        ("4242", "card"),
        ("04", ""),
        ("True", ""),
        // Only indexes are searched, not the data itself.
        ("4242424242424242", ""),
        ("2031", ""),
    ];
    for (value, expected) in cases {
        for path in [V2, V1] {
            let found = search(&tokens.client, path, &format!("data:{value}")).await;
            assert_eq!(tokens.names(&found).join(", "), expected, "{path} {value}");
        }
    }
    // Index values are compared as text, regardless of their expressions.
    let mut tokens = tokens;
    let new = json!({"data": {"a": "Ann"}, "search_indexes": ["{{ data.a | append: '' }}"]});
    tokens.create("other", new).await;
    let found = search(&tokens.client, V2, "data:Ann").await;
    assert_eq!(tokens.names(&found), ["other", "object"]);
}

/// Covers 3.15.
#[tokio::test]
async fn empty_search_indexes_are_rejected() {
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
async fn social_security_numbers_are_found_with_and_without_dashes_and_by_last_four() {
    let vault = TestVault::start().await;
    let mut tokens = NamedTokens::new(vault.revealing_client().await);
    let ssn = json!({"type": "social_security_number", "data": "078-05-1120"});
    tokens.create("ssn", ssn.clone()).await;
    tokens
        .create(
            "ein",
            json!({"type": "employer_id_number", "data": "12-3451120"}),
        )
        .await;
    let mut bare = ssn;
    bare["search_indexes"] = json!([]);
    tokens.create("bare", bare).await;

    let cases = [
        ("078-05-1120", "ssn"),
        ("078051120", "ssn"),
        ("1120", "ein, ssn"),
        ("12-3451120", "ein"),
        ("123451120", "ein"),
        ("078", ""),
    ];
    for (value, expected) in cases {
        let found = search(&tokens.client, V2, &format!("data:{value}")).await;
        assert_eq!(tokens.names(&found).join(", "), expected, "{value}");
    }
}

/// Covers 5.14, 8.10, 10.11.
#[tokio::test]
async fn stale_values_are_not_found() {
    let vault = TestVault::start().await;
    let mut tokens = NamedTokens::new(vault.revealing_client().await);
    for name in ["changed", "cleared", "deleted", "expired"] {
        let new = json!({"data": {"v": "before"}, "search_indexes": ["{{ data.v }}"],
            "metadata": {"State": "Before"}, "expires_at": "2040-01-01T00:00:00Z"});
        tokens.create(name, new).await;
    }
    let path = |name: &str| format!("/tokens/{}", tokens.id(name));
    let client = &tokens.client;
    let change = json!({"data": {"v": "after"}, "metadata": {"State": "After"}});
    let changed = client.patch(&path("changed"), change).await;
    let clear = json!({"search_indexes": null, "metadata": null});
    let cleared = client.patch(&path("cleared"), clear).await;
    let deleted = client.delete(&path("deleted")).await;
    tokens.expire(&vault, "expired").await;

    assert_eq!(
        (changed.status, cleared.status),
        (StatusCode::OK, StatusCode::OK)
    );
    assert_eq!(deleted.status, StatusCode::NO_CONTENT);
    let old_fingerprint = tokens.bodies["changed"]["fingerprint"].as_str().unwrap();
    let new_fingerprint = changed.body["fingerprint"].as_str().unwrap();
    let cases = [
        (V2, "data:before".to_owned(), ""),
        (V2, "data:after".to_owned(), "changed"),
        (V2, "metadata.State:Before".to_owned(), ""),
        (V2, "metadata.State:After".to_owned(), "changed"),
        (V2, format!("fingerprint:{old_fingerprint}"), "cleared"),
        (V2, format!("fingerprint:{new_fingerprint}"), "changed"),
        (V2, String::new(), "cleared, changed"),
        (V1, "data:before".to_owned(), ""),
        (V1, "metadata.state:before".to_owned(), ""),
        (V1, "metadata.state:after".to_owned(), "changed"),
        (V1, String::new(), "cleared, changed"),
        (V1, format!("id:{}", tokens.id("expired")), ""),
    ];
    for (path, query, expected) in cases {
        let found = search(client, path, &query).await;
        assert_eq!(tokens.names(&found).join(", "), expected, "{path} {query}");
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
    // Two fingerprints, one index, and one entry as written and case-folded.
    assert_eq!(row.get::<_, i64>(1), 5);
}

/// Covers 10.12.
#[tokio::test]
async fn moved_tokens_are_found_in_the_new_container() {
    let vault = TestVault::start().await;
    let mut tokens = NamedTokens::new(vault.revealing_client().await);
    let new = json!({"containers": ["/a/"], "data": "x", "search_indexes": ["{{ data }}"],
        "metadata": {"k": "v"}});
    tokens.create("token", new).await;
    let path = format!("/tokens/{}", tokens.id("token"));
    tokens
        .client
        .patch(&path, json!({"containers": ["/b/"]}))
        .await;

    for term in ["data:x", "metadata.k:v", "type:token"] {
        for (container, expected) in [("/a/", vec![]), ("/b/", vec!["token"])] {
            let query = format!("{term} AND container:\"{container}\"");
            let found = search(&tokens.client, V2, &query).await;
            assert_eq!(tokens.names(&found), expected, "{query}");
        }
    }
}

/// The stored search terms of a tenant, and the table rows as text.
async fn stored_terms(
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
async fn stored_terms_are_keyed_digests() {
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

    let (ours, text) = stored_terms(&vault, &tenants[0]).await;
    let (theirs, _) = stored_terms(&vault, &tenants[1]).await;

    // Fingerprint, two indexes, and the entry as written and case-folded: the same for both tokens, and different
    // in another tenant.
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

/// The terms that are not those of fingerprints.
const DATA_TERMS: &str = "from term join token using (tenant_id, token_id)
    where term <> substr(token.fingerprint, 1, 16)";

/// The terms of equal values under different expressions, or of different types, cannot be compared.
#[tokio::test]
async fn equal_values_of_different_expressions_and_types_have_different_terms() {
    let vault = TestVault::start().await;
    let mut tokens = NamedTokens::new(vault.revealing_client().await);
    let ssn = json!({"type": "social_security_number", "data": "123-45-6789",
        "search_indexes": ["{{ data | slice: -4, 4 }}"]});
    let employer = json!({"type": "employer_id_number", "data": "12-3456789",
        "search_indexes": ["{{ data | slice: -4, 4 }}"]});
    let whole = json!({"data": "6789", "search_indexes": ["{{ data }}"]});
    let part = json!({"data": {"a": "6789", "b": "6789"},
        "search_indexes": ["{{ data.a }}", "{{ data.b }}"]});
    let samples = [
        ("ssn", ssn),
        ("employer", employer),
        ("whole", whole),
        ("part", part),
    ];
    for (name, new) in samples {
        tokens.create(name, new).await;
    }

    let database = vault.database.connect().await;
    let sql = format!("select count(*), count(distinct term) {DATA_TERMS}");
    let row = database.query_one(&sql, &[]).await.unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (5, 5));
    // A search names no expression and finds all of them, each once.
    for path in [V1, V2] {
        let found = search(&tokens.client, path, "data:6789").await;
        let mut names = tokens.names(&found);
        names.sort_unstable();
        assert_eq!(names, ["employer", "part", "ssn", "whole"], "{path}");
    }
}

/// Expressions beyond the limit share a sub-key, and are found like the others, by every node.
#[tokio::test]
async fn tokens_with_any_number_of_expressions_are_found() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = vault.client(&tenant, everything(Transform::Reveal)).await;
    let second = vault.second_node().await;
    let other = second.client(&tenant, everything(Transform::Reveal)).await;
    let before = search(&other, V2, "data:same").await;
    for number in 0..40 {
        let new = json!({"type": "token", "data": {format!("m{number}"): "same"},
            "search_indexes": [format!("{{{{ data.m{number} }}}}")]});
        let created = client.post("/tokens", new).await;
        assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
    }

    let database = vault.database.connect().await;
    let count = async |sql: &str| -> i64 { database.query_one(sql, &[]).await.unwrap().get(0) };
    assert_eq!(before.items().len(), 0);
    assert_eq!(count("select count(*) from search_expression").await, 32);
    let terms = format!("select count(distinct term) {DATA_TERMS}");
    assert_eq!(count(&terms).await, 33);
    for (path, client) in [(V1, &client), (V2, &client), (V1, &other), (V2, &other)] {
        let found = search(client, path, "data:same").await;
        assert_eq!(found.items().len(), 40, "{path}: {}", found.body);
    }
    // Pages neither repeat nor omit a token.
    let mut ids = BTreeSet::new();
    let mut start = Value::Null;
    loop {
        let body = json!({"query": "data:same", "size": 7, "start": start});
        let page = client.post(V2, body).await;
        let items = page.items();
        ids.extend(
            items
                .iter()
                .map(|item| item["id"].as_str().unwrap().to_owned()),
        );
        start = page.body["pagination"]["next"].clone();
        if start.is_null() {
            break;
        }
        assert_eq!(items.len(), 7);
    }
    assert_eq!(ids.len(), 40);
}
