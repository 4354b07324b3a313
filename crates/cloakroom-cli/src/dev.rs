//! `cloakroom dev`: a whole vault on this machine, made for the moment.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use anyhow::{Context as _, bail};
use clap::Args;
use cloakroom::access::{
    AccessRule, ApplicationKind, Container, Grants, Permission, Scope, Tenant, TenantKind,
    TenantSettings, Transform,
};
use cloakroom::applications::{self, NewApplication};
use cloakroom::config::{Config, Format, Level, Secret};
use cloakroom::idempotency::Reply;
use cloakroom::members::{self, Email, NewMember, Role};
use cloakroom::telemetry::Telemetry;
use cloakroom::tenants::{self, NewTenant};
use cloakroom::{Vault, ids, keys, storage, telemetry};
use cloakroom_scratch::{Postgres, PostgresOptions, Redis, RedisOptions};
use serde::Serialize;
use tokio::sync::watch;
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::manage::all_permissions;
use crate::node::{Listeners, stop_signal};
use crate::simulated::Simulated;

const DEFAULT_PORT: u16 = 8080;

#[derive(Args)]
pub(crate) struct DevArguments {
    /// Where to listen; loopback addresses only [default: 127.0.0.1:8080, or a free port]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// Use this database instead of a scratch one; it must not hold production tenants
    #[arg(long, value_name = "URL")]
    database_url: Option<String>,
    /// What the tenant is called
    #[arg(long, value_name = "NAME", default_value = "Development")]
    tenant_name: String,
    /// Limit the rate of requests, as a node in service does
    #[arg(long)]
    limits: bool,
    /// So many nodes of one vault, with a scratch Redis between them
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u8).range(1..=9))]
    nodes: u8,
    /// What clients call it, when a load balancer stands in front [default: the first node's address]
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// Print one JSON line when ready, for programs
    #[arg(long)]
    json: bool,
}

/// What a program needs to use the vault; people get the same as text.
#[derive(Serialize)]
struct Ready {
    base_url: String,
    admin_url: String,
    /// Each node by itself.
    node_urls: Vec<String>,
    tenant_id: Uuid,
    keys: Keys,
    threeds: Threeds,
}

/// The simulated issuer.
#[derive(Serialize)]
struct Threeds {
    acs_url: String,
}

#[derive(Serialize)]
struct Keys {
    private: String,
    public: String,
    management: String,
}

pub(crate) async fn run(arguments: DevArguments) -> anyhow::Result<()> {
    let stop = stop_signal()?;
    let listen = loopback(arguments.listen)?;
    let folder = tempfile::tempdir().context("no scratch folder can be made")?;
    let scratch = Scratch::start(&arguments).await?;
    let mut config = configuration(folder.path(), listen, &arguments, &scratch)?;
    // A test suite asks for more in a second than a test tenant may in ten.
    config.limits.enabled = arguments.limits;
    let simulated = Simulated::start(folder.path()).await?;
    simulated.apply(folder.path(), &mut config)?;
    let telemetry = telemetry::start(&config)?;
    let listeners = Listeners::bind(&config).await?;
    let own_url = format!("http://{}", listeners.api_address());
    let base_url = arguments.base_url.unwrap_or_else(|| own_url.clone());
    config.http.base_url = Some(base_url.parse().map_err(anyhow::Error::msg)?);
    if let Some(address) = listeners.results_address() {
        let url = format!("https://{address}");
        config.threeds.results_url = Some(url.parse().map_err(anyhow::Error::msg)?);
    }

    make_schema(&config).await?;
    let vault = Vault::open_or_initialize(config.clone()).await?;
    let tenant = tenants::create(
        &vault,
        NewTenant {
            name: arguments.tenant_name,
            kind: TenantKind::Test,
            settings: TenantSettings::default(),
        },
    )
    .await?;
    add_people(&vault, &tenant).await?;
    let others = more_nodes(config, arguments.nodes - 1).await?;
    let node_urls = others
        .iter()
        .map(|(listeners, _)| format!("http://{}", listeners.api_address()));
    let ready = Ready {
        base_url,
        admin_url: format!("http://{}", listeners.admin_address()),
        node_urls: std::iter::once(own_url).chain(node_urls).collect(),
        tenant_id: tenant.id.uuid,
        keys: Keys {
            private: make_key(&vault, &tenant, ApplicationKind::Private).await?,
            public: make_key(&vault, &tenant, ApplicationKind::Public).await?,
            management: make_key(&vault, &tenant, ApplicationKind::Management).await?,
        },
        threeds: Threeds {
            acs_url: simulated.told.acs_url.clone(),
        },
    };
    announce(&ready, arguments.limits, arguments.json)?;
    let nodes = std::iter::once((listeners, vault)).chain(others);
    run_all(nodes, &telemetry, stop).await?;
    scratch.stop().await
}

/// The servers that are made for the moment.
struct Scratch {
    postgres: Option<Postgres>,
    redis: Option<Redis>,
}

impl Scratch {
    async fn start(arguments: &DevArguments) -> anyhow::Result<Self> {
        let postgres = arguments
            .database_url
            .is_none()
            .then(|| tokio::task::spawn_blocking(|| Postgres::start(PostgresOptions::default())));
        let redis = (arguments.nodes > 1)
            .then(|| tokio::task::spawn_blocking(|| Redis::start(RedisOptions::default())));
        Ok(Self {
            postgres: match postgres {
                Some(starting) => Some(starting.await??),
                None => None,
            },
            redis: match redis {
                Some(starting) => Some(starting.await??),
                None => None,
            },
        })
    }

    async fn stop(self) -> anyhow::Result<()> {
        tokio::task::spawn_blocking(move || {
            self.redis.map(Redis::stop).transpose()?;
            self.postgres.map(Postgres::stop).transpose()?;
            Ok(())
        })
        .await?
    }
}

/// Further nodes of the same vault, each on a port of its own.
async fn more_nodes(mut config: Config, count: u8) -> anyhow::Result<Vec<(Listeners, Vault)>> {
    let mut nodes = Vec::new();
    config.http.listen.set_port(0);
    for _ in 0..count {
        let vault = Vault::open(config.clone()).await?;
        nodes.push((Listeners::bind(&config).await?, vault));
    }
    Ok(nodes)
}

/// Runs all nodes until `stop`.
async fn run_all(
    nodes: impl Iterator<Item = (Listeners, Vault)>,
    telemetry: &Telemetry,
    stop: impl Future<Output = ()>,
) -> anyhow::Result<()> {
    let (stopping, is_stopping) = watch::channel(());
    let mut running = JoinSet::new();
    for (listeners, vault) in nodes {
        let (telemetry, mut is_stopping) = (telemetry.clone(), is_stopping.clone());
        let stop = async move {
            // An error, once the other end is gone.
            let _ended = is_stopping.changed().await;
        };
        running.spawn(listeners.run(vault, telemetry, stop));
    }
    stop.await;
    drop(stopping);
    running.join_all().await.into_iter().collect()
}

/// Development keys and a root key in a temporary file must not be reachable from elsewhere.
fn loopback(asked: Option<SocketAddr>) -> anyhow::Result<SocketAddr> {
    let address = match asked {
        Some(address) => address,
        None => {
            let usual = SocketAddr::from((Ipv4Addr::LOCALHOST, DEFAULT_PORT));
            let is_free = std::net::TcpListener::bind(usual).is_ok();
            if is_free {
                usual
            } else {
                SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
            }
        }
    };
    if !address.ip().is_loopback() {
        bail!(
            "`cloakroom dev` listens on loopback addresses only; `cloakroom serve` is for others"
        );
    }
    Ok(address)
}

fn configuration(
    folder: &Path,
    listen: SocketAddr,
    arguments: &DevArguments,
    scratch: &Scratch,
) -> anyhow::Result<Config> {
    let root_key = folder.join("root.key");
    keys::create_file(&root_key)?;
    let mut config = Config::default();
    config.http.listen = listen;
    config.admin.listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let scratch_url = || scratch.postgres.as_ref().map(Postgres::url);
    let database_url = arguments.database_url.clone().or_else(scratch_url);
    config.database.url = database_url.map(Secret::new);
    config.redis.url = scratch.redis.as_ref().map(|redis| Secret::new(redis.url()));
    config.root_key.file = Some(root_key);
    config.log.level = Level::Warn;
    config.log.format = Format::Text;
    Ok(config)
}

/// Development never touches a database that a vault has used before, whatever is in it.
async fn make_schema(config: &Config) -> anyhow::Result<()> {
    let connection = storage::connect_once(&config.database).await?;
    if storage::applied(&connection).await? > 0 {
        bail!("a database given with --database-url must be new to Cloakroom");
    }
    storage::migrate(&connection).await?;
    Ok(())
}

/// Nobody can become a member over HTTP, and lists of members are to show some.
async fn add_people(vault: &Vault, tenant: &Tenant) -> anyhow::Result<()> {
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

async fn make_key(vault: &Vault, tenant: &Tenant, kind: ApplicationKind) -> anyhow::Result<String> {
    let grants = Grants {
        permissions: all_permissions(kind),
        rules: if kind == ApplicationKind::Private {
            reveal_on_reading()?
        } else {
            Vec::new()
        },
    };
    let new = NewApplication {
        name: Some(format!("Development ({kind})")),
        kind: Some(kind.name().to_owned()),
        grants: grants.into(),
        create_key: true,
        expires_at: None,
    };
    let created = applications::create(vault, tenant.into(), new, &Reply::none()).await?;
    let key = created.key.context("the application got no key")?;
    Ok(key.key.expose().to_owned())
}

/// Answers to writes stay masked, as plain permissions have it; reading shows everything.
fn reveal_on_reading() -> anyhow::Result<Vec<AccessRule>> {
    use Permission::{TokenRead, TokenSearch, TokenUse};
    Ok(vec![AccessRule {
        description: "Read everything".to_owned(),
        priority: 1,
        scope: Scope::Container(Container::parse("/")?),
        transform: Transform::Reveal,
        permissions: [TokenRead, TokenSearch, TokenUse].into_iter().collect(),
    }])
}

fn announce(ready: &Ready, limits: bool, json: bool) -> anyhow::Result<()> {
    if json {
        say!("{}", serde_json::to_string(ready)?);
        return Ok(());
    }
    let Ready {
        base_url,
        admin_url,
        node_urls,
        tenant_id,
        keys,
        threeds,
    } = ready;
    let id = ids::new_uuid();
    let limits = match limits {
        true => "on, 50 requests in 10 seconds for each key  (`cloakroom limits show` explains)",
        false => "off  (`cloakroom dev --limits` turns them on)",
    };
    say!(
        "\
Cloakroom is running for development. All of it is gone when it stops (Ctrl-C).

  base URL        {base_url}{nodes}
  admin           {admin_url}  (/healthz, /readyz, /metrics)
  rate limits     {limits}
  3-D Secure      simulated, every code is 1234  ({acs_url}/control/messages counts)
  tenant          {tenant_id}
  private key     {private}
  public key      {public}
  management key  {management}

Keep a card, and look at it again:

curl -s {base_url}/tokens -H 'BT-API-KEY: {public}' -H 'Content-Type: application/json' \\
  -d '{{\"id\":\"{id}\",\"type\":\"card\",\"data\":{{\"number\":\"4242424242424242\",\"expiration_month\":12,\"expiration_year\":2030}}}}'

curl -s {base_url}/tokens/{id} -H 'BT-API-KEY: {private}'
",
        nodes = match node_urls.len() {
            1 => String::new(),
            _ => format!("\n  nodes           {}", node_urls.join(" ")),
        },
        acs_url = threeds.acs_url,
        private = keys.private,
        public = keys.public,
        management = keys.management,
    );
    Ok(())
}
