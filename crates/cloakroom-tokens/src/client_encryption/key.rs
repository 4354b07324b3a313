//! Client encryption keys: expiry, usage binding, associated data of the private key, and PEM encoding.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cloakroom_core::access::Container;
use cloakroom_core::keys::Record;
use cloakroom_crypto::{PUBLIC_KEY_BYTES, PolicyDigest};
use cloakroom_platform::api::{Expiry, FieldError};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};
use uuid::Uuid;

/// Rows are never updated.
const ROW_VERSION: u32 = 1;

/// Metadata of a client encryption key.
#[derive(Clone, Debug)]
pub struct ClientKey {
    pub id: Uuid,
    pub expires_at: Timestamp,
    pub binding: Binding,
}

/// Restricts where a key may be used. Values encrypted to it are rejected elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Binding {
    /// The only application whose keys and sessions may send such values.
    pub application: Option<Uuid>,
    /// The only container, with those below it, in which tokens may be created from such values.
    pub container: Option<Container>,
}

impl Binding {
    /// Whether an application may use an encrypted value in a container. Token intents have no container.
    pub(super) fn allows(&self, application: Uuid, destination: Option<&Container>) -> bool {
        let is_application = self.application.is_none_or(|bound| bound == application);
        let is_container = match (&self.container, destination) {
            (None, _) => true,
            (Some(bound), Some(container)) => bound.holds(container),
            (Some(_), None) => false,
        };
        is_application && is_container
    }
}

/// A new key, with the public key that is shown once.
pub struct CreatedClientKey {
    pub key: ClientKey,
    pub public_key: [u8; PUBLIC_KEY_BYTES],
}

impl ClientKey {
    /// The associated data of the sealed private key.
    pub(super) fn record<'a>(&'a self, public_key: &[u8]) -> Record<'a> {
        let expires_at = Some(self.expires_at.as_microsecond());
        let mut policy = PolicyDigest::new::<&str>("client_key", &[], expires_at)
            .with("public_key", &hex::encode(public_key));
        if let Some(application) = &self.binding.application {
            policy = policy.with("application_id", &application.to_string());
        }
        if let Some(container) = &self.binding.container {
            policy = policy.with("container", container.as_str());
        }
        Record {
            kind: "client_key",
            id: self.id.as_bytes(),
            column: "private_key",
            row_version: ROW_VERSION,
            policy,
        }
    }
}

impl CreatedClientKey {
    /// The public key as clients expect it: the raw 32 bytes in PEM framing.
    pub fn pem(&self) -> String {
        pem(&self.public_key)
    }
}

/// The raw bytes of a public key in PEM framing.
pub(super) fn pem(public_key: &[u8]) -> String {
    let text = STANDARD.encode(public_key);
    format!("-----BEGIN PUBLIC KEY-----\n{text}\n-----END PUBLIC KEY-----")
}

/// The expiry of a key created at `now`: as requested, at most one year ahead, or else after `default_lifetime`.
pub(super) fn expiry(
    now: Timestamp,
    requested: Option<&str>,
    default_lifetime: Duration,
) -> Result<Timestamp, FieldError> {
    // PostgreSQL stores microseconds.
    let micros = Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now);
    let latest = micros
        .to_zoned(TimeZone::UTC)
        .checked_add(1.year())
        .map_or(Timestamp::MAX, |zoned| zoned.timestamp());
    let Some(text) = requested else {
        return Ok(micros
            .checked_add(default_lifetime)
            .map_or(latest, |at| at.min(latest)));
    };
    match Expiry::parse(text) {
        Some(Expiry { at, .. }) if now < at && at <= latest => Ok(at),
        _ => {
            let rule = "must be an ISO 8601 date-time in the future, one year ahead at most";
            Err(FieldError::new("expires_at", rule))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_expire_within_a_year() {
        let now: Timestamp = "2027-03-01T12:00:00Z".parse().unwrap();
        let lifetime = Duration::from_secs(90 * 24 * 60 * 60);
        let cases = [
            (None, Some("2027-05-30T12:00:00Z")),
            (
                Some("2027-03-01T12:00:00.000001Z"),
                Some("2027-03-01T12:00:00.000001Z"),
            ),
            (Some("2028-03-01T12:00:00Z"), Some("2028-03-01T12:00:00Z")),
            (
                Some("2028-03-01T13:00:00+01:00"),
                Some("2028-03-01T12:00:00Z"),
            ),
            (Some("3/2/2027"), Some("2027-03-02T00:00:00Z")),
            (Some("2028-03-01T12:00:00.000001Z"), None),
            (Some("2027-03-01T12:00:00Z"), None),
            (Some("2020-01-01"), None),
            (Some("soon"), None),
            (Some(""), None),
        ];
        for (requested, expected) in cases {
            let expires_at = expiry(now, requested, lifetime)
                .ok()
                .map(|at| at.to_string());
            assert_eq!(expires_at.as_deref(), expected, "{requested:?}");
        }
    }

    #[test]
    fn the_public_key_is_raw_bytes_in_pem_framing() {
        let created = CreatedClientKey {
            key: ClientKey {
                id: Uuid::nil(),
                expires_at: Timestamp::UNIX_EPOCH,
                binding: Binding::default(),
            },
            public_key: [1; 32],
        };

        insta::assert_snapshot!(created.pem(), @"
        -----BEGIN PUBLIC KEY-----
        AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=
        -----END PUBLIC KEY-----
        ");
    }
}
