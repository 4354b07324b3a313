//! Checks the ages of keys and the dates of certificates.

use std::time::SystemTime;

use cloakroom_core::cryptoperiods::{self, KeyAge, Standing};
use cloakroom_platform::config::Config;
use cloakroom_platform::storage::{self, DatabaseClock, Db};
use jiff::Timestamp;

use super::{Finding, Severity};
use crate::crypto_inventory::{Role, UsedCertificate, list_certificates};

const DAY: u64 = 24 * 60 * 60;
/// Enough to order and install another certificate.
const CERTIFICATE_WARNING_DAYS: i64 = 30;

/// Keys that are near or past the end of their cryptoperiod.
pub(super) async fn check_cryptoperiods(config: &Config) -> Vec<Finding> {
    // Other checks report what is wrong with the database.
    let Ok(ages) = load_ages(config).await else {
        return vec![];
    };
    let findings: Vec<Finding> = ages.iter().filter_map(check_age).collect();
    match findings.is_empty() && !ages.is_empty() {
        true => vec![Finding::new(
            Severity::Good,
            "keys",
            "every active key is within its cryptoperiod",
        )],
        false => findings,
    }
}

async fn load_ages(config: &Config) -> Result<Vec<KeyAge>, storage::Error> {
    let db = Db::open(&config.database)?;
    let counts = cryptoperiods::count_keys(&db).await?;
    let now = DatabaseClock::new(db).now().await?;
    Ok(cryptoperiods::ages(&config.cryptoperiods, &counts, now))
}

fn check_age(age: &KeyAge) -> Option<Finding> {
    let (purpose, rotation) = (age.purpose.name(), cryptoperiods::rotation(age.purpose));
    let days = |duration: std::time::Duration| duration.as_secs() / DAY;
    let (used, period) = (days(age.age), days(age.period));
    let (severity, standing) = match age.standing() {
        Standing::Current => return None,
        Standing::Due => (Severity::Warning, "near the end of"),
        Standing::Overdue => (Severity::Bad, "past the end of"),
    };
    let what = format!(
        "the oldest active {purpose} key is {standing} its cryptoperiod ({used} of {period} days); to rotate it: {rotation}"
    );
    Some(Finding::new(severity, "keys", what))
}

/// Certificates that have ended or end soon. The clock of this machine decides, as it does in TLS.
pub(super) fn check_certificates(config: &Config) -> Vec<Finding> {
    let now = Timestamp::try_from(SystemTime::now()).unwrap_or(Timestamp::MAX);
    let (certificates, unreadable) = list_certificates(config);
    let dates = certificates
        .iter()
        .filter_map(|certificate| check_certificate(certificate, now));
    // Another check reports the card networks.
    let unreadable = unreadable.into_iter();
    let unreadable = unreadable.filter(|what| !what.starts_with("threeds.networks_file"));
    let unreadable = unreadable.map(|what| Finding::new(Severity::Bad, "tls", what));
    let findings: Vec<Finding> = dates.chain(unreadable).collect();
    match findings.is_empty() && !certificates.is_empty() {
        true => {
            let what = format!("{} certificates are valid", certificates.len());
            vec![Finding::new(Severity::Good, "tls", what)]
        }
        false => findings,
    }
}

fn check_certificate(certificate: &UsedCertificate, now: Timestamp) -> Option<Finding> {
    let name = &certificate.name;
    let not_after = certificate.details.not_after;
    let remedy = match certificate.role {
        Role::Server | Role::Client => "replace its files; nodes load them without a restart",
        Role::Authority => "replace the file and restart the nodes",
    };
    let days = certificate.days_left(now);
    let (severity, standing) = match not_after < now {
        true => (Severity::Bad, "has ended".to_owned()),
        false if days < CERTIFICATE_WARNING_DAYS => {
            (Severity::Warning, format!("ends in {days} days"))
        }
        false => return None,
    };
    let what = format!("the certificate of {name} {standing} ({not_after}): {remedy}");
    Some(Finding::new(severity, "tls", what))
}
