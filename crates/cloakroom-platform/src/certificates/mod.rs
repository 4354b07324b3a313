//! TLS certificates in files: loaded at startup, and loaded again when their files change.

mod details;
mod file_state;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use rustls::SignatureScheme;
use rustls::client::ResolvesClientCert;
use rustls::crypto::aws_lc_rs;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use tokio::time::{MissedTickBehavior, interval};

use crate::telemetry::catalog;

pub use self::details::{CertificateDetails, read_details};
use self::file_state::FileStates;

/// A change is loaded after the files have been the same for one period, so that a certificate and its key can be
/// replaced one after the other.
const POLL_PERIOD: Duration = Duration::from_secs(2);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("cannot read certificates from {}", .0.display())]
    Certificates(PathBuf),
    #[error("cannot read a private key from {}", .0.display())]
    PrivateKey(PathBuf),
    #[error("the certificate in {} and its private key do not match", .0.display())]
    Mismatch(PathBuf),
    #[error("the certificate in {} is not valid at present", .0.display())]
    NotValid(PathBuf),
}

impl Error {
    /// A constant for logs and metrics.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Certificates(_) => "certificate_unreadable",
            Self::PrivateKey(_) => "private_key_unreadable",
            Self::Mismatch(_) => "key_mismatch",
            Self::NotValid(_) => "certificate_not_valid",
        }
    }
}

/// A certificate chain with its private key, of a listener or of a client.
///
/// Handshakes use the chain that was loaded last. Connections that exist keep the one that they started with.
pub struct Certificate {
    /// Label in logs and metrics.
    name: String,
    cert_file: PathBuf,
    key_file: PathBuf,
    loaded: ArcSwap<Loaded>,
    watched: Mutex<Watched>,
}

struct Loaded {
    key: Arc<CertifiedKey>,
    details: CertificateDetails,
    files: FileStates,
}

/// What polling has seen of files that differ from the loaded ones.
#[derive(Default)]
struct Watched {
    last_seen: Option<FileStates>,
    /// Files whose failure was reported.
    reported: Option<FileStates>,
}

impl Certificate {
    /// Loads the chain and the key; `name` identifies the certificate in logs and metrics.
    pub fn load(name: impl Into<String>, cert: &Path, key: &Path) -> Result<Arc<Self>, Error> {
        let loaded = Loaded::read(cert, key)?;
        let certificate = Self {
            name: name.into(),
            cert_file: cert.to_owned(),
            key_file: key.to_owned(),
            loaded: ArcSwap::from_pointee(loaded),
            watched: Mutex::default(),
        };
        certificate.measure();
        catalog::TLS_CERTIFICATE_RELOADS.start_at_zero(&certificate.name);
        Ok(Arc::new(certificate))
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn cert_file(&self) -> &Path {
        &self.cert_file
    }

    /// The end-entity certificate that is in use.
    pub fn details(&self) -> CertificateDetails {
        self.loaded.load().details.clone()
    }

    fn current(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.loaded.load().key)
    }

    /// Loads the files again if they have changed. Whatever is wrong with them, the loaded certificate remains in use.
    fn poll(&self) {
        let files = FileStates::read(&self.cert_file, &self.key_file);
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        if files == self.loaded.load().files {
            *watched = Watched::default();
            return;
        }
        if watched.last_seen.as_ref() != Some(&files) {
            watched.last_seen = Some(files);
            return;
        }
        match self.reload() {
            Ok(()) => {
                *watched = Watched::default();
                self.count("loaded");
                tracing::info!(
                    certificate = self.name,
                    "the TLS certificate was loaded again"
                );
            }
            Err(_) if watched.reported.as_ref() == Some(&files) => {}
            Err(error) => {
                watched.reported = Some(files);
                self.count("failed");
                tracing::error!(
                    certificate = self.name,
                    error.kind = error.kind(),
                    "the changed TLS certificate cannot be used; the previous one remains in use"
                );
            }
        }
        self.measure();
    }

    fn reload(&self) -> Result<(), Error> {
        let new = Loaded::read(&self.cert_file, &self.key_file)?;
        let now = UnixTime::now();
        // A certificate that clients reject does not replace one that they accept.
        if !new.details.is_valid_at(now) && self.loaded.load().details.is_valid_at(now) {
            return Err(Error::NotValid(self.cert_file.clone()));
        }
        self.loaded.store(Arc::new(new));
        Ok(())
    }

    fn count(&self, outcome: &'static str) {
        let name = self.name.clone();
        catalog::TLS_CERTIFICATE_RELOADS
            .with([name, outcome.into()])
            .increment(1);
    }

    fn measure(&self) {
        let (name, details) = (self.name.clone(), self.details());
        let not_after = details.not_after.as_second() as f64;
        catalog::TLS_CERTIFICATE_NOT_AFTER
            .with([name])
            .set(not_after);
    }
}

impl Loaded {
    fn read(cert: &Path, key: &Path) -> Result<Self, Error> {
        // Read first: a change while the files are read is found by the next poll.
        let files = FileStates::read(cert, key);
        let chain = read_chain(cert)?;
        let unreadable = || Error::Certificates(cert.to_owned());
        let details = chain.first().and_then(CertificateDetails::parse);
        let details = details.ok_or_else(unreadable)?;
        let private = PrivateKeyDer::from_pem_file(key);
        let private = private.map_err(|_| Error::PrivateKey(key.to_owned()))?;
        let certified = CertifiedKey::from_der(chain, private, &aws_lc_rs::default_provider());
        Ok(Self {
            key: Arc::new(certified.map_err(|_| Error::Mismatch(cert.to_owned()))?),
            details,
            files,
        })
    }
}

/// Reads the certificates in a PEM file; at least one.
pub fn read_chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let chain = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    let chain: Option<Vec<_>> = chain.ok();
    chain
        .filter(|chain| !chain.is_empty())
        .ok_or_else(|| Error::Certificates(path.to_owned()))
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Certificate").field(&self.name).finish()
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current())
    }
}

impl ResolvesClientCert for Certificate {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(self.current())
    }

    fn has_certs(&self) -> bool {
        true
    }
}

/// Loads certificates again when their files change, until it is dropped.
pub async fn watch(certificates: Vec<Arc<Certificate>>) {
    if certificates.is_empty() {
        return;
    }
    let mut ticks = interval(POLL_PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let polled = certificates.clone();
        let poll = move || polled.iter().for_each(|certificate| certificate.poll());
        // Fails only while the node stops.
        let _ = tokio::task::spawn_blocking(poll).await;
    }
}

#[cfg(test)]
mod tests;
