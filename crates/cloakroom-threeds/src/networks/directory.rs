//! The directory server (DS) of one network, called over mutual TLS.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use cloakroom_emv3ds::{RANGES_BYTES_MAX, RangeTable};
use cloakroom_platform::certificates::Certificate;
use rustls::server::ParsedCertificate;
use rustls::server::danger::ClientCertVerifier;
use rustls::{RootCertStore, client};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use super::adapter::RESPONSE_MAX;
use super::client::{HttpsClient, Limits};
use super::{Identity, Network, NetworkFailure, NetworkRange};

/// Timeout of a PReq: a full card range table is large.
const RANGES_TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// A directory server: its client, the certificates it sends results with, and its card ranges.
pub struct DirectoryServer {
    pub(super) network: Network,
    /// Identifies the directory server in the database, logs and metrics.
    pub(super) key: String,
    pub(super) identity: Identity,
    pub(super) operator_id: Option<String>,
    pub(super) client: HttpsClient,
    /// The client certificate, which changes with its files.
    pub(super) certificate: Arc<Certificate>,
    pub(super) answer_timeout: Duration,
    pub(super) senders: TrustedSenders,
    pub(super) ranges: ArcSwap<RangeSnapshot>,
}

/// Card ranges in memory, with the version of their database row.
#[derive(Default)]
pub(super) struct RangeSnapshot {
    pub version: i32,
    pub table: RangeTable,
    /// Whether the row of this version is corrupt and `table` is from an older version.
    pub is_corrupt: bool,
}

/// Clients that may send results: certificates issued by the network's CAs, limited to `names` if not empty.
pub(super) struct TrustedSenders {
    pub roots: RootCertStore,
    pub verifier: Arc<dyn ClientCertVerifier>,
    pub names: Vec<ServerName<'static>>,
}

impl DirectoryServer {
    pub fn network(&self) -> Network {
        self.network
    }

    pub fn key(&self) -> &str {
        &self.key
    }

    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    pub fn operator_id(&self) -> Option<&str> {
        self.operator_id.as_deref()
    }

    /// CAs whose client certificates may send results.
    pub fn authorities(&self) -> &RootCertStore {
        &self.senders.roots
    }

    /// Whether a client with this certificate chain, leaf first, may send results of this network.
    pub fn is_trusted_sender(&self, chain: &[CertificateDer<'_>]) -> bool {
        let Some((end, intermediates)) = chain.split_first() else {
            return false;
        };
        let now = UnixTime::now();
        let verified = self
            .senders
            .verifier
            .verify_client_cert(end, intermediates, now);
        verified.is_ok() && (self.senders.names.is_empty() || self.has_trusted_name(end))
    }

    fn has_trusted_name(&self, certificate: &CertificateDer<'_>) -> bool {
        let Ok(certificate) = ParsedCertificate::try_from(certificate) else {
            return false;
        };
        let mut names = self.senders.names.iter();
        names.any(|name| client::verify_server_name(&certificate, name).is_ok())
    }

    /// Finds the card range that contains a card number.
    pub(super) fn find_range(&self, number: &str) -> Option<NetworkRange> {
        let loaded = self.ranges.load();
        let range = loaded.table.find(number)?;
        Some(NetworkRange {
            network: self.network,
            range: range.clone(),
            until: None,
        })
    }

    /// Whether any card ranges are loaded.
    pub(super) fn has_ranges(&self) -> bool {
        !self.ranges.load().table.is_empty()
    }

    /// Sends a message of one transaction.
    pub(super) async fn send(&self, text: String) -> Result<Vec<u8>, NetworkFailure> {
        let limits = Limits {
            timeout: self.answer_timeout,
            max_bytes: RESPONSE_MAX,
        };
        self.client.post("", text, limits).await
    }

    /// Sends a PReq, whose response may be large.
    pub(super) async fn request_ranges(&self, text: String) -> Result<Vec<u8>, NetworkFailure> {
        let limits = Limits {
            timeout: RANGES_TIMEOUT,
            max_bytes: RANGES_BYTES_MAX,
        };
        self.client.post("", text, limits).await
    }
}
