//! Bootstrapping by hand: root key, tenants, applications and keys, each saying what comes next.

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand, ValueEnum};
use cloakroom::access::{
    self, ALL_PERMISSIONS, AccessRule, ApplicationKind, Container, Grants, NewApplication,
    NewTenant, Permission, PermissionSet, TenantKind, TenantSettings, Transform,
};
use cloakroom::config::Config;
use cloakroom::{Vault, keys};
use uuid::Uuid;

#[derive(Subcommand)]
pub(crate) enum RootKeyCommand {
    /// Write a new root key to a file that only you can read
    Create {
        /// Where to write it; an existing file is never overwritten
        file: PathBuf,
    },
}

#[derive(Subcommand)]
pub(crate) enum TenantCommand {
    /// Make a tenant and its keys
    Create {
        /// A name for people
        #[arg(long)]
        name: String,
        /// Whether its data is real
        #[arg(long = "type", value_enum, value_name = "TYPE")]
        kind: TenantType,
        /// How its tokens are treated, such as `deduplicate_tokens=true`; repeatable
        #[arg(long = "setting", value_name = "NAME=TEXT")]
        settings: Vec<String>,
    },
    /// List the tenants
    List,
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

#[derive(Subcommand)]
pub(crate) enum AppCommand {
    /// Make an application
    Create(AppCreate),
}

#[derive(Args)]
pub(crate) struct AppCreate {
    /// The tenant it belongs to
    #[arg(long)]
    tenant: Uuid,
    /// A name for people
    #[arg(long)]
    name: String,
    /// `private` for your servers, `public` for browsers and apps, `management` to administrate
    #[arg(long = "type", value_enum, value_name = "TYPE")]
    kind: AppType,
    /// A permission in all containers; can be repeated
    #[arg(long = "permission", value_name = "PERMISSION")]
    permissions: Vec<String>,
    /// Permissions in one container: `CONTAINER TRANSFORM PERMISSION[,PERMISSION]`, the first rule
    /// first, such as `/pci/ reveal token:read,token:use`; can be repeated
    #[arg(long = "rule", value_name = "RULE")]
    rules: Vec<String>,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum AppType {
    Private,
    Public,
    Management,
}

#[derive(Subcommand)]
pub(crate) enum KeyCommand {
    /// Make a key; it is shown once
    Create {
        /// The tenant of the application
        #[arg(long)]
        tenant: Uuid,
        /// The application that will use it
        #[arg(long)]
        app: Uuid,
    },
}

pub(crate) fn root_key(command: &RootKeyCommand) -> anyhow::Result<()> {
    let RootKeyCommand::Create { file } = command;
    keys::create_file(file)?;
    say!("wrote a new root key to {}", file.display());
    say!("keep a copy somewhere safe: without it, nothing in the vault can be opened");
    say!("next: set `root_key.file`, then `cloakroom migrate`");
    Ok(())
}

fn tenant_settings(given: &[String]) -> anyhow::Result<TenantSettings> {
    let mut settings = TenantSettings::default();
    for pair in given {
        let (name, text) = pair
            .split_once('=')
            .with_context(|| format!("--setting {pair} is not written NAME=TEXT"))?;
        settings.set(name, text)?;
    }
    Ok(settings)
}

pub(crate) async fn tenant(config: Config, command: TenantCommand) -> anyhow::Result<()> {
    match command {
        TenantCommand::Create {
            name,
            kind,
            settings,
        } => {
            let settings = tenant_settings(&settings)?;
            // The first tenant brings the vault's own keys along.
            let vault = Vault::open_or_initialize(config).await;
            let vault = vault.context("the vault does not open")?;
            let new = NewTenant {
                name,
                kind: kind.kind(),
                settings,
            };
            let tenant = access::create_tenant(&vault, new).await?;
            let id = tenant.id.uuid;
            say!("tenant {id}");
            say!(
                "next: `cloakroom app create --tenant {id} --name NAME --type private \
                 --rule \"/ reveal token:create,token:read,token:update,token:search,token:delete\"`"
            );
        }
        TenantCommand::List => {
            let vault = open(config).await?;
            for tenant in access::list_tenants(&vault).await? {
                say!(
                    "{}  {:10}  {}",
                    tenant.id.uuid,
                    tenant.kind.name(),
                    tenant.name
                );
            }
        }
    }
    Ok(())
}

pub(crate) async fn app(config: Config, command: AppCommand) -> anyhow::Result<()> {
    let AppCommand::Create(create) = command;
    let vault = open(config).await?;
    let tenant = access::find_tenant(&vault, create.tenant).await?;
    let kind = match create.kind {
        AppType::Private => ApplicationKind::Private,
        AppType::Public => ApplicationKind::Public,
        AppType::Management => ApplicationKind::Management,
    };
    let grants = Grants {
        permissions: parse_permissions(create.permissions.iter().map(String::as_str))?,
        rules: parse_rules(&create.rules)?,
    };
    let new = NewApplication {
        name: create.name,
        kind,
        grants,
    };
    let application = access::create_application(&vault, tenant.id, new).await?;
    say!("application {}", application.id);
    say!(
        "next: `cloakroom key create --tenant {} --app {}`",
        tenant.id.uuid,
        application.id
    );
    Ok(())
}

pub(crate) async fn key(config: Config, command: KeyCommand) -> anyhow::Result<()> {
    let KeyCommand::Create { tenant, app } = command;
    let vault = open(config).await?;
    let tenant = access::find_tenant(&vault, tenant).await?;
    let created = access::create_key(&vault, &tenant, app).await?;
    say!("{}", created.key.expose());
    say!(
        "this is the only time the key is shown; its id is {}",
        created.id
    );
    say!("next: `cloakroom serve`, and send the key in the BT-API-KEY header");
    Ok(())
}

/// Every permission that an application of this kind may hold in all containers.
pub(crate) fn all_permissions(kind: ApplicationKind) -> PermissionSet {
    ALL_PERMISSIONS
        .iter()
        .copied()
        .filter(|permission| permission.fits(kind))
        .collect()
}

pub(crate) async fn open(config: Config) -> anyhow::Result<Vault> {
    Vault::open(config).await.context("the vault does not open")
}

fn parse_permissions<'a>(names: impl Iterator<Item = &'a str>) -> anyhow::Result<PermissionSet> {
    names
        .map(|name| {
            Permission::parse(name).with_context(|| format!("there is no permission `{name}`"))
        })
        .collect()
}

fn parse_rules(rules: &[String]) -> anyhow::Result<Vec<AccessRule>> {
    let mut parsed = Vec::new();
    for (text, priority) in rules.iter().zip(1..) {
        let words: Vec<&str> = text.split_whitespace().collect();
        let [container, transform, permissions] = words[..] else {
            bail!("a rule is three words: `CONTAINER TRANSFORM PERMISSION[,PERMISSION]`");
        };
        parsed.push(AccessRule {
            description: format!("{transform} in {container}"),
            priority,
            container: Container::parse(container)
                .map_err(|rule| anyhow::anyhow!("the container {container} {rule}"))?,
            transform: match transform {
                "redact" => Transform::Redact,
                "mask" => Transform::Mask,
                "reveal" => Transform::Reveal,
                _ => bail!("a transform is `redact`, `mask` or `reveal`, not `{transform}`"),
            },
            permissions: parse_permissions(permissions.split(','))?,
        });
    }
    Ok(parsed)
}
