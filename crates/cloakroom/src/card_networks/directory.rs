//! The directory server of one network, asked over mutual TLS.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use cloakroom_emv3ds::{RANGES_BYTES_MAX, RangeTable};
use rustls::server::ParsedCertificate;
use rustls::server::danger::ClientCertVerifier;
use rustls::{RootCertStore, client};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use super::adapter::ANSWER_MAX;
use super::line::{Bounds, Line};
use super::{Identity, Network, Offer, Trouble};

/// A table of all ranges takes its time.
const RANGES_TIME: Duration = Duration::from_secs(5 * 60);

/// A directory server: how it is asked, whom it sends, and which cards it knows.
pub struct Directory {
    pub(super) network: Network,
    /// Names it in the database and to operators.
    pub(super) key: String,
    pub(super) identity: Identity,
    pub(super) operator_id: Option<String>,
    pub(super) line: Line,
    pub(super) answer_timeout: Duration,
    pub(super) senders: Senders,
    pub(super) ranges: ArcSwap<Loaded>,
}

/// Card ranges in memory, and the version of the row that they came from.
#[derive(Default)]
pub(super) struct Loaded {
    pub version: i32,
    pub table: RangeTable,
    /// Whether the row of this version makes no sense, and the table is an older one.
    pub is_damaged: bool,
}

/// Who may tell results: certificates of the network's authorities, with one of these names if any
/// are given.
pub(super) struct Senders {
    pub roots: RootCertStore,
    pub verifier: Arc<dyn ClientCertVerifier>,
    pub names: Vec<ServerName<'static>>,
}

impl Directory {
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

    /// How many card ranges this node knows of it.
    pub fn range_count(&self) -> usize {
        self.ranges.load().table.len()
    }

    /// The authorities whose clients may tell results.
    pub fn authorities(&self) -> &RootCertStore {
        &self.senders.roots
    }

    /// Whether a client with this certificate, first of its chain, may tell results of this network.
    pub fn is_sent_by(&self, chain: &[CertificateDer<'_>]) -> bool {
        let Some((end, intermediates)) = chain.split_first() else {
            return false;
        };
        let now = UnixTime::now();
        let verified = self
            .senders
            .verifier
            .verify_client_cert(end, intermediates, now);
        verified.is_ok() && (self.senders.names.is_empty() || self.is_named(end))
    }

    fn is_named(&self, certificate: &CertificateDer<'_>) -> bool {
        let Ok(certificate) = ParsedCertificate::try_from(certificate) else {
            return false;
        };
        let mut names = self.senders.names.iter();
        names.any(|name| client::verify_server_name(&certificate, name).is_ok())
    }

    /// What this network offers for a card, if it knows it.
    pub(super) fn offer(&self, number: &str) -> Option<Offer> {
        let loaded = self.ranges.load();
        let range = loaded.table.find(number)?;
        Some(Offer {
            network: self.network,
            range: range.clone(),
            until: None,
        })
    }

    /// Whether any card ranges of it are known.
    pub(super) fn is_known(&self) -> bool {
        !self.ranges.load().table.is_empty()
    }

    /// Asks about one transaction.
    pub(super) async fn ask(&self, text: String) -> Result<Vec<u8>, Trouble> {
        let bounds = Bounds {
            time: self.answer_timeout,
            bytes: ANSWER_MAX,
        };
        self.line.ask("", text, bounds).await
    }

    /// Asks for card ranges, of which there may be very many.
    pub(super) async fn ask_ranges(&self, text: String) -> Result<Vec<u8>, Trouble> {
        let bounds = Bounds {
            time: RANGES_TIME,
            bytes: RANGES_BYTES_MAX,
        };
        self.line.ask("", text, bounds).await
    }
}
