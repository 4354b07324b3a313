//! The reference deployment of deploy/ha on one machine: six network namespaces with real servers.

mod backup;
pub(crate) mod certificates;
pub(crate) mod command;
mod database;
mod disk;
mod edge;
mod files;
mod guard;
mod machine;
mod network;
mod node;
mod probe;
mod provision;
mod secrets;
pub(crate) mod vault;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use self::certificates::Authority;
pub(crate) use self::database::Database;
use self::disk::Disk;
use self::edge::Edge;
use self::files::Templates;
use self::guard::CleanupGuard;
use self::machine::Machine;
use self::network::Network;
pub(crate) use self::node::Node;
pub(crate) use self::provision::STANDBY_PORT;
use self::secrets::Secrets;

/// Server names of the certificates.
const DATABASE_NAME: &str = "db.cloakroom.internal";
const API_NAME: &str = "vault.cloakroom.internal";

const DATABASES: [(&str, u8); 3] = [("db1", 11), ("db2", 12), ("db3", 13)];
const NODES: [(&str, u8); 2] = [("app1", 21), ("app2", 22)];

/// Options of a cluster.
pub(crate) struct Options {
    /// The cloakroom binary.
    pub(crate) binary: PathBuf,
    /// The folder deploy/ha.
    pub(crate) templates: PathBuf,
    /// The default rate limits.
    pub(crate) limits: PathBuf,
    pub(crate) disk_mb: u64,
    pub(crate) keep_folder: bool,
}

/// The running cluster, removed on drop.
pub(crate) struct Cluster {
    pub(crate) databases: Vec<Database>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) edge: Edge,
    pub(crate) network: Network,
    pub(crate) binary: PathBuf,
    pub(crate) authority: Authority,
    templates: Templates,
    limits: PathBuf,
    secrets: Secrets,
    /// Whether replication is synchronous; only a mutation disables it.
    pub(crate) is_synchronous: AtomicBool,
    pub(crate) guard: CleanupGuard,
}

impl Cluster {
    /// Creates the machines, and starts the databases with their standbys, Redis and the proxies.
    pub(crate) async fn start(options: Options) -> Result<Self> {
        let guard = CleanupGuard::start(options.keep_folder)?;
        let network = Network::create(&guard.prefix).await?;
        let mut databases = Vec::new();
        for (name, last) in DATABASES {
            let machine = machine(&guard, &network, name, &[last]).await?;
            let disk = Disk::create(&machine.folder, options.disk_mb).await?;
            databases.push(Database { machine, disk });
        }
        let mut nodes = Vec::new();
        for (name, last) in NODES {
            let machine = machine(&guard, &network, name, &[last]).await?;
            nodes.push(Node { machine });
        }
        let edge = Edge {
            machine: machine(&guard, &network, "edge", &[30, 31]).await?,
            redis_address: network.address(31),
        };
        let cluster = Self {
            databases,
            nodes,
            edge,
            network,
            binary: options.binary,
            authority: Authority::create()?,
            templates: Templates {
                folder: options.templates,
            },
            limits: options.limits,
            secrets: Secrets::make()?,
            is_synchronous: AtomicBool::new(true),
            guard,
        };
        cluster.provision()?;
        cluster.start_databases().await?;
        cluster.edge.start_redis()?;
        for node in &cluster.nodes {
            node.start_proxy()?;
        }
        Ok(cluster)
    }

    async fn start_databases(&self) -> Result<()> {
        for database in &self.databases {
            database.start_etcd()?;
        }
        for database in &self.databases {
            database.start_patroni()?;
        }
        let healthy = self.wait_until_healthy(Duration::from_secs(120)).await;
        healthy.with_context(|| {
            let tails = self.databases.iter().map(|database| {
                let machine = &database.machine;
                machine.log_tail("etcd") + &machine.log_tail("patroni")
            });
            tails.collect::<String>()
        })
    }

    /// Starts the nodes and the load balancer.
    pub(crate) async fn start_nodes(&self) -> Result<()> {
        for node in &self.nodes {
            node.start(&self.binary)?;
        }
        for node in &self.nodes {
            node.wait_until_ready().await?;
        }
        self.edge.start_proxy()
    }

    /// The current primary.
    pub(crate) async fn primary(&self) -> Option<&Database> {
        for database in &self.databases {
            if database.is_primary().await {
                return Some(database);
            }
        }
        None
    }

    /// Waits for a primary.
    pub(crate) async fn wait_for_primary(&self) -> Result<&Database> {
        let started_at = Instant::now();
        loop {
            if let Some(primary) = self.primary().await {
                return Ok(primary);
            }
            if started_at.elapsed() > Duration::from_secs(90) {
                bail!("no database machine became the primary");
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    pub(crate) fn standbys<'a>(&'a self, primary: &Database) -> Vec<&'a Database> {
        let name = primary.machine.name;
        let others = self.databases.iter();
        others
            .filter(|database| database.machine.name != name)
            .collect()
    }

    /// Waits for a primary with two streaming standbys, one of them synchronous.
    pub(crate) async fn wait_until_healthy(&self, limit: Duration) -> Result<()> {
        let started_at = Instant::now();
        let mut status = String::new();
        while started_at.elapsed() < limit {
            if let Some(primary) = self.primary().await {
                let statement =
                    "select count(*) || ' ' || count(*) filter (where sync_state = 'sync')
                    from pg_stat_replication where state = 'streaming'";
                let is_synchronous = self.is_synchronous.load(Ordering::Relaxed);
                let expected = if is_synchronous { "2 1" } else { "2 0" };
                status = match primary.sql("postgres", statement).await {
                    Ok(counts) if counts == expected && self.are_standbys_ready(primary).await => {
                        return Ok(());
                    }
                    Ok(counts) => format!("streaming and synchronous standbys: {counts}"),
                    Err(error) => error.to_string(),
                };
            }
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
        bail!("the database machines do not recover; {status}")
    }

    /// Whether Patroni reports all standbys as ready; a streaming standby may not be able to take over yet.
    async fn are_standbys_ready(&self, primary: &Database) -> bool {
        for standby in self.standbys(primary) {
            if !standby.is_standby().await {
                return false;
            }
        }
        true
    }

    /// Partitions two machines from each other.
    pub(crate) async fn partition(&self, one: &Machine, other: &Machine) -> Result<()> {
        self.network.drop_packets(one.name, &other.address).await?;
        self.network.drop_packets(other.name, &one.address).await
    }

    pub(crate) async fn heal(&self, one: &Machine, other: &Machine) -> Result<()> {
        self.network
            .restore_packets(one.name, &other.address)
            .await?;
        self.network.restore_packets(other.name, &one.address).await
    }

    /// The URL of the load balancer.
    pub(crate) fn api_url(&self) -> String {
        format!("https://{}:8443", self.edge.machine.address)
    }

    /// The last lines of all logs, for unexpected failures.
    pub(crate) fn log_tails(&self) -> String {
        let nodes = self.nodes.iter().map(|node| &node.machine);
        let nodes = nodes.map(|machine| machine.log_tail("cloakroom"));
        let databases = self.databases.iter();
        let databases = databases.map(|database| database.machine.log_tail("patroni"));
        nodes.chain(databases).collect()
    }
}

async fn machine(
    guard: &CleanupGuard,
    network: &Network,
    name: &'static str,
    lasts: &[u8],
) -> Result<Machine> {
    let addresses: Vec<String> = lasts.iter().map(|last| network.address(*last)).collect();
    network.add(name, &addresses).await?;
    let folder = guard.folder.join(name);
    std::fs::create_dir_all(folder.join("config"))?;
    let address = addresses[0].clone();
    Ok(Machine::new(name, address, folder, network.namespace(name)))
}
