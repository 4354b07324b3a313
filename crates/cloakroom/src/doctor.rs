//! Looking a deployment over, and saying in plain words what is wrong and what to do.

use std::time::Duration;

use crate::config::{Config, Environment};
use crate::storage::{self, Connection, Db, Persistence, Redis};
use crate::vault::{self, Vault};
use crate::{access, config, keys, rate_limits};

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    Good,
    /// Works, but something promised elsewhere does not hold.
    Warning,
    /// Must be mended before production.
    Bad,
}

/// One thing that was looked at.
#[derive(Debug)]
pub struct Finding {
    pub verdict: Verdict,
    pub area: &'static str,
    pub what: String,
}

impl Finding {
    fn new(verdict: Verdict, area: &'static str, what: impl Into<String>) -> Self {
        Self {
            verdict,
            area,
            what: what.into(),
        }
    }
}

/// Looks at configuration, database, clock, migrations, keys and Redis, in this order.
pub async fn examine(config: &Config) -> Vec<Finding> {
    let mut findings = examine_config(config);
    match storage::connect_once(&config.database).await {
        Ok(connection) => {
            findings.push(Finding::new(Verdict::Good, "database", "it answers"));
            findings.extend(examine_settings(&connection).await);
            findings.extend(examine_session(&connection, config).await);
            findings.push(examine_clock(&connection).await);
            findings.push(examine_migrations(&connection).await);
            findings.extend(examine_keys(config).await);
            findings.push(examine_limits(config).await);
        }
        Err(error) => findings.push(Finding::new(Verdict::Bad, "database", error.to_string())),
    }
    findings.extend(examine_redis(config).await);
    findings.push(examine_swap());
    findings
}

fn examine_config(config: &Config) -> Vec<Finding> {
    let found = config.check();
    if found.is_empty() {
        return vec![Finding::new(
            Verdict::Good,
            "config",
            "nothing to complain about",
        )];
    }
    let to_finding = |finding: config::Finding| {
        let verdict = if finding.is_error() {
            Verdict::Bad
        } else {
            Verdict::Warning
        };
        Finding::new(verdict, "config", finding.to_string())
    };
    found.into_iter().map(to_finding).collect()
}

/// A server setting, the values that are right, and what a wrong one risks.
struct Wanted {
    name: &'static str,
    right: &'static [&'static str],
    otherwise: Verdict,
    risk: &'static str,
}

const WANTED: &[Wanted] = &[
    Wanted {
        name: "fsync",
        right: &["on"],
        otherwise: Verdict::Bad,
        risk: "acknowledged tokens can be lost when the server loses power",
    },
    Wanted {
        name: "full_page_writes",
        right: &["on"],
        otherwise: Verdict::Bad,
        risk: "a power cut can tear pages",
    },
    Wanted {
        name: "synchronous_commit",
        right: &["on", "remote_apply"],
        otherwise: Verdict::Bad,
        risk: "a write can be acknowledged before it is durable",
    },
    Wanted {
        name: "data_checksums",
        right: &["on"],
        otherwise: Verdict::Bad,
        risk: "damaged pages go unnoticed; `pg_checksums --enable` turns them on",
    },
    Wanted {
        name: "log_error_verbosity",
        right: &["terse"],
        otherwise: Verdict::Bad,
        risk: "the server log prints whole rows on constraint errors",
    },
    Wanted {
        name: "log_parameter_max_length",
        right: &["0"],
        otherwise: Verdict::Bad,
        risk: "the server log prints statement parameters",
    },
    Wanted {
        name: "log_parameter_max_length_on_error",
        right: &["0"],
        otherwise: Verdict::Bad,
        risk: "the server log prints parameters of failed statements",
    },
    Wanted {
        name: "password_encryption",
        right: &["scram-sha-256"],
        otherwise: Verdict::Warning,
        risk: "passwords are kept in a weak form",
    },
];

/// Where a server can be told to load libraries that log what statements carry.
const PRELOADS: [&str; 3] = [
    "shared_preload_libraries",
    "session_preload_libraries",
    "local_preload_libraries",
];

async fn examine_settings(connection: &Connection) -> Vec<Finding> {
    let mut names: Vec<&str> = WANTED.iter().map(|wanted| wanted.name).collect();
    names.extend(["server_version_num", "synchronous_standby_names"]);
    names.extend(PRELOADS);
    let settings = match storage::settings(connection, &names).await {
        Ok(settings) => settings,
        Err(error) => return vec![Finding::new(Verdict::Bad, "database", error.to_string())],
    };
    let value_of = |name: &str| {
        let found = settings.iter().find(|(candidate, _)| candidate == name);
        found.map_or("", |(_, value)| value.as_str())
    };
    let mut findings: Vec<Finding> = WANTED
        .iter()
        .map(|wanted| judge(wanted, value_of(wanted.name)))
        .collect();
    if value_of("server_version_num")
        .parse()
        .is_ok_and(|version: u32| version < 150_000)
    {
        findings.push(Finding::new(
            Verdict::Bad,
            "database",
            "PostgreSQL 15 or newer is needed",
        ));
    }
    if value_of("synchronous_standby_names").is_empty() {
        let what = "synchronous_standby_names is empty: losing this server loses its newest writes";
        findings.push(Finding::new(Verdict::Warning, "database", what));
    }
    for setting in PRELOADS {
        for library in ["auto_explain", "pgaudit"] {
            if value_of(setting).contains(library) {
                let what =
                    format!("{library} is loaded: it can write parameters to the server log");
                findings.push(Finding::new(Verdict::Bad, "database", what));
            }
        }
    }
    findings
}

fn judge(wanted: &Wanted, value: &str) -> Finding {
    if wanted.right.contains(&value) {
        let what = format!("{} is {value}", wanted.name);
        return Finding::new(Verdict::Good, "database", what);
    }
    let what = format!(
        "{} is {value}, must be {}: {}",
        wanted.name, wanted.right[0], wanted.risk
    );
    Finding::new(wanted.otherwise, "database", what)
}

async fn examine_session(connection: &Connection, config: &Config) -> Vec<Finding> {
    let session = match storage::session(connection).await {
        Ok(session) => session,
        Err(error) => return vec![Finding::new(Verdict::Bad, "database", error.to_string())],
    };
    // A laptop's scratch server has one role; production separates migrating from serving.
    let otherwise = match config.vault.environment {
        Environment::Production => Verdict::Bad,
        Environment::Test => Verdict::Warning,
    };
    let name = &session.role;
    let role = match session {
        _ if session.is_superuser => Finding::new(
            otherwise,
            "database",
            format!("the role {name} is a superuser; serve with one that is not"),
        ),
        _ if session.owns_tables => Finding::new(
            otherwise,
            "database",
            format!("the role {name} owns the tables; serve with one that cannot change them"),
        ),
        _ => Finding::new(
            Verdict::Good,
            "database",
            format!("the role {name} is plain"),
        ),
    };
    let tls = if session.is_encrypted {
        Finding::new(Verdict::Good, "database", "the connection is encrypted")
    } else {
        let what =
            "the connection is not encrypted: set database.ca_file, or keep it on one machine";
        Finding::new(Verdict::Warning, "database", what)
    };
    vec![role, tls]
}

async fn examine_clock(connection: &Connection) -> Finding {
    match storage::clock_skew(connection).await {
        Ok(skew) if skew > Duration::from_secs(2) => {
            let verdict = if skew > Duration::from_secs(60) {
                Verdict::Bad
            } else {
                Verdict::Warning
            };
            let what = format!(
                "this node is {:.1} s off the database's clock",
                skew.as_secs_f64()
            );
            Finding::new(verdict, "clock", what)
        }
        Ok(_) => Finding::new(Verdict::Good, "clock", "this node and the database agree"),
        Err(error) => Finding::new(Verdict::Bad, "clock", error.to_string()),
    }
}

async fn examine_migrations(connection: &Connection) -> Finding {
    match storage::check(connection).await {
        Ok(()) => Finding::new(Verdict::Good, "migrations", "all are applied"),
        Err(error) => Finding::new(Verdict::Bad, "migrations", error.to_string()),
    }
}

/// Opens the vault, which says most of what can be wrong, then unwraps every key and verifies every
/// row that grants rights. Changes nothing.
async fn examine_keys(config: &Config) -> Vec<Finding> {
    match look_inside(config).await {
        Ok((rows, keys)) => {
            let mut findings = vec![];
            let to_finding = |what: &String| Finding::new(Verdict::Bad, "keys", what);
            findings.extend(rows.altered.iter().chain(&keys.broken).map(to_finding));
            if findings.is_empty() {
                let what = format!(
                    "{} keys unwrap and are the ones they claim to be; {} rows are genuine",
                    keys.keys, rows.rows
                );
                findings.push(Finding::new(Verdict::Good, "keys", what));
            }
            findings
        }
        Err(error) => vec![Finding::new(Verdict::Bad, "keys", error.to_string())],
    }
}

async fn look_inside(config: &Config) -> Result<(access::Examined, keys::Examined), vault::Error> {
    let vault = Vault::open(config.clone()).await?;
    let rows = access::examine(&vault).await?;
    let root = vault.keys.root();
    let environment = vault.keys.environment();
    let keys = keys::examine(&vault.db, root, environment, &rows.tenants).await?;
    Ok((rows, keys))
}

/// Nodes share their counters through Redis; without it, each has its share of every limit.
async fn examine_limits(config: &Config) -> Finding {
    let finding = |verdict, what: String| Finding::new(verdict, "limits", what);
    let table = match rate_limits::Table::load(&config.limits) {
        Ok(table) => table,
        Err(error) => return finding(Verdict::Bad, error.to_string()),
    };
    if !config.limits.enabled {
        let what = "limits.enabled is false: nothing limits the rate of requests";
        return finding(Verdict::Warning, what.to_owned());
    }
    let nodes = async { rate_limits::count_nodes(&Db::open(&config.database)?).await };
    match nodes.await {
        Ok(nodes) if nodes > 1 && config.redis.url.is_none() => {
            let what = format!(
                "{nodes} nodes run without redis.url: each admits a share of every limit by itself, so a \
                 client that meets one node alone gets less than the limit"
            );
            finding(Verdict::Warning, what)
        }
        Ok(_) => finding(Verdict::Good, format!("{} limits hold", table.rows.len())),
        Err(error) => finding(Verdict::Bad, error.to_string()),
    }
}

/// Redis holds the wrapped keys of security codes, which must not outlive their time on a disk.
async fn examine_redis(config: &Config) -> Vec<Finding> {
    let finding = |verdict, what: &str| Finding::new(verdict, "redis", what);
    let persistence = match Redis::open(&config.redis) {
        Ok(Some(redis)) => redis.persistence().await,
        Ok(None) => {
            let what = "redis.url is not set: a node alone can read the security codes that it \
                        sealed, and they are gone when it stops; set it to run several nodes";
            return vec![finding(Verdict::Good, what)];
        }
        Err(error) => return vec![finding(Verdict::Bad, &error.to_string())],
    };
    let Ok(persistence) = persistence else {
        let what = "it does not answer: nodes cannot read each other's security codes";
        return vec![finding(Verdict::Bad, what)];
    };
    let disk = match persistence {
        Persistence::Off => finding(Verdict::Good, "it writes nothing to disk"),
        Persistence::On => finding(
            Verdict::Bad,
            "it writes to disk, where keys of security codes outlive their time: set `save \"\"` and \
             `appendonly no`, and delete its dump and append-only files and their backups",
        ),
        Persistence::Hidden => finding(
            Verdict::Warning,
            "whether it writes to disk could not be checked, because it refuses CONFIG GET: make \
             sure of `save \"\"` and `appendonly no`",
        ),
    };
    let mut findings = vec![finding(Verdict::Good, "it answers"), disk];
    if config.redis.ca_file.is_none() {
        let what = "the connection is not encrypted: use rediss:// and redis.ca_file, or keep it on \
                    one machine";
        findings.push(finding(Verdict::Warning, what));
    }
    findings
}

/// Memory that is swapped out outlives the process.
fn examine_swap() -> Finding {
    let swaps = std::fs::read_to_string("/proc/swaps").unwrap_or_default();
    if swaps.lines().count() > 1 {
        let what = "swap is on: keys and card numbers in memory can reach the disk";
        return Finding::new(Verdict::Warning, "memory", what);
    }
    Finding::new(Verdict::Good, "memory", "no swap is in use")
}
