//! Roles, ownership and removal of members.

use cloakroom::access::Permission;
use cloakroom::members::{self, Email, Member, NewMember, Role};
use cloakroom_testkit::{TestVault, grants};
use futures_util::future::join_all;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{INVITATIONS, MEMBERS, add, invite, manager, names};

const OWNER: &str = "/tenants/self/owner";

/// Covers 15.3, 15.4.
#[tokio::test]
async fn roles_of_members_change_except_the_owners() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = manager(&vault, &tenant).await;
    let owner = add(&vault, &tenant, "owner", Role::Owner).await;
    let member = add(&vault, &tenant, "member", Role::Admin).await;
    let path = |id: Uuid| format!("{MEMBERS}/{id}");

    // The content type that the official clients send.
    let request = client
        .request(Method::PUT, &path(member.id))
        .header("content-type", "application/json-patch+json")
        .body(json!({"role": "READ_ONLY"}).to_string());
    let changed = client.send(request).await;

    assert_eq!(changed.status, StatusCode::OK, "{}", changed.body);
    assert_eq!(changed.body["role"], "READ_ONLY");
    assert!(changed.body["modified_at"].is_string() && changed.body["modified_by"].is_string());
    assert_eq!(client.get(MEMBERS).await.items()[0]["role"], "READ_ONLY");
    let admin = || json!({"role": "ADMIN"});
    let cases = [
        (path(owner.id), admin(), StatusCode::UNPROCESSABLE_ENTITY),
        (path(Uuid::nil()), admin(), StatusCode::NOT_FOUND),
        (format!("{MEMBERS}/me"), admin(), StatusCode::NOT_FOUND),
        (
            path(member.id),
            json!({"role": "OWNER"}),
            StatusCode::BAD_REQUEST,
        ),
        (
            path(member.id),
            json!({"role": "admin"}),
            StatusCode::BAD_REQUEST,
        ),
        (
            path(member.id),
            json!({"role": null}),
            StatusCode::BAD_REQUEST,
        ),
        (path(member.id), json!({}), StatusCode::BAD_REQUEST),
        // Validation precedes the lookup.
        (path(Uuid::nil()), json!({}), StatusCode::BAD_REQUEST),
    ];
    for (path, body, expected) in cases {
        let response = client.put(&path, body.clone()).await;
        assert_eq!(response.status, expected, "{path} {body}");
        if expected == StatusCode::BAD_REQUEST {
            assert_eq!(response.refused(), ["role"], "{path} {body}");
        }
    }
    assert_eq!(client.get(OWNER).await.body["id"], owner.id.to_string());
}

/// Covers 15.5.
#[tokio::test]
async fn members_are_removed_except_the_owner() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = manager(&vault, &tenant).await;
    let owner = add(&vault, &tenant, "owner", Role::Owner).await;
    let member = add(&vault, &tenant, "member", Role::Admin).await;
    let path = |id: Uuid| format!("{MEMBERS}/{id}");

    let removed = client.delete(&path(member.id)).await;
    let again = client.delete(&path(member.id)).await;
    let rejected = client.delete(&path(owner.id)).await;

    assert_eq!(removed.status, StatusCode::NO_CONTENT);
    assert_eq!(again.status, StatusCode::NOT_FOUND);
    assert_eq!(rejected.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(rejected.body["title"], "Unprocessable Entity");
    assert_eq!(names(&client.get(MEMBERS).await), ["owner"]);
}

/// Covers 15.6, 15.7.
#[tokio::test]
async fn ownership_is_transferred_to_another_member() {
    let vault = TestVault::start().await;
    let (tenant, other_tenant) = (vault.tenant().await, vault.tenant().await);
    let client = manager(&vault, &tenant).await;
    let outsider = add(&vault, &other_tenant, "stranger", Role::Admin).await;
    let none = client.get(OWNER).await;
    let first = add(&vault, &tenant, "first", Role::Admin).await;
    let second = add(&vault, &tenant, "second", Role::ReadOnly).await;
    let to = |id: Uuid| json!({"member_id": id});

    let taken = client.put(OWNER, to(first.id)).await;
    let moved = client.put(OWNER, to(second.id)).await;
    let again = client.put(OWNER, to(second.id)).await;

    assert_eq!(none.status, StatusCode::NOT_FOUND);
    assert_eq!(taken.status, StatusCode::OK, "{}", taken.body);
    assert_eq!(taken.body["role"], "OWNER");
    assert_eq!(moved.body["id"], second.id.to_string());
    assert_eq!(again.status, StatusCode::OK);
    assert_eq!(client.get(OWNER).await.body["id"], second.id.to_string());
    let roles: Vec<Value> = client
        .get(MEMBERS)
        .await
        .items()
        .iter()
        .map(|item| item["role"].clone())
        .collect();
    assert_eq!(roles, ["OWNER", "ADMIN"]);
    for (body, expected) in [
        (to(outsider.id), StatusCode::UNPROCESSABLE_ENTITY),
        (to(Uuid::nil()), StatusCode::UNPROCESSABLE_ENTITY),
        (json!({"member_id": "me"}), StatusCode::BAD_REQUEST),
        (json!({}), StatusCode::BAD_REQUEST),
    ] {
        let response = client.put(OWNER, body.clone()).await;
        assert_eq!(response.status, expected, "{body}");
    }
    // Failed transfers leave the owner in place.
    assert_eq!(client.get(OWNER).await.body["id"], second.id.to_string());
}

/// Covers 15.7.
#[tokio::test]
async fn concurrent_transfers_leave_one_owner() {
    let vault = TestVault::start_with_long_timeouts().await;
    let tenant = vault.tenant().await;
    let client = manager(&vault, &tenant).await;
    let mut admins = vec![add(&vault, &tenant, "owner", Role::Owner).await];
    for name in ["a", "b", "c", "d", "e", "f", "g"] {
        admins.push(add(&vault, &tenant, name, Role::Admin).await);
    }
    let to = |member: &Member| client.put(OWNER, json!({"member_id": member.id}));

    for _ in 0..10 {
        for response in join_all(admins.iter().map(to)).await {
            assert_eq!(response.status, StatusCode::OK, "{}", response.body);
        }
        let listed = client.get(MEMBERS).await;
        let owners = listed.items().iter().filter(|item| item["role"] == "OWNER");
        assert_eq!(owners.count(), 1);
    }
    let second = NewMember {
        email: Email::parse("second@example.com").unwrap(),
        role: Role::Owner,
        first_name: None,
        last_name: None,
    };
    let rejected = members::add(&vault.vault, tenant.id, second).await;
    assert!(matches!(rejected, Err(members::Error::OwnerExists)));
}

/// Covers 15.8.
#[tokio::test]
async fn roles_are_listed_by_name() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = vault.client(&tenant, grants(&[Permission::TokenUse])).await;

    let response = client.get("/roles").await;

    assert_eq!(
        response.body,
        json!([{"name": "OWNER"}, {"name": "ADMIN"}, {"name": "READ_ONLY"}])
    );
}

/// Covers 15.16.
#[tokio::test]
async fn members_and_invitations_are_isolated_between_tenants() {
    let vault = TestVault::start().await;
    let (tenant, other_tenant) = (vault.tenant().await, vault.tenant().await);
    let owner = add(&vault, &tenant, "owner", Role::Owner).await;
    let member = add(&vault, &tenant, "member", Role::Admin).await;
    let invitation = invite(&manager(&vault, &tenant).await, "ada").await.id();
    let client = manager(&vault, &other_tenant).await;
    let (member, invitation) = (
        format!("{MEMBERS}/{}", member.id),
        format!("{INVITATIONS}/{invitation}"),
    );

    let user = owner.user.id;
    let responses = [
        client.put(&member, json!({"role": "READ_ONLY"})).await,
        client.delete(&member).await,
        client.get(&invitation).await,
        client.delete(&invitation).await,
        client
            .post(&format!("{invitation}/resend"), json!({}))
            .await,
        client.get(OWNER).await,
    ];

    for response in responses {
        assert_eq!(response.status, StatusCode::NOT_FOUND, "{}", response.body);
    }
    for list in [MEMBERS, INVITATIONS, &format!("{MEMBERS}?user_id={user}")] {
        assert_eq!(client.get(list).await.items().len(), 0, "{list}");
    }
    let own = manager(&vault, &tenant).await;
    assert_eq!(names(&own.get(MEMBERS).await), ["member", "owner"]);
    assert_eq!(own.get(&invitation).await.status, StatusCode::OK);
}

/// Covers 15.18.
#[tokio::test]
async fn member_operations_are_logged() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = manager(&vault, &tenant).await;
    let owner = add(&vault, &tenant, "owner", Role::Owner).await;
    let member = add(&vault, &tenant, "member", Role::Admin).await;
    let operations = async |kind: &str| {
        let logs = client.get(&format!("/logs?entity_type={kind}")).await;
        let words = |record: &Value| {
            let id = record["entity_id"].as_str().unwrap();
            let subject = match id {
                id if id == owner.id.to_string() => " owner",
                id if id == member.id.to_string() => " member",
                _ => "",
            };
            format!("{}{subject}", record["operation"].as_str().unwrap())
        };
        let mut operations: Vec<String> = logs.items().iter().map(words).collect();
        operations.sort();
        operations
    };

    client
        .put(
            &format!("{MEMBERS}/{}", member.id),
            json!({"role": "READ_ONLY"}),
        )
        .await;
    client.put(OWNER, json!({"member_id": member.id})).await;
    client.get(OWNER).await;
    client.delete(&format!("{MEMBERS}/{}", member.id)).await;
    client.delete(&format!("{MEMBERS}/{}", owner.id)).await;
    client.get(MEMBERS).await;
    let path = format!("{INVITATIONS}/{}", invite(&client, "ada").await.id());
    client.get(&path).await;
    client.post(&format!("{path}/resend"), json!({})).await;
    client.delete(&path).await;
    client.get(&path).await;

    assert_eq!(
        operations("member").await,
        [
            "create member",
            "create owner",
            "delete owner",
            "read member",
            "update member",
            "update member",
            "update owner",
        ]
    );
    assert_eq!(
        operations("invitation").await,
        ["create", "delete", "read", "update"]
    );
}
