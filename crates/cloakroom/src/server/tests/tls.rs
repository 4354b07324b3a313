//! HTTP/1.1 and HTTP/2 over TLS.

use std::path::PathBuf;

use cloakroom_platform::config::Http;
use rcgen::{CertifiedKey, generate_simple_self_signed};

use super::{Node, REQUEST, exchange, open_http2, settings};
use crate::server::Server;

#[tokio::test]
async fn tls_serves_both_protocols() {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (cert_file, key_file) = (
        folder.path().join("cert.pem"),
        folder.path().join("key.pem"),
    );
    std::fs::write(&cert_file, cert.pem()).unwrap();
    std::fs::write(&key_file, signing_key.serialize_pem()).unwrap();
    let (tls_cert_file, tls_key_file) = (Some(cert_file), Some(key_file));
    let node = Node::start(Http {
        tls_cert_file,
        tls_key_file,
        ..settings()
    })
    .await;

    let mut first = node.connect_tls(cert.der(), "http/1.1").await;
    let response = exchange(&mut first, REQUEST).await;
    let mut second = node.connect_tls(cert.der(), "h2").await;
    let settings_frame = open_http2(&mut second).await;
    let mut plain = node.connect().await;
    let plain_response = exchange(&mut plain, REQUEST).await;

    assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
    assert_eq!(
        settings_frame, 4,
        "the first frame of an HTTP/2 server holds its settings"
    );
    assert!(!plain_response.contains("HTTP/1.1"), "{plain_response}");
    let strict = "strict-transport-security: max-age=63072000\r\n";
    assert!(response.contains(strict), "{response}");
}

#[tokio::test]
async fn unreadable_certificate_is_named_in_the_error() {
    let missing = Some(PathBuf::from("/nowhere/cert.pem"));
    let settings = Http {
        tls_cert_file: missing.clone(),
        tls_key_file: missing,
        ..settings()
    };

    let error = Server::bind(&settings).await.err().unwrap().to_string();

    assert_eq!(
        error,
        "cannot use the certificate or key in /nowhere/cert.pem"
    );
}
