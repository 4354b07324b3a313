//! Exports to a collector over TLS, and the outage of one.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use axum::body::Body;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use prost::Message as _;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls_pki_types::PrivateKeyDer;
use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned, crypto};
use tower::ServiceExt as _;

use super::*;
use crate::config::Config;
use crate::telemetry::tests::{logged, request, router};
use crate::telemetry::{Telemetry, catalog, recorder};

/// A request that a collector received.
struct Export {
    head: String,
    body: Vec<u8>,
}

/// Starts an OTLP receiver on `localhost` that responds with `status`, and writes its certificate to `ca_file`.
fn start_collector(ca_file: &Path, status: &'static str) -> (u16, Receiver<Export>) {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(ca_file, cert.pem()).unwrap();
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
    let tls = ServerConfig::builder_with_provider(Arc::new(crypto::aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .unwrap();
    let tls = Arc::new(tls);
    let listener = TcpListener::bind("localhost:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (exports, received) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let connection = ServerConnection::new(Arc::clone(&tls)).unwrap();
            let mut stream = StreamOwned::new(connection, stream);
            let Some(export) = read_export(&mut stream) else {
                continue;
            };
            if exports.send(export).is_err() {
                return;
            }
            let response = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
            stream.write_all(response.as_bytes()).unwrap();
            stream.flush().unwrap();
        }
    });
    (port, received)
}

/// Reads one request; `None` if the client ends the connection first.
fn read_export(stream: &mut impl Read) -> Option<Export> {
    let (mut bytes, mut chunk) = (Vec::new(), [0; 4096]);
    loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "))
                .map_or(0, |length| length.parse::<usize>().unwrap());
            if bytes.len() == end + 4 + length {
                let body = bytes.split_off(end + 4);
                return Some(Export { head, body });
            }
        }
        match stream.read(&mut chunk) {
            Ok(length @ 1..) => bytes.extend_from_slice(&chunk[..length]),
            _ => return None,
        }
    }
}

fn config(folder: &Path, port: u16) -> Config {
    let headers = folder.join("headers");
    std::fs::write(&headers, "Authorization: Bearer canary\nx-scope: shop\n").unwrap();
    let mut config = Config::default();
    config.telemetry.otlp_endpoint = Some(format!("https://localhost:{port}/v1/traces"));
    config.telemetry.otlp_metrics_endpoint = Some(format!("https://localhost:{port}/v1/metrics"));
    config.telemetry.otlp_headers_file = Some(headers);
    config.telemetry.otlp_ca_file = Some(folder.join("ca.pem"));
    config
}

fn assert_head(export: &Export, target: &str) {
    let head = export.head.to_lowercase();
    let start = format!("post {target} http/1.1\r\n");
    assert!(head.starts_with(&start), "{head}");
    for line in [
        "\r\nhost: localhost:",
        "\r\ncontent-type: application/x-protobuf",
        "\r\nauthorization: bearer canary",
        "\r\nx-scope: shop",
    ] {
        assert_eq!(head.matches(line).count(), 1, "{line} in {head}");
    }
}

/// Serves one request with traces; returns the log and the status of the response.
fn serve(config: &Config) -> (String, u16) {
    let provider = traces::provider(config).unwrap().unwrap();
    let served = logged(config, Some(&provider), |runtime| {
        let request = request(http::Method::POST, "/tokens/1");
        let response = router().oneshot(request.body(Body::empty()).unwrap());
        runtime.block_on(response).unwrap().status().as_u16()
    });
    // Fails if the collector does.
    let _ = provider.shutdown();
    served
}

fn export_metrics(config: &Config) {
    let recorder = recorder().unwrap().build_recorder();
    ::metrics::with_local_recorder(&recorder, || catalog::PANICS.increment(3));
    let telemetry = Telemetry {
        exporter: MetricsExporter::start(config).unwrap(),
        ..Telemetry::from_metrics(recorder.handle())
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.unwrap().block_on(telemetry.export_metrics());
}

/// The name of the node among the attributes of a resource.
fn instance(attributes: &[KeyValue]) -> Option<&str> {
    let attribute = attributes.iter().find(|it| it.key == INSTANCE)?;
    match attribute.value.as_ref()?.value.as_ref()? {
        any_value::Value::StringValue(name) => Some(name),
        _ => None,
    }
}

#[test]
fn traces_and_metrics_are_exported_over_tls_with_headers() {
    let folder = tempfile::tempdir().unwrap();
    let (port, received) = start_collector(&folder.path().join("ca.pem"), "200 OK");
    let mut config = config(folder.path(), port);
    config.vault.node = Some("left".to_owned());

    let (lines, status) = serve(&config);
    let traces = received.recv_timeout(Duration::from_secs(20)).unwrap();
    export_metrics(&config);
    let metrics = received.recv_timeout(Duration::from_secs(20)).unwrap();

    assert_eq!(status, 201);
    assert!(!lines.contains("canary"), "{lines}");
    assert_head(&traces, "/v1/traces");
    let decoded = ExportTraceServiceRequest::decode(&traces.body[..]).unwrap();
    let span_resource = decoded.resource_spans[0].resource.as_ref().unwrap();
    assert_eq!(instance(&span_resource.attributes), Some("left"));
    let spans = &decoded.resource_spans[0].scope_spans[0].spans;
    assert_eq!(spans[0].name, "POST /tokens/{id}");
    assert_head(&metrics, "/v1/metrics");
    let decoded = ExportMetricsServiceRequest::decode(&metrics.body[..]).unwrap();
    let metric_resource = decoded.resource_metrics[0].resource.as_ref().unwrap();
    assert_eq!(instance(&metric_resource.attributes), Some("left"));
    let metrics = &decoded.resource_metrics[0].scope_metrics[0].metrics;
    assert!(metrics.iter().any(|it| it.name == "cloakroom_panics_total"));
}

#[test]
fn a_collector_with_another_certificate_receives_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (port, received) = start_collector(&folder.path().join("ca.pem"), "200 OK");
    let config = config(folder.path(), port);
    start_collector(&folder.path().join("ca.pem"), "200 OK");

    let (_, status) = serve(&config);
    export_metrics(&config);

    assert_eq!(status, 201, "requests do not depend on the collector");
    assert!(received.try_recv().is_err());
}

#[test]
fn requests_do_not_depend_on_a_collector_that_cannot_be_reached() {
    let folder = tempfile::tempdir().unwrap();
    let unused = TcpListener::bind("localhost:0").unwrap();
    let port = unused.local_addr().unwrap().port();
    drop(unused);
    let mut config = config(folder.path(), port);
    config.telemetry.otlp_ca_file = None;

    let (_, status) = serve(&config);
    export_metrics(&config);

    assert_eq!(status, 201);
}

#[test]
fn an_unreadable_ca_file_or_header_file_prevents_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path(), 1);
    let started = MetricsExporter::start(&config);
    assert!(matches!(started, Err(Error::Connection(_))));

    let mut config = config;
    config.telemetry.otlp_headers_file = Some(folder.path().join("missing"));
    let started = MetricsExporter::start(&config);
    assert!(matches!(started, Err(Error::Headers(_))));
}
