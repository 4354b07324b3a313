//! The reference deployment of deploy/ha on one machine: six namespaces, real servers, real certificates.

mod backup;
pub(crate) mod certificates;
pub(crate) mod command;
mod database;
mod disk;
mod edge;
mod equip;
mod files;
mod guard;
mod machine;
mod network;
mod node;
mod probe;
pub(crate) mod vault;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use self::certificates::Authority;
pub(crate) use self::database::Database;
use self::disk::Disk;
use self::edge::Edge;
pub(crate) use self::equip::STANDBY_PORT;
use self::files::Templates;
use self::guard::Guard;
use self::machine::Machine;
use self::network::Network;
pub(crate) use self::node::Node;

/// The names that certificates are made for, and that clients verify.
const DATABASE_NAME: &str = "db.cloakroom.internal";
const API_NAME: &str = "vault.cloakroom.internal";

const DATABASES: [(&str, u8); 3] = [("db1", 11), ("db2", 12), ("db3", 13)];
const NODES: [(&str, u8); 2] = [("app1", 21), ("app2", 22)];

/// What a cluster is made from.
pub(crate) struct Options {
    /// The vault's program.
    pub(crate) binary: PathBuf,
    /// The folder deploy/ha.
    pub(crate) templates: PathBuf,
    /// The table of limits that ships.
    pub(crate) limits: PathBuf,
    pub(crate) disk_mb: u64,
    pub(crate) keeps_folder: bool,
}

/// Everything that runs; taken down when it is dropped.
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
    /// Only sabotage turns it off.
    pub(crate) is_synchronous: AtomicBool,
    pub(crate) guard: Guard,
}

/// Passwords of a run.
struct Secrets {
    superuser: String,
    replication: String,
    rewind: String,
    owner: String,
    node: String,
    redis: String,
}

impl Secrets {
    fn make() -> Result<Self> {
        Ok(Self {
            superuser: files::secret()?,
            replication: files::secret()?,
            rewind: files::secret()?,
            owner: files::secret()?,
            node: files::secret()?,
            redis: files::secret()?,
        })
    }
}

impl Cluster {
    /// Makes the machines and starts what runs on them, up to a database with its standbys.
    pub(crate) async fn start(options: Options) -> Result<Self> {
        let guard = Guard::start(options.keeps_folder)?;
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
        cluster.equip()?;
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
        let settled = self.wait_until_settled(Duration::from_secs(120)).await;
        settled.with_context(|| {
            let tails = self.databases.iter().map(|database| {
                let machine = &database.machine;
                machine.log_tail("etcd") + &machine.log_tail("patroni")
            });
            tails.collect::<String>()
        })
    }

    /// Starts the nodes, and what is in front of them.
    pub(crate) async fn start_nodes(&self) -> Result<()> {
        for node in &self.nodes {
            node.start(&self.binary)?;
        }
        for node in &self.nodes {
            node.wait_until_ready().await?;
        }
        self.edge.start_proxy()
    }

    /// Whoever may write at this moment.
    pub(crate) async fn primary(&self) -> Option<&Database> {
        for database in &self.databases {
            if database.is_primary().await {
                return Some(database);
            }
        }
        None
    }

    /// The primary, once there is one.
    pub(crate) async fn wait_for_primary(&self) -> Result<&Database> {
        let asked_at = Instant::now();
        loop {
            if let Some(primary) = self.primary().await {
                return Ok(primary);
            }
            if asked_at.elapsed() > Duration::from_secs(90) {
                bail!("no database machine becomes the primary");
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

    /// A primary, both standbys streaming from it, and one of them synchronous.
    pub(crate) async fn wait_until_settled(&self, limit: Duration) -> Result<()> {
        let asked_at = Instant::now();
        let mut told = String::new();
        while asked_at.elapsed() < limit {
            if let Some(primary) = self.primary().await {
                let statement =
                    "select count(*) || ' ' || count(*) filter (where sync_state = 'sync')
                    from pg_stat_replication where state = 'streaming'";
                let is_synchronous = self.is_synchronous.load(Ordering::Relaxed);
                let wanted = if is_synchronous { "2 1" } else { "2 0" };
                told = match primary.sql("postgres", statement).await {
                    Ok(told) if told == wanted && self.are_standbys_ready(primary).await => {
                        return Ok(());
                    }
                    Ok(told) => format!("standbys and synchronous ones: {told}"),
                    Err(error) => error.to_string(),
                };
            }
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
        bail!("the database machines do not settle; {told}")
    }

    /// A standby that streams may still be on its way to a state that it could take over from.
    async fn are_standbys_ready(&self, primary: &Database) -> bool {
        for standby in self.standbys(primary) {
            if !standby.is_standby().await {
                return false;
            }
        }
        true
    }

    /// From here on the two do not hear of each other; everybody else hears both.
    pub(crate) async fn cut(&self, one: &Machine, other: &Machine) -> Result<()> {
        self.network.lose(one.name, &other.address).await?;
        self.network.lose(other.name, &one.address).await
    }

    pub(crate) async fn heal(&self, one: &Machine, other: &Machine) -> Result<()> {
        self.network.find_again(one.name, &other.address).await?;
        self.network.find_again(other.name, &one.address).await
    }

    /// Where clients reach the vault.
    pub(crate) fn api_url(&self) -> String {
        format!("https://{}:8443", self.edge.machine.address)
    }

    /// The ends of all logs, for a failure that nobody foresaw.
    pub(crate) fn log_tails(&self) -> String {
        let nodes = self.nodes.iter().map(|node| &node.machine);
        let nodes = nodes.map(|machine| machine.log_tail("cloakroom"));
        let databases = self.databases.iter();
        let databases = databases.map(|database| database.machine.log_tail("patroni"));
        nodes.chain(databases).collect()
    }
}

async fn machine(
    guard: &Guard,
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
