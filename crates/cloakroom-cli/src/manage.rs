//! Managing by hand: root key, tenants, applications and keys, each saying what comes next.

use std::io::Read as _;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand, ValueEnum};
use cloakroom::access::{
    ALL_PERMISSIONS, AccessRule, ApplicationKind, Container, Grants, Permission, PermissionSet,
    Scope, Tenant, TenantKind, TenantSettings, Transform,
};
use cloakroom::api::{NumberedPage, format_utc};
use cloakroom::applications::{self, Filter, NewApplication};
use cloakroom::config::Config;
use cloakroom::idempotency::Reply;
use cloakroom::tenants::{self, NewTenant};
use cloakroom::{Vault, keys};
use cloakroom_crypto::Sensitive;
use uuid::Uuid;

use crate::limits;

/// More than the text of any key.
const KEY_BYTES_MAX: usize = 1024;

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
    /// Show and change how a tenant's tokens are treated
    Setting {
        #[arg(long)]
        tenant: Uuid,
        /// Such as `deduplicate_tokens=true`; without any, nothing changes
        #[arg(value_name = "NAME=TEXT")]
        changes: Vec<String>,
    },
    /// Show and change what a tenant may use
    Quota {
        #[arg(long)]
        tenant: Uuid,
        /// Such as `tokenize_limit=20` or `cvc_retention=30m`; `NAME=default` goes back to the
        /// deployment's; without any, nothing changes
        #[arg(value_name = "NAME=VALUE")]
        changes: Vec<String>,
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

#[derive(Subcommand)]
pub(crate) enum AppCommand {
    /// Make an application
    Create(AppCreate),
    /// List the applications of a tenant, the newest first
    List {
        /// The tenant
        #[arg(long)]
        tenant: Uuid,
    },
    /// Delete an application and its keys
    Delete {
        /// The tenant it belongs to
        #[arg(long)]
        tenant: Uuid,
        /// The application
        #[arg(long)]
        app: Uuid,
    },
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

impl AppType {
    pub(crate) fn kind(self) -> ApplicationKind {
        match self {
            Self::Private => ApplicationKind::Private,
            Self::Public => ApplicationKind::Public,
            Self::Management => ApplicationKind::Management,
        }
    }
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
    /// Take over a key of the older format, read from standard input; its holder goes on using it
    Import {
        /// The tenant of the application
        #[arg(long)]
        tenant: Uuid,
        /// The application that uses it
        #[arg(long)]
        app: Uuid,
    },
    /// List the keys of an application by their ids, the oldest first
    List {
        /// The tenant of the application
        #[arg(long)]
        tenant: Uuid,
        /// The application
        #[arg(long)]
        app: Uuid,
    },
    /// Delete a key
    Delete {
        /// The tenant of the application
        #[arg(long)]
        tenant: Uuid,
        /// The application that uses it
        #[arg(long)]
        app: Uuid,
        /// The key's id
        #[arg(long)]
        key: Uuid,
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
            let tenant = tenants::create(&vault, new).await?;
            vault.audit.close().await;
            let id = tenant.id.uuid;
            say!("tenant {id}");
            say!(
                "next: `cloakroom app create --tenant {id} --name NAME --type private \
                 --rule \"/ reveal token:create,token:read,token:update,token:search,token:delete\"`"
            );
        }
        TenantCommand::List => {
            let vault = open(config).await?;
            for tenant in tenants::list(&vault).await? {
                say!(
                    "{}  {:10}  {}",
                    tenant.id.uuid,
                    tenant.kind.name(),
                    tenant.name
                );
            }
        }
        TenantCommand::Setting { tenant, changes } => {
            limits::setting(&open(config).await?, tenant, &changes).await?;
        }
        TenantCommand::Quota { tenant, changes } => {
            limits::quota(&open(config).await?, tenant, &changes).await?;
        }
    }
    Ok(())
}

/// How long other nodes may still trust what they looked up before a deletion.
const DEAD_WITHIN: &str = "dead on every node within five seconds";

pub(crate) async fn app(config: Config, command: AppCommand) -> anyhow::Result<()> {
    match command {
        AppCommand::Create(create) => create_app(config, create).await,
        AppCommand::List { tenant } => {
            let (vault, tenant) = open_for(config, tenant).await?;
            list_apps(&vault, &tenant).await
        }
        AppCommand::Delete { tenant, app } => {
            let (vault, tenant) = open_for(config, tenant).await?;
            applications::delete(&vault, (&tenant).into(), &app.to_string()).await?;
            vault.audit.close().await;
            say!("deleted application {app}; its keys are {DEAD_WITHIN}");
            say!("tokens that it created stay");
            Ok(())
        }
    }
}

async fn create_app(config: Config, create: AppCreate) -> anyhow::Result<()> {
    let (vault, tenant) = open_for(config, create.tenant).await?;
    let kind = create.kind.kind();
    let grants = Grants {
        permissions: parse_permissions(create.permissions.iter().map(String::as_str))?,
        rules: parse_rules(&create.rules)?,
    };
    let new = NewApplication {
        name: Some(create.name),
        kind: Some(kind.name().to_owned()),
        grants: grants.into(),
        ..NewApplication::default()
    };
    let created = applications::create(&vault, (&tenant).into(), new, &Reply::none()).await?;
    vault.audit.close().await;
    let id = created.application.id;
    say!("application {id}");
    say!(
        "next: `cloakroom key create --tenant {} --app {id}`",
        tenant.id.uuid
    );
    Ok(())
}

/// Applications that are fetched at a time.
const PAGE_SIZE: usize = 100;

async fn list_apps(vault: &Vault, tenant: &Tenant) -> anyhow::Result<()> {
    for page in 1.. {
        let page = NumberedPage {
            page,
            size: PAGE_SIZE,
        };
        let listed = applications::list(vault, tenant.into(), &Filter::default(), page).await?;
        if listed.applications.is_empty() {
            break;
        }
        for application in listed.applications {
            say!(
                "{}  {:10}  {} keys  {}",
                application.id,
                application.kind.name(),
                application.keys.len(),
                application.name
            );
        }
    }
    Ok(())
}

/// The key on standard input, on a line of its own. Never an argument: those can be seen by others.
fn read_key() -> anyhow::Result<Sensitive<String>> {
    // Longer than any key, so that the text is never moved while it is read.
    let mut text = Sensitive::new(String::with_capacity(KEY_BYTES_MAX));
    std::io::stdin()
        .take(KEY_BYTES_MAX as u64)
        .read_to_string(text.expose_mut())
        .context("the key cannot be read from standard input")?;
    let key = Sensitive::new(text.expose().trim_end_matches(['\r', '\n']).to_owned());
    if key.expose().is_empty() {
        bail!("standard input is empty: `cloakroom key import ... < FILE`");
    }
    Ok(key)
}

pub(crate) async fn key(config: Config, command: KeyCommand) -> anyhow::Result<()> {
    match command {
        KeyCommand::Create { tenant, app } => {
            let (vault, tenant) = open_for(config, tenant).await?;
            let app = app.to_string();
            let created =
                applications::create_key(&vault, (&tenant).into(), &app, &Reply::none()).await?;
            vault.audit.close().await;
            say!("{}", created.key.expose());
            say!(
                "this is the only time the key is shown; its id is {}",
                created.id
            );
            say!("next: `cloakroom serve`, and send the key in the BT-API-KEY header");
        }
        KeyCommand::Import { tenant, app } => {
            let text = read_key()?;
            let (vault, tenant) = open_for(config, tenant).await?;
            let imported =
                applications::import_key(&vault, &tenant, &app.to_string(), &text).await?;
            vault.audit.close().await;
            say!("key {}", imported.id);
            say!(
                "it works on every node; next: replace it by one of `cloakroom key create` when you can"
            );
        }
        KeyCommand::List { tenant, app } => {
            let (vault, tenant) = open_for(config, tenant).await?;
            let (app, all) = (app.to_string(), Filter::default());
            for key in applications::list_keys(&vault, (&tenant).into(), &app, &all).await? {
                say!("{}  made {}", key.id, format_utc(key.created_at));
            }
        }
        KeyCommand::Delete { tenant, app, key } => {
            let (vault, tenant) = open_for(config, tenant).await?;
            let (app, id) = (app.to_string(), key.to_string());
            applications::delete_key(&vault, (&tenant).into(), &app, &id).await?;
            vault.audit.close().await;
            say!("deleted key {key}; it is {DEAD_WITHIN}");
        }
    }
    Ok(())
}

/// Opens the vault on behalf of one of its tenants.
async fn open_for(config: Config, tenant: Uuid) -> anyhow::Result<(Vault, Tenant)> {
    let vault = open(config).await?;
    let tenant = tenants::find(&vault, tenant).await?;
    Ok((vault, tenant))
}

/// The tenant with this id or name.
pub(crate) async fn tenant_named(vault: &Vault, named: &str) -> anyhow::Result<Tenant> {
    let id: Option<Uuid> = named.parse().ok();
    let is_meant = |tenant: &Tenant| Some(tenant.id.uuid) == id || tenant.name == named;
    let mut found = tenants::list(vault).await?;
    found.retain(is_meant);
    match (found.pop(), found.is_empty()) {
        (Some(tenant), true) => Ok(tenant),
        (None, _) => bail!("there is no tenant {named}; `cloakroom tenant list` shows all"),
        (Some(_), false) => bail!("several tenants are called {named}; name one by its id"),
    }
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
            scope: Scope::Container(
                Container::parse(container)
                    .map_err(|rule| anyhow::anyhow!("the container {container} {rule}"))?,
            ),
            transform: Transform::parse(transform).with_context(|| {
                format!("a transform is `redact`, `mask` or `reveal`, not `{transform}`")
            })?,
            permissions: parse_permissions(permissions.split(','))?,
        });
    }
    Ok(parsed)
}
