//! Invitations.

use cloakroom::access::Permission;
use cloakroom::members::{self, Email, NewInvitation, Role};
use cloakroom_testkit::{TestResponse, TestVault};
use http::{Method, StatusCode};
use serde_json::json;

use super::{INVITATIONS, MEMBERS, add, client_with_permissions, invite, manager, names};

/// Covers 15.9, 15.10.
#[tokio::test]
async fn invitations_are_valid_for_72_hours() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = manager(&vault, &tenant).await;

    let invitation = invite(&client, "ada").await;
    let reader = json!({"email": "grace@example.com", "role": "READ_ONLY"});
    let reader = client.post(INVITATIONS, reader).await;
    let read = client
        .get(&format!("{INVITATIONS}/{}", invitation.id()))
        .await;

    let location = format!("{}{INVITATIONS}/{}", vault.base_url, invitation.id());
    assert_eq!(invitation.header("location"), location);
    assert_eq!(invitation.body["tenant_id"], tenant.id.uuid.to_string());
    let unstable = ["id", "tenant_id", "created_by", "created_at", "expires_at"];
    insta::assert_snapshot!(invitation.told(&unstable), @r#"
    {
      "id": "[id]",
      "tenant_id": "[tenant_id]",
      "email": "ada@example.com",
      "role": "ADMIN",
      "status": "PENDING",
      "expires_at": "[expires_at]",
      "created_by": "[created_by]",
      "created_at": "[created_at]"
    }
    "#);
    assert_eq!(read.body, invitation.body);
    assert_eq!(reader.body["role"], "READ_ONLY");
    let hours = |response: &TestResponse| {
        let at = |name: &str| {
            let text = response.body[name].as_str().unwrap();
            text.parse::<jiff::Timestamp>().unwrap()
        };
        (at("expires_at") - at("created_at"))
            .total(jiff::Unit::Hour)
            .unwrap()
    };
    assert!(
        (hours(&invitation) - 72.0).abs() < 0.001,
        "{}",
        hours(&invitation)
    );
}

/// Covers 15.11.
#[tokio::test]
async fn invalid_invitations_are_rejected() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = manager(&vault, &tenant).await;
    let long = format!("{}@example.com", "e".repeat(319));

    let cases = [
        (json!({}), "email"),
        (json!({"email": null}), "email"),
        (json!({"email": "ada"}), "email"),
        (json!({"email": long}), "email"),
        (json!({"email": "4242424242424242@example.com"}), "email"),
        (json!({"email": "a@b", "role": "OWNER"}), "role"),
        (json!({"email": "", "role": "BOSS"}), "email role"),
    ];
    for (new, invalid) in cases {
        let response = client.post(INVITATIONS, new.clone()).await;
        assert_eq!(response.status, StatusCode::BAD_REQUEST, "{new}");
        assert_eq!(response.refused().join(" "), invalid, "{new}");
    }
    assert_eq!(client.get(INVITATIONS).await.items().len(), 0);
}

async fn expire(vault: &TestVault, id: &str) {
    let database = vault.database.connect().await;
    let sql = format!(
        "update invitation set expires_at = now() - interval '1 s' where invitation_id = '{id}'"
    );
    assert_eq!(database.execute(&sql, &[]).await.unwrap(), 1);
}

/// Covers 15.10, 15.12.
#[tokio::test]
async fn invitations_are_filtered_by_status() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = manager(&vault, &tenant).await;
    for name in ["a", "b", "c"] {
        invite(&client, name).await;
    }
    let id = client.get(INVITATIONS).await.items()[1]["id"].clone();
    let id = id.as_str().unwrap();

    expire(&vault, id).await;

    let list = async |query: &str| names(&client.get(&format!("{INVITATIONS}?{query}")).await);
    assert_eq!(list("").await, ["c", "b", "a"]);
    assert_eq!(list("status=PENDING").await, ["c", "a"]);
    assert_eq!(list("status=EXPIRED").await, ["b"]);
    assert_eq!(list("size=2").await, ["c", "b"]);
    assert_eq!(list("size=2&page=2").await, ["a"]);
    assert_eq!(list("size=2&page=3").await, Vec::<String>::new());
    let read = client.get(&format!("{INVITATIONS}/{id}")).await;
    assert_eq!(read.body["status"], "EXPIRED");
    let pending = client
        .get(&format!("{INVITATIONS}?status=PENDING&size=1"))
        .await;
    assert_eq!(
        pending.body["pagination"],
        json!({"total_items": 2, "page_number": 1, "page_size": 1, "total_pages": 2})
    );
    for (query, invalid) in [
        ("status=pending", "status"),
        ("status=", "status"),
        ("size=101", "size"),
        ("page=0&status=OPEN", "page status"),
    ] {
        let response = client.get(&format!("{INVITATIONS}?{query}")).await;
        assert_eq!(response.status, StatusCode::BAD_REQUEST, "{query}");
        assert_eq!(response.refused().join(" "), invalid, "{query}");
    }
}

/// Covers 15.13.
#[tokio::test]
async fn resending_renews_an_invitation_and_invalidates_its_old_link() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = manager(&vault, &tenant).await;
    let new = NewInvitation {
        email: Email::parse("ada@example.com").unwrap(),
        role: Role::ReadOnly,
    };
    let (invitation, old_link) = members::invite_as_operator(&vault.vault, tenant.id, &new)
        .await
        .unwrap();
    let path = format!("{INVITATIONS}/{}", invitation.id);
    expire(&vault, &invitation.id.to_string()).await;
    let expired = members::accept(&vault.vault, tenant.id, old_link.expose()).await;

    // Without a body and a content type.
    let resend = client.request(Method::POST, &format!("{path}/resend"));
    let resent = client.send(resend).await;
    let replaced = members::accept(&vault.vault, tenant.id, old_link.expose()).await;
    let (_, link) = members::resend_as_operator(&vault.vault, tenant.id, invitation.id)
        .await
        .unwrap();
    let member = members::accept(&vault.vault, tenant.id, link.expose()).await;
    let twice = members::accept(&vault.vault, tenant.id, link.expose()).await;

    assert!(matches!(expired, Err(members::Error::DeadLink)));
    assert_eq!(resent.status, StatusCode::OK, "{}", resent.body);
    assert_eq!(resent.body["status"], "PENDING");
    assert!(resent.body["modified_at"].is_string());
    assert!(matches!(replaced, Err(members::Error::DeadLink)));
    let member = member.unwrap();
    assert_eq!(member.role, Role::ReadOnly);
    assert!(matches!(twice, Err(members::Error::DeadLink)));
    assert_eq!(client.get(&path).await.status, StatusCode::NOT_FOUND);
    assert_eq!(names(&client.get(MEMBERS).await), ["ada"]);
    let unknown = client.request(Method::POST, &format!("{path}/resend"));
    assert_eq!(client.send(unknown).await.status, StatusCode::NOT_FOUND);
}

/// Covers 15.13.
#[tokio::test]
async fn resending_requires_both_permissions() {
    use Permission::{TenantInvitationCreate, TenantInvitationUpdate};
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let id = invite(&manager(&vault, &tenant).await, "ada").await.id();
    let path = format!("{INVITATIONS}/{id}/resend");

    for (held, expected) in [
        (&[TenantInvitationCreate][..], StatusCode::FORBIDDEN),
        (&[TenantInvitationUpdate], StatusCode::FORBIDDEN),
        (
            &[TenantInvitationCreate, TenantInvitationUpdate],
            StatusCode::OK,
        ),
    ] {
        let client = client_with_permissions(&vault, &tenant, held).await;
        let response = client.send(client.request(Method::POST, &path)).await;
        assert_eq!(response.status, expected, "{held:?}");
    }
}

/// Covers 15.14.
#[tokio::test]
async fn invitations_are_deleted() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = manager(&vault, &tenant).await;
    let path = format!("{INVITATIONS}/{}", invite(&client, "ada").await.id());

    let deleted = client.delete(&path).await;

    assert_eq!(deleted.status, StatusCode::NO_CONTENT);
    assert_eq!(client.get(&path).await.status, StatusCode::NOT_FOUND);
    assert_eq!(client.delete(&path).await.status, StatusCode::NOT_FOUND);
}

/// Covers 15.15.
#[tokio::test]
async fn invitation_links_are_not_stored() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let new = NewInvitation {
        email: Email::parse("ada@example.com").unwrap(),
        role: Role::Admin,
    };
    let (_, link) = members::invite_as_operator(&vault.vault, tenant.id, &new)
        .await
        .unwrap();

    let database = vault.database.connect().await;
    let row = database
        .query_one("select i::text from invitation i", &[])
        .await;
    let row: String = row.unwrap().get(0);

    assert!(row.contains("ada@example.com"), "{row}");
    let hex: String = link
        .expose()
        .bytes()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert!(!row.contains(link.expose()) && !row.contains(&hex));
}

/// Covers 15.17.
#[tokio::test]
async fn an_email_address_is_one_member() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = manager(&vault, &tenant).await;
    add(&vault, &tenant, "ada", Role::Admin).await;
    let new = NewInvitation {
        email: Email::parse("ADA@example.com").unwrap(),
        role: Role::Admin,
    };
    let (invitation, link) = members::invite_as_operator(&vault.vault, tenant.id, &new)
        .await
        .unwrap();

    let accepted = members::accept(&vault.vault, tenant.id, link.expose()).await;

    assert!(matches!(accepted, Err(members::Error::AlreadyMember)));
    let path = format!("{INVITATIONS}/{}", invitation.id);
    assert_eq!(
        client.get(&path).await.status,
        StatusCode::OK,
        "the invitation is not consumed"
    );
}
