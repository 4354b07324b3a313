//! Telemetry of requests: trace ID, log line, metrics and span.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::HttpBody as _;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use opentelemetry::propagation::{Extractor, TextMapPropagator as _};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tracing::{Instrument as _, Span, field};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use uuid::Uuid;

use super::meters::MeterCache;
use crate::card_numbers::contains_card_number;
use crate::ids;

const TRACE_ID: HeaderName = HeaderName::from_static("bt-trace-id");
const TRACE_ID_CHARS_MAX: usize = 200;
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
/// Logged status of a request whose client disconnected before the response. It is never sent.
const CLIENT_CLOSED_REQUEST: u16 = 499;

/// The trace ID of a request, from the client or generated. An extension of the request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TraceId(pub Arc<str>);

impl TraceId {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The authenticated caller. As an extension of the response, it is logged.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Actor {
    pub tenant: Uuid,
    pub application: Uuid,
    pub key: Uuid,
}

/// The client's IP address, behind a trusted proxy the one that it names. As an extension of the request, it is logged.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ClientAddress(pub IpAddr);

/// The non-secret prefix of the API key. As an extension of the response, it is logged if the request is rejected.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct KeyPrefix(pub Arc<str>);

/// Whether a status means that access was denied or limited, which operators investigate.
pub fn is_refusal(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::TOO_MANY_REQUESTS
    )
}

/// The error code of a failed request. As an extension of the response, it is logged.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ErrorCode(pub &'static str);

impl ErrorCode {
    /// A write may or may not have been committed.
    pub const OUTCOME_UNKNOWN: Self = Self("outcome_unknown");
}

/// Records requests. Must be the outermost middleware.
#[derive(Clone, Default)]
pub struct Recorder(Arc<MeterCache>);

impl Recorder {
    /// Runs `next` and records the request, by the template of its route if one matches.
    pub async fn record<F>(
        &self,
        route: Option<Arc<str>>,
        mut request: Request,
        next: impl FnOnce(Request) -> F,
    ) -> Response
    where
        F: Future<Output = Response>,
    {
        let (trace_id, header) = trace_id(request.headers());
        let pending = Pending::new(&request, route, trace_id.clone(), self.0.clone());
        let span = pending.span(request.headers());
        request.extensions_mut().insert(trace_id);

        let recorded = async {
            let mut response = next(request).await;
            let headers = response.headers_mut();
            headers.insert(TRACE_ID, header);
            // Responses are not cacheable unless the handler allows it.
            headers.entry(header::CACHE_CONTROL).or_insert(NO_STORE);
            pending.finish(&response, &Span::current());
            response
        };
        recorded.instrument(span).await
    }
}

/// Adds a [`Recorder`] to a router.
pub fn recorded(router: Router) -> Router {
    router.layer(from_fn_with_state(Recorder::default(), record_matched))
}

async fn record_matched(
    State(recorder): State<Recorder>,
    matched: Option<MatchedPath>,
    request: Request,
    next: Next,
) -> Response {
    let route = matched.map(|matched| matched.as_str().into());
    let next = |request| next.run(request);
    recorder.record(route, request, next).await
}

/// Returns the client's trace ID if it is short and printable, or else generates one.
///
/// The ID is logged, so one that contains a card number is replaced.
fn trace_id(headers: &HeaderMap) -> (TraceId, HeaderValue) {
    if let Some(header) = headers.get(TRACE_ID)
        && (1..=TRACE_ID_CHARS_MAX).contains(&header.len())
        && let Ok(text) = header.to_str()
        && !text.contains('\t')
        && !contains_card_number(text)
    {
        return (TraceId(text.into()), header.clone());
    }

    let mut buffer = Uuid::encode_buffer();
    let text: &str = ids::new_uuid().hyphenated().encode_lower(&mut buffer);
    let header = HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static("unknown"));
    (TraceId(text.into()), header)
}

/// Logs a request. A macro, because `tracing` requires a constant level.
macro_rules! write_line {
    ($level:expr, $pending:expr, $outcome:expr, $elapsed:expr) => {
        tracing::event!(
            $level,
            request.id = $pending.trace_id.as_str(),
            method = $pending.method,
            route = $pending.route(),
            status = $outcome.status,
            code = $outcome.code,
            duration_ms = milliseconds($elapsed),
            request.bytes = $pending.request_bytes,
            response.bytes = $outcome.bytes,
            tenant.id = $outcome.actor.map(|actor| field::display(actor.tenant)),
            application.id = $outcome
                .actor
                .map(|actor| field::display(actor.application)),
            key.id = $outcome.actor.map(|actor| field::display(actor.key)),
            key.prefix = $outcome.key_prefix.as_ref().map(|prefix| &*prefix.0),
            client.address = $pending.client.map(field::display),
            "request"
        )
    };
}
/// A request that is being processed.
struct Pending {
    started_at: Instant,
    method: &'static str,
    route: Option<Arc<str>>,
    trace_id: TraceId,
    client: Option<IpAddr>,
    request_bytes: Option<u64>,
    is_recorded: bool,
    meters: Arc<MeterCache>,
}

impl Pending {
    fn new(
        request: &Request,
        route: Option<Arc<str>>,
        trace_id: TraceId,
        meters: Arc<MeterCache>,
    ) -> Self {
        Self {
            started_at: Instant::now(),
            method: method_label(request.method()),
            route,
            trace_id,
            client: request
                .extensions()
                .get::<ClientAddress>()
                .map(|client| client.0),
            request_bytes: request.body().size_hint().exact(),
            is_recorded: false,
            meters,
        }
    }

    /// The template of the route. The path may contain data, so it is never recorded.
    fn route(&self) -> &str {
        self.route.as_deref().unwrap_or("unmatched")
    }

    /// Creates the span, which is disabled unless a collector is configured.
    fn span(&self, headers: &HeaderMap) -> Span {
        let span = tracing::info_span!(
            "request",
            otel.name = %format_args!("{} {}", self.method, self.route()),
            otel.kind = "server",
            otel.status_code = field::Empty,
            http.request.method = self.method,
            http.route = self.route(),
            http.response.status_code = field::Empty,
            error.type = field::Empty,
        );
        if !span.is_disabled() && headers.contains_key("traceparent") {
            let parent = TraceContextPropagator::new().extract(&ParentOnly(headers));
            // Fails only without a collector, which is fine.
            let _ = span.set_parent(parent);
        }
        span
    }

    fn finish(mut self, response: &Response, span: &Span) {
        let status = response.status();
        let code = response.extensions().get::<ErrorCode>().map(|code| code.0);
        // Signed, because unsigned numbers are exported as text.
        span.record("http.response.status_code", i64::from(status.as_u16()));
        if status.is_server_error() {
            span.record("otel.status_code", "ERROR");
            span.record("error.type", code.unwrap_or("internal"));
        }

        let actor = response.extensions().get::<Actor>().copied();
        self.record(&Outcome {
            status: status.as_u16(),
            code,
            actor,
            key_prefix: response.extensions().get().cloned(),
            bytes: response.body().size_hint().exact(),
        });
    }

    fn record(&mut self, outcome: &Outcome) {
        self.is_recorded = true;
        let elapsed = self.started_at.elapsed();
        self.measure(outcome.status, elapsed);
        // 501 is not a failure of the vault.
        let is_not_built = outcome.status == StatusCode::NOT_IMPLEMENTED.as_u16();
        if outcome.status < StatusCode::INTERNAL_SERVER_ERROR.as_u16() || is_not_built {
            write_line!(tracing::Level::INFO, self, outcome, elapsed);
        } else {
            write_line!(tracing::Level::WARN, self, outcome, elapsed);
        }
    }

    fn measure(&self, status: u16, elapsed: Duration) {
        let meters = self.meters.of(self.method, self.route(), status);
        meters.requests.increment(1);
        meters.durations.record(elapsed);
    }
}

/// Records a request that is dropped because its client disconnected.
impl Drop for Pending {
    fn drop(&mut self) {
        if !self.is_recorded {
            let code = Some("client_gone");
            self.record(&Outcome {
                status: CLIENT_CLOSED_REQUEST,
                code,
                actor: None,
                key_prefix: None,
                bytes: None,
            });
        }
    }
}

struct Outcome {
    status: u16,
    code: Option<&'static str>,
    actor: Option<Actor>,
    key_prefix: Option<KeyPrefix>,
    bytes: Option<u64>,
}

/// Milliseconds with three decimals.
fn milliseconds(elapsed: Duration) -> f64 {
    elapsed.as_micros() as f64 / 1000.0
}

/// Clients choose the method, so uncommon ones share a label, which bounds the cardinality.
fn method_label(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::HEAD => "HEAD",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

/// Extracts `traceparent` only: `tracestate` is free text and would be exported.
struct ParentOnly<'a>(&'a HeaderMap);

impl Extractor for ParentOnly<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        if key != "traceparent" {
            return None;
        }
        self.0.get(key)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        vec!["traceparent"]
    }
}
