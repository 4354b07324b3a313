//! Listing members.

use cloakroom::members::Role;
use cloakroom_testkit::TestVault;
use http::StatusCode;
use serde_json::json;

use super::{MEMBERS, add, manager, names};

/// Covers 15.1, 15.2.
#[tokio::test]
async fn members_are_listed_newest_first() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = manager(&vault, &tenant).await;
    let none = client.get(MEMBERS).await;
    let one = add(&vault, &tenant, "one", Role::Owner).await;
    add(&vault, &tenant, "two", Role::ReadOnly).await;
    let three = add(&vault, &tenant, "three", Role::Admin).await;

    let all = client.get(MEMBERS).await;
    let pages = [
        client.get(&format!("{MEMBERS}?size=2")).await,
        client.get(&format!("{MEMBERS}?size=2&page=2")).await,
        client
            .get(&format!("{MEMBERS}?size=2&page=3&start=x"))
            .await,
        client.get(&format!("{MEMBERS}?size=0")).await,
        client
            .get(&format!("{MEMBERS}?page=2147483647&size=50"))
            .await,
    ];
    let (first, third) = (one.user.id, three.user.id);
    let filtered = client
        .get(&format!("{MEMBERS}?user_id={first}&user_id={third}"))
        .await;
    let unknown = client.get(&format!("{MEMBERS}?user_id={}", one.id)).await;

    assert_eq!(none.items().len(), 0);
    assert_eq!(none.body["pagination"]["total_pages"], 0);
    assert_eq!(names(&all), ["three", "two", "one"]);
    let oldest = &all.items()[2];
    assert_eq!(oldest["created_at"], oldest["created_date"]);
    let mut shown = oldest.clone();
    for (path, text) in [
        ("/id", one.id.to_string()),
        ("/tenant_id", tenant.id.uuid.to_string()),
        ("/user/id", one.user.id.to_string()),
    ] {
        let place = shown.pointer_mut(path).unwrap();
        assert_eq!(*place, text, "{path}");
        *place = json!("[id]");
    }
    for name in ["created_at", "created_date"] {
        shown[name] = json!("[time]");
    }
    insta::assert_snapshot!(serde_json::to_string_pretty(&shown).unwrap(), @r#"
    {
      "id": "[id]",
      "tenant_id": "[id]",
      "role": "OWNER",
      "user": {
        "id": "[id]",
        "email": "one@example.com",
        "first_name": "Ada",
        "mfa_enrolled": false
      },
      "created_at": "[time]",
      "created_date": "[time]"
    }
    "#);
    let pages_of_names: Vec<_> = pages.iter().map(names).collect();
    assert_eq!(
        pages_of_names,
        [vec!["three", "two"], vec!["one"], vec![], vec![], vec![]]
    );
    assert_eq!(
        pages[1].body["pagination"],
        json!({"total_items": 3, "page_number": 2, "page_size": 2, "total_pages": 2})
    );
    assert_eq!(names(&filtered), ["three", "one"]);
    assert_eq!(filtered.body["pagination"]["total_items"], 2);
    assert_eq!(unknown.items().len(), 0);
}

/// Covers 15.2.
#[tokio::test]
async fn member_pages_have_at_most_fifty_items() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = manager(&vault, &tenant).await;

    let cases = [
        ("size=50", "", StatusCode::OK),
        ("size=51", "size", StatusCode::BAD_REQUEST),
        ("size=-1", "size", StatusCode::BAD_REQUEST),
        ("page=0", "page", StatusCode::BAD_REQUEST),
        ("page=x&size=y", "page size", StatusCode::BAD_REQUEST),
        ("user_id=me", "user_id", StatusCode::BAD_REQUEST),
    ];
    for (query, invalid, expected) in cases {
        let response = client.get(&format!("{MEMBERS}?{query}")).await;
        assert_eq!(response.status, expected, "{query}");
        assert_eq!(response.refused().join(" "), invalid, "{query}");
    }
}
