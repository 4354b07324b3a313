//! Checks a deployment and reports errors and warnings, with their remedy.

mod cryptography;
mod database;
mod vault;

use std::path::Path;

use cloakroom_core::rate_limits;
use cloakroom_platform::config;
use cloakroom_platform::config::{Config, Environment, LimitsProfile};
use cloakroom_platform::storage::{self, Db, Persistence, Redis};
use cloakroom_threeds::networks::CardNetworks;

use self::cryptography::{check_certificates, check_cryptoperiods};
use self::database::{
    check_clock, check_foreign_objects, check_migrations, check_session, check_settings,
};
use self::vault::{check_keys, check_root_key};

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    Good,
    /// Works, but a documented guarantee does not hold.
    Warning,
    /// Must be fixed before production.
    Bad,
}

/// Result of one check.
#[derive(Debug)]
pub struct Finding {
    pub severity: Severity,
    pub area: &'static str,
    pub what: String,
}

impl Finding {
    fn new(severity: Severity, area: &'static str, what: impl Into<String>) -> Self {
        Self {
            severity,
            area,
            what: what.into(),
        }
    }
}

/// Checks configuration, root key, database, clock, migrations, keys, Redis and certificates, in this order. `path` is the
/// file that the configuration was read from.
pub async fn diagnose(config: &Config, path: Option<&Path>) -> Vec<Finding> {
    let mut findings = check_config(config, path);
    findings.extend(check_relaxed(config));
    findings.extend(check_root_key(config).await);
    match storage::connect_once(&config.database).await {
        Ok(connection) => {
            findings.push(Finding::new(Severity::Good, "database", "reachable"));
            findings.extend(check_settings(&connection).await);
            findings.extend(check_session(&connection, config).await);
            findings.push(check_clock(&connection).await);
            findings.push(check_migrations(&connection).await);
            findings.extend(check_foreign_objects(&connection).await);
            // Without tables, or rights, the other checks would only fail for the same reason.
            if storage::applied(&connection)
                .await
                .is_ok_and(|newest| newest > 0)
            {
                findings.extend(check_keys(config).await);
                findings.extend(check_cryptoperiods(config).await);
                findings.extend(check_limits(config).await);
            }
        }
        Err(error) => findings.push(Finding::new(Severity::Bad, "database", error.to_string())),
    }
    findings.extend(check_redis(config).await);
    findings.extend(check_card_networks(config));
    findings.extend(check_certificates(config));
    findings.push(check_swap());
    findings
}

fn check_config(config: &Config, path: Option<&Path>) -> Vec<Finding> {
    let mut found = config.check();
    found.extend(config.check_files(path));
    if found.is_empty() {
        return vec![Finding::new(Severity::Good, "config", "no problems found")];
    }
    let to_finding = |finding: config::Finding| {
        let severity = if finding.is_error() {
            Severity::Bad
        } else {
            Severity::Warning
        };
        Finding::new(severity, "config", finding.to_string())
    };
    found.into_iter().map(to_finding).collect()
}

/// Settings that restore a behavior of the hosted service at the cost of a protection.
fn check_relaxed(config: &Config) -> Vec<Finding> {
    let severity = match config.vault.environment {
        Environment::Production => Severity::Bad,
        Environment::Test => Severity::Warning,
    };
    let relaxed = [
        (
            !config.sessions.require_subset,
            "sessions.require_subset is false: every private key can reveal every token through a session",
        ),
        (
            config.tenants.unrestricted_grants,
            "tenants.unrestricted_grants is true: application:create and application:update can grant every permission",
        ),
        (
            config.tenants.immediate_deletion,
            "tenants.immediate_deletion is true: one key can delete a tenant at once and irrecoverably",
        ),
    ];
    let relaxed = relaxed.into_iter().filter(|(is_relaxed, _)| *is_relaxed);
    relaxed
        .map(|(_, what)| Finding::new(severity, "config", what))
        .collect()
}

/// Opens the file of directory servers with its keys and certificates, as a node does when it starts.
fn check_card_networks(config: &Config) -> Option<Finding> {
    let error = CardNetworks::open(config).err()?;
    Some(Finding::new(Severity::Bad, "threeds", error.to_string()))
}

/// Nodes share their counters through Redis; without it, each has its share of every limit.
async fn check_limits(config: &Config) -> Option<Finding> {
    let finding = |severity, what: String| Finding::new(severity, "limits", what);
    let table = match rate_limits::Table::load(&config.limits) {
        Ok(table) => table,
        Err(error) => return Some(finding(Severity::Bad, error.to_string())),
    };
    if !config.limits.enabled {
        // A finding of the configuration.
        return None;
    }
    let nodes = async { rate_limits::count_nodes(&Db::open(&config.database)?).await };
    Some(match nodes.await {
        Ok(nodes) if nodes > 1 && config.redis.url.is_none() => {
            let what = format!(
                "{nodes} nodes run without redis.url: each admits a share of every limit by itself, so a \
                 client whose requests reach only one node gets less than the limit"
            );
            finding(Severity::Warning, what)
        }
        Ok(_) => finding(Severity::Good, active_limits(&config.limits, &table)),
        Err(error) => finding(Severity::Bad, error.to_string()),
    })
}

fn active_limits(limits: &config::Limits, table: &rate_limits::Table) -> String {
    let count = table.rows.len();
    match (&limits.file, limits.profile) {
        (Some(_), _) => format!("{count} limits of limits.file are active"),
        (None, LimitsProfile::OwnHardware) => {
            format!("{count} limits are active; private applications are exempt")
        }
        (None, LimitsProfile::Standard) => format!(
            "{count} limits are active, with the rates of a hosted service, such as 20 new tokens per second and private \
             key; limits.profile = \"own-hardware\" exempts private applications"
        ),
    }
}

/// Redis holds the wrapped keys of security codes, which must not reach a disk, where they would
/// outlive their TTL.
async fn check_redis(config: &Config) -> Vec<Finding> {
    let finding = |severity, what: &str| Finding::new(severity, "redis", what);
    let persistence = match Redis::open(&config.redis) {
        Ok(Some(redis)) => redis.persistence().await,
        Ok(None) => {
            let what = "redis.url is not set: each node can read only the security codes that it \
                        encrypted, and they are lost when it stops; set it to run several nodes";
            return vec![finding(Severity::Good, what)];
        }
        Err(error) => return vec![finding(Severity::Bad, &error.to_string())],
    };
    let Ok(persistence) = persistence else {
        let what = "it does not answer: nodes cannot read each other's security codes";
        return vec![finding(Severity::Bad, what)];
    };
    let disk = match persistence {
        Persistence::Off => finding(Severity::Good, "it writes nothing to disk"),
        Persistence::On(setting) => finding(
            Severity::Bad,
            &format!(
                "it writes to disk because of `{setting}`, and keys of security codes outlive their TTL there: set \
                 `save \"\"`, `appendonly no` and `repl-diskless-sync yes`, and delete the dump and append-only \
                 files and their backups"
            ),
        ),
        Persistence::Hidden => finding(
            Severity::Warning,
            "persistence could not be checked, because it refuses CONFIG GET: make sure that `save \"\"`, \
             `appendonly no` and `repl-diskless-sync yes` are set; in production nodes require \
             redis.allow_unchecked_persistence then",
        ),
    };
    let mut findings = vec![finding(Severity::Good, "reachable"), disk];
    if config.redis.ca_file.is_none() {
        let what = "the connection is not encrypted: use rediss:// and redis.ca_file, or run \
                    Redis on the same machine";
        findings.push(finding(Severity::Warning, what));
    }
    findings
}

/// Memory that is swapped out outlives the process.
fn check_swap() -> Finding {
    let swaps = std::fs::read_to_string("/proc/swaps").unwrap_or_default();
    if swaps.lines().count() > 1 {
        let what = "swap is on: keys and card numbers in memory can reach the disk";
        return Finding::new(Severity::Warning, "memory", what);
    }
    Finding::new(Severity::Good, "memory", "no swap is in use")
}
