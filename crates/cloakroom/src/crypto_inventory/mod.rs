//! The inventory of cryptography (PCI DSS 12.3.3): keys, algorithms, libraries, TLS and certificates.
//!
//! `purposes`, `primitives` and `transport` state what the code uses; a test compares them with the sources. The
//! rest is read from the configuration and the database. Nothing here needs the root key.

mod certificate;
mod libraries;
mod primitives;
mod purposes;
mod transport;

use std::time::Duration;

use cloakroom_core::cryptoperiods::{self, ClientKeyCount, KeyAge, KeyCount, RootCount};
use cloakroom_core::keys::State;
use cloakroom_crypto::KeyPurpose;
use cloakroom_platform::config::Config;
use cloakroom_platform::storage::{DatabaseClock, Db, Error};
use jiff::Timestamp;
use serde_json::{Value, json};

pub use self::certificate::{Role, UsedCertificate, list_certificates};
pub use self::libraries::Library;
pub use self::primitives::{PRIMITIVES, Primitive, STATEMENTS};
pub use self::purposes::PurposeUse;
pub use self::transport::{CONNECTIONS, Connection, Offered};

const DAY: f64 = 24.0 * 60.0 * 60.0;

/// What a large quantum computer would do to an algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantum {
    /// Symmetric with 256 bits, or a digest.
    Resistant,
    /// Messages that are recorded today can be decrypted later.
    HarvestNow,
    /// Signatures can be forged from then on; nothing recorded is disclosed.
    Forgeable,
}

impl Quantum {
    pub fn name(self) -> &'static str {
        match self {
            Self::Resistant => "resistant",
            Self::HarvestNow => "decryptable later",
            Self::Forgeable => "forgeable later",
        }
    }
}

/// The keys of one purpose.
pub struct PurposeKeys {
    pub purpose: KeyPurpose,
    pub use_of: PurposeUse,
    /// One entry per state that occurs.
    pub counts: Vec<KeyCount>,
    pub period: Option<Duration>,
    /// Of the oldest active key.
    pub age: Option<KeyAge>,
}

/// Everything that the inventory lists.
pub struct Inventory {
    pub at: Timestamp,
    pub environment: &'static str,
    /// The configured provider of the root key.
    pub provider: &'static str,
    pub roots: Vec<RootCount>,
    pub keys: Vec<PurposeKeys>,
    pub client_keys: ClientKeyCount,
    pub security_code_life: Duration,
    pub offered: Offered,
    /// Connections that this configuration has, and whether they use TLS.
    pub connections: Vec<(Connection, bool)>,
    pub certificates: Vec<UsedCertificate>,
    /// Certificates that cannot be read.
    pub unreadable: Vec<String>,
    pub libraries: Vec<Library>,
}

impl Inventory {
    /// Reads the database and the files that the configuration names. Changes nothing.
    pub async fn load(config: &Config) -> Result<Self, Error> {
        let db = Db::open(&config.database)?;
        let counts = cryptoperiods::count_keys(&db).await?;
        let roots = cryptoperiods::count_roots(&db).await?;
        let client_keys = cryptoperiods::count_client_keys(&db).await?;
        let at = DatabaseClock::new(db).now().await?;
        let (certificates, unreadable) = list_certificates(config);
        let connections = CONNECTIONS.iter();
        let connections = connections.filter_map(|it| Some((*it, (it.uses_tls)(config)?)));
        let codes = &config.security_codes;
        Ok(Self {
            at,
            environment: config.vault.environment.as_str(),
            provider: config.root_key.provider.as_str(),
            roots,
            keys: purpose_keys(config, &counts, at),
            client_keys,
            security_code_life: codes.epoch + codes.retention,
            offered: transport::offered(),
            connections: connections.collect(),
            certificates,
            unreadable,
            libraries: libraries::list(),
        })
    }

    pub fn to_json(&self) -> Value {
        let roots = self.roots.iter().map(|count| {
            let root = count.root.as_ref();
            json!({
                "provider": root.map(|root| provider_name(root.provider())),
                "id": root.map(|root| root.name().to_owned()),
                "wrapped_keys": count.keys,
            })
        });
        let certificates = self.certificates.iter().map(|used| {
            json!({
                "used_by": used.name, "role": used.role.name(), "subject": used.details.subject,
                "public_key": used.details.public_key, "not_before": used.details.not_before.to_string(),
                "not_after": used.details.not_after.to_string(), "days_left": used.days_left(self.at),
            })
        });
        let libraries = self
            .libraries
            .iter()
            .map(|it| json!({"name": it.name, "version": it.version, "used_for": it.role}));
        let statements = STATEMENTS
            .iter()
            .map(|(subject, text)| json!({"subject": subject, "text": text}));
        json!({
            "generated_at": self.at.to_string(),
            "environment": self.environment,
            "root_key": {"provider": self.provider, "roots": roots.collect::<Vec<_>>()},
            "keys": self.keys.iter().map(PurposeKeys::to_json).collect::<Vec<_>>(),
            "client_encryption_keys": self.client_keys_json(),
            "security_code_keys": {"life_seconds": self.security_code_life.as_secs(), "stored": "memory, Redis"},
            "algorithms": PRIMITIVES.iter().map(primitive_json).collect::<Vec<_>>(),
            "tls": self.tls_json(),
            "certificates": certificates.collect::<Vec<_>>(),
            "unreadable_certificates": self.unreadable,
            "libraries": libraries.collect::<Vec<_>>(),
            "statements": statements.collect::<Vec<_>>(),
        })
    }

    fn client_keys_json(&self) -> Value {
        let keys = &self.client_keys;
        json!({
            "algorithm": "JWE: ECDH-ES (X25519), A256GCM", "keys": keys.keys, "tenants": keys.tenants,
            "oldest": keys.oldest.map(|at| at.to_string()), "next_expiry": keys.next_expiry.map(|at| at.to_string()),
            "cryptoperiod": "until expires_at, at most one year", "post_quantum": Quantum::HarvestNow.name(),
        })
    }

    fn tls_json(&self) -> Value {
        let connections = self.connections.iter().map(|(connection, uses_tls)| {
            json!({
                "name": connection.name, "tls": uses_tls, "authentication": connection.authentication,
            })
        });
        json!({
            "protocols": ["TLS 1.3", "TLS 1.2"],
            "cipher_suites": self.offered.cipher_suites,
            "key_exchange": self.offered.key_exchange,
            "post_quantum_key_exchange": self.offered.is_post_quantum,
            "connections": connections.collect::<Vec<_>>(),
        })
    }
}

fn primitive_json(primitive: &Primitive) -> Value {
    json!({
        "algorithm": primitive.algorithm, "key_bits": primitive.key_bits, "library": primitive.library,
        "used_for": primitive.used_for, "post_quantum": primitive.quantum.name(), "files": primitive.places,
    })
}

impl PurposeKeys {
    fn to_json(&self) -> Value {
        let counts = self.counts.iter().map(|count| {
            json!({
                "state": count.state.name(), "keys": count.keys, "owners": count.owners,
                "versions": [count.versions.0, count.versions.1],
                "oldest": count.oldest.to_string(), "newest": count.newest.to_string(),
            })
        });
        json!({
            "purpose": self.purpose.name(),
            "algorithm": self.use_of.algorithm,
            "key_bits": self.use_of.key_bits,
            "used_for": self.use_of.used_for,
            "protected_by": self.use_of.protected_by,
            "module": self.use_of.place,
            "post_quantum": self.use_of.quantum.name(),
            "states": counts.collect::<Vec<_>>(),
            "cryptoperiod_days": self.period.map(days),
            "oldest_active_days": self.age.map(|age| days(age.age)),
            "cryptoperiod_used": self.age.map(|age| (age.share() * 1000.0).round() / 1000.0),
            "rotation": cryptoperiods::rotation(self.purpose),
        })
    }

    /// The number of keys in a state.
    pub fn count(&self, state: State) -> i64 {
        let in_state = self.counts.iter().filter(|count| count.state == state);
        in_state.map(|count| count.keys).sum()
    }
}

/// Days with one decimal place.
pub fn days(duration: Duration) -> f64 {
    (duration.as_secs_f64() / DAY * 10.0).round() / 10.0
}

/// The name of a provider by its number in wrapped keys.
pub fn provider_name(number: u8) -> &'static str {
    match number {
        1 => "file or shares",
        2 => "pkcs11",
        3 => "aws_kms",
        4 => "transit",
        _ => "unknown",
    }
}

fn purpose_keys(config: &Config, counts: &[KeyCount], now: Timestamp) -> Vec<PurposeKeys> {
    let ages = cryptoperiods::ages(&config.cryptoperiods, counts, now);
    let keys = |purpose: KeyPurpose| {
        let of_purpose = counts.iter().filter(|count| count.purpose == purpose);
        Some(PurposeKeys {
            purpose,
            use_of: purposes::describe(purpose)?,
            counts: of_purpose.cloned().collect(),
            period: cryptoperiods::period(&config.cryptoperiods, purpose),
            age: ages.iter().find(|age| age.purpose == purpose).copied(),
        })
    };
    KeyPurpose::ALL.into_iter().filter_map(keys).collect()
}

#[cfg(test)]
mod tests;
