//! TLS of the listeners.

use std::path::Path;
use std::sync::Arc;

use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::server::danger::ClientCertVerifier;
use tokio_rustls::rustls::{ServerConfig, version};

use super::Error;

/// TLS 1.2 and 1.3 with AEAD cipher suites only, which is all that the library supports.
///
/// With a verifier, clients must present a certificate that it accepts.
pub(super) fn tls_acceptor(
    cert: &Path,
    key: &Path,
    clients: Option<Arc<dyn ClientCertVerifier>>,
) -> Result<TlsAcceptor, Error> {
    let chain = CertificateDer::pem_file_iter(cert)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|source| Error::Pem {
            path: cert.to_owned(),
            source,
        })?;
    let key = PrivateKeyDer::from_pem_file(key).map_err(|source| Error::Pem {
        path: key.to_owned(),
        source,
    })?;

    let builder = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_protocol_versions(&[&version::TLS13, &version::TLS12])?;
    let builder = match clients {
        Some(verifier) => builder.with_client_cert_verifier(verifier),
        None => builder.with_no_client_auth(),
    };
    let mut config = builder.with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
