//! The only fields that may leave the process in a log line or a trace.

use tracing::Metadata;

/// Fields of a log line besides its time, level, node and message.
const LOG: &[&str] = &[
    "request.id",
    "tenant.id",
    "application.id",
    "key.id",
    "route",
    "method",
    "status",
    "code",
    "duration_ms",
    "request.bytes",
    "response.bytes",
    "error.kind",
    "listen",
    "signal",
    "job",
    "migration",
    "count",
    "setting",
    "statement",
    "sqlstate",
    "location",
];

/// Fields of a span; those that begin with `otel` name it rather than describe it.
const SPAN: &[&str] = &[
    "otel.name",
    "otel.kind",
    "otel.status_code",
    "http.request.method",
    "http.route",
    "http.response.status_code",
    "error.type",
];

pub(super) fn may_be_logged(field: &str) -> bool {
    LOG.contains(&field)
}

/// Whether a span may be traced: one foreign field keeps all of it in the process.
pub(super) fn may_be_traced(metadata: &Metadata<'_>) -> bool {
    metadata.is_span()
        && is_ours(metadata)
        && metadata
            .fields()
            .iter()
            .all(|field| SPAN.contains(&field.name()))
}

/// Whether our own code speaks. What libraries say may hold anything.
pub(super) fn is_ours(metadata: &Metadata<'_>) -> bool {
    metadata.target().starts_with("cloakroom")
}
