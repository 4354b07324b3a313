//! The allowlists of fields in log lines and traces.

use tracing::Metadata;

/// Fields of a log line in addition to time, level, node and message.
const LOG: &[&str] = &[
    "request.id",
    "tenant.id",
    "webhook.id",
    "application.id",
    "key.id",
    "key.prefix",
    "client.address",
    "route",
    "method",
    "status",
    "code",
    "duration_ms",
    "request.bytes",
    "response.bytes",
    "error.kind",
    "listen",
    "version",
    // The place where a TLS certificate is used.
    "certificate",
    "signal",
    "job",
    "migration",
    "count",
    "setting",
    "statement",
    "sqlstate",
    "location",
    // Of outbound requests. Hosts are validated, also against card numbers.
    "destination.host",
    // A check of /readyz, and why a node does not serve: texts without data of tenants, which /readyz shows too.
    "check",
    "reason",
];

/// Fields of a span. Fields that begin with `otel` set its name, kind and status, and are not attributes.
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

/// Whether a span may be exported. One field outside of the allowlist excludes the whole span.
pub(super) fn may_be_traced(metadata: &Metadata<'_>) -> bool {
    metadata.is_span()
        && is_ours(metadata)
        && metadata
            .fields()
            .iter()
            .all(|field| SPAN.contains(&field.name()))
}

/// Whether the event or span comes from this workspace. Those of libraries may contain any data.
pub(super) fn is_ours(metadata: &Metadata<'_>) -> bool {
    metadata.target().starts_with("cloakroom")
}
