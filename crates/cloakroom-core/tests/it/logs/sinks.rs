//! Shipment of checkpoints to other systems over TLS.

use std::path::Path;
use std::sync::{Arc, Mutex};

use cloakroom::audit::TrustedCheckpoints;
use cloakroom::config::Secret;
use cloakroom::sinks::{self, Error, Sink, Stream, StreamSink};
use cloakroom_testkit::{Client, TestVault};
use metrics_exporter_prometheus::PrometheusBuilder;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::ServerConfig;
use rustls_pki_types::PrivateKeyDer;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::note;

/// Everything that a server received, one element for each connection.
pub(super) type Received = Arc<Mutex<Vec<String>>>;

/// A TLS server that responds to each request with `reply`, and returns its port.
pub(super) async fn start(
    folder: &Path,
    reply: Arc<Mutex<&'static str>>,
    received: Received,
) -> u16 {
    start_with(folder, move || *reply.lock().unwrap(), received).await
}

#[expect(clippy::disallowed_methods, reason = "the server ends with the test")]
async fn start_with(
    folder: &Path,
    mut reply: impl FnMut() -> &'static str + Send + 'static,
    received: Received,
) -> u16 {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(folder.join("ca.pem"), cert.pem()).unwrap();
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let tls = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .unwrap();
    let tls = TlsAcceptor::from(Arc::new(tls));
    let listener = TcpListener::bind("localhost:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = tls.accept(stream).await else {
                continue;
            };
            let mut text = String::new();
            let mut buffer = vec![0; 64 * 1024];
            while let Ok(length @ 1..) = stream.read(&mut buffer).await {
                text.push_str(std::str::from_utf8(&buffer[..length]).unwrap());
                let is_request = text.starts_with("POST ");
                // A checkpoint ends with its signature, a line of JSON with the brace.
                let is_complete = text.ends_with("=\n") || text.ends_with("]}\n");
                if is_request && is_complete {
                    let reply = reply();
                    stream.write_all(reply.as_bytes()).await.unwrap();
                    stream.flush().await.unwrap();
                }
            }
            received.lock().unwrap().push(text);
        }
    });
    port
}

pub(super) const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
pub(super) const UNAVAILABLE: &str =
    "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n";

pub(super) async fn write_checkpoint(vault: &TestVault, client: &Client, data: &str) {
    client.post("/tokens", note(data)).await;
    vault.vault.audit.checkpoint().await.unwrap();
}

/// Waits until the server has closed this many connections.
pub(super) async fn wait_for(received: &Received, connections: usize) -> Vec<String> {
    loop {
        let seen = received.lock().unwrap().clone();
        if connections <= seen.len() {
            return seen;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn an_endpoint_receives_checkpoints_in_order_after_an_outage() {
    let folder = tempfile::tempdir().unwrap();
    let (reply, received) = (Arc::new(Mutex::new(UNAVAILABLE)), Received::default());
    let port = start(folder.path(), reply.clone(), received.clone()).await;
    let vault = TestVault::start().await;
    let node = vault
        .node_with(|config| {
            let url = format!("https://localhost:{port}/checkpoints?key=secret");
            config.audit.sink_url = Some(Secret::new(url));
            config.audit.sink_ca_file = Some(folder.path().join("ca.pem"));
        })
        .await;
    let client = vault.revealing_client().await.at(&node.base_url);
    let (one, other) = (cloakroom::ids::new_uuid(), cloakroom::ids::new_uuid());
    write_checkpoint(&node, &client, "a").await;
    write_checkpoint(&node, &client, "b").await;

    let rejected = sinks::ship_all(&node.vault, Sink::Url, one).await;
    assert!(matches!(rejected, Err(Error::Status(503))), "{rejected:?}");
    assert_eq!(sinks::waiting(&node.vault, Sink::Url).await.unwrap(), 2);
    wait_for(&received, 1).await;
    *reply.lock().unwrap() = OK;
    // Another node does not ship at the same time.
    sinks::ship_all(&node.vault, Sink::Url, other)
        .await
        .unwrap();
    assert_eq!(sinks::waiting(&node.vault, Sink::Url).await.unwrap(), 2);
    sinks::ship_all(&node.vault, Sink::Url, one).await.unwrap();

    assert_eq!(sinks::waiting(&node.vault, Sink::Url).await.unwrap(), 0);
    let requests = wait_for(&received, 2).await.pop().unwrap();
    let positions = ["cloakroom-checkpoint: 1\r\n", "cloakroom-checkpoint: 2\r\n"]
        .map(|number| requests.find(number).unwrap());
    assert!(positions[0] < positions[1]);
    let start = "POST /checkpoints?key=secret HTTP/1.1\r\n";
    assert!(requests.starts_with(start), "{requests}");
    assert_eq!(requests.matches("cloakroom.audit/test\n1\n").count(), 1);
}

/// A node that shipped to a sink and no longer does would show its last figure for ever.
#[tokio::test]
async fn every_node_measures_what_a_sink_lacks_whichever_ships() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let _measuring = metrics::set_default_local_recorder(&recorder);
    let folder = tempfile::tempdir().unwrap();
    let (reply, received) = (Arc::new(Mutex::new(UNAVAILABLE)), Received::default());
    let port = start(folder.path(), reply.clone(), received).await;
    let vault = TestVault::start().await;
    let node = vault
        .node_with(|config| {
            let url = format!("https://localhost:{port}/checkpoints");
            config.audit.sink_url = Some(Secret::new(url));
            config.audit.sink_ca_file = Some(folder.path().join("ca.pem"));
        })
        .await;
    let client = vault.revealing_client().await.at(&node.base_url);
    let (this, other) = (cloakroom::ids::new_uuid(), cloakroom::ids::new_uuid());
    write_checkpoint(&node, &client, "a").await;
    let measure = async || {
        sinks::measure_once(&node.vault).await;
        let text = recorder.handle().render();
        let waiting = text
            .lines()
            .find(|it| it.starts_with("cloakroom_audit_sink_waiting"));
        waiting.unwrap_or_default().to_owned()
    };
    let waiting = |count| format!("cloakroom_audit_sink_waiting{{sink=\"sink_url\"}} {count}");

    let failed = sinks::ship_all(&node.vault, Sink::Url, other).await;
    assert!(failed.is_err());
    sinks::ship_all(&node.vault, Sink::Url, this).await.unwrap();
    assert_eq!(measure().await, waiting(1));
    *reply.lock().unwrap() = OK;
    sinks::ship_all(&node.vault, Sink::Url, other)
        .await
        .unwrap();
    sinks::ship_all(&node.vault, Sink::Url, this).await.unwrap();
    assert_eq!(measure().await, waiting(0));
}

/// The first part of what a sink lacks is not sent again if a later one fails.
#[tokio::test]
async fn a_sink_that_fails_again_and_again_makes_progress() {
    const CHECKPOINTS: i64 = 25;
    let folder = tempfile::tempdir().unwrap();
    let mut requests = 0;
    let reply = move || {
        requests += 1;
        // The second part fails at its second checkpoint, the repeated one does not.
        if requests == 12 { UNAVAILABLE } else { OK }
    };
    let port = start_with(folder.path(), reply, Received::default()).await;
    let vault = TestVault::start().await;
    let node = vault
        .node_with(|config| {
            let url = format!("https://localhost:{port}/checkpoints");
            config.audit.sink_url = Some(Secret::new(url));
            config.audit.sink_ca_file = Some(folder.path().join("ca.pem"));
        })
        .await;
    let client = vault.revealing_client().await.at(&node.base_url);
    for number in 0..CHECKPOINTS {
        write_checkpoint(&node, &client, &number.to_string()).await;
    }
    let holder = cloakroom::ids::new_uuid();

    let failed = sinks::ship_all(&node.vault, Sink::Url, holder).await;

    assert!(matches!(failed, Err(Error::Status(503))), "{failed:?}");
    let waiting = sinks::waiting(&node.vault, Sink::Url).await.unwrap();
    assert_eq!(waiting, CHECKPOINTS - 10);
    sinks::ship_all(&node.vault, Sink::Url, holder)
        .await
        .unwrap();
    let waiting = sinks::waiting(&node.vault, Sink::Url).await.unwrap();
    assert_eq!(waiting, 0);
}

/// After a restore, new checkpoints reuse the numbers of those that a file has received.
#[tokio::test]
async fn files_that_are_ahead_of_a_restored_log_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let (sink, stream) = (folder.path().join("sink"), folder.path().join("stream"));
    let vault = TestVault::start().await;
    let node = vault
        .node_with(|config| {
            config.audit.sink_file = Some(sink.clone());
            config.audit.stream_file = Some(stream.clone());
        })
        .await;
    let client = vault.revealing_client().await.at(&node.base_url);
    write_checkpoint(&node, &client, "a").await;
    let holder = cloakroom::ids::new_uuid();
    let ship = async || {
        let shipped = sinks::ship_all(&node.vault, Sink::File, holder).await;
        let streaming = Stream::new(StreamSink::File, holder);
        (shipped, streaming.send_all(&node.vault).await)
    };
    let (shipped, streamed) = ship().await;
    assert!(
        shipped.is_ok() && streamed.is_ok(),
        "{shipped:?} {streamed:?}"
    );

    std::fs::write(&sink, "{\"number\": 1000}\n").unwrap();
    std::fs::write(folder.path().join("stream.position"), "1000").unwrap();

    let (shipped, streamed) = ship().await;
    assert!(matches!(shipped, Err(Error::Ahead)), "{shipped:?}");
    assert!(matches!(streamed, Err(Error::Ahead)), "{streamed:?}");
    let lacking = sinks::waiting(&node.vault, Sink::File).await;
    assert!(matches!(lacking, Err(Error::Ahead)), "{lacking:?}");
    let lacking = sinks::waiting_stream(&node.vault, StreamSink::File).await;
    assert!(matches!(lacking, Err(Error::Ahead)), "{lacking:?}");
}

#[tokio::test]
async fn a_syslog_server_receives_checkpoints_that_detect_a_rollback() {
    let folder = tempfile::tempdir().unwrap();
    let received = Received::default();
    let port = start(folder.path(), Arc::new(Mutex::new("")), received.clone()).await;
    let vault = TestVault::start().await;
    let node = vault
        .node_with(|config| {
            config.audit.sink_syslog = Some(format!("localhost:{port}"));
            config.audit.sink_ca_file = Some(folder.path().join("ca.pem"));
        })
        .await;
    let client = vault.revealing_client().await.at(&node.base_url);
    write_checkpoint(&node, &client, "a").await;
    write_checkpoint(&node, &client, "b").await;
    let holder = cloakroom::ids::new_uuid();

    sinks::ship_all(&node.vault, Sink::Syslog, holder)
        .await
        .unwrap();

    let text = wait_for(&received, 1).await.pop().unwrap();
    let mut rest = text.as_str();
    let mut lines = Vec::new();
    while let Some((length, following)) = rest.split_once(' ') {
        let (message, following) = following.split_at(length.parse().unwrap());
        let json = message.split_once(" - {").unwrap().1;
        lines.push(format!("{{{json}"));
        rest = following;
    }
    assert_eq!(lines.len(), 2);
    let trusted = TrustedCheckpoints::new(lines.into_iter()).unwrap();
    let verified = cloakroom::audit::verify(&node.vault.audit, Some(trusted), |_| {}).await;
    let verified = verified.unwrap();
    assert_eq!((verified.findings, verified.compared), (vec![], 2));
}

/// A sink whose certificate is not trusted receives nothing.
#[tokio::test]
async fn sinks_are_authenticated() {
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let received = Received::default();
    let reply = Arc::new(Mutex::new(OK));
    let port = start(folder.path(), reply.clone(), received.clone()).await;
    start(other.path(), reply, received.clone()).await;
    let vault = TestVault::start().await;
    let node = vault
        .node_with(|config| {
            config.audit.sink_url = Some(Secret::new(format!("https://localhost:{port}/")));
            config.audit.sink_syslog = Some(format!("localhost:{port}"));
            config.audit.sink_ca_file = Some(other.path().join("ca.pem"));
        })
        .await;
    let client = vault.revealing_client().await.at(&node.base_url);
    write_checkpoint(&node, &client, "a").await;

    for sink in [Sink::Url, Sink::Syslog] {
        let shipped = sinks::ship_all(&node.vault, sink, cloakroom::ids::new_uuid()).await;
        assert!(matches!(shipped, Err(Error::Io(_))), "{shipped:?}");
        assert_eq!(sinks::waiting(&node.vault, sink).await.unwrap(), 1);
    }
    assert!(received.lock().unwrap().is_empty());
}
