//! `cloakroom dev`: runs a complete, temporary vault on this machine.

mod environment;
mod processors;
mod ready;
mod scratch;
mod shop;
mod state;
mod tenant;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use cloakroom::access::TenantKind;
use cloakroom::admin::Readiness;
use cloakroom::config::{self, Config, Environment, Secret};
use cloakroom::telemetry::Telemetry;
use cloakroom::tenants::NewTenant;
use cloakroom::{Node, storage, telemetry};
use cloakroom_scratch::Postgres;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use self::processors::Processors;
use self::ready::{Announcement, Ready, Threeds, announce, announce_start};
use self::scratch::Scratch;
use self::shop::{Shop, ShopArguments};
use crate::node::{Listeners, stop_signal};
use crate::output::is_json;
use crate::simulator_process::SimulatorProcess;

/// Defaults of settings for `cloakroom dev`: a quiet log for people, and a free port for the admin listener. Configuration
/// file and environment override them.
const DEFAULTS: [(&str, &str); 3] = [
    ("log.level", "warn"),
    ("log.format", "text"),
    ("admin.listen", "127.0.0.1:0"),
];
/// Defaults without `--limits`: a test suite sends more requests per second than a test tenant may send in ten.
const UNLIMITED: [(&str, &str); 2] = [
    ("limits.enabled", "false"),
    ("threeds.refusal_limit", "1000"),
];

const DEFAULT_PORT: u16 = 8080;
/// How long to wait until the nodes are ready, and how often to check.
const READY_TIMEOUT: Duration = Duration::from_secs(120);
const READY_POLL: Duration = Duration::from_millis(50);

#[derive(Args)]
pub(crate) struct DevArguments {
    /// Address to listen on, such as 127.0.0.1:9000; loopback addresses only [default: 127.0.0.1:8080, or a free port]
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address)]
    listen: Option<SocketAddr>,
    /// Use this database instead of a temporary one; it must be new to Cloakroom
    #[arg(long, value_name = "URL")]
    database_url: Option<String>,
    /// Keep the database, the root key, the tenant and its API keys in this folder, and continue with them next time
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["database_url", "shop"])]
    data: Option<PathBuf>,
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
    /// Also simulate payment processors, for the charge guides
    #[arg(long, conflicts_with = "shop")]
    processors: bool,
    /// Write URL, keys and other variables to this file when ready, as `export` lines
    #[arg(long, value_name = "FILE")]
    env_file: Option<PathBuf>,
    /// Print one JSON line when ready, for scripts
    #[arg(long)]
    json: bool,
}

impl DevArguments {
    /// Defaults of settings; configuration file and environment override them.
    pub(crate) fn defaults(&self) -> Vec<(&'static str, &'static str)> {
        let mut defaults = DEFAULTS.to_vec();
        if !self.limits {
            defaults.extend(UNLIMITED);
        }
        defaults
    }
}

/// Runs a vault with the settings of `config`, except for what a development vault has of its own: addresses, servers, keys
/// and simulated card networks.
pub(crate) async fn run(config: Config, arguments: DevArguments) -> anyhow::Result<()> {
    let signal = stop_signal()?;
    let (started, mut has_started) = oneshot::channel();
    let (stop, stopped) = oneshot::channel::<()>();
    let stopped = async {
        // Fails when the sender is dropped, which also means stop.
        let _ended = stopped.await;
    };
    let mut vault = pin!(run_vault(config, arguments, started, stopped));
    tokio::select! {
        result = &mut vault => result,
        () = signal => match has_started.try_recv() {
            Ok(()) => {
                drop(stop);
                vault.await
            }
            // Dropping an incomplete start stops its servers and deletes their folders.
            Err(_) => Ok(()),
        },
    }
}

/// Starts a vault, sends `started`, and runs the vault until `stop`.
async fn run_vault(
    config: Config,
    arguments: DevArguments,
    started: oneshot::Sender<()>,
    stop: impl Future<Output = ()>,
) -> anyhow::Result<()> {
    if !arguments.json {
        announce_start();
    }
    let listen = loopback(&config, arguments.listen)?;
    let shop_server = arguments.shop.find_server()?;
    let shop = arguments.shop.start().await?;
    let processors = Processors::start(arguments.processors).await?;
    let folder = tempfile::tempdir().context("cannot create a temporary directory")?;
    let data = arguments.data.clone();
    let scratch = Scratch::start(&arguments).await?;
    let root_key = state::root_key(data.as_deref().unwrap_or(folder.path()))?;
    let mut config = configuration(config, listen, &arguments, &scratch)?;
    let options = announcement(&arguments, &config, folder.path());
    config.root_key.file = Some(root_key);
    let simulator = SimulatorProcess::start(folder.path()).await?;
    simulator.configure(folder.path(), &mut config)?;
    permit_destinations(
        shop.as_ref(),
        processors.as_ref(),
        folder.path(),
        &mut config,
    )?;
    let config_file = environment::write_configuration(folder.path(), &config)?;
    let telemetry = telemetry::start(&config)?;
    let listeners = Listeners::bind(&config).await?;
    let api = listeners.api_address();
    let own_url = format!("http://{api}");
    let base_url = arguments.base_url.unwrap_or_else(|| own_url.clone());
    let browser_url = shop.as_ref().map_or(base_url.clone(), Shop::vault_url);
    set_urls(&mut config, &browser_url, listeners.results_address())?;
    create_schema(&config, data.is_some()).await?;
    let vault = Node::open_or_initialize(config.clone()).await?;
    let settings = shop.as_ref().map(Shop::tenant_settings).transpose()?;
    let new = NewTenant {
        name: arguments.tenant_name,
        kind: TenantKind::Test,
        settings: settings.unwrap_or_default(),
    };
    let (tenant, keys) = state::tenant(&vault, new, data.as_deref()).await?;
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
    let url_of = |(listeners, _): &(Listeners, _)| format!("http://{}", listeners.api_address());
    let node_urls = others.iter().map(url_of);
    let ready = Ready {
        base_url,
        admin_url: format!("http://{}", listeners.admin_address()),
        node_urls: std::iter::once(own_url).chain(node_urls).collect(),
        tenant_id: tenant.id.uuid,
        keys,
        threeds: Threeds {
            acs_url: simulator.ready.acs_url.clone(),
        },
        config_file,
        processors: Processors::variables(processors.as_ref()),
        shop: shop_ready,
    };
    let nodes = std::iter::once((listeners, vault)).chain(others);
    // The receiver exists as long as this future.
    let _sent = started.send(());
    run_all(nodes, &telemetry, || announce(&ready, &options), stop).await?;
    scratch.stop().await
}

/// Lets the proxy reach the demo shop's processors, or those of `--processors`.
fn permit_destinations(
    shop: Option<&Shop>,
    processors: Option<&Processors>,
    folder: &Path,
    config: &mut Config,
) -> anyhow::Result<()> {
    match (shop, processors) {
        (Some(shop), _) => shop.configure(folder, config),
        (None, Some(processors)) => processors.configure(folder, config),
        (None, None) => Ok(()),
    }
}

fn announcement(arguments: &DevArguments, config: &Config, folder: &Path) -> Announcement {
    Announcement {
        data: arguments.data.clone(),
        is_default_port: arguments.listen.is_none() && arguments.base_url.is_none(),
        profile: folder.join("browser"),
        env_file: arguments.env_file.clone(),
        limits: config.limits.enabled,
        json: arguments.json || is_json(),
    }
}

/// Sets the URLs that clients and card networks use.
fn set_urls(
    config: &mut Config,
    browser_url: &str,
    results: Option<SocketAddr>,
) -> anyhow::Result<()> {
    config.http.base_url = Some(browser_url.parse().map_err(anyhow::Error::msg)?);
    if let Some(address) = results {
        let url = format!("https://{address}");
        config.threeds.results_url = Some(url.parse().map_err(anyhow::Error::msg)?);
    }
    Ok(())
}

/// Starts additional nodes of the same vault, each on its own port.
async fn more_nodes(mut config: Config, count: u8) -> anyhow::Result<Vec<(Listeners, Node)>> {
    let mut nodes = Vec::new();
    config.http.listen.set_port(0);
    config.admin.listen.set_port(0);
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
fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let expected = "expected an address and a port, such as 127.0.0.1:8080";
    text.parse().map_err(|_| expected.to_owned())
}

fn loopback(config: &Config, requested: Option<SocketAddr>) -> anyhow::Result<SocketAddr> {
    if !config.admin.listen.ip().is_loopback() {
        bail!("`cloakroom dev` listens on loopback addresses only: change admin.listen");
    }
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
    mut config: Config,
    listen: SocketAddr,
    arguments: &DevArguments,
    scratch: &Scratch,
) -> anyhow::Result<Config> {
    if config.vault.environment == Environment::Production {
        bail!("`cloakroom dev` is for tests: vault.environment must not be `production`");
    }
    config.http.listen = listen;
    let scratch_url = || scratch.postgres.as_ref().map(Postgres::url);
    let database_url = arguments.database_url.clone().or_else(scratch_url);
    config.database.url = database_url.map(Secret::new);
    config.redis.url = scratch.redis.as_ref().map(|redis| Secret::new(redis.url()));
    config.root_key = config::RootKey::default();
    config.limits.enabled |= arguments.limits;
    config.tenants.immediate_deletion |= arguments.immediate_deletion;
    Ok(config)
}

/// Rejects a database that a vault has used before, whatever its content, unless it is that of `--data`.
async fn create_schema(config: &Config, is_own: bool) -> anyhow::Result<()> {
    let connection = storage::connect_once(&config.database).await?;
    if !is_own && storage::applied(&connection).await? > 0 {
        bail!("the database of --database-url must be new to Cloakroom");
    }
    storage::migrate(&connection).await?;
    Ok(())
}
