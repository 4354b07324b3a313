//! TLS for servers of tests: a certificate that a CA of its own issues.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, PublicKeyData as _};
use rustls_pki_types::PrivateKeyDer;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256;
use tokio_rustls::rustls::version::{TLS12, TLS13};

use crate::Error;

/// The TLS of one server. Its keys are in memory only.
pub struct TestTls {
    pub acceptor: TlsAcceptor,
    /// The CA that issued the certificate, in PEM.
    pub ca_certificate: String,
    /// SHA-256 of the server's public key (SPKI) in base64, for a browser's list of accepted certificates.
    pub public_key_sha256: String,
}

impl TestTls {
    /// Creates a CA and a certificate for `hosts`.
    pub fn create(hosts: &[&str]) -> Result<Self, Error> {
        let mut authority = CertificateParams::new(Vec::new())?;
        authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        let authority_key = KeyPair::generate()?;
        let ca_certificate = authority.self_signed(&authority_key)?.pem();
        let issuer = Issuer::new(authority, authority_key);

        let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
        let key = KeyPair::generate()?;
        let public_key_sha256 = STANDARD.encode(sha256(&key.subject_public_key_info())?);
        let certificate = CertificateParams::new(hosts)?.signed_by(&key, &issuer)?;
        let key = PrivateKeyDer::try_from(key.serialize_der()).map_err(|_| Error::PrivateKey)?;
        let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_protocol_versions(&[&TLS13, &TLS12])?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)?;
        Ok(Self {
            acceptor: TlsAcceptor::from(Arc::new(config)),
            ca_certificate,
            public_key_sha256,
        })
    }
}

/// Uses the TLS library's SHA-256, so that the workspace has one cryptography library.
fn sha256(bytes: &[u8]) -> Result<Vec<u8>, Error> {
    let suite = TLS13_AES_128_GCM_SHA256.tls13().ok_or(Error::NoDigest)?;
    Ok(suite.common.hash_provider.hash(bytes).as_ref().to_vec())
}
