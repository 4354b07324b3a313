//! A client encryption key: how long it may live, what its private half is bound to, and how its
//! public half is written.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cloakroom_crypto::{PUBLIC_KEY_BYTES, PolicyDigest};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};
use uuid::Uuid;

use crate::api::{Broken, Expiry};
use crate::keys::Record;

/// Rows are never changed.
const ROW_VERSION: u32 = 1;

/// A key as those see it who manage keys.
#[derive(Clone, Copy, Debug)]
pub struct ClientKey {
    pub id: Uuid,
    pub expires_at: Timestamp,
}

/// A new key, with the public half that is shown only now.
pub struct CreatedClientKey {
    pub key: ClientKey,
    pub public_key: [u8; PUBLIC_KEY_BYTES],
}

impl ClientKey {
    /// What the sealed private half is bound to.
    pub(super) fn record<'a>(&'a self, public_key: &[u8]) -> Record<'a> {
        let expires_at = Some(self.expires_at.as_microsecond());
        Record {
            kind: "client_key",
            id: self.id.as_bytes(),
            column: "private_key",
            row_version: ROW_VERSION,
            policy: PolicyDigest::new::<&str>("client_key", &[], expires_at)
                .with("public_key", &hex::encode(public_key)),
        }
    }
}

impl CreatedClientKey {
    /// The public half as clients expect it: framed like PEM, but the raw 32 bytes inside.
    pub fn pem(&self) -> String {
        let text = STANDARD.encode(self.public_key);
        format!("-----BEGIN PUBLIC KEY-----\n{text}\n-----END PUBLIC KEY-----")
    }
}

/// When a key expires that was asked for at `now`: in a year, or earlier if the client says so.
pub(super) fn expiry(now: Timestamp, asked: Option<&str>) -> Result<Timestamp, Broken> {
    // As the database keeps it.
    let micros = Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now);
    let latest = micros
        .to_zoned(TimeZone::UTC)
        .checked_add(1.year())
        .map_or(Timestamp::MAX, |zoned| zoned.timestamp());
    let Some(text) = asked else {
        return Ok(latest);
    };
    match Expiry::parse(text) {
        Some(Expiry { at, .. }) if now < at && at <= latest => Ok(at),
        _ => {
            let rule = "must be an ISO 8601 date-time in the future, one year ahead at most";
            Err(Broken::new("expires_at", rule))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_lives_for_a_year_at_most() {
        let now: Timestamp = "2027-03-01T12:00:00Z".parse().unwrap();
        let cases = [
            (None, Some("2028-03-01T12:00:00Z")),
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
        for (asked, expected) in cases {
            let settled = expiry(now, asked).ok().map(|at| at.to_string());
            assert_eq!(settled.as_deref(), expected, "{asked:?}");
        }
    }

    #[test]
    fn the_public_half_is_framed_raw() {
        let created = CreatedClientKey {
            key: ClientKey {
                id: Uuid::nil(),
                expires_at: Timestamp::UNIX_EPOCH,
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
