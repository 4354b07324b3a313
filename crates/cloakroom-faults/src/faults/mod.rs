//! What is done to the cluster while clients ask: one file each, one row each.

mod databases {
    //! Faults of database machines.
    pub(super) mod disk_full;
    pub(super) mod machine_death;
    pub(super) mod old_backup;
    pub(super) mod partition_primary;
    pub(super) mod pool_exhaustion;
    pub(super) mod power_cut;
    pub(super) mod primary_kill;
    pub(super) mod primary_stop;
    pub(super) mod slow_database;
    pub(super) mod standby_loss;
}
mod nodes {
    //! Faults of nodes.
    pub(super) mod clock_jump;
    pub(super) mod node_kill;
    pub(super) mod node_stop;
    pub(super) mod partition_nodes;
    pub(super) mod rolling_upgrade;
}
mod redis {
    //! Faults of Redis.
    pub(super) mod partition_redis;
    pub(super) mod redis_kill;
}

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;

use crate::clients::Load;
use crate::cluster::Cluster;

/// What a fault has to work with.
pub(crate) struct Stage {
    pub(crate) cluster: Cluster,
    /// How long things stay broken that could stay so for any time.
    pub(crate) hold: Duration,
    /// Another release of the vault's program, to upgrade from.
    pub(crate) old_binary: Option<PathBuf>,
}

impl Stage {
    async fn wait(&self) -> Result<()> {
        tokio::time::sleep(self.hold).await;
        Ok(())
    }
}

type Strike =
    for<'a> fn(&'a Stage, &'a Arc<Load>) -> Pin<Box<dyn Future<Output = Result<()>> + 'a>>;

pub(crate) struct Fault {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    /// How long writes may be away at most, where that is promised.
    pub(crate) writes_within: Option<Duration>,
    /// The same for what is no tenant's own, which a standby can serve.
    pub(crate) catalog_within: Option<Duration>,
    /// Whether it belongs to the short run.
    pub(crate) is_short: bool,
    /// Breaks something, and mends it before it returns.
    pub(crate) strike: Strike,
}

const PROMISED: Option<Duration> = Some(Duration::from_secs(30));
/// Until load balancers have noticed.
const SOON: Option<Duration> = Some(Duration::from_secs(10));

pub(crate) const FAULTS: &[Fault] = &[
    Fault {
        name: "calm",
        what: "nothing is broken; what the others are compared with",
        writes_within: None,
        catalog_within: None,
        is_short: false,
        strike: |stage, _load| Box::pin(stage.wait()),
    },
    Fault {
        name: "node-kill",
        what: "nodes are killed, one after the other",
        writes_within: None,
        catalog_within: None,
        is_short: true,
        strike: |stage, load| Box::pin(nodes::node_kill::strike(stage, load)),
    },
    Fault {
        name: "node-stop",
        what: "nodes stand still and go on, one after the other",
        writes_within: None,
        catalog_within: None,
        is_short: false,
        strike: |stage, load| Box::pin(nodes::node_stop::strike(stage, load)),
    },
    Fault {
        name: "partition-nodes",
        what: "a node and the primary do not reach each other",
        writes_within: None,
        catalog_within: None,
        is_short: false,
        strike: |stage, load| Box::pin(nodes::partition_nodes::strike(stage, load)),
    },
    Fault {
        name: "clock-jump",
        what: "the clocks of nodes are hours ahead, then hours behind",
        writes_within: None,
        catalog_within: None,
        is_short: false,
        strike: |stage, load| Box::pin(nodes::clock_jump::strike(stage, load)),
    },
    Fault {
        name: "rolling-upgrade",
        what: "nodes are drained, stopped and replaced, one after the other",
        writes_within: None,
        catalog_within: None,
        is_short: false,
        strike: |stage, load| Box::pin(nodes::rolling_upgrade::strike(stage, load)),
    },
    Fault {
        name: "redis-kill",
        what: "Redis is killed and comes back empty",
        writes_within: None,
        catalog_within: None,
        is_short: false,
        strike: |stage, load| Box::pin(redis::redis_kill::strike(stage, load)),
    },
    Fault {
        name: "partition-redis",
        what: "no node reaches Redis",
        writes_within: None,
        catalog_within: None,
        is_short: false,
        strike: |stage, load| Box::pin(redis::partition_redis::strike(stage, load)),
    },
    Fault {
        name: "primary-kill",
        what: "the primary's PostgreSQL is killed",
        writes_within: PROMISED,
        catalog_within: SOON,
        is_short: true,
        strike: |stage, load| Box::pin(databases::primary_kill::strike(stage, load)),
    },
    Fault {
        name: "primary-stop",
        what: "the primary's PostgreSQL stands still and goes on",
        writes_within: None,
        catalog_within: SOON,
        is_short: false,
        strike: |stage, load| Box::pin(databases::primary_stop::strike(stage, load)),
    },
    Fault {
        name: "machine-death",
        what: "the primary's machine dies, with all that runs on it",
        writes_within: PROMISED,
        catalog_within: SOON,
        is_short: true,
        strike: |stage, load| Box::pin(databases::machine_death::strike(stage, load)),
    },
    Fault {
        name: "partition-primary",
        what: "the primary reaches neither standbys nor etcd, but nodes reach it",
        writes_within: PROMISED,
        catalog_within: SOON,
        is_short: false,
        strike: |stage, load| Box::pin(databases::partition_primary::strike(stage, load)),
    },
    Fault {
        name: "standby-loss",
        what: "both standbys are gone, and no write may be acknowledged",
        writes_within: None,
        catalog_within: None,
        is_short: true,
        strike: |stage, load| Box::pin(databases::standby_loss::strike(stage, load)),
    },
    Fault {
        name: "slow-database",
        what: "every answer of the database comes late",
        writes_within: None,
        catalog_within: None,
        is_short: false,
        strike: |stage, load| Box::pin(databases::slow_database::strike(stage, load)),
    },
    Fault {
        name: "pool-exhaustion",
        what: "a lock is held until all connections wait for it",
        writes_within: None,
        catalog_within: None,
        is_short: false,
        strike: |stage, load| Box::pin(databases::pool_exhaustion::strike(stage, load)),
    },
    Fault {
        name: "disk-full",
        what: "the primary's disk is full",
        writes_within: None,
        catalog_within: None,
        is_short: false,
        strike: |stage, load| Box::pin(databases::disk_full::strike(stage, load)),
    },
    Fault {
        name: "power-cut",
        what: "all database machines lose power at once",
        writes_within: None,
        catalog_within: None,
        is_short: true,
        strike: |stage, load| Box::pin(databases::power_cut::strike(stage, load)),
    },
    Fault {
        name: "old-backup",
        what: "a backup is restored beside the cluster, and what was deleted since is erased again",
        writes_within: None,
        catalog_within: None,
        is_short: false,
        strike: |stage, load| Box::pin(databases::old_backup::strike(stage, load)),
    },
];

/// The fault of this name.
pub(crate) fn find(name: &str) -> Option<&'static Fault> {
    FAULTS.iter().find(|fault| fault.name == name)
}
