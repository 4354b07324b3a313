//! Commands for the root key, tenants, applications and keys. Each prints the next step.

mod app;
mod key;
mod tenant;

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::Subcommand;
use cloakroom::access::Tenant;
use cloakroom::config::Config;
use cloakroom::{Vault, keys, tenants};
use uuid::Uuid;

pub(crate) use self::app::{AppCommand, AppType, app};
pub(crate) use self::key::{KeyCommand, key};
pub(crate) use self::tenant::{TenantCommand, TenantType, tenant};
use crate::operator::operator;

/// Other nodes may use cached keys for this long after a deletion.
const REJECTED_WITHIN: &str = "rejected by every node within five seconds";

/// Other nodes may use cached tenants and applications for this long after a change.
pub(crate) const EFFECTIVE_WITHIN: &str = "effective on every node within five seconds";

#[derive(Subcommand)]
pub(crate) enum RootKeyCommand {
    /// Write a new root key to a file that only you can read
    Create {
        /// File to create; an existing file is never overwritten
        file: PathBuf,
    },
}

pub(crate) fn root_key(command: &RootKeyCommand) -> anyhow::Result<()> {
    let RootKeyCommand::Create { file } = command;
    keys::create_file(file)?;
    print_line!("wrote a new root key to {}", file.display());
    print_line!(
        "store a copy in a safe place: without it, the data of the vault cannot be decrypted"
    );
    print_line!("next: set `root_key.file`, then `cloakroom migrate`");
    Ok(())
}

/// Opens the vault and finds a tenant.
async fn open_for(config: Config, tenant: Uuid) -> anyhow::Result<(Vault, Tenant)> {
    let vault = open(config).await?;
    let tenant = tenants::find(&vault, tenant).await?;
    Ok((vault, tenant))
}

/// Finds a tenant by id or name.
pub(crate) async fn find_tenant(vault: &Vault, id_or_name: &str) -> anyhow::Result<Tenant> {
    let id: Option<Uuid> = id_or_name.parse().ok();
    let matches = |tenant: &Tenant| Some(tenant.id.uuid) == id || tenant.name == id_or_name;
    let mut found = tenants::list(vault).await?;
    found.retain(matches);
    match (found.pop(), found.is_empty()) {
        (Some(tenant), true) => Ok(tenant),
        (None, _) => {
            bail!("tenant {id_or_name} not found; `cloakroom tenant list` lists all tenants")
        }
        (Some(_), false) => bail!("several tenants are named {id_or_name}; use the tenant id"),
    }
}

/// Opens the vault for a command; the audit log names its operator.
pub(crate) async fn open(config: Config) -> anyhow::Result<Vault> {
    let vault = Vault::open(config).await;
    let vault = vault.context("cannot open the vault")?;
    vault.audit.set_operator(operator()?);
    Ok(vault)
}
