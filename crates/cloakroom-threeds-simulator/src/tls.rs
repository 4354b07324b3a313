//! TLS configurations of the servers and of the RReq client.

use std::path::Path;
use std::sync::Arc;

use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::{CryptoProvider, aws_lc_rs};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig, version};

use crate::{Certificates, Error};

/// For the DS: requires a client certificate issued by the test CA.
pub(crate) fn mutual(certificates: &Certificates) -> Result<TlsAcceptor, Error> {
    let roots = Arc::new(roots(certificates)?);
    let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider())
        .build()
        .map_err(|_| Error::NoVerifier)?;
    let (chain, key) = pair(certificates)?;
    let config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&version::TLS13, &version::TLS12])?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, key)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// For browsers: no client certificate.
pub(crate) fn server_only(certificates: &Certificates) -> Result<TlsAcceptor, Error> {
    let (chain, key) = pair(certificates)?;
    let config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&version::TLS13, &version::TLS12])?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// For sending results. The 3DS Server must reject connections without a client certificate.
pub(crate) fn client(
    certificates: &Certificates,
    has_certificate: bool,
) -> Result<ClientConfig, Error> {
    let builder = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&version::TLS13, &version::TLS12])?
        .with_root_certificates(roots(certificates)?);
    if !has_certificate {
        return Ok(builder.with_no_client_auth());
    }
    let (chain, key) = pair(certificates)?;
    Ok(builder.with_client_auth_cert(chain, key)?)
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

fn roots(certificates: &Certificates) -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    for certificate in chain(&certificates.ca())? {
        roots.add(certificate)?;
    }
    Ok(roots)
}

type Pair = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn pair(certificates: &Certificates) -> Result<Pair, Error> {
    let path = certificates.directory_key();
    let key = PrivateKeyDer::from_pem_file(&path).map_err(|_| Error::Pem { path })?;
    Ok((chain(&certificates.directory_certificate())?, key))
}

fn chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|_| Error::Pem {
            path: path.to_owned(),
        })
}
