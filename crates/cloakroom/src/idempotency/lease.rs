//! The right to do a request, for a while, and the answer that ends it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cloakroom_crypto::PolicyDigest;
use http::StatusCode;

use super::reply::Kept;
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
    pub(super) fn keep(&self, answer: &Answer) -> Result<Kept<'_>, keys::Error> {
        let status = answer.status.as_u16();
        let bound = Bound::new(&self.scope, status, &self.request_mac);
        let sealed = self.keys.seal_reply(&bound.record(), &pack(answer))?;
        let row = format!(
            "({},\"\\\\x{}\",{},{status},\"\\\\x{}\",\"\\\\x{}\",)",
            self.tenant.number,
            hex::encode(self.scope),
            self.fence,
            hex::encode(sealed),
            hex::encode(self.request_mac),
        );
        Ok(Kept::new(row, self))
    }

    pub(super) fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }
}

/// Opens an answer that was kept.
pub(super) async fn open(
    vault: &Vault,
    (tenant, scope): (TenantId, &[u8; 32]),
    answered: &Answered,
) -> Result<Answer, keys::Error> {
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

/// The length of the address, the address, the body.
fn pack(answer: &Answer) -> Vec<u8> {
    let location = answer.location.as_deref().unwrap_or_default();
    let length = u16::try_from(location.len()).unwrap_or_default();
    let location = location.get(..usize::from(length)).unwrap_or_default();
    let mut packed = Vec::with_capacity(2 + location.len() + answer.body.len());
    packed.extend(length.to_be_bytes());
    packed.extend(location.as_bytes());
    packed.extend(&answer.body);
    packed
}

fn unpack(status: u16, packed: &[u8]) -> Option<Answer> {
    let (length, rest) = packed.split_first_chunk::<2>()?;
    let (location, body) = rest.split_at_checked(u16::from_be_bytes(*length).into())?;
    let location = String::from_utf8(location.to_vec()).ok()?;
    let location = Some(location).filter(|location| !location.is_empty());
    let status = StatusCode::from_u16(status).ok()?;
    Some(Answer::new(status, location, body.to_vec()))
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
            let packed = pack(&answer);

            let again = unpack(answer.status.as_u16(), &packed).unwrap();

            assert_eq!(again.status, answer.status);
            assert_eq!(again.location, answer.location);
            assert_eq!(again.body, answer.body);
            assert!(unpack(answer.status.as_u16(), &packed[..1]).is_none());
        }
    }
}
