//! Checks the contents of the vault: keys, rows that grant permissions, and tenants.

use cloakroom_core::keys::{Failure, RootKey};
use cloakroom_core::vault::{self, Vault};
use cloakroom_core::{access, keys};
use cloakroom_management::tenants;
use cloakroom_platform::api::format_utc;
use cloakroom_platform::config::{Config, Provider};
use cloakroom_platform::ids::TenantId;
use cloakroom_proxy::proxies;
use cloakroom_tokens::tokens::{HistoryReport, Scope, verify_histories};

use super::{Finding, Severity};
use crate::sinks::{self, Sink, StreamSink, TimeStamps};

/// Checkpoints of about a minute.
const WAITING_MAX: i64 = 10;

/// Opens the vault, which detects most problems, then unwraps every key and verifies every row that
/// grants permissions. Changes nothing.
pub(super) async fn check_keys(config: &Config) -> Vec<Finding> {
    // The keys of a sealed vault cannot be unwrapped here; `check_root_key` reports it.
    if config.root_key.provider == Provider::Shares {
        return vec![];
    }
    match verify_vault(config).await {
        Ok(VaultReport {
            rows,
            stale,
            keys,
            deletions,
            sinks,
            histories,
            open_proxies,
        }) => {
            let mut findings = vec![];
            let to_finding = |what: &String| Finding::new(Severity::Bad, "keys", what);
            let broken = rows.altered.iter().chain(&stale).chain(&keys.broken);
            findings.extend(broken.map(to_finding));
            if findings.is_empty() {
                let what = format!(
                    "{} keys unwrap and verify; {} rows are authentic and current",
                    keys.keys, rows.rows
                );
                findings.push(Finding::new(Severity::Good, "keys", what));
            }
            findings.extend(check_tenants(&rows, &deletions, config));
            findings.extend(open_proxies);
            findings.extend(sinks);
            findings.extend(check_histories(&histories));
            findings
        }
        Err(error) => vec![Finding::new(Severity::Bad, "keys", error.to_string())],
    }
}

/// Tenants with a pending deletion, and tenants without an administrator.
fn check_tenants(
    rows: &access::RowReport,
    deletions: &[tenants::Deletion],
    config: &Config,
) -> Vec<Finding> {
    let warning = |what: String| Finding::new(Severity::Warning, "tenants", what);
    let pending = deletions.iter().map(|deletion| {
        let id = deletion.tenant.uuid;
        let when = match deletion.due_at {
            Some(due_at) => format!("will be deleted at {}", format_utc(due_at)),
            None => "will be deleted once a second application confirms it".to_owned(),
        };
        warning(format!(
            "tenant {id} {when}; `cloakroom tenant cancel-deletion --tenant {id}` cancels it"
        ))
    });
    let lacking = rows.without_administrator.iter().map(|id| {
        warning(format!(
            "tenant {id} has no application with application:grant: none of its keys can grant permissions beyond \
             its own; `cloakroom app permit --tenant {id} --app APP application:grant` adds an administrator"
        ))
    });
    let lacking = lacking.filter(|_| !config.tenants.unrestricted_grants);
    pending.chain(lacking).collect()
}

/// Wraps and unwraps a key with the root key, and reports weak choices.
pub(super) async fn check_root_key(config: &Config) -> Vec<Finding> {
    let finding = |severity, what: String| Finding::new(severity, "root key", what);
    let root = match RootKey::load(&config.root_key) {
        Ok(root) => root,
        // Only custodians can unseal it; a sealed vault is no error.
        Err(failure @ Failure::Sealed) => {
            return vec![finding(Severity::Warning, failure.to_string())];
        }
        Err(failure) => return vec![finding(Severity::Bad, failure.to_string())],
    };
    match root.describe(config.vault.environment.as_str()).await {
        Ok(description) => {
            let what = format!(
                "{}: wrap and unwrap took {:.1} ms",
                description.root,
                description.round_trip.as_secs_f64() * 1000.0
            );
            let mut findings = vec![finding(Severity::Good, what)];
            let weaknesses = description.weaknesses.into_iter();
            findings.extend(weaknesses.map(|weak| finding(Severity::Warning, weak.0)));
            findings
        }
        Err(failure) => vec![finding(
            Severity::Bad,
            format!("{}: {failure}", root.display_name()),
        )],
    }
}

/// Tokens whose rows do not match the audit log.
fn check_histories(histories: &HistoryReport) -> Vec<Finding> {
    let mut findings: Vec<Finding> = histories
        .findings
        .iter()
        .map(|finding| Finding::new(Severity::Bad, "tokens", finding.to_string()))
        .collect();
    if findings.is_empty() {
        let what = format!(
            "{} tokens of a sample match the audit log; `cloakroom audit verify` compares all",
            histories.tokens
        );
        findings.push(Finding::new(Severity::Good, "tokens", what));
    }
    findings
}

/// Tokens that `doctor` compares with the audit log, before and after a random place.
const SAMPLE: u32 = 100;

struct VaultReport {
    rows: access::RowReport,
    /// Buckets whose rows are not the current ones.
    stale: Vec<String>,
    keys: keys::KeyReport,
    deletions: Vec<tenants::Deletion>,
    /// Sinks of the audit log.
    sinks: Vec<Finding>,
    histories: HistoryReport,
    open_proxies: Vec<Finding>,
}

async fn verify_vault(config: &Config) -> Result<VaultReport, vault::Error> {
    let vault = Vault::open(config.clone()).await?;
    let rows = access::verify_rows(&vault.db, vault.keys.control()).await?;
    let stale = access::verify_states(&vault.db, vault.keys.control()).await?;
    let root = vault.keys.root();
    let environment = vault.keys.environment();
    let keys = keys::inspect(&vault.db, root, environment, &rows.tenants).await?;
    let open_proxies = check_proxies(&vault, &rows.tenants).await;
    let sample = Scope::Sample(SAMPLE);
    Ok(VaultReport {
        rows,
        stale,
        keys,
        deletions: tenants::list_deletions(&vault).await?,
        sinks: check_sinks(&vault).await,
        histories: verify_histories(&vault, sample, |_| {}).await?,
        open_proxies,
    })
}

/// Proxies that everybody who knows their key can invoke, such as visitors of a page that contains it.
async fn check_proxies(vault: &Vault, tenants: &[TenantId]) -> Vec<Finding> {
    let warning = |what: String| Finding::new(Severity::Warning, "proxies", what);
    let mut findings = Vec::new();
    for tenant in tenants {
        match proxies::list_open(vault, *tenant).await {
            Ok(open) => findings.extend(open.iter().map(|id| {
                let tenant = tenant.uuid;
                warning(format!(
                    "proxy {id} of tenant {tenant} has require_auth = false: everybody who knows its key sends any request to \
                     its destination, with the credentials that its transforms add; set require_auth to true unless this is \
                     intended"
                ))
            })),
            Err(error) => findings.push(warning(format!("tenant {}: {error}", tenant.uuid))),
        }
    }
    findings
}

/// Checkpoints and entries of the audit log that a sink has not received.
async fn check_sinks(vault: &Vault) -> Vec<Finding> {
    let mut waiting = Vec::new();
    for sink in Sink::ALL {
        if sink.is_configured(&vault.config) {
            waiting.push((sink.name(), sinks::waiting(vault, sink).await));
        }
    }
    for sink in StreamSink::ALL {
        if sink.is_configured(&vault.config) {
            waiting.push((sink.name(), sinks::waiting_stream(vault, sink).await));
        }
    }
    let mut findings = Vec::new();
    for (name, waiting) in waiting {
        let finding = match waiting {
            Ok(waiting) if waiting <= WAITING_MAX => Finding::new(
                Severity::Good,
                "audit",
                format!("audit.{name} is up to date"),
            ),
            Ok(waiting) => {
                let what = format!(
                    "audit.{name} has not received {waiting} checkpoints: check that a node runs and reaches it"
                );
                Finding::new(Severity::Warning, "audit", what)
            }
            Err(error) => {
                let what = format!("audit.{name} cannot be checked: {error}");
                Finding::new(Severity::Warning, "audit", what)
            }
        };
        findings.push(finding);
    }
    findings.extend(check_time_stamps(vault));
    findings
}

/// The last time stamp in the directory of this node. Another node may store them, so that none is only a warning.
fn check_time_stamps(vault: &Vault) -> Option<Finding> {
    let is_recent = |age| age <= vault.config.audit.time_stamp_interval * 2;
    let (severity, what) = match TimeStamps::configured(&vault.config)? {
        Ok(TimeStamps { age: Some(age), .. }) if is_recent(age) => (
            Severity::Good,
            "the audit log is time-stamped on this node".into(),
        ),
        Ok(TimeStamps { last, .. }) => (
            Severity::Warning,
            format!(
                "audit.time_stamp_directory has no recent time stamp (the last is of checkpoint {last}): check that a node runs \
                 and reaches audit.time_stamp_url; another node may store them"
            ),
        ),
        Err(error) => (
            Severity::Warning,
            format!("audit.time_stamp_directory cannot be checked: {error}"),
        ),
    };
    Some(Finding::new(severity, "audit", what))
}
