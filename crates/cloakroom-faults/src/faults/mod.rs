//! Fault injection: one module and one table row per fault.

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

use crate::clients::Workload;
use crate::cluster::Cluster;

/// The environment of a fault.
pub(crate) struct Environment {
    pub(crate) cluster: Cluster,
    /// Duration of faults that have no duration of their own.
    pub(crate) fault_duration: Duration,
    /// Binary of another release, to upgrade from.
    pub(crate) old_binary: Option<PathBuf>,
}

impl Environment {
    async fn wait(&self) -> Result<()> {
        tokio::time::sleep(self.fault_duration).await;
        Ok(())
    }
}

type InjectFn = for<'a> fn(
    &'a Environment,
    &'a Arc<Workload>,
) -> Pin<Box<dyn Future<Output = Result<()>> + 'a>>;

pub(crate) struct Fault {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    /// Maximum outage of writes, where guaranteed.
    pub(crate) max_write_outage: Option<Duration>,
    /// Maximum outage of catalog reads, which a standby can serve.
    pub(crate) max_catalog_outage: Option<Duration>,
    /// Whether it is part of `--short`.
    pub(crate) in_short_run: bool,
    /// Injects the fault, and repairs it before it returns.
    pub(crate) inject: InjectFn,
}

const FAILOVER_LIMIT: Option<Duration> = Some(Duration::from_secs(30));
/// Time for load balancers to detect the failure.
const HEALTH_CHECK_LIMIT: Option<Duration> = Some(Duration::from_secs(10));

pub(crate) const FAULTS: &[Fault] = &[
    Fault {
        name: "calm",
        what: "no fault, as a baseline",
        max_write_outage: None,
        max_catalog_outage: None,
        in_short_run: false,
        inject: |environment, _load| Box::pin(environment.wait()),
    },
    Fault {
        name: "node-kill",
        what: "nodes are killed, one after the other",
        max_write_outage: None,
        max_catalog_outage: None,
        in_short_run: true,
        inject: |environment, workload| Box::pin(nodes::node_kill::inject(environment, workload)),
    },
    Fault {
        name: "node-stop",
        what: "nodes are stopped (SIGSTOP) and continued, one after the other",
        max_write_outage: None,
        max_catalog_outage: None,
        in_short_run: false,
        inject: |environment, workload| Box::pin(nodes::node_stop::inject(environment, workload)),
    },
    Fault {
        name: "partition-nodes",
        what: "a node is partitioned from the primary",
        max_write_outage: None,
        max_catalog_outage: None,
        in_short_run: false,
        inject: |environment, workload| {
            Box::pin(nodes::partition_nodes::inject(environment, workload))
        },
    },
    Fault {
        name: "clock-jump",
        what: "the clocks of nodes are hours ahead, then hours behind",
        max_write_outage: None,
        max_catalog_outage: None,
        in_short_run: false,
        inject: |environment, workload| Box::pin(nodes::clock_jump::inject(environment, workload)),
    },
    Fault {
        name: "rolling-upgrade",
        what: "nodes are drained, stopped and replaced, one after the other",
        max_write_outage: None,
        max_catalog_outage: None,
        in_short_run: false,
        inject: |environment, workload| {
            Box::pin(nodes::rolling_upgrade::inject(environment, workload))
        },
    },
    Fault {
        name: "redis-kill",
        what: "Redis is killed and restarts without data",
        max_write_outage: None,
        max_catalog_outage: None,
        in_short_run: false,
        inject: |environment, workload| Box::pin(redis::redis_kill::inject(environment, workload)),
    },
    Fault {
        name: "partition-redis",
        what: "all nodes are partitioned from Redis",
        max_write_outage: None,
        max_catalog_outage: None,
        in_short_run: false,
        inject: |environment, workload| {
            Box::pin(redis::partition_redis::inject(environment, workload))
        },
    },
    Fault {
        name: "primary-kill",
        what: "the primary's PostgreSQL is killed",
        max_write_outage: FAILOVER_LIMIT,
        max_catalog_outage: HEALTH_CHECK_LIMIT,
        in_short_run: true,
        inject: |environment, workload| {
            Box::pin(databases::primary_kill::inject(environment, workload))
        },
    },
    Fault {
        name: "primary-stop",
        what: "the primary's PostgreSQL is stopped (SIGSTOP) and continued",
        max_write_outage: None,
        max_catalog_outage: HEALTH_CHECK_LIMIT,
        in_short_run: false,
        inject: |environment, workload| {
            Box::pin(databases::primary_stop::inject(environment, workload))
        },
    },
    Fault {
        name: "machine-death",
        what: "the primary's machine fails with all its processes",
        max_write_outage: FAILOVER_LIMIT,
        max_catalog_outage: HEALTH_CHECK_LIMIT,
        in_short_run: true,
        inject: |environment, workload| {
            Box::pin(databases::machine_death::inject(environment, workload))
        },
    },
    Fault {
        name: "partition-primary",
        what: "the primary is partitioned from standbys and etcd, but not from nodes",
        max_write_outage: FAILOVER_LIMIT,
        max_catalog_outage: HEALTH_CHECK_LIMIT,
        in_short_run: false,
        inject: |environment, workload| {
            Box::pin(databases::partition_primary::inject(environment, workload))
        },
    },
    Fault {
        name: "standby-loss",
        what: "both standbys are killed, and no write may be acknowledged",
        max_write_outage: None,
        max_catalog_outage: None,
        in_short_run: true,
        inject: |environment, workload| {
            Box::pin(databases::standby_loss::inject(environment, workload))
        },
    },
    Fault {
        name: "slow-database",
        what: "every response of the database is delayed",
        max_write_outage: None,
        max_catalog_outage: None,
        in_short_run: false,
        inject: |environment, workload| {
            Box::pin(databases::slow_database::inject(environment, workload))
        },
    },
    Fault {
        name: "pool-exhaustion",
        what: "a table lock is held until all connections wait for it",
        max_write_outage: None,
        max_catalog_outage: None,
        in_short_run: false,
        inject: |environment, workload| {
            Box::pin(databases::pool_exhaustion::inject(environment, workload))
        },
    },
    Fault {
        name: "disk-full",
        what: "the primary's disk is full",
        max_write_outage: None,
        max_catalog_outage: None,
        in_short_run: false,
        inject: |environment, workload| {
            Box::pin(databases::disk_full::inject(environment, workload))
        },
    },
    Fault {
        name: "power-cut",
        what: "all database machines lose power at once",
        max_write_outage: None,
        max_catalog_outage: None,
        in_short_run: true,
        inject: |environment, workload| {
            Box::pin(databases::power_cut::inject(environment, workload))
        },
    },
    Fault {
        name: "old-backup",
        what: "a backup is restored beside the cluster, and tokens deleted since are erased again",
        max_write_outage: None,
        max_catalog_outage: None,
        in_short_run: false,
        inject: |environment, workload| {
            Box::pin(databases::old_backup::inject(environment, workload))
        },
    },
];

/// The fault of this name.
pub(crate) fn find(name: &str) -> Option<&'static Fault> {
    FAULTS.iter().find(|fault| fault.name == name)
}
