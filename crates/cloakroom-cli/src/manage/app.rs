//! `cloakroom app`.

use clap::{Args, Subcommand, ValueEnum};
use cloakroom::Vault;
use cloakroom::access::{ApplicationKind, Grants, Tenant};
use cloakroom::api::NumberedPage;
use cloakroom::applications::{self, Application, Filter, NewApplication};
use cloakroom::config::Config;
use cloakroom::idempotency::ResponseTemplate;
use serde_json::json;
use uuid::Uuid;

use super::{REJECTED_WITHIN, explain_application, open_for, parse_id};
use crate::grants::{all_permissions, parse_permissions, parse_rules, permit};
use crate::output::{print_list, print_result};

#[derive(Subcommand)]
pub(crate) enum AppCommand {
    /// Create an application
    Create(AppCreate),
    /// List the applications of a tenant, newest first
    List {
        /// Tenant id or name
        #[arg(long)]
        tenant: String,
    },
    /// Add permissions to an application, for example `application:grant` for an administrator
    Permit {
        /// Tenant id or name
        #[arg(long)]
        tenant: String,
        /// Application id
        #[arg(long, value_parser = parse_id)]
        app: Uuid,
        /// Permission in all containers
        #[arg(required = true, value_name = "PERMISSION")]
        permissions: Vec<String>,
    },
    /// Delete an application and its keys
    Delete {
        /// Tenant id or name
        #[arg(long)]
        tenant: String,
        /// Application id
        #[arg(long, value_parser = parse_id)]
        app: Uuid,
    },
}

#[derive(Args)]
pub(crate) struct AppCreate {
    /// Tenant id or name
    #[arg(long)]
    tenant: String,
    /// Display name
    #[arg(long)]
    name: String,
    /// `private` for servers, `public` for browsers and apps, `management` for administration
    #[arg(long = "type", value_enum, value_name = "TYPE")]
    kind: AppType,
    /// Permission in all containers; repeatable
    #[arg(long = "permission", value_name = "PERMISSION")]
    permissions: Vec<String>,
    /// Grant every permission that this type allows; with `management`, creates an administrator
    #[arg(long, conflicts_with = "permissions")]
    all_permissions: bool,
    /// Permissions in one container: `CONTAINER TRANSFORM PERMISSION[,PERMISSION]`, highest priority
    /// first, for example `/pci/ reveal token:read,token:use`; repeatable
    #[arg(long = "rule", value_name = "RULE")]
    rules: Vec<String>,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum AppType {
    Private,
    Public,
    Management,
}

impl AppType {
    pub(crate) fn kind(self) -> ApplicationKind {
        match self {
            Self::Private => ApplicationKind::Private,
            Self::Public => ApplicationKind::Public,
            Self::Management => ApplicationKind::Management,
        }
    }
}

pub(crate) async fn app(config: Config, command: AppCommand) -> anyhow::Result<()> {
    match command {
        AppCommand::Create(create) => create_app(config, create).await,
        AppCommand::List { tenant } => {
            let (vault, tenant) = open_for(config, &tenant).await?;
            list_apps(&vault, &tenant).await
        }
        AppCommand::Permit {
            tenant,
            app,
            permissions,
        } => {
            let (vault, tenant) = open_for(config, &tenant).await?;
            permit(&vault, &tenant, app, &permissions).await
        }
        AppCommand::Delete { tenant, app } => {
            let (vault, tenant) = open_for(config, &tenant).await?;
            let deleted = applications::delete(&vault, (&tenant).into(), &app.to_string()).await;
            deleted.map_err(|error| explain_application(&tenant, error))?;
            vault.audit.close().await;
            let lines = [
                format!("deleted application {app}; its keys are {REJECTED_WITHIN}"),
                "tokens that it created are not deleted".to_owned(),
            ];
            print_result(&json!({"id": app}), &lines);
            Ok(())
        }
    }
}

async fn create_app(config: Config, create: AppCreate) -> anyhow::Result<()> {
    let (vault, tenant) = open_for(config, &create.tenant).await?;
    let kind = create.kind.kind();
    let grants = Grants {
        permissions: match create.all_permissions {
            true => all_permissions(kind),
            false => parse_permissions(create.permissions.iter().map(String::as_str))?,
        },
        rules: parse_rules(&create.rules)?,
    };
    let new = NewApplication {
        name: Some(create.name),
        kind: Some(kind.name().to_owned()),
        grants: grants.into(),
        ..NewApplication::default()
    };
    let created =
        applications::create(&vault, (&tenant).into(), new, &ResponseTemplate::none()).await?;
    vault.audit.close().await;
    let id = created.application.id;
    let tenant = tenant.id.uuid;
    let lines = [
        format!("application {id}"),
        format!("next: `cloakroom key create --tenant {tenant} --app {id}`"),
    ];
    print_result(&json!({"id": id, "tenant_id": tenant}), &lines);
    Ok(())
}

/// Page size for listing applications.
const PAGE_SIZE: usize = 100;

async fn list_apps(vault: &Vault, tenant: &Tenant) -> anyhow::Result<()> {
    let mut all = Vec::new();
    for page in 1.. {
        let page = NumberedPage {
            page,
            size: PAGE_SIZE,
        };
        let listed = applications::list(vault, tenant.into(), &Filter::default(), page).await?;
        if listed.applications.is_empty() {
            break;
        }
        all.extend(listed.applications);
    }
    let to_json = |app: &Application| {
        let (kind, keys) = (app.kind.name(), app.keys.len());
        json!({"id": app.id, "type": kind, "keys": keys, "name": app.name})
    };
    let to_line = |app: &Application| {
        let (kind, keys) = (app.kind.name(), app.keys.len());
        let noun = if keys == 1 { "key" } else { "keys" };
        format!("{}  {kind:10}  {keys} {noun}  {}", app.id, app.name)
    };
    print_list(&all, to_json, to_line);
    Ok(())
}
