//! Time stamps of checkpoints by a third party (RFC 3161).
//!
//! A time stamp proves that the log existed in this form at a time that no key of this vault can choose. Auditors verify it
//! with `openssl ts -verify`. Requests contain a digest only, and responses are signed, so that plain HTTP suffices.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use cloakroom_core::audit::{self, Shipment};
use cloakroom_core::vault::Vault;
use cloakroom_crypto::{random_bytes, sha256};
use cloakroom_platform::config::Config;
use cloakroom_platform::storage;
use cloakroom_platform::telemetry::catalog;
use memchr::memmem;
use tokio::time::timeout;
use uuid::Uuid;

use super::{Error, LEASE, TIMEOUT, file, post, tls};

/// Name in metrics and of the lease.
pub(super) const NAME: &str = "time_stamps";
/// The time-stamped checkpoints, as a file for `audit verify --checkpoints`.
const CHECKPOINTS_FILE: &str = "checkpoints.jsonl";

/// DER of a `messageImprint` with SHA-256, before the digest.
const IMPRINT_START: [u8; 19] = [
    0x30, 49, 0x30, 13, 0x06, 9, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01, 0x05, 0,
    0x04, 32,
];

/// The time stamps in the directory of a node.
#[derive(Debug)]
pub struct TimeStamps {
    /// Number of the last time-stamped checkpoint, 0 if there is none.
    pub last: i64,
    pub age: Option<Duration>,
}

impl TimeStamps {
    pub fn read(directory: &Path) -> Result<Self, Error> {
        let path = directory.join(CHECKPOINTS_FILE);
        let last = file::last_number(&path)?;
        let age = match last {
            0 => None,
            _ => {
                let modified = path.metadata()?.modified()?;
                Some(
                    SystemTime::now()
                        .duration_since(modified)
                        .unwrap_or_default(),
                )
            }
        };
        Ok(Self { last, age })
    }

    /// `None` if time stamps are not configured.
    pub fn configured(config: &Config) -> Option<Result<Self, Error>> {
        let directory = config.audit.time_stamp_directory.as_deref()?;
        Some(Self::read(directory))
    }
}

/// Has the newest checkpoint time-stamped if the last time stamp is older than the interval. `Ok` if another node does it.
pub async fn stamp(vault: &Vault, holder: Uuid) -> Result<(), Error> {
    let settings = &vault.config.audit;
    let (Some(url), Some(directory)) = (&settings.time_stamp_url, &settings.time_stamp_directory)
    else {
        return Ok(());
    };
    if !storage::hold_lease(&vault.db, NAME, holder, LEASE).await? {
        return Ok(());
    }
    let stamps = TimeStamps::read(directory)?;
    let age = stamps.age.unwrap_or_default();
    catalog::AUDIT_TIME_STAMP_AGE.set(age.as_secs_f64());
    let is_due = stamps
        .age
        .is_none_or(|age| settings.time_stamp_interval <= age);
    let newest = vault.audit.newest_checkpoint().await?;
    if !is_due || newest <= stamps.last {
        return Ok(());
    }
    let page = audit::unshipped(&vault.audit, newest - 1).await?;
    let Some(shipment) = page.into_iter().next() else {
        return Ok(());
    };
    let stamped = request_stamp(url.reveal(), &vault.config, &shipment);
    let stamped = timeout(TIMEOUT, stamped).await;
    let response = stamped.map_err(|_| Error::Timeout)??;
    store(directory, shipment, &response)
}

async fn request_stamp(url: &str, config: &Config, shipment: &Shipment) -> Result<Vec<u8>, Error> {
    let query = Query::new(&shipment.note);
    let request = post::Post {
        checkpoint: shipment.number,
        content_type: "application/timestamp-query",
        body: query.encode().into(),
    };
    let responses = post::send(url, tls(config)?, vec![request]).await?;
    let response = responses.first().ok_or(Error::Response)?;
    if !query.is_granted_by(response) {
        return Err(Error::Response);
    }
    Ok(response.to_vec())
}

/// Stores note and response, then the line that declares both complete.
fn store(directory: &Path, shipment: Shipment, response: &[u8]) -> Result<(), Error> {
    let parts = [("note", shipment.note.as_bytes()), ("tsr", response)];
    for (extension, content) in parts {
        let name = format!("{}.{extension}", shipment.number);
        let mut file = File::create(directory.join(name))?;
        file.write_all(content)?;
        file.sync_data()?;
    }
    file::append(&directory.join(CHECKPOINTS_FILE), &[shipment])
}

/// A `TimeStampReq` for a note.
struct Query {
    imprint: Vec<u8>,
    nonce: [u8; 8],
}

impl Query {
    fn new(note: &str) -> Self {
        let mut nonce = random_bytes::<8>();
        // A positive number of exactly eight bytes.
        nonce[0] = nonce[0] & 0x7f | 0x40;
        Self {
            imprint: [&IMPRINT_START[..], &sha256(note.as_bytes())].concat(),
            nonce,
        }
    }

    fn encode(&self) -> Vec<u8> {
        let version = [0x02, 1, 1];
        let with_certificates = [0x01, 1, 0xff];
        let content = [
            &version[..],
            &self.imprint,
            &self.encode_nonce(),
            &with_certificates,
        ]
        .concat();
        [&[0x30, content.len() as u8][..], &content].concat()
    }

    fn encode_nonce(&self) -> Vec<u8> {
        [&[0x02, 8][..], &self.nonce].concat()
    }

    /// Whether a `TimeStampResp` grants a time stamp for this request. Its signature is left to the auditor, who knows
    /// which authority to trust.
    fn is_granted_by(&self, response: &[u8]) -> bool {
        let is_granted = matches!(status(response), Some(0 | 1));
        let contains = |part: &[u8]| memmem::find(response, part).is_some();
        is_granted && contains(&self.imprint) && contains(&self.encode_nonce())
    }
}

/// The `PKIStatus` of a `TimeStampResp`: the first integer of the first sequence in the outer sequence.
fn status(response: &[u8]) -> Option<u8> {
    let status_info = content_of_sequence(response)?;
    match content_of_sequence(status_info)? {
        [0x02, 1, status, ..] => Some(*status),
        _ => None,
    }
}

/// What follows the tag and the length of a DER sequence.
fn content_of_sequence(der: &[u8]) -> Option<&[u8]> {
    let (&[0x30, length], rest) = der.split_first_chunk()? else {
        return None;
    };
    match length {
        0x80.. => rest.get(usize::from(length & 0x7f)..),
        _ => Some(rest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_granted_response_to_this_request_is_a_time_stamp() {
        let query = Query::new("note");
        let answer = |status: u8, query: &Query| {
            let info = [0x30, 3, 0x02, 1, status];
            let token = [&query.imprint[..], &query.encode_nonce()].concat();
            [&[0x30, 0x82, 0, 66][..], &info, &token].concat()
        };

        assert!(query.is_granted_by(&answer(0, &query)));
        assert!(query.is_granted_by(&answer(1, &query)));
        assert!(!query.is_granted_by(&answer(2, &query)), "rejected");
        let of_another_note = Query {
            imprint: Query::new("other").imprint,
            nonce: query.nonce,
        };
        assert!(!query.is_granted_by(&answer(0, &of_another_note)));
        let replayed = Query::new("note");
        assert!(!query.is_granted_by(&answer(0, &replayed)));
        assert!(!query.is_granted_by(b""));
        assert!(!query.is_granted_by(&[0x30, 0xff]));
    }
}
