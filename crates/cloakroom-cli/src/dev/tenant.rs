//! Members and keys of the tenant.

use anyhow::Context as _;
use cloakroom::Vault;
use cloakroom::access::{
    AccessRule, ApplicationKind, Container, Grants, Permission, Scope, Tenant, Transform,
};
use cloakroom::applications::{self, NewApplication};
use cloakroom::idempotency::ResponseTemplate;
use cloakroom::members::{self, Email, NewMember, Role};

use crate::grants::all_permissions;

/// Adds members, which the API cannot create, so that lists of members are not empty.
pub(super) async fn add_members(vault: &Vault, tenant: &Tenant) -> anyhow::Result<()> {
    for (name, role) in [("owner", Role::Owner), ("admin", Role::Admin)] {
        let email = Email::parse(&format!("{name}@example.com")).map_err(anyhow::Error::msg)?;
        let new = NewMember {
            email,
            role,
            first_name: None,
            last_name: None,
        };
        members::add(vault, tenant.id, new).await?;
    }
    Ok(())
}

pub(super) async fn create_key(
    vault: &Vault,
    tenant: &Tenant,
    kind: ApplicationKind,
) -> anyhow::Result<String> {
    let grants = Grants {
        permissions: all_permissions(kind),
        rules: if kind == ApplicationKind::Private {
            reveal_on_read()?
        } else {
            Vec::new()
        },
    };
    let name = format!("Development ({kind})");
    create_application(vault, tenant, name, kind, grants).await
}

/// Creates an application and returns its key.
pub(super) async fn create_application(
    vault: &Vault,
    tenant: &Tenant,
    name: String,
    kind: ApplicationKind,
    grants: Grants,
) -> anyhow::Result<String> {
    let new = NewApplication {
        name: Some(name),
        kind: Some(kind.name().to_owned()),
        grants: grants.into(),
        create_key: true,
        expires_at: None,
    };
    let created =
        applications::create(vault, tenant.into(), new, &ResponseTemplate::none()).await?;
    let key = created.key.context("the application has no key")?;
    Ok(key.key.expose().to_owned())
}

/// Reads reveal everything. Responses to writes stay masked, as with plain permissions.
fn reveal_on_read() -> anyhow::Result<Vec<AccessRule>> {
    use Permission::{TokenRead, TokenSearch, TokenUse};
    Ok(vec![AccessRule {
        description: "Read everything".to_owned(),
        priority: 1,
        scope: Scope::Container(Container::parse("/")?),
        transform: Transform::Reveal,
        permissions: [TokenRead, TokenSearch, TokenUse].into_iter().collect(),
    }])
}
