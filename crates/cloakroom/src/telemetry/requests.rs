//! Every request: its trace id, its one line in the log, its metrics and its span.

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

use super::meters::KnownMeters;
use crate::card_numbers::holds_card_number;
use crate::ids;

const TRACE_ID: HeaderName = HeaderName::from_static("bt-trace-id");
const TRACE_ID_CHARS_MAX: usize = 200;
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
/// What the log says of a caller that left before its answer; no response carries it.
const CLIENT_GONE: u16 = 499;

/// The caller's id for this request, or a fresh one. Found in the extensions of a request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TraceId(pub Arc<str>);

impl TraceId {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Who asked. Put into the extensions of a response, it is named in the log.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Actor {
    pub tenant: Uuid,
    pub application: Uuid,
    pub key: Uuid,
}

/// Why a request failed. Put into the extensions of a response, it is named in the log.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ErrorCode(pub &'static str);

impl ErrorCode {
    /// A write may or may not have happened.
    pub const OUTCOME_UNKNOWN: Self = Self("outcome_unknown");
}

/// Records requests. It belongs outermost.
#[derive(Clone, Default)]
pub struct Recorder(Arc<KnownMeters>);

impl Recorder {
    /// Has a request answered and recorded, by the template of its route if it meets one.
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
            // Nothing is kept by anybody unless its room says so.
            headers.entry(header::CACHE_CONTROL).or_insert(NO_STORE);
            pending.finish(&response, &Span::current());
            response
        };
        recorded.instrument(span).await
    }
}

/// Has all requests to a router recorded.
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

/// Takes the caller's id if it is printable and short, else makes one.
///
/// The id is logged, so one that looks like a card number is not taken.
fn trace_id(headers: &HeaderMap) -> (TraceId, HeaderValue) {
    if let Some(header) = headers.get(TRACE_ID)
        && (1..=TRACE_ID_CHARS_MAX).contains(&header.len())
        && let Ok(text) = header.to_str()
        && !text.contains('\t')
        && !holds_card_number(text)
    {
        return (TraceId(text.into()), header.clone());
    }

    let mut buffer = Uuid::encode_buffer();
    let text: &str = ids::new_uuid().hyphenated().encode_lower(&mut buffer);
    let header = HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static("unknown"));
    (TraceId(text.into()), header)
}

/// Writes the line of a request; a macro, because a level is part of the place that logs.
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
            "request"
        )
    };
}
/// A request between its head and its answer.
struct Pending {
    begun: Instant,
    method: &'static str,
    route: Option<Arc<str>>,
    trace_id: TraceId,
    request_bytes: Option<u64>,
    is_recorded: bool,
    meters: Arc<KnownMeters>,
}

impl Pending {
    fn new(
        request: &Request,
        route: Option<Arc<str>>,
        trace_id: TraceId,
        meters: Arc<KnownMeters>,
    ) -> Self {
        Self {
            begun: Instant::now(),
            method: method_label(request.method()),
            route,
            trace_id,
            request_bytes: request.body().size_hint().exact(),
            is_recorded: false,
            meters,
        }
    }

    /// The template of the route. The path itself may hold anything, so it is never recorded.
    fn route(&self) -> &str {
        self.route.as_deref().unwrap_or("unmatched")
    }

    /// A span for the collector. Without one this costs nothing.
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
            // Without a collector there is nobody to tell of the parent.
            let _ = span.set_parent(parent);
        }
        span
    }

    fn finish(mut self, response: &Response, span: &Span) {
        let status = response.status();
        let code = response.extensions().get::<ErrorCode>().map(|code| code.0);
        // Signed, because unsigned numbers arrive at collectors as text.
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
            bytes: response.body().size_hint().exact(),
        });
    }

    fn record(&mut self, outcome: &Outcome) {
        self.is_recorded = true;
        let elapsed = self.begun.elapsed();
        self.measure(outcome.status, elapsed);
        if outcome.status < StatusCode::INTERNAL_SERVER_ERROR.as_u16() {
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

/// A caller that goes away drops its request; that is recorded like any other end.
impl Drop for Pending {
    fn drop(&mut self) {
        if !self.is_recorded {
            let code = Some("client_gone");
            self.record(&Outcome {
                status: CLIENT_GONE,
                code,
                actor: None,
                bytes: None,
            });
        }
    }
}

struct Outcome {
    status: u16,
    code: Option<&'static str>,
    actor: Option<Actor>,
    bytes: Option<u64>,
}

/// Milliseconds with three decimals.
fn milliseconds(elapsed: Duration) -> f64 {
    elapsed.as_micros() as f64 / 1000.0
}

/// Methods are chosen by callers, so the rare ones share a label.
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

/// Shows the propagator `traceparent` alone: `tracestate` is free text and would be sent on.
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
