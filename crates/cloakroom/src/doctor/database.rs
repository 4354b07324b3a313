//! Checks the database: settings of the server, role, clock and migrations.

use std::time::Duration;

use cloakroom_platform::config::{Config, Environment};
use cloakroom_platform::storage::{self, Connection};

use super::{Finding, Severity};

/// A server setting, its valid values, and the risk of any other value.
struct ExpectedSetting {
    name: &'static str,
    valid: &'static [&'static str],
    severity: Severity,
    risk: &'static str,
}

const EXPECTED_SETTINGS: &[ExpectedSetting] = &[
    ExpectedSetting {
        name: "fsync",
        valid: &["on"],
        severity: Severity::Bad,
        risk: "acknowledged tokens can be lost when the server loses power",
    },
    ExpectedSetting {
        name: "full_page_writes",
        valid: &["on"],
        severity: Severity::Bad,
        risk: "a power failure can leave torn pages",
    },
    ExpectedSetting {
        name: "data_checksums",
        valid: &["on"],
        severity: Severity::Bad,
        risk: "damaged pages go unnoticed; `pg_checksums --enable` turns them on",
    },
    ExpectedSetting {
        name: "log_error_verbosity",
        valid: &["terse"],
        severity: Severity::Bad,
        risk: "the server log prints whole rows on constraint errors",
    },
    ExpectedSetting {
        name: "log_parameter_max_length",
        valid: &["0"],
        severity: Severity::Bad,
        risk: "the server log prints statement parameters",
    },
    ExpectedSetting {
        name: "log_parameter_max_length_on_error",
        valid: &["0"],
        severity: Severity::Bad,
        risk: "the server log prints parameters of failed statements",
    },
    ExpectedSetting {
        name: "password_encryption",
        valid: &["scram-sha-256"],
        severity: Severity::Warning,
        risk: "passwords are stored in a weak form",
    },
];

/// Settings that load libraries which may log statement parameters.
const PRELOAD_SETTINGS: [&str; 3] = [
    "shared_preload_libraries",
    "session_preload_libraries",
    "local_preload_libraries",
];

pub(super) async fn check_settings(connection: &Connection) -> Vec<Finding> {
    let mut names: Vec<&str> = EXPECTED_SETTINGS
        .iter()
        .map(|expected| expected.name)
        .collect();
    names.extend(["server_version_num", "synchronous_standby_names"]);
    names.extend(PRELOAD_SETTINGS);
    let settings = match storage::settings(connection, &names).await {
        Ok(settings) => settings,
        Err(error) => return vec![Finding::new(Severity::Bad, "database", error.to_string())],
    };
    let value_of = |name: &str| {
        let found = settings.iter().find(|(candidate, _)| candidate == name);
        found.map_or("", |(_, value)| value.as_str())
    };
    let mut findings: Vec<Finding> = EXPECTED_SETTINGS
        .iter()
        .map(|expected| check_setting(expected, value_of(expected.name)))
        .collect();
    if value_of("server_version_num")
        .parse()
        .is_ok_and(|version: u32| version < 150_000)
    {
        findings.push(Finding::new(
            Severity::Bad,
            "database",
            "PostgreSQL 15 or newer is required",
        ));
    }
    if value_of("synchronous_standby_names").is_empty() {
        let what =
            "synchronous_standby_names is empty: the newest writes are lost if this server is lost";
        findings.push(Finding::new(Severity::Warning, "database", what));
    }
    for setting in PRELOAD_SETTINGS {
        for library in ["auto_explain", "pgaudit"] {
            if value_of(setting).contains(library) {
                let what =
                    format!("{library} is loaded: it can write parameters to the server log");
                findings.push(Finding::new(Severity::Bad, "database", what));
            }
        }
    }
    findings
}

fn check_setting(expected: &ExpectedSetting, value: &str) -> Finding {
    if expected.valid.contains(&value) {
        let what = format!("{} is {value}", expected.name);
        return Finding::new(Severity::Good, "database", what);
    }
    let what = format!(
        "{} is {value}, must be {}: {}",
        expected.name, expected.valid[0], expected.risk
    );
    Finding::new(expected.severity, "database", what)
}

pub(super) async fn check_session(connection: &Connection, config: &Config) -> Vec<Finding> {
    let session = match storage::session(connection).await {
        Ok(session) => session,
        Err(error) => return vec![Finding::new(Severity::Bad, "database", error.to_string())],
    };
    // A development server has one role; production separates migrating from serving.
    let severity = match config.vault.environment {
        Environment::Production => Severity::Bad,
        Environment::Test => Severity::Warning,
    };
    let name = &session.role;
    let role = match session {
        _ if session.is_superuser => Finding::new(
            severity,
            "database",
            format!("the role {name} is a superuser; serve with one that is not"),
        ),
        _ if session.owns_tables => Finding::new(
            severity,
            "database",
            format!("the role {name} owns the tables; serve with one that cannot change them"),
        ),
        _ => Finding::new(
            Severity::Good,
            "database",
            format!("the role {name} is plain"),
        ),
    };
    let tls = if session.is_encrypted {
        Finding::new(Severity::Good, "database", "the connection is encrypted")
    } else {
        let what = "the connection is not encrypted: set database.ca_file, or run the database on the same machine";
        Finding::new(Severity::Warning, "database", what)
    };
    vec![role, tls]
}

pub(super) async fn check_clock(connection: &Connection) -> Finding {
    match storage::clock_skew(connection).await {
        Ok(skew) if skew > Duration::from_secs(2) => {
            let severity = if skew > Duration::from_secs(60) {
                Severity::Bad
            } else {
                Severity::Warning
            };
            let what = format!(
                "the clock of this node differs from the database's by {:.1} s",
                skew.as_secs_f64()
            );
            Finding::new(severity, "clock", what)
        }
        Ok(_) => Finding::new(Severity::Good, "clock", "this node and the database agree"),
        Err(error) => Finding::new(Severity::Bad, "clock", error.to_string()),
    }
}

pub(super) async fn check_migrations(connection: &Connection) -> Finding {
    match storage::check(connection).await {
        Ok(()) => Finding::new(Severity::Good, "migrations", "all migrations are applied"),
        Err(error) => Finding::new(Severity::Bad, "migrations", error.to_string()),
    }
}

/// What an administrator of the database can add without touching a row: a trigger that drops entries of the audit log, a
/// policy that hides tokens, a setting that changes statements.
pub(super) async fn check_foreign_objects(connection: &Connection) -> Vec<Finding> {
    let objects = match storage::foreign_objects(connection).await {
        Ok(objects) => objects,
        Err(error) => return vec![Finding::new(Severity::Bad, "database", error.to_string())],
    };
    if objects.is_empty() {
        let what =
            "no triggers, rules, policies, functions, views or settings but those of migrations";
        return vec![Finding::new(Severity::Good, "database", what)];
    }
    let finding = |object: &String| {
        let what = format!(
            "{object}: made by no migration, and can change what statements do; find out who made it, and remove it"
        );
        Finding::new(Severity::Warning, "database", what)
    };
    objects.iter().map(finding).collect()
}
