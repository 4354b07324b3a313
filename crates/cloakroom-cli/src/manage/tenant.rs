//! `cloakroom tenant`.

use anyhow::Context as _;
use clap::{Subcommand, ValueEnum};
use cloakroom::Vault;
use cloakroom::access::{Tenant, TenantKind, TenantSettings};
use cloakroom::api::format_utc;
use cloakroom::config::Config;
use cloakroom::tenants::{self, NewTenant};
use serde_json::json;

use super::{open, open_for};
use crate::operator::operator;
use crate::output::{print_list, print_result};
use crate::{key_actions, root_key, tenant_settings};

#[derive(Subcommand)]
pub(crate) enum TenantCommand {
    /// Create a tenant and its keys
    Create {
        /// Display name
        #[arg(long)]
        name: String,
        /// Whether it holds test or production data
        #[arg(long = "type", value_enum, value_name = "TYPE")]
        kind: TenantType,
        /// A tenant setting, for example `deduplicate_tokens=true`; repeatable
        #[arg(long = "setting", value_name = "NAME=TEXT")]
        settings: Vec<String>,
    },
    /// List all tenants
    List,
    /// Show and change the settings of a tenant
    Setting {
        /// Tenant id or name
        #[arg(long)]
        tenant: String,
        /// For example `deduplicate_tokens=true`; without any, only shows the settings
        #[arg(value_name = "NAME=TEXT")]
        changes: Vec<String>,
    },
    /// Show and change the quotas of a tenant
    Quota {
        /// Tenant id or name
        #[arg(long)]
        tenant: String,
        /// For example `tokenize_limit=20` or `cvc_retention=30m`; `NAME=default` resets to the
        /// deployment's value; without any, only shows the quotas
        #[arg(value_name = "NAME=VALUE")]
        changes: Vec<String>,
    },
    /// Cancel a requested or confirmed deletion of a tenant
    CancelDeletion {
        /// Tenant id or name
        #[arg(long)]
        tenant: String,
    },
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum TenantType {
    Test,
    Production,
}

impl TenantType {
    pub(crate) fn kind(self) -> TenantKind {
        match self {
            Self::Test => TenantKind::Test,
            Self::Production => TenantKind::Production,
        }
    }
}

pub(crate) async fn tenant(config: Config, command: TenantCommand) -> anyhow::Result<()> {
    match command {
        TenantCommand::Create {
            name,
            kind,
            settings,
        } => {
            let settings = parse_settings(&settings)?;
            // The first tenant also creates the keys of the vault.
            let roots = root_key::load(&config)?;
            let vault = Vault::initialize_with(config, roots).await;
            let vault = vault.context("cannot open the vault")?;
            vault.audit.set_operator(operator()?);
            key_actions::record_vault_keys(&vault).await?;
            let new = NewTenant {
                name,
                kind: kind.kind(),
                settings,
            };
            let tenant = tenants::create(&vault, new).await?;
            vault.audit.close().await;
            let id = tenant.id.uuid;
            let lines = [
                format!("tenant {id}"),
                format!(
                    "next: `cloakroom app create --tenant {id} --name NAME --type private \
                     --permission token:create --permission token:read --permission token:search`"
                ),
                format!(
                    "or, to manage it over HTTP: `cloakroom app create --tenant {id} --name Administrator \
                     --type management --all-permissions`"
                ),
            ];
            print_result(&json!({"id": id}), &lines);
        }
        TenantCommand::List => {
            list_tenants(&open(config).await?).await?;
        }
        TenantCommand::Setting { tenant, changes } => {
            let (vault, tenant) = open_for(config, &tenant).await?;
            tenant_settings::setting(&vault, tenant, &changes).await?;
        }
        TenantCommand::Quota { tenant, changes } => {
            let (vault, tenant) = open_for(config, &tenant).await?;
            tenant_settings::quota(&vault, tenant, &changes).await?;
        }
        TenantCommand::CancelDeletion { tenant } => {
            let (vault, tenant) = open_for(config, &tenant).await?;
            tenants::cancel_deletion_as_operator(&vault, tenant.id).await?;
            vault.audit.close().await;
            let id = tenant.id.uuid;
            let line = format!("canceled the deletion of tenant {id}");
            print_result(&json!({"id": id}), &[line]);
        }
    }
    Ok(())
}

fn parse_settings(pairs: &[String]) -> anyhow::Result<TenantSettings> {
    let mut settings = TenantSettings::default();
    for pair in pairs {
        let (name, text) = pair
            .split_once('=')
            .with_context(|| format!("--setting {pair}: expected NAME=TEXT"))?;
        settings.set(name, text)?;
    }
    Ok(settings)
}

async fn list_tenants(vault: &Vault) -> anyhow::Result<()> {
    let deletions = tenants::list_deletions(vault).await?;
    let deletion_of = |tenant: &Tenant| deletions.iter().find(|it| it.tenant == tenant.id);
    let to_json = |tenant: &Tenant| {
        let deletion = deletion_of(tenant);
        json!({
            "id": tenant.id.uuid,
            "type": tenant.kind.name(),
            "name": tenant.name,
            "deletion_requested": deletion.is_some(),
            "deleted_at": deletion.and_then(|it| it.due_at).map(format_utc),
        })
    };
    let to_line = |tenant: &Tenant| {
        let pending = match deletion_of(tenant).map(|deletion| deletion.due_at) {
            Some(Some(due_at)) => format!("  (will be deleted at {})", format_utc(due_at)),
            Some(None) => "  (deletion requested, not confirmed)".to_owned(),
            None => String::new(),
        };
        let (id, kind, name) = (tenant.id.uuid, tenant.kind.name(), &tenant.name);
        format!("{id}  {kind:10}  {name}{pending}")
    };
    print_list(&tenants::list(vault).await?, to_json, to_line);
    Ok(())
}
