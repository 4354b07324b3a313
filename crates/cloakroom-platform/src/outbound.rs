//! Connections to servers that the operator chose: sinks of the audit log, time-stamp authorities, collectors of telemetry.

use std::io;
use std::path::Path;
use std::sync::Arc;

use http::Uri;
use http::uri::Scheme;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::aws_lc_rs::default_provider;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

const HTTP_PORT: u16 = 80;
const HTTPS_PORT: u16 = 443;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("it cannot be reached: {0}")]
    Io(#[from] io::Error),
    #[error("TLS is not possible: {0}")]
    Tls(String),
    #[error("its URL or name is not valid")]
    Address,
}

/// Trusts the certificate authorities of a file, or those of the system.
pub fn client_config(ca_file: Option<&Path>) -> Result<Arc<ClientConfig>, Error> {
    let failed = |error: &dyn std::fmt::Display| Error::Tls(error.to_string());
    let mut roots = RootCertStore::empty();
    match ca_file {
        Some(path) => {
            for certificate in CertificateDer::pem_file_iter(path).map_err(|it| failed(&it))? {
                let certificate = certificate.map_err(|error| failed(&error))?;
                roots.add(certificate).map_err(|error| failed(&error))?;
            }
        }
        None => {
            let system = rustls_native_certs::load_native_certs();
            roots.add_parsable_certificates(system.certs);
        }
    }
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| failed(&error))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// A byte stream, with TLS or without.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Connects to the server of a URL, with TLS unless its scheme is `http`.
pub async fn connect_to(url: &Uri, config: Arc<ClientConfig>) -> Result<Box<dyn Stream>, Error> {
    let host = url.host().ok_or(Error::Address)?;
    // An IPv6 address is in brackets in a URL, and without them everywhere else.
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if url.scheme() == Some(&Scheme::HTTP) {
        let address = (host, url.port_u16().unwrap_or(HTTP_PORT));
        return Ok(Box::new(TcpStream::connect(address).await?));
    }
    let port = url.port_u16().unwrap_or(HTTPS_PORT);
    Ok(Box::new(connect(host, port, config).await?))
}

/// Connects and verifies the certificate of `host`.
pub async fn connect(
    host: &str,
    port: u16,
    config: Arc<ClientConfig>,
) -> Result<TlsStream<TcpStream>, Error> {
    let stream = TcpStream::connect((host, port)).await?;
    let name = ServerName::try_from(host.to_owned()).map_err(|_| Error::Address)?;
    let stream = TlsConnector::from(config).connect(name, stream).await?;
    Ok(stream)
}
