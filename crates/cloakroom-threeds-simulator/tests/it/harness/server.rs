//! The RReq endpoint of a 3DS Server.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use cloakroom_threeds_simulator::Certificates;

use super::any_port;

pub(super) fn roots(certificates: &Certificates) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_file(certificates.ca()).unwrap())
        .unwrap();
    roots
}

pub(super) fn pair(
    certificates: &Certificates,
) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
    let certificate = CertificateDer::from_pem_file(certificates.server_certificate()).unwrap();
    let key = PrivateKeyDer::from_pem_file(certificates.server_key()).unwrap();
    (vec![certificate], key)
}

/// Starts the endpoint, which requires a client certificate.
pub(super) async fn listen(
    certificates: &Certificates,
    results: Arc<Mutex<Vec<Value>>>,
) -> (String, JoinSet<()>) {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let roots = Arc::new(roots(certificates));
    let verifier = WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(&provider))
        .build()
        .unwrap();
    let (chain, key) = pair(certificates);
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, key)
        .unwrap();
    let tls = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind(any_port()).await.unwrap();
    let url = format!("https://{}/3ds/rreq", listener.local_addr().unwrap());
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut connections = JoinSet::new();
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            connections.spawn(serve(stream, tls.clone(), Arc::clone(&results)));
        }
    });
    (url, tasks)
}

async fn serve(stream: TcpStream, tls: TlsAcceptor, results: Arc<Mutex<Vec<Value>>>) {
    let Ok(stream) = tls.accept(stream).await else {
        return;
    };
    let service = service_fn(move |request: Request<Incoming>| {
        let results = Arc::clone(&results);
        async move {
            let body = request.into_body().collect().await.unwrap().to_bytes();
            let result: Value = serde_json::from_slice(&body).unwrap();
            let mut rres = json!({"messageType": "RRes", "resultsStatus": "01"});
            for name in [
                "messageVersion",
                "threeDSServerTransID",
                "acsTransID",
                "dsTransID",
            ] {
                rres[name] = result[name].clone();
            }
            results.lock().unwrap().push(result);
            let body = Full::<Bytes>::from(rres.to_string());
            Ok::<_, Infallible>(http::Response::new(body))
        }
    });
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}
