//! Listing and reading applications.

use cloakroom::access::{ApplicationKind, Permission};
use cloakroom_testkit::{Client, TestVault, grants};
use http::StatusCode;
use serde_json::json;

use super::{
    UNKNOWN_ID, create_application, ids_of, manager, new_application, new_application_with,
};

/// Creates two private and two public applications; returns the ids of all applications, newest first.
async fn create_applications(manager: &Client) -> Vec<String> {
    let mut ids = vec![manager.get("/applications/key").await.id()];
    for number in 0..4 {
        let kind = ["private", "public"][number % 2];
        ids.push(
            create_application(manager, new_application_with(json!({"type": kind})))
                .await
                .id,
        );
    }
    ids.reverse();
    ids
}

/// Covers 13.10.
#[tokio::test]
async fn lists_are_paginated() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let manager = manager(&vault, &tenant).await;
    let ids = create_applications(&manager).await;

    let pages = [
        ("", 5, (1, 20, 1)),
        ("?size=2", 2, (1, 2, 3)),
        ("?size=2&page=2&start=ignored&start=twice", 2, (2, 2, 3)),
        ("?size=2&page=3", 1, (3, 2, 3)),
        ("?size=2&page=4", 0, (4, 2, 3)),
        ("?page=2147483647&size=100", 0, (2_147_483_647, 100, 1)),
        ("?size=0", 0, (1, 0, 0)),
    ];
    let mut seen = Vec::new();
    for (query, count, (page, size, total)) in pages {
        let listed = manager.get(&format!("/applications{query}")).await;
        assert_eq!(listed.status, StatusCode::OK);
        assert_eq!(listed.items().len(), count, "{query}");
        let expected = json!({"total_items": 5, "page_number": page, "page_size": size,
            "total_pages": total});
        assert_eq!(listed.body["pagination"], expected, "{query}");
        if query.starts_with("?size=2") {
            seen.extend(ids_of(listed.items()).into_iter().map(str::to_owned));
        }
    }
    assert_eq!(seen, ids, "newest first, each once");
}

/// Covers 13.11.
#[tokio::test]
async fn lists_are_filtered_by_id_and_type() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let manager = manager(&vault, &tenant).await;
    let ids = create_applications(&manager).await;

    let filters = [
        (
            format!("?id={}&id={UNKNOWN_ID}&id={}", ids[4], ids[0]),
            vec![0, 4],
        ),
        ("?type=public".to_owned(), vec![0, 2]),
        ("?type=public&type=management".to_owned(), vec![0, 2, 4]),
        (format!("?type=private&id={}", ids[0]), vec![]),
    ];
    for (query, expected) in filters {
        let listed = manager.get(&format!("/applications{query}")).await;
        let expected: Vec<&str> = expected.into_iter().map(|at: usize| &*ids[at]).collect();
        assert_eq!(ids_of(listed.items()), expected, "{query}");
        let total = expected.len();
        assert_eq!(listed.body["pagination"]["total_items"], total, "{query}");
    }
    let rejected = manager
        .get("/applications?id=x&type=expiring&page=0&size=101")
        .await;
    assert_eq!(rejected.status, StatusCode::BAD_REQUEST);
    assert_eq!(rejected.refused(), ["id", "page", "size", "type"]);
}

/// Covers 13.12.
#[tokio::test]
async fn each_key_reads_its_own_application() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    for kind in ApplicationKind::ALL {
        let one = match kind {
            ApplicationKind::Management => Permission::LogRead,
            _ => Permission::TokenCreate,
        };
        let holder = vault.holder(&tenant, kind, grants(&[one])).await;
        let own = vault.client_with(Some(&holder.key));
        let own = own.get("/applications/key").await;
        assert_eq!(own.status, StatusCode::OK);
        assert_eq!(own.id(), holder.application.to_string());
        // The operator created it and has no application id.
        assert_eq!(own.body.get("created_by"), None);
        assert!(!String::from_utf8_lossy(&own.bytes).contains(&holder.key));
    }
}

/// Covers 13.12.
#[tokio::test]
async fn a_node_with_a_cached_key_does_not_find_a_deleted_application() {
    let vault = TestVault::start().await;
    let other = vault.second_node().await;
    let tenant = vault.tenant().await;
    let manager = manager(&vault, &tenant).await;
    let application = create_application(&manager, new_application()).await;
    let cached = other.client_with(Some(&application.key));
    assert_eq!(cached.get("/applications/key").await.status, StatusCode::OK);
    manager.delete(&application.path).await;
    let rejected = cached.get("/applications/key").await;
    assert_eq!(rejected.status, StatusCode::UNAUTHORIZED);
}
