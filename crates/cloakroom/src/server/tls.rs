//! TLS of the listeners.

use std::sync::Arc;

use cloakroom_platform::certificates::Certificate;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::server::danger::ClientCertVerifier;
use tokio_rustls::rustls::{ServerConfig, version};

use super::Error;

/// TLS of a listener, and its certificate, which may change while it listens.
pub(super) struct Tls {
    pub(super) acceptor: TlsAcceptor,
    pub(super) certificate: Arc<Certificate>,
}

impl Tls {
    /// TLS 1.2 and 1.3 with AEAD cipher suites only, which is all that the library supports.
    ///
    /// With a verifier, clients must present a certificate that it accepts.
    pub(super) fn new(
        certificate: Arc<Certificate>,
        clients: Option<Arc<dyn ClientCertVerifier>>,
    ) -> Result<Self, Error> {
        let builder = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_protocol_versions(&[&version::TLS13, &version::TLS12])?;
        let builder = match clients {
            Some(verifier) => builder.with_client_cert_verifier(verifier),
            None => builder.with_no_client_auth(),
        };
        let mut config = builder.with_cert_resolver(certificate.clone());
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self {
            acceptor: TlsAcceptor::from(Arc::new(config)),
            certificate,
        })
    }
}
