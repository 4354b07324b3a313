//! Provisions machines with certificates, passwords and the configuration files of deploy/ha.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::files::write_private;
use super::vault::{NODE_ROLE, OWNER_ROLE, high_limits};
use super::{API_NAME, Cluster, DATABASE_NAME, Database, Node};
use crate::receiver;

/// Address and ports of the HAProxy on each node for the database.
const PROXY_ADDRESS: &str = "127.0.0.1";
const PRIMARY_PORT: u16 = 5000;
pub(crate) const STANDBY_PORT: u16 = 5001;

impl Cluster {
    pub(super) fn provision(&self) -> Result<()> {
        for database in &self.databases {
            self.provision_database(database)?;
        }
        for node in &self.nodes {
            self.provision_node(node)?;
            self.route_to_database(node, &[])?;
        }
        self.provision_edge()?;
        let receiver = self.receiver_folder();
        std::fs::create_dir_all(&receiver)?;
        self.authority.provision(&receiver, &[receiver::NAME])
    }

    /// Certificate and key of the receiver of proxied requests and events.
    pub(crate) fn receiver_folder(&self) -> PathBuf {
        self.guard.folder.join("receiver")
    }

    /// The receiver is on the machine that runs the cluster.
    pub(crate) fn receiver_address(&self) -> String {
        self.network.address(1)
    }

    fn provision_database(&self, database: &Database) -> Result<()> {
        let machine = &database.machine;
        let config = database.config_folder();
        self.authority
            .provision(&config, &[DATABASE_NAME, &machine.address])?;
        let members = self.databases.iter().map(|other| &other.machine);
        let cluster: Vec<String> = members
            .clone()
            .map(|other| format!("{}=http://{}:2380", other.name, other.address))
            .collect();
        let hosts: Vec<String> = members
            .map(|other| format!("{}:2379", other.address))
            .collect();
        let etcd = self.templates.fill(
            "etcd.env",
            &[
                ("NODE", machine.name.to_owned()),
                ("ADDRESS", machine.address.clone()),
                ("ETCD_FOLDER", path_text(&database.etcd_folder())),
                ("ETCD_CLUSTER", cluster.join(",")),
            ],
        )?;
        write_private(&config.join("etcd.env"), &etcd)?;
        let patroni = self.templates.fill(
            "patroni.yml",
            &[
                ("NODE", machine.name.to_owned()),
                ("ADDRESS", machine.address.clone()),
                ("NETWORK", self.network.range()),
                ("ETCD_HOSTS", hosts.join(",")),
                ("DATABASE_PEERS", self.database_peers()),
                ("CONFIG_FOLDER", path_text(&config)),
                ("STATE_FOLDER", path_text(&database.state_folder())),
                ("DATA_FOLDER", path_text(&database.data_folder())),
                ("SHARED_BUFFERS", "128MB".to_owned()),
                ("SLOT_WAL_MAX", "1GB".to_owned()),
                ("SUPERUSER_PASSWORD", self.secrets.superuser.clone()),
                ("REPLICATION_PASSWORD", self.secrets.replication.clone()),
                ("REWIND_PASSWORD", self.secrets.rewind.clone()),
            ],
        )?;
        write_private(&config.join("patroni.yml"), &patroni)?;
        database.prepare()
    }

    /// `pg_hba.conf` rules for replication, pg_rewind and the superuser from every database machine.
    fn database_peers(&self) -> String {
        let roles = [
            "replication replicator",
            "postgres rewinder",
            "postgres postgres",
        ];
        let peers = self.databases.iter().flat_map(|database| {
            let address = &database.machine.address;
            roles.map(|role| format!("    - hostssl {role} {address}/32 scram-sha-256"))
        });
        peers.collect::<Vec<String>>().join("\n")
    }

    fn provision_node(&self, node: &Node) -> Result<()> {
        let (machine, config) = (&node.machine, node.config_folder());
        self.authority
            .provision(&config, &[API_NAME, &machine.address])?;
        let settings = self.templates.fill(
            "cloakroom.toml",
            &[
                ("ENVIRONMENT", "test".to_owned()),
                ("NODE", machine.name.to_owned()),
                ("ADDRESS", machine.address.clone()),
                ("API_NAME", API_NAME.to_owned()),
                ("EDGE_ADDRESS", self.edge.machine.address.clone()),
                ("DATABASE_NAME", DATABASE_NAME.to_owned()),
                ("REDIS_NAME", self.edge.redis_address.clone()),
                ("CONFIG_FOLDER", path_text(&config)),
                ("ALLOW_ROOT_KEY_FILE", "true".to_owned()),
            ],
        )?;
        // Not part of the reference deployment: rate limits that are never reached, and the receiver.
        let limits = config.join("limits.toml");
        std::fs::write(&limits, high_limits(&self.limits)?)?;
        let settings = format!(
            "{settings}\n[limits]\nfile = \"{}\"\n\n[egress]\nports = [{}]\nca_file = \"{}\"\n\
             allow_private_networks = [\"{address}/32\"]\nstatic_addresses = [\"{}={address}\"]\n",
            limits.display(),
            receiver::PORT,
            path_text(&config.join("ca.crt")),
            receiver::NAME,
            address = self.receiver_address(),
        );
        write_private(&config.join("cloakroom.toml"), &settings)?;
        let primary = |role, password| database_url(role, password, PROXY_ADDRESS, PRIMARY_PORT);
        let url = primary(NODE_ROLE, &self.secrets.node);
        write_private(&config.join("database.url"), &url)?;
        let url = primary(OWNER_ROLE, &self.secrets.owner);
        write_private(&config.join("owner.url"), &url)?;
        self.route_to_standby(node, STANDBY_PORT)?;
        let redis = format!(
            "rediss://cloakroom:{}@{}:6379/0",
            self.secrets.redis, self.edge.redis_address
        );
        write_private(&config.join("redis.url"), &redis)
    }

    /// Sets the local HAProxy port of the standby for a node.
    pub(crate) fn route_to_standby(&self, node: &Node, port: u16) -> Result<()> {
        let url = database_url(NODE_ROLE, &self.secrets.node, PROXY_ADDRESS, port);
        write_private(&node.config_folder().join("replica.url"), &url)
    }

    /// Sets the database addresses of a node's HAProxy: their own, or `instead`.
    pub(crate) fn route_to_database(&self, node: &Node, instead: &[String]) -> Result<()> {
        let mut servers = String::new();
        for (index, database) in self.databases.iter().enumerate() {
            let machine = &database.machine;
            let usual = format!("{}:5432", machine.address);
            let address = instead.get(index).unwrap_or(&usual);
            writeln!(
                servers,
                "    server {} {address} check addr {} port 8008",
                machine.name, machine.address
            )?;
        }
        let text = self.templates.fill(
            "haproxy-database.cfg",
            &[
                ("DATABASE_SERVERS", servers.trim_end().to_owned()),
                ("ADDRESS", node.machine.address.clone()),
            ],
        )?;
        let file = node.config_folder().join("haproxy-database.cfg");
        write_private(&file, &text)
    }

    fn provision_edge(&self) -> Result<()> {
        let (machine, config) = (&self.edge.machine, self.edge.config_folder());
        let names = [API_NAME, &machine.address, &self.edge.redis_address];
        self.authority.provision(&config, &names)?;
        let mut servers = String::new();
        for node in &self.nodes {
            let machine = &node.machine;
            writeln!(
                servers,
                "    server {} {}:8443",
                machine.name, machine.address
            )?;
        }
        let proxy = self.templates.fill(
            "haproxy-api.cfg",
            &[
                ("ADDRESS", machine.address.clone()),
                ("CONFIG_FOLDER", path_text(&config)),
                ("STATE_FOLDER", path_text(&machine.folder)),
                ("API_NAME", API_NAME.to_owned()),
                ("NODE_SERVERS", servers.trim_end().to_owned()),
            ],
        )?;
        write_private(&config.join("haproxy-api.cfg"), &proxy)?;
        let redis = self.templates.fill(
            "redis.conf",
            &[
                ("ADDRESS", self.edge.redis_address.clone()),
                ("CONFIG_FOLDER", path_text(&config)),
                ("STATE_FOLDER", path_text(&machine.folder)),
                ("REDIS_PASSWORD", self.secrets.redis.clone()),
            ],
        )?;
        write_private(&config.join("redis.conf"), &redis)
    }
}

/// A database URL with the server name of the certificates.
pub(super) fn database_url(role: &str, password: &str, address: &str, port: u16) -> String {
    format!("postgres://{role}:{password}@{DATABASE_NAME}:{port}/cloakroom?hostaddr={address}")
}

fn path_text(path: &Path) -> String {
    path.display().to_string()
}
