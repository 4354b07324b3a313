//! Looking a deployment over, and saying in plain words what is wrong and what to do.

use std::time::Duration;

use crate::config::{Config, Environment};
use crate::keys::{self, RootKey};
use crate::storage::{self, Connection, Db};
use crate::vault::Vault;
use crate::{access, config};

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

/// Looks at configuration, database, clock, migrations and keys, in this order.
pub async fn examine(config: &Config) -> Vec<Finding> {
    let mut findings = examine_config(config);
    match storage::connect_once(&config.database).await {
        Ok(connection) => {
            findings.push(Finding::new(Verdict::Good, "database", "it answers"));
            findings.extend(examine_settings(&connection).await);
            findings.extend(examine_role(&connection, config).await);
            findings.push(examine_clock(&connection).await);
            findings.push(examine_migrations(&connection).await);
            findings.extend(examine_keys(config).await);
        }
        Err(error) => findings.push(Finding::new(Verdict::Bad, "database", error.to_string())),
    }
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
    Wanted {
        name: "ssl",
        right: &["on"],
        otherwise: Verdict::Warning,
        risk: "connections are not encrypted; keep them on one machine or turn TLS on",
    },
];

async fn examine_settings(connection: &Connection) -> Vec<Finding> {
    let mut names: Vec<&str> = WANTED.iter().map(|wanted| wanted.name).collect();
    names.extend([
        "server_version_num",
        "synchronous_standby_names",
        "shared_preload_libraries",
    ]);
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
    if value_of("shared_preload_libraries").contains("auto_explain") {
        let what = "auto_explain is loaded: it can write statement parameters to the server log";
        findings.push(Finding::new(Verdict::Bad, "database", what));
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

async fn examine_role(connection: &Connection, config: &Config) -> Option<Finding> {
    let role = storage::role(connection).await.ok()?;
    // A laptop's scratch server has one role; production separates migrating from serving.
    let otherwise = match config.vault.environment {
        Environment::Production => Verdict::Bad,
        Environment::Test => Verdict::Warning,
    };
    Some(match role {
        role if role.is_superuser => Finding::new(
            otherwise,
            "database",
            format!(
                "the role {} is a superuser; serve with one that is not",
                role.name
            ),
        ),
        role if role.owns_tables => Finding::new(
            otherwise,
            "database",
            format!(
                "the role {} owns the tables; serve with one that cannot change them",
                role.name
            ),
        ),
        role => Finding::new(
            Verdict::Good,
            "database",
            format!("the role {} is plain", role.name),
        ),
    })
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

/// Unwraps every key there is. Needs a vault that opens, which says most of what can be wrong.
async fn examine_keys(config: &Config) -> Vec<Finding> {
    let vault = match Vault::open(config.clone()).await {
        Ok(vault) => vault,
        Err(error) => return vec![Finding::new(Verdict::Bad, "keys", error.to_string())],
    };
    match unwrap_all(config, &vault.db, &vault).await {
        Ok(examined) if examined.broken.is_empty() => {
            let what = format!(
                "{} keys unwrap and are the ones they claim to be",
                examined.keys
            );
            vec![Finding::new(Verdict::Good, "keys", what)]
        }
        Ok(examined) => {
            let to_finding = |what| Finding::new(Verdict::Bad, "keys", what);
            examined.broken.into_iter().map(to_finding).collect()
        }
        Err(error) => vec![Finding::new(Verdict::Bad, "keys", error.to_string())],
    }
}

async fn unwrap_all(
    config: &Config,
    db: &Db,
    vault: &Vault,
) -> Result<keys::Examined, access::Error> {
    let root = RootKey::load(&config.root_key)?;
    let tenants: Vec<_> = access::list_tenants(vault)
        .await?
        .into_iter()
        .map(|tenant| tenant.id)
        .collect();
    Ok(keys::examine(db, &root, config.vault.environment.as_str(), &tenants).await?)
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
