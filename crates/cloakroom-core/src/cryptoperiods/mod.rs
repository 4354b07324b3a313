//! Ages and cryptoperiods of the stored keys.
//!
//! Reads metadata of keys only, so it needs neither the root key nor a custodian. Nothing is verified here: a key whose
//! time SQL has changed is named by the verification of keysets.

mod store;

use std::time::Duration;

use cloakroom_crypto::KeyPurpose;
use cloakroom_platform::config;
use cloakroom_platform::storage::{Db, Error};
use jiff::Timestamp;

pub(crate) use self::store::STATEMENTS;
pub use self::store::{ClientKeyCount, KeyCount, RootCount};
use crate::keys::State;

/// From here on, `doctor` warns, and nodes rotate if `cryptoperiods.automatic` is on.
pub const DUE: f64 = 0.8;

/// What the vault stores of each purpose, by state.
pub async fn count_keys(db: &Db) -> Result<Vec<KeyCount>, Error> {
    store::count_keys(db).await
}

/// How many keys each root key wraps.
pub async fn count_roots(db: &Db) -> Result<Vec<RootCount>, Error> {
    store::count_roots(db).await
}

/// The unexpired client encryption keys of all tenants.
pub async fn count_client_keys(db: &Db) -> Result<ClientKeyCount, Error> {
    store::count_client_keys(db).await
}

/// How long a key may be in use. `None` for keys whose end is fixed when they are created, and for purposes without keys.
pub fn period(settings: &config::Cryptoperiods, purpose: KeyPurpose) -> Option<Duration> {
    match purpose {
        KeyPurpose::RootKek => Some(settings.root_kek),
        KeyPurpose::TenantKek => Some(settings.tenant_kek),
        KeyPurpose::Data => Some(settings.data),
        KeyPurpose::Fingerprint => Some(settings.fingerprint),
        KeyPurpose::Index => Some(settings.index),
        KeyPurpose::Reply => Some(settings.reply),
        KeyPurpose::Request => Some(settings.request),
        KeyPurpose::Control => Some(settings.control),
        KeyPurpose::AuditAuthority => Some(settings.audit_authority),
        KeyPurpose::Signing => Some(settings.signing),
        KeyPurpose::SecurityCodeWrap => Some(settings.security_code_wrap),
        // Replaced every ten minutes; the end is part of the id of a key.
        KeyPurpose::SecurityCode => None,
        KeyPurpose::Audit => None,
    }
}

/// How a key of this purpose is replaced.
pub fn rotation(purpose: KeyPurpose) -> &'static str {
    match purpose {
        KeyPurpose::RootKek => "`cloakroom key rotate --purpose root`",
        KeyPurpose::TenantKek => "`cloakroom key rotate --purpose kek --all`",
        KeyPurpose::Data => "`cloakroom key rotate --purpose data --all`",
        KeyPurpose::Reply => "`cloakroom key rotate --purpose reply --all`",
        KeyPurpose::Index => "`cloakroom key rotate --purpose index --all`",
        KeyPurpose::Request => "`cloakroom key rotate --purpose request --all`",
        KeyPurpose::Fingerprint => {
            "`cloakroom key rotate --purpose fingerprint --all --changes-fingerprints`"
        }
        KeyPurpose::Signing => "`cloakroom webhook rotate-key`",
        KeyPurpose::SecurityCode => "automatic, after security_codes.epoch",
        KeyPurpose::AuditAuthority => "`cloakroom key rotate --purpose audit_authority`",
        KeyPurpose::SecurityCodeWrap => "`cloakroom key rotate --purpose security_code_wrap`",
        KeyPurpose::Control => "`cloakroom key rotate --purpose control`",
        KeyPurpose::Audit => "none exist",
    }
}

/// The oldest active key of a purpose.
#[derive(Clone, Copy, Debug)]
pub struct KeyAge {
    pub purpose: KeyPurpose,
    pub age: Duration,
    pub period: Duration,
}

/// Where a key is in its cryptoperiod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    Current,
    /// Past 80 %.
    Due,
    Overdue,
}

impl KeyAge {
    /// The age as a share of the period.
    pub fn share(&self) -> f64 {
        self.age.as_secs_f64() / self.period.as_secs_f64()
    }

    pub fn standing(&self) -> Standing {
        match self.share() {
            share if share >= 1.0 => Standing::Overdue,
            share if share >= DUE => Standing::Due,
            _ => Standing::Current,
        }
    }
}

/// The age of the oldest active key of each purpose that has one.
pub fn ages(settings: &config::Cryptoperiods, counts: &[KeyCount], now: Timestamp) -> Vec<KeyAge> {
    let active = counts.iter().filter(|it| it.state == State::Active);
    let age = |count: &KeyCount| {
        Some(KeyAge {
            purpose: count.purpose,
            // A time in the future counts as now.
            age: Duration::try_from(now.duration_since(count.oldest)).unwrap_or_default(),
            period: period(settings, count.purpose)?,
        })
    };
    active.filter_map(age).collect()
}

#[cfg(test)]
mod tests {
    use jiff::ToSpan as _;

    use super::*;

    #[test]
    fn a_key_is_due_after_four_fifths_of_its_period_and_overdue_after_all_of_it() {
        let settings = config::Cryptoperiods::default();
        let now: Timestamp = "2030-01-01T00:00:00Z".parse().unwrap();
        let cases = [
            (-24, Standing::Current),
            (0, Standing::Current),
            (24 * 291, Standing::Current),
            (24 * 292, Standing::Due),
            (24 * 364, Standing::Due),
            (24 * 365, Standing::Overdue),
            (24 * 3650, Standing::Overdue),
        ];
        for (hours, expected) in cases {
            let count = |state| KeyCount {
                purpose: KeyPurpose::Data,
                state,
                keys: 1,
                owners: 1,
                versions: (1, 1),
                oldest: now - i64::from(hours).hours(),
                newest: now,
            };
            let counts = [count(State::DecryptOnly), count(State::Active)];
            let ages = ages(&settings, &counts, now);
            assert_eq!(ages.len(), 1);
            assert_eq!(ages[0].standing(), expected, "{hours} hours");
        }
    }

    #[test]
    fn every_purpose_has_a_period_unless_its_keys_end_by_themselves() {
        let settings = config::Cryptoperiods::default();
        let without: Vec<_> = KeyPurpose::ALL
            .into_iter()
            .filter(|purpose| period(&settings, *purpose).is_none())
            .collect();
        assert_eq!(without, [KeyPurpose::Audit, KeyPurpose::SecurityCode]);
    }
}
