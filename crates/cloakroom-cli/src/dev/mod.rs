//! `cloakroom dev`: runs a complete, temporary vault on this machine.

mod ready;
mod scratch;
mod shop;
mod tenant;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::pin::pin;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use cloakroom::access::TenantKind;
use cloakroom::admin::Readiness;
use cloakroom::config::{Config, Format, Level, Secret};
use cloakroom::telemetry::Telemetry;
use cloakroom::tenants::{self, NewTenant};
use cloakroom::{Node, keys, storage, telemetry};
use cloakroom_scratch::Postgres;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use self::ready::{Keys, Ready, Threeds, announce};
use self::scratch::Scratch;
use self::shop::{Shop, ShopArguments};
use self::tenant::add_members;
use crate::node::{Listeners, stop_signal};
use crate::simulator_process::SimulatorProcess;

const DEFAULT_PORT: u16 = 8080;
/// How long to wait until the nodes are ready, and how often to check.
const READY_TIMEOUT: Duration = Duration::from_secs(120);
const READY_POLL: Duration = Duration::from_millis(50);

#[derive(Args)]
pub(crate) struct DevArguments {
    /// Address to listen on; loopback addresses only [default: 127.0.0.1:8080, or a free port]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// Use this database instead of a temporary one; it must be new to Cloakroom
    #[arg(long, value_name = "URL")]
    database_url: Option<String>,
    /// Name of the tenant
    #[arg(long, value_name = "NAME", default_value = "Development")]
    tenant_name: String,
    /// Enforce rate limits, as `cloakroom serve` does
    #[arg(long)]
    limits: bool,
    /// Delete the tenant on the first `DELETE /tenants/self`, as the hosted service does
    #[arg(long)]
    immediate_deletion: bool,
    /// Number of nodes; more than one share a temporary Redis
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u8).range(1..=9))]
    nodes: u8,
    /// URL that clients use, if a load balancer is in front [default: the first node's address]
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    #[command(flatten)]
    shop: ShopArguments,
    /// Print one JSON line when ready, for scripts
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(arguments: DevArguments) -> anyhow::Result<()> {
    let stop = stop_signal()?;
    let listen = loopback(arguments.listen)?;
    let shop_server = arguments.shop.find_server()?;
    let shop = arguments.shop.start().await?;
    let folder = tempfile::tempdir().context("cannot create a temporary directory")?;
    let scratch = Scratch::start(&arguments).await?;
    let mut config = configuration(folder.path(), listen, &arguments, &scratch)?;
    let simulator = SimulatorProcess::start(folder.path()).await?;
    simulator.configure(folder.path(), &mut config)?;
    if let Some(shop) = &shop {
        shop.configure(folder.path(), &mut config)?;
    }
    let telemetry = telemetry::start(&config)?;
    let listeners = Listeners::bind(&config).await?;
    let api = listeners.api_address();
    let own_url = format!("http://{api}");
    let base_url = arguments.base_url.unwrap_or_else(|| own_url.clone());
    let browser_url = shop.as_ref().map_or(base_url.clone(), Shop::vault_url);
    config.http.base_url = Some(browser_url.parse().map_err(anyhow::Error::msg)?);
    if let Some(address) = listeners.results_address() {
        let url = format!("https://{address}");
        config.threeds.results_url = Some(url.parse().map_err(anyhow::Error::msg)?);
    }

    create_schema(&config).await?;
    let vault = Node::open_or_initialize(config.clone()).await?;
    let settings = shop.as_ref().map(Shop::tenant_settings).transpose()?;
    let new = NewTenant {
        name: arguments.tenant_name,
        kind: TenantKind::Test,
        settings: settings.unwrap_or_default(),
    };
    let tenant = tenants::create(&vault, new).await?;
    add_members(&vault, &tenant).await?;
    let keys = Keys::create(&vault, &tenant).await?;
    let shop = match shop {
        Some(shop) => Some(shop.open(&vault, &tenant, &keys.management, api).await?),
        None => None,
    };
    let shop_ready = shop.as_ref().map(|shop| &shop.ready);
    let _shop_process = match (&shop_server, shop_ready) {
        (Some(server), Some(ready)) => Some(server.start(ready)?),
        _ => None,
    };
    let others = more_nodes(config, arguments.nodes - 1).await?;
    let node_urls = others
        .iter()
        .map(|(listeners, _)| format!("http://{}", listeners.api_address()));
    let ready = Ready {
        base_url,
        admin_url: format!("http://{}", listeners.admin_address()),
        node_urls: std::iter::once(own_url).chain(node_urls).collect(),
        tenant_id: tenant.id.uuid,
        keys,
        threeds: Threeds {
            acs_url: simulator.ready.acs_url.clone(),
        },
        shop: shop_ready,
    };
    let nodes = std::iter::once((listeners, vault)).chain(others);
    let profile = folder.path().join("browser");
    let announce = || announce(&ready, &profile, arguments.limits, arguments.json);
    run_all(nodes, &telemetry, announce, stop).await?;
    scratch.stop().await
}

/// Starts additional nodes of the same vault, each on its own port.
async fn more_nodes(mut config: Config, count: u8) -> anyhow::Result<Vec<(Listeners, Node)>> {
    let mut nodes = Vec::new();
    config.http.listen.set_port(0);
    for _ in 0..count {
        let vault = Node::open(config.clone()).await?;
        nodes.push((Listeners::bind(&config).await?, vault));
    }
    Ok(nodes)
}

/// Runs all nodes until `stop`, and announces them when all are ready. What `announce` returns lives until then.
async fn run_all<T>(
    nodes: impl Iterator<Item = (Listeners, Node)>,
    telemetry: &Telemetry,
    announce: impl FnOnce() -> anyhow::Result<T>,
    stop: impl Future<Output = ()>,
) -> anyhow::Result<()> {
    let (stopping, is_stopping) = watch::channel(());
    let mut running = JoinSet::new();
    let mut readiness = Vec::new();
    for (listeners, vault) in nodes {
        readiness.push(listeners.readiness());
        let (telemetry, mut is_stopping) = (telemetry.clone(), is_stopping.clone());
        let stop = async move {
            // Fails when the sender is dropped, which also means stop.
            let _ended = is_stopping.changed().await;
        };
        running.spawn(listeners.run(vault, telemetry, stop));
    }
    let mut stop = pin!(stop);
    let result = tokio::select! {
        () = &mut stop => Ok(()),
        ready = until_ready(&readiness) => match ready.and_then(|()| announce()) {
            Ok(_announced) => {
                stop.await;
                Ok(())
            }
            Err(error) => Err(error),
        },
    };
    drop(stopping);
    let stopped: anyhow::Result<()> = running.join_all().await.into_iter().collect();
    result.and(stopped)
}

/// Returns when every node is ready, 3-D Secure included.
async fn until_ready(nodes: &[Readiness]) -> anyhow::Result<()> {
    let all_ready = async {
        while !nodes.iter().all(|node| node.snapshot().is_ready()) {
            sleep(READY_POLL).await;
        }
    };
    if timeout(READY_TIMEOUT, all_ready).await.is_err() {
        let unready = nodes.iter().map(Readiness::snapshot);
        let failing = unready.flat_map(|node| node.checks);
        let failing = failing.filter_map(|(name, outcome)| Some((name, outcome.err()?)));
        let reasons: Vec<String> = failing
            .map(|(name, reason)| format!("{name}: {reason}"))
            .collect();
        bail!("the nodes did not become ready: {}", reasons.join("; "));
    }
    Ok(())
}

/// The development keys and the root key in a temporary file must not be reachable from other hosts.
fn loopback(requested: Option<SocketAddr>) -> anyhow::Result<SocketAddr> {
    let address = match requested {
        Some(address) => address,
        None => {
            let default = SocketAddr::from((Ipv4Addr::LOCALHOST, DEFAULT_PORT));
            let is_free = std::net::TcpListener::bind(default).is_ok();
            if is_free {
                default
            } else {
                SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
            }
        }
    };
    if !address.ip().is_loopback() {
        bail!(
            "`cloakroom dev` listens on loopback addresses only; use `cloakroom serve` for others"
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
    // A test suite sends more requests per second than a test tenant may send in ten.
    config.limits.enabled = arguments.limits;
    if !arguments.limits {
        config.threeds.refusal_limit = 1_000;
    }
    config.tenants.immediate_deletion = arguments.immediate_deletion;
    Ok(config)
}

/// Rejects a database that a vault has used before, whatever its content.
async fn create_schema(config: &Config) -> anyhow::Result<()> {
    let connection = storage::connect_once(&config.database).await?;
    if storage::applied(&connection).await? > 0 {
        bail!("the database of --database-url must be new to Cloakroom");
    }
    storage::migrate(&connection).await?;
    Ok(())
}
