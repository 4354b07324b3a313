//! Members, ownership and invitations of a tenant.

mod invitations;
mod list;
mod roles;

use cloakroom::access::{ApplicationKind, Permission, Tenant};
use cloakroom::members::{self, Email, Member, NewMember, Role};
use cloakroom_testkit::{Client, TestResponse, TestVault, grants};
use http::StatusCode;
use serde_json::{Value, json};

const MEMBERS: &str = "/tenants/self/members";
const INVITATIONS: &str = "/tenants/self/invitations";

const ALL: [Permission; 10] = [
    Permission::TenantRead,
    Permission::TenantUpdate,
    Permission::TenantMemberRead,
    Permission::TenantMemberUpdate,
    Permission::TenantMemberDelete,
    Permission::TenantInvitationCreate,
    Permission::TenantInvitationRead,
    Permission::TenantInvitationUpdate,
    Permission::TenantInvitationDelete,
    Permission::LogRead,
];

async fn manager(vault: &TestVault, tenant: &Tenant) -> Client {
    client_with_permissions(vault, tenant, &ALL).await
}

async fn client_with_permissions(
    vault: &TestVault,
    tenant: &Tenant,
    permissions: &[Permission],
) -> Client {
    let holder = vault
        .holder(tenant, ApplicationKind::Management, grants(permissions))
        .await;
    vault.client_with(Some(&holder.key))
}

async fn add(vault: &TestVault, tenant: &Tenant, name: &str, role: Role) -> Member {
    let new = NewMember {
        email: Email::parse(&format!("{name}@example.com")).unwrap(),
        role,
        first_name: Some("Ada".to_owned()),
        last_name: None,
    };
    members::add(&vault.vault, tenant.id, new).await.unwrap()
}

/// The local parts of the email addresses, in the order of the list.
fn names(response: &TestResponse) -> Vec<String> {
    let name = |item: &Value| {
        let email = item["user"]["email"].as_str().or(item["email"].as_str());
        email.unwrap().split('@').next().unwrap().to_owned()
    };
    response.items().iter().map(name).collect()
}

async fn invite(client: &Client, name: &str) -> TestResponse {
    let new = json!({"email": format!("{name}@example.com")});
    let response = client.post(INVITATIONS, new).await;
    assert_eq!(response.status, StatusCode::CREATED, "{}", response.body);
    response
}
