//! Parses and changes the grants of applications.

use anyhow::{Context as _, bail};
use cloakroom::Vault;
use cloakroom::access::{
    ALL_PERMISSIONS, AccessRule, ApplicationKind, Container, Grants, Permission, PermissionSet,
    Scope, Tenant, Transform,
};
use cloakroom::applications::{self, ApplicationChange};
use cloakroom::idempotency::ResponseTemplate;
use serde_json::json;
use uuid::Uuid;

use crate::manage::{EFFECTIVE_WITHIN, explain_application};
use crate::output::print_result;

/// Adds permissions to an application.
pub(crate) async fn permit(
    vault: &Vault,
    tenant: &Tenant,
    app: Uuid,
    permissions: &[String],
) -> anyhow::Result<()> {
    let id = app.to_string();
    let found = applications::find(vault, tenant.into(), &id).await;
    let found = found.map_err(|error| explain_application(tenant, error))?;
    let more = parse_permissions(permissions.iter().map(String::as_str))?;
    let grants = Grants {
        permissions: found.grants.permissions.iter().chain(more.iter()).collect(),
        ..found.grants
    };
    let change = ApplicationChange {
        name: Some(found.name),
        grants: grants.into(),
    };
    applications::update(vault, tenant.into(), &id, change, &ResponseTemplate::none()).await?;
    vault.audit.close().await;
    let lines = [
        format!("application {app} now also has {}", permissions.join(", ")),
        EFFECTIVE_WITHIN.to_owned(),
    ];
    let object = json!({"id": app, "tenant_id": tenant.id.uuid, "added": permissions});
    print_result(&object, &lines);
    Ok(())
}

/// All permissions that an application of this kind may have in all containers.
pub(crate) fn all_permissions(kind: ApplicationKind) -> PermissionSet {
    ALL_PERMISSIONS
        .iter()
        .copied()
        .filter(|permission| permission.fits(kind))
        .collect()
}

pub(crate) fn parse_permissions<'a>(
    names: impl Iterator<Item = &'a str>,
) -> anyhow::Result<PermissionSet> {
    names
        .map(|name| {
            Permission::parse(name).with_context(|| {
                format!(
                    "unknown permission `{name}`; docs/api/guide.md lists them, such as token:read"
                )
            })
        })
        .collect()
}

pub(crate) fn parse_rules(rules: &[String]) -> anyhow::Result<Vec<AccessRule>> {
    let mut parsed = Vec::new();
    for (text, priority) in rules.iter().zip(1..) {
        let words: Vec<&str> = text.split_whitespace().collect();
        let [container, transform, permissions] = words[..] else {
            bail!("a rule has three parts: `CONTAINER TRANSFORM PERMISSION[,PERMISSION]`");
        };
        parsed.push(AccessRule {
            description: format!("{transform} in {container}"),
            priority,
            scope: Scope::Container(
                Container::parse(container)
                    .map_err(|rule| anyhow::anyhow!("container {container} {rule}"))?,
            ),
            transform: Transform::parse(transform).with_context(|| {
                format!("transform must be `redact`, `mask` or `reveal`, not `{transform}`")
            })?,
            permissions: parse_permissions(permissions.split(','))?,
        });
    }
    Ok(parsed)
}
