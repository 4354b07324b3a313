//! Commands for tenants, applications and keys. Each prints the next step.

mod app;
mod key;
mod rotation;
mod tenant;

use anyhow::{Context as _, anyhow, bail};
use cloakroom::access::Tenant;
use cloakroom::config::Config;
use cloakroom::{Vault, applications, tenants};
use uuid::Uuid;

pub(crate) use self::app::{AppCommand, AppType, app};
pub(crate) use self::key::{KeyCommand, key};
pub(crate) use self::tenant::{TenantCommand, TenantType, tenant};
use crate::operator::operator;
use crate::root_key;

/// Other nodes may use cached keys for this long after a deletion.
const REJECTED_WITHIN: &str = "rejected by every node within five seconds";

/// Other nodes may use cached tenants and applications for this long after a change.
pub(crate) const EFFECTIVE_WITHIN: &str = "effective on every node within five seconds";

/// Opens the vault and finds a tenant.
async fn open_for(config: Config, tenant: &str) -> anyhow::Result<(Vault, Tenant)> {
    let vault = open(config).await?;
    let tenant = find_tenant(&vault, tenant).await?;
    Ok((vault, tenant))
}

/// The id of an application, a key or another object.
pub(crate) fn parse_id(text: &str) -> Result<Uuid, &'static str> {
    text.parse()
        .map_err(|_| "expected an id, which is a UUID; `list` prints the ids")
}

/// Finds a tenant by id or name.
pub(crate) async fn find_tenant(vault: &Vault, id_or_name: &str) -> anyhow::Result<Tenant> {
    let not_found =
        || anyhow!("tenant {id_or_name} not found; `cloakroom tenant list` lists all tenants");
    if let Ok(id) = id_or_name.parse() {
        return match tenants::find(vault, id).await {
            Err(tenants::Error::NotFound) => Err(not_found()),
            found => Ok(found?),
        };
    }
    let mut found = tenants::list(vault).await?;
    found.retain(|tenant| tenant.name == id_or_name);
    match (found.pop(), found.is_empty()) {
        (Some(tenant), true) => Ok(tenant),
        (None, _) => Err(not_found()),
        (Some(_), false) => bail!("several tenants are named {id_or_name}; use the tenant id"),
    }
}

/// Names the command that lists what exists, if an application or a key does not.
pub(crate) fn explain_application(tenant: &Tenant, error: applications::Error) -> anyhow::Error {
    let tenant = tenant.id.uuid;
    let list = match &error {
        applications::Error::NotFound("application") => {
            format!("`cloakroom app list --tenant {tenant}` lists all applications")
        }
        applications::Error::NotFound("application key") => {
            format!("`cloakroom key list --tenant {tenant} --app APP` lists all keys")
        }
        _ => return error.into(),
    };
    anyhow!("{error}; {list}")
}

/// Opens the vault for a command; the audit log names its operator.
pub(crate) async fn open(config: Config) -> anyhow::Result<Vault> {
    let roots = root_key::load(&config)?;
    let vault = Vault::open_with(config, roots).await;
    let vault = vault.context("cannot open the vault")?;
    vault.audit.set_operator(operator()?);
    Ok(vault)
}
