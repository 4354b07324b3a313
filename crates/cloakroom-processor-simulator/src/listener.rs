//! A TLS listener on the loopback interface, with a certificate of its own CA.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls_pki_types::PrivateKeyDer;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::version::{TLS12, TLS13};

use crate::Error;

pub(crate) struct Listener {
    listener: TcpListener,
    pub(crate) address: SocketAddr,
}

impl Listener {
    pub(crate) async fn bind() -> Result<Self, Error> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let listen_error = |reason| Error::Listen { address, reason };
        let listener = TcpListener::bind(address).await.map_err(listen_error)?;
        let address = listener.local_addr().map_err(listen_error)?;
        Ok(Self { listener, address })
    }

    /// Serves until the future is dropped, which closes every connection.
    pub(crate) async fn run(self, app: Router, tls: TlsAcceptor) {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                Some(_) = connections.join_next() => {}
                accepted = self.listener.accept() => if let Ok((stream, _)) = accepted {
                    connections.spawn(serve(stream, app.clone(), tls.clone()));
                },
            }
        }
    }
}

async fn serve(stream: TcpStream, app: Router, tls: TlsAcceptor) {
    let Ok(stream) = tls.accept(stream).await else {
        return;
    };
    // Connection errors are the client's concern.
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(app))
        .await;
}

/// A server certificate for `hosts`, and the CA that issued it, in PEM.
pub(crate) fn tls(hosts: &[&str]) -> Result<(TlsAcceptor, String), Error> {
    let mut authority = CertificateParams::new(Vec::new())?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    let authority_key = KeyPair::generate()?;
    let ca_certificate = authority.self_signed(&authority_key)?.pem();
    let issuer = Issuer::new(authority, authority_key);

    let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
    let key = KeyPair::generate()?;
    let certificate = CertificateParams::new(hosts)?.signed_by(&key, &issuer)?;
    let key = PrivateKeyDer::try_from(key.serialize_der()).map_err(|_| Error::PrivateKey)?;
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_protocol_versions(&[&TLS13, &TLS12])?
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)?;
    Ok((TlsAcceptor::from(Arc::new(config)), ca_certificate))
}
