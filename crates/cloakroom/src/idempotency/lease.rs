//! The right to do a request, for a while, and the answer that ends it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cloakroom_crypto::PolicyDigest;
use http::StatusCode;
use jiff::Timestamp;

use super::store::Answered;
use crate::api::Answer;
use crate::ids::TenantId;
use crate::keys::{self, Record, TenantKeys};
use crate::vault::Vault;

/// Held by the one request that may do what its key stands for.
pub struct Lease {
    pub(super) tenant: TenantId,
    pub(super) scope: [u8; 32],
    /// Drawn anew by whoever takes the lease: what an earlier holder still sends does not count.
    pub(super) fence: i64,
    pub(super) request_mac: [u8; 32],
    pub(super) keys: Arc<TenantKeys>,
    /// Whether the answer is durable, together with what it tells.
    pub(super) ended: AtomicBool,
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lease")
    }
}

impl Lease {
    /// Seals an answer under this lease, as the text of a row of `reply`.
    pub(super) fn row(
        &self,
        answer: &Answer,
        record: &[u8],
        until: Option<Timestamp>,
    ) -> Result<String, keys::Error> {
        let status = answer.status.as_u16();
        let bound = Bound::new(&self.scope, status, &self.request_mac);
        let sealed = self
            .keys
            .seal_reply(&bound.record(), &pack(answer, record))?;
        Ok(format!(
            "({},\"\\\\x{}\",{},{status},\"\\\\x{}\",\"\\\\x{}\",{})",
            self.tenant.number,
            hex::encode(self.scope),
            self.fence,
            hex::encode(sealed),
            hex::encode(self.request_mac),
            until.map_or_else(String::new, |end| end.to_string()),
        ))
    }

    pub(super) fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }
}

/// Opens an answer that was kept, and what is to be recorded when it is given again.
pub(super) async fn open(
    vault: &Vault,
    (tenant, scope): (TenantId, &[u8; 32]),
    answered: &Answered,
) -> Result<(Answer, Vec<u8>), keys::Error> {
    let bound = Bound::new(scope, answered.status, &answered.request_mac);
    let opened = vault
        .keys
        .open_reply(tenant, &bound.record(), &answered.sealed)
        .await?;
    unpack(answered.status, opened.expose()).ok_or(keys::Error::Integrity)
}

/// What a kept answer is bound to: as the answer to any other request it does not open.
struct Bound<'a> {
    scope: &'a [u8; 32],
    policy: PolicyDigest,
}

impl<'a> Bound<'a> {
    fn new(scope: &'a [u8; 32], status: u16, request_mac: &[u8]) -> Self {
        let policy = PolicyDigest::new::<&str>("reply", &[], None)
            .with("status", &status.to_string())
            .with("request", &hex::encode(request_mac));
        Self { scope, policy }
    }

    fn record(&self) -> Record<'a> {
        Record {
            kind: "reply",
            id: self.scope,
            column: "sealed",
            row_version: 1,
            policy: self.policy,
        }
    }
}

/// Address and record, each after its length, and then the body.
fn pack(answer: &Answer, record: &[u8]) -> Vec<u8> {
    let location = answer.location.as_deref().unwrap_or_default();
    let mut packed = Vec::with_capacity(8 + location.len() + record.len() + answer.body.len());
    for part in [location.as_bytes(), record] {
        let length = u32::try_from(part.len()).unwrap_or_default();
        packed.extend(length.to_be_bytes());
        packed.extend(part);
    }
    packed.extend(&answer.body);
    packed
}

fn unpack(status: u16, packed: &[u8]) -> Option<(Answer, Vec<u8>)> {
    let (location, rest) = split(packed)?;
    let (record, body) = split(rest)?;
    let location = String::from_utf8(location.to_vec()).ok()?;
    let location = Some(location).filter(|location| !location.is_empty());
    let status = StatusCode::from_u16(status).ok()?;
    let answer = Answer::new(status, location, body.to_vec());
    Some((answer, record.to_vec()))
}

/// What stands after its length, and the rest.
fn split(packed: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = packed.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
    rest.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_comes_back_as_it_was_packed() {
        let place = "https://vault.example/tokens/1".to_owned();
        let cases = [
            Answer::new(StatusCode::CREATED, Some(place), b"{\"id\":\"1\"}".to_vec()),
            Answer::new(StatusCode::OK, None, Vec::new()),
        ];
        for answer in cases {
            let packed = pack(&answer, b"record");

            let (again, record) = unpack(answer.status.as_u16(), &packed).unwrap();

            assert_eq!(again.status, answer.status);
            assert_eq!(again.location, answer.location);
            assert_eq!(again.body, answer.body);
            assert_eq!(record, b"record");
            assert!(unpack(answer.status.as_u16(), &packed[..3]).is_none());
        }
    }
}
