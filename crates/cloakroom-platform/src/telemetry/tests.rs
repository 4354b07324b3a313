//! Tests of logs, metrics and traces of requests and panics.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use axum::routing::any;
use http::{HeaderValue, Method, StatusCode};
use serde_json::{Value, json};
use tower::ServiceExt as _;
use uuid::Uuid;

use super::*;

const PARENT: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

#[test]
fn requests_are_logged_in_one_line_without_their_data() {
    let (lines, response) = serve(&Config::default(), || {
        request(Method::POST, "/tokens/canary?x=canary").header("bt-trace-id", "t 1")
    });

    assert_eq!(response.headers()["bt-trace-id"], "t 1");
    assert_eq!(response.headers()["cache-control"], "no-store");
    assert!(!lines.contains("canary"), "{lines}");
    let id = Uuid::from_u128(7).to_string();
    assert_eq!(
        lines_without_time(&lines),
        [json!({
            "level": "info", "message": "request", "request.id": "t 1", "method": "POST",
            "route": "/tokens/{id}", "status": 201, "code": "made", "request.bytes": 6,
            "response.bytes": 4, "tenant.id": id, "application.id": id, "key.id": id,
        })]
    );
}

#[test]
fn server_errors_are_logged_as_warnings() {
    let cases = [
        (Method::GET, "/broken", "warn", "GET", "/broken", 503),
        (Method::GET, "/canary", "info", "GET", "unmatched", 404),
        (
            Method::from_bytes(b"CANARY").unwrap(),
            "/tokens/1",
            "info",
            "other",
            "/tokens/{id}",
            201,
        ),
    ];
    for (method, path, level, shown, route, status) in cases {
        let (lines, _) = serve(&Config::default(), || request(method.clone(), path));

        assert!(!lines.to_lowercase().contains("canary"), "{lines}");
        let [line] = lines_without_time(&lines).try_into().unwrap();
        let seen = (
            &line["level"],
            &line["method"],
            &line["route"],
            &line["status"],
        );
        assert_eq!(
            seen,
            (&json!(level), &json!(shown), &json!(route), &json!(status)),
            "{path}"
        );
    }
}

#[test]
fn short_printable_trace_ids_are_accepted() {
    let (long, longer) = ("x".repeat(200), "x".repeat(201));
    let cases: [(&[u8], bool); 7] = [
        (b"a", true),
        (b"{\"a\": 1}~ !", true),
        (long.as_bytes(), true),
        (longer.as_bytes(), false),
        (b"", false),
        (b"a\tb", false),
        (b"caf\xc3\xa9", false),
    ];
    for (given, is_accepted) in cases {
        let given = HeaderValue::from_bytes(given).unwrap();

        let (lines, response) = serve(&Config::default(), || {
            request(Method::GET, "/echo").header("bt-trace-id", &given)
        });

        let returned = response.headers()["bt-trace-id"].clone();
        assert_eq!(returned == given, is_accepted, "{given:?}");
        let text = returned.to_str().unwrap();
        assert!(is_accepted || Uuid::parse_str(text).unwrap().get_version_num() == 4);
        assert_eq!(lines_without_time(&lines)[0]["request.id"], text);
        assert_eq!(
            response.headers()["x-seen"],
            returned,
            "the handler sees the same ID"
        );
    }
}

#[test]
fn requests_are_not_logged_above_level_info() {
    let mut config = Config::default();
    config.log.level = crate::config::Level::Warn;

    let (lines, _) = serve(&config, || request(Method::GET, "/echo"));

    assert_eq!(lines, "");
}

#[test]
fn canceled_requests_are_logged() {
    let (lines, ()) = logged(&Config::default(), None, |runtime| {
        let waiting = router().oneshot(
            request(Method::GET, "/forever")
                .body(Body::empty())
                .unwrap(),
        );
        runtime.block_on(async {
            let limit = std::time::Duration::from_millis(10);
            assert!(tokio::time::timeout(limit, waiting).await.is_err());
        });
    });

    let [line] = lines_without_time(&lines).try_into().unwrap();
    assert_eq!(
        (&line["status"], &line["code"]),
        (&json!(499), &json!("client_gone"))
    );
}

#[test]
fn requests_are_counted_by_route() {
    let recorder = recorder().unwrap().build_recorder();

    metrics::with_local_recorder(&recorder, || {
        serve(&Config::default(), || {
            request(Method::GET, "/tokens/canary")
        });
        serve(&Config::default(), || {
            request(Method::GET, "/tokens/other-canary")
        });
        serve(&Config::default(), || request(Method::GET, "/canary"));
    });

    let text = recorder.handle().render();
    let total = |route: &str, status: u16| {
        format!(
            "cloakroom_http_requests_total{{method=\"GET\",route=\"{route}\",status=\"{status}\"}}"
        )
    };
    assert!(
        text.contains(&format!("{} 2", total("/tokens/{id}", 201))),
        "{text}"
    );
    assert!(
        text.contains(&format!("{} 1", total("unmatched", 404))),
        "{text}"
    );
    let bucket = "cloakroom_http_request_duration_seconds_bucket{method=\"GET\",route=\"/tokens/{id}\",le=\"5\"} 2";
    assert!(text.contains(bucket), "{text}");
    assert!(!text.contains("canary"), "{text}");
}

#[test]
fn traces_are_exported_with_allowed_attributes_only() {
    let collector = Collector::start();
    let mut config = Config::default();
    config.telemetry.otlp_endpoint = Some(format!("http://{}/v1/traces", collector.address));
    let provider = traces::provider(&config).unwrap().unwrap();

    logged(&config, Some(&provider), |runtime| {
        let request = request(Method::POST, "/tokens/canary?q=canary")
            .header("traceparent", format!("00-{PARENT}-00f067aa0ba902b7-01"))
            .header("tracestate", "vendor=canary")
            .header("baggage", "user=canary")
            .header("bt-trace-id", "canary");
        runtime
            .block_on(router().oneshot(request.body(Body::from("canary")).unwrap()))
            .unwrap();
        tracing::info_span!("canary-span", http.route = "x", card = "canary").in_scope(|| ());
        tracing::event!(target: "cloakroom", tracing::Level::ERROR, "canary-event");
    });
    provider.shutdown().unwrap();

    let sent = collector.received();
    let has = |text: &[u8]| sent.windows(text.len()).any(|window| window == text);
    assert!(has(b"POST /v1/traces"));
    assert!(has(b"POST /tokens/{id}"));
    // The attribute name, followed by 201 in OTLP's protobuf encoding.
    assert!(
        has(b"http.response.status_code\x12\x03\x18\xc9\x01"),
        "{}",
        sent.escape_ascii()
    );
    assert!(has(b"cloakroom"));
    let parent: Vec<u8> = (0..16)
        .map(|i| u8::from_str_radix(&PARENT[2 * i..2 * i + 2], 16).unwrap())
        .collect();
    assert!(has(&parent), "the trace of the client is continued");
    assert!(!has(b"canary"), "{}", String::from_utf8_lossy(&sent));
}

#[test]
fn spans_are_disabled_without_a_collector() {
    let (_, is_disabled) = logged(&Config::default(), None, |_| {
        tracing::info_span!("request", http.route = "x").is_disabled()
    });

    assert!(is_disabled);
}

#[test]
fn panics_are_logged_by_location_only() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(log_panic));

    let (lines, outcome) = logged(&Config::default(), None, |_| {
        std::panic::catch_unwind(|| panic!("canary {}", 4242))
    });
    std::panic::set_hook(before);

    assert!(outcome.is_err());
    let [line] = lines_without_time(&lines).try_into().unwrap();
    assert!(
        line["location"]
            .as_str()
            .unwrap()
            .contains("telemetry/tests.rs:"),
        "{lines}"
    );
    assert!(
        !lines.contains("canary") && !lines.contains("4242"),
        "{lines}"
    );
}

#[expect(
    clippy::disallowed_methods,
    reason = "these routes exist in this test only"
)]
pub(super) fn router() -> Router {
    let id = Uuid::from_u128(7);
    let actor = Actor {
        tenant: id,
        application: id,
        key: id,
    };
    let made = move || async move {
        let mut response = Response::new(Body::from("made"));
        *response.status_mut() = StatusCode::CREATED;
        response.extensions_mut().insert(actor);
        response.extensions_mut().insert(ErrorCode("made"));
        response
    };
    let echo = async |request: Request| {
        let id = request
            .extensions()
            .get::<TraceId>()
            .unwrap()
            .as_str()
            .to_owned();
        [("x-seen", id)]
    };
    let router = Router::new()
        .route("/tokens/{id}", any(made))
        .route("/echo", any(echo))
        .route("/broken", any(async || StatusCode::SERVICE_UNAVAILABLE))
        .route("/forever", any(async || std::future::pending::<()>().await));
    recorded(router)
}

pub(super) fn request(method: Method, path: &str) -> http::request::Builder {
    Request::builder()
        .method(method)
        .uri(path)
        .header("bt-api-key", "canary")
}

fn serve(config: &Config, request: impl Fn() -> http::request::Builder) -> (String, Response) {
    logged(config, None, |runtime| {
        let request = request().body(Body::from("canary")).unwrap();
        runtime.block_on(router().oneshot(request)).unwrap()
    })
}

/// Runs `act` on this thread with its own log, and returns the lines.
pub(super) fn logged<T>(
    config: &Config,
    traces: Option<&SdkTracerProvider>,
    act: impl FnOnce(&tokio::runtime::Runtime) -> T,
) -> (String, T) {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let sink: log::Sink = {
        let lines = Arc::clone(&lines);
        Box::new(move |_, line| lines.lock().unwrap().extend_from_slice(line))
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let subscriber = subscriber(config, sink, traces);
    let outcome = tracing::subscriber::with_default(subscriber, || act(&runtime));
    let bytes = lines.lock().unwrap().clone();
    (String::from_utf8(bytes).unwrap(), outcome)
}

/// Parses the lines as JSON and removes the fields that differ between runs.
fn lines_without_time(lines: &str) -> Vec<Value> {
    let mut parsed: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    for line in &mut parsed {
        let object = line.as_object_mut().unwrap();
        for key in ["time", "node", "duration_ms"] {
            object.remove(key);
        }
    }
    parsed
}

/// Accepts one request of an exporter and records its bytes.
struct Collector {
    address: std::net::SocketAddr,
    thread: std::thread::JoinHandle<Vec<u8>>,
}

impl Collector {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let thread = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream
                .set_read_timeout(Some(std::time::Duration::from_millis(300)))
                .unwrap();
            let (mut sent, mut chunk) = (Vec::new(), [0; 4096]);
            // The exporter sends its body and waits for the response, so reading ends with a timeout.
            while let Ok(count @ 1..) = stream.read(&mut chunk) {
                sent.extend_from_slice(&chunk[..count]);
            }
            stream
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
                .unwrap();
            sent
        });
        Self { address, thread }
    }

    fn received(self) -> Vec<u8> {
        self.thread.join().unwrap()
    }
}
