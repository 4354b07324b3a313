//! The lease on a request with an idempotency key, and the encryption of its response.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cloakroom_crypto::RowPolicy;
use cloakroom_platform::api::Answer;
use http::StatusCode;
use jiff::Timestamp;

use super::request_key::{GrantsDigest, RequestKey};
use super::store::SealedResponse;
use crate::keys::{self, Keyring, Record, TenantKeys};

/// How long a response is stored.
const RETENTION: Duration = Duration::from_secs(24 * 60 * 60);

/// Held by the one request that may execute under its idempotency key.
pub struct Lease {
    pub(crate) key: RequestKey,
    /// The same request under the other versions of the tenant's key, which is being replaced; usually none.
    pub(crate) others: Vec<RequestKey>,
    /// Random for every acquisition: writes of an earlier holder are rejected.
    pub(crate) fence: i64,
    /// When it was acquired, by the database's clock.
    pub(crate) acquired_at: Timestamp,
    pub(crate) request_mac: [u8; 32],
    /// Digest of the caller's permissions; the response is replayed only to a caller with the same
    /// permissions.
    pub(crate) grants: GrantsDigest,
    /// Replaced if the key of responses is rotated while the request runs.
    pub(crate) keys: Mutex<Arc<TenantKeys>>,
    /// Whether the response is durable, together with the change.
    pub(crate) ended: AtomicBool,
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lease")
    }
}

impl Lease {
    /// Encrypts a response under this lease, as a row of `reply` in PostgreSQL's composite syntax.
    pub(crate) fn row(
        &self,
        response: &Answer,
        record: &[u8],
        until: Option<Timestamp>,
    ) -> Result<String, keys::Error> {
        let status = response.status.as_u16();
        let end = self.acquired_at.checked_add(RETENTION);
        let end = end.unwrap_or(Timestamp::MAX);
        let end = until.map_or(end, |until| until.min(end));
        let associated_data = AssociatedData {
            scope: &self.key.scope,
            status,
            request_mac: &self.request_mac,
            fence: self.fence,
            until: end,
        };
        let keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let sealed = keys.seal_response(
            &associated_data.record(),
            &pack(response, record, &self.grants),
        )?;
        Ok(format!(
            "({},\"\\\\x{}\",{},{status},\"\\\\x{}\",\"\\\\x{}\",{end})",
            self.key.tenant.number,
            hex::encode(self.key.scope),
            self.fence,
            hex::encode(sealed),
            hex::encode(self.request_mac),
        ))
    }

    /// Encrypts the response with these keys.
    pub(crate) fn use_keys(&self, keys: &Arc<TenantKeys>) {
        let mut current = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        *current = keys.clone();
    }

    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }
}

/// A decrypted stored response.
pub(crate) struct StoredResponse {
    pub response: Answer,
    /// Encoded reads, recorded in the audit log when the response is replayed.
    pub record: Vec<u8>,
    /// Permissions of the caller that it was rendered for.
    pub(crate) grants: GrantsDigest,
}

/// Decrypts a stored response.
pub(crate) async fn open(
    keyring: &Keyring,
    key: &RequestKey,
    stored: &SealedResponse,
) -> Result<StoredResponse, keys::Error> {
    let associated_data = AssociatedData {
        scope: &key.scope,
        status: stored.status,
        request_mac: &stored.request_mac,
        fence: stored.fence,
        until: stored.until,
    };
    let opened = keyring
        .open_response(key.tenant, &associated_data.record(), &stored.sealed)
        .await?;
    unpack(stored.status, opened.expose()).ok_or(keys::Error::Integrity)
}

/// Associated data of a stored response, which are all columns of its row: it does not decrypt as the response to any
/// other request, or after its end.
struct AssociatedData<'a> {
    scope: &'a [u8; 32],
    status: u16,
    request_mac: &'a [u8],
    fence: i64,
    until: Timestamp,
}

impl<'a> AssociatedData<'a> {
    fn record(&self) -> Record<'a> {
        let policy = RowPolicy::new("reply", 0)
            .number(Some(self.status.into()))
            .bytes(Some(self.request_mac))
            .number(Some(self.fence))
            .number(Some(self.until.as_microsecond()));
        Record {
            kind: "reply",
            id: self.scope,
            column: "sealed",
            row_version: 1,
            policy: policy.digest(),
        }
    }
}

/// Grants digest, location and audit reads, each with a length prefix, followed by the body.
fn pack(response: &Answer, record: &[u8], grants: &GrantsDigest) -> Vec<u8> {
    let location = response.location.as_deref().unwrap_or_default();
    let size = 12 + grants.len() + location.len() + record.len() + response.body.len();
    let mut packed = Vec::with_capacity(size);
    for part in [grants, location.as_bytes(), record] {
        let length = u32::try_from(part.len()).unwrap_or_default();
        packed.extend(length.to_be_bytes());
        packed.extend(part);
    }
    packed.extend(&response.body);
    packed
}

fn unpack(status: u16, packed: &[u8]) -> Option<StoredResponse> {
    let (grants, rest) = split(packed)?;
    let (location, rest) = split(rest)?;
    let (record, body) = split(rest)?;
    let location = String::from_utf8(location.to_vec()).ok()?;
    let location = Some(location).filter(|location| !location.is_empty());
    let status = StatusCode::from_u16(status).ok()?;
    Some(StoredResponse {
        response: Answer::new(status, location, body.to_vec()),
        record: record.to_vec(),
        grants: grants.try_into().ok()?,
    })
}

/// Splits off a length-prefixed part.
fn split(packed: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = packed.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
    rest.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_response_round_trips() {
        let location = "https://vault.example/tokens/1".to_owned();
        let cases = [
            Answer::new(
                StatusCode::CREATED,
                Some(location),
                b"{\"id\":\"1\"}".to_vec(),
            ),
            Answer::new(StatusCode::OK, None, Vec::new()),
        ];
        for response in cases {
            let packed = pack(&response, b"record", &[7; 32]);

            let unpacked = unpack(response.status.as_u16(), &packed).unwrap();

            assert_eq!(unpacked.response.status, response.status);
            assert_eq!(unpacked.response.location, response.location);
            assert_eq!(unpacked.response.body, response.body);
            assert_eq!(unpacked.record, b"record");
            assert_eq!(unpacked.grants, [7; 32]);
            assert!(unpack(response.status.as_u16(), &packed[..3]).is_none());
        }
    }
}
