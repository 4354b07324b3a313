//! All metrics of a node. docs/operate/metrics.md is generated from this list.

use super::metric::{Counter, Definition, Gauge, Histogram, Kind, Label};

/// Durations of requests and of calls to other systems, in seconds.
const DURATIONS: &[f64] = &[
    0.0005, 0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.02, 0.035, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0,
];
/// Numbers of items in one statement.
const ITEMS: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0];

/// Background jobs.
pub const JOBS: &[&str] = &[
    "card_ranges",
    "deprecations",
    "heartbeat",
    "measure",
    "refresh_bins",
    "retain_logs",
    "rotate_keys",
    "security_codes",
    "settle_threeds",
    "sweep",
    "synchronize_clock",
    "watch",
    "webhooks",
    "write_checkpoints",
];

/// Outcomes of outbound requests that have no response.
macro_rules! egress_failures {
    ($($more:literal),*) => {
        &[
            $($more,)*
            "host_not_allowed", "host_not_allowed_by_tenant", "own_host", "port_not_allowed",
            "address_not_allowed", "http_method_not_allowed", "dns", "connect", "connect_timeout",
            "connect_proxy", "tls", "timeout", "bad_response", "interrupted", "request_body",
            "overloaded", "circuit_open",
        ]
    };
}

/// Defines metrics: kind, constant, name, labels with their values if these are known, buckets and help.
macro_rules! catalog {
    ($(
        $kind:ident $constant:ident = $name:literal
        { $($label:ident $(: $values:expr)?),* } $(in $buckets:ident)?
        $help:literal;
    )*) => {
        $(
            #[doc = $help]
            pub const $constant: $kind<{ <[&str]>::len(&[$(stringify!($label)),*]) }> =
                $kind(&Definition {
                    name: $name,
                    kind: Kind::$kind,
                    help: $help,
                    labels: &[$(Label {
                        name: stringify!($label),
                        values: catalog!(@or_none $($values)?),
                    }),*],
                    buckets: catalog!(@or_none $($buckets)?),
                });
        )*

        /// All definitions.
        pub static ALL: &[&Definition] = &[$($constant.0),*];
    };
    (@or_none) => { &[] };
    (@or_none $given:expr) => { $given };
}

catalog! {
    // Node
    Gauge BUILD = "cloakroom_build_info" { version }
        "Always 1; the label is the version of the node.";
    Gauge READY = "cloakroom_ready" {}
        "1 if the node serves requests: all readiness checks pass and it is not shutting down.";
    Gauge READINESS_CHECK = "cloakroom_readiness_check" { check }
        "1 if a readiness check passes, 0 if it fails.";
    Gauge NODES = "cloakroom_nodes" {}
        "Running nodes of the vault, as this node sees them.";
    Gauge CLOCK_SKEW = "cloakroom_clock_skew_seconds" {}
        "Difference between the clocks of the node and of the database.";
    Gauge MEMORY = "cloakroom_process_resident_memory_bytes" {}
        "Memory of the process that is in RAM.";
    Gauge OPEN_FILES = "cloakroom_process_open_files" {}
        "File descriptors that the process has open, including connections.";
    Gauge MAX_FILES = "cloakroom_process_max_files" {}
        "File descriptors that the process may have open.";
    Gauge UPTIME = "cloakroom_process_uptime_seconds" {}
        "Time since the node started.";
    Counter PANICS = "cloakroom_panics_total" {}
        "Panics, each a bug. The log has the location.";
    Counter LOG_FIELDS_DROPPED = "cloakroom_log_fields_dropped_total" {}
        "Fields that were left out of log lines because they are not in the allow-list.";
    Counter LOG_LINES_DROPPED = "cloakroom_log_lines_dropped_total" {}
        "Log lines that were dropped because standard error was not read fast enough.";
    Counter OTLP_EXPORTS = "cloakroom_otlp_exports_total" {
        signal: &["traces", "metrics"], outcome: &["sent", "failed"]
    }
        "Exports of traces and metrics to the collector.";

    // Background jobs
    Gauge JOB_AGE = "cloakroom_job_age_seconds" { task: JOBS }
        "Time since a background job last succeeded on this node, or since the node started. A job that another node runs counts as successful.";
    Counter JOB_FAILURES = "cloakroom_job_failures_total" { task: JOBS }
        "Failed runs of background jobs. Every job retries at its next run.";
    Counter TOKENS_EXPIRED = "cloakroom_tokens_expired_total" {}
        "Expired tokens that were deleted.";
    Counter TENANT_ROWS_SWEPT = "cloakroom_tenant_rows_swept_total" {}
        "Rows of deleted tenants that were deleted.";

    // HTTP
    Counter HTTP_REQUESTS = "cloakroom_http_requests_total" { method, route, status }
        "Requests by method, route template and status; 499 if the client disconnected before the response.";
    Histogram HTTP_REQUEST_DURATION = "cloakroom_http_request_duration_seconds" { method, route } in DURATIONS
        "Durations of requests, until the response begins.";
    Gauge HTTP_CONNECTIONS = "cloakroom_http_connections" {}
        "Open connections of the API listener.";
    Counter HTTP_CONNECTIONS_REJECTED = "cloakroom_http_connections_rejected_total" {}
        "Connections that were closed at once because their address had too many.";
    Counter HTTP_STALLED_RESPONSES = "cloakroom_http_stalled_responses_total" { protocol: &["tcp", "http2"] }
        "Responses that a client did not read in time.";
    Counter HTTP_UNREAD_REJECTED = "cloakroom_http_unread_rejected_total" {}
        "Requests that were rejected because their client has too many unread responses.";
    Counter TLS_HANDSHAKES_FAILED = "cloakroom_tls_handshakes_failed_total" {}
        "Connections whose TLS handshake failed or timed out.";
    Gauge TLS_CERTIFICATE_NOT_AFTER = "cloakroom_tls_certificate_not_after_timestamp_seconds" { certificate }
        "End of the validity of each TLS certificate.";
    Counter TLS_CERTIFICATE_RELOADS = "cloakroom_tls_certificate_reloads_total" {
        certificate, outcome: &["loaded", "failed"]
    }
        "Changed files of TLS certificates that were loaded, or could not be.";

    // Limits
    Counter RATE_LIMITED = "cloakroom_rate_limited_total" { limit }
        "Requests that were rejected with 429, by the limit that they exceeded.";
    Gauge RATE_LIMITS_LOCAL = "cloakroom_rate_limits_local" {}
        "1 while this node counts requests by itself because Redis is unavailable.";
    Counter RATE_LIMITS_FALLBACKS = "cloakroom_rate_limits_fallbacks_total" {}
        "Changes from shared limits to limits of this node.";
    Counter ADMISSION_REJECTED = "cloakroom_admission_rejected_total" {}
        "Requests that were rejected with 503 `busy` because too many of the tenant were running.";
    Counter VELOCITY_REJECTED = "cloakroom_velocity_rejected_total" { reason: &["numbers", "mistakes"] }
        "Requests over the velocity limit, whose numbers were not compared: too many distinct card numbers, or too many invalid ones.";
    Counter IDEMPOTENT_REQUESTS = "cloakroom_idempotent_requests_total" {
        kind: &["first", "replayed", "mismatch", "conflict", "grants_changed"]
    }
        "Requests with an idempotency key.";
    Counter IDEMPOTENT_RESPONSES_STORED = "cloakroom_idempotent_responses_stored_separately_total" {}
        "Stored responses of requests that changed nothing, which need a statement of their own.";
    Counter DEPRECATED_CALLS = "cloakroom_deprecated_calls_total" { deprecation, tenant }
        "Calls that used a deprecated feature.";

    // Database and Redis
    Gauge DATABASE_CONNECTIONS = "cloakroom_database_pool_connections" { state: &["idle", "in_use"] }
        "Open connections of the database pool.";
    Gauge DATABASE_CONNECTIONS_MAX = "cloakroom_database_pool_connections_max" {}
        "Connections that the database pool may open (`database.max_connections`).";
    Gauge DATABASE_WAITING = "cloakroom_database_pool_waiting" {}
        "Operations that wait for a connection of the database pool.";
    Counter DATABASE_CONNECTION_FAILURES = "cloakroom_database_connection_failures_total" {
        reason: &["timeout", "connect"]
    }
        "Operations that got no connection: none became free in time, or none could be opened.";
    Gauge DATABASE_BYTES = "cloakroom_database_bytes" {}
        "Size of the database on disk.";
    Histogram BATCH_ITEMS = "cloakroom_batch_items" { batcher } in ITEMS
        "Items that shared one statement or Redis call.";
    Gauge REDIS_UP = "cloakroom_redis_up" {}
        "1 if Redis responds. Absent if Redis is not configured.";
    Counter REDIS_OUTAGES = "cloakroom_redis_outages_total" {}
        "Times that Redis became unavailable.";
    Gauge REDIS_VOLATILE = "cloakroom_redis_volatile" {}
        "1 if Redis writes nothing to disk, which the keys of security codes require.";

    // Integrity
    Counter INTEGRITY_ERRORS = "cloakroom_integrity_errors_total" {}
        "Values that could not be authenticated when they were decrypted, by requests, jobs and rotations of keys.";
    Counter ACCESS_ALTERED_ROWS = "cloakroom_access_altered_rows_total" {}
        "Rows that grant access and were changed outside of Cloakroom. They grant nothing.";
    Counter ACCESS_STALE_ROWS = "cloakroom_access_stale_rows_total" {}
        "Rows that grant access and were restored from an older copy. They grant nothing.";
    Counter STALE_ROWS = "cloakroom_stale_rows_total" {}
        "Rows of tokens that are older than a state that this node has seen. They are rejected.";

    // Keys
    Gauge KEY_CRYPTOPERIOD = "cloakroom_key_cryptoperiod_ratio" { purpose }
        "Age of the oldest active key of a purpose as a share of its cryptoperiod.";
    Gauge KEY_AGE = "cloakroom_key_age_seconds" { purpose }
        "Age of the oldest active key of a purpose.";
    Counter KEYS_ALTERED = "cloakroom_keys_altered_total" {}
        "Keys that were added or changed outside of Cloakroom. They are not used.";
    Counter KEYS_STALE_WRITES = "cloakroom_keys_stale_writes_total" {}
        "Writes that the database rejected because their key was replaced. They are repeated under the new key.";
    Gauge KEY_ROTATIONS_OPEN = "cloakroom_key_rotations_open" {}
        "Rotations of keys that have not ended (counted up to 100).";
    Gauge KEY_ROTATION_PHASE_AGE = "cloakroom_key_rotation_phase_age_seconds" {}
        "Time that an open rotation has been in its current phase, at most, without those that wait for rows to expire; 0 if none is open.";
    Counter KEY_ROTATION_ROWS = "cloakroom_key_rotation_rows_total" {}
        "Rows that this node encrypted or authenticated again under a new key.";
    Histogram ROOT_KEY_REQUEST_DURATION = "cloakroom_root_key_request_duration_seconds" {
        provider, operation: &["wrap", "unwrap", "describe"]
    } in DURATIONS
        "Durations of calls to the provider of the root key.";
    Counter ROOT_KEY_ERRORS = "cloakroom_root_key_errors_total" {
        provider,
        reason: &["unavailable", "denied", "disabled", "sealed", "integrity", "configuration"]
    }
        "Failed calls to the provider of the root key.";
    Gauge ROOT_KEY_UNAVAILABLE = "cloakroom_root_key_unavailable_seconds" {}
        "Time since the first call to the provider of the root key that got no response, if none has got one since; 0 if it responds. Nodes call it every five seconds until it does.";
    Gauge ROOT_KEY_OLDEST_CACHED = "cloakroom_root_key_oldest_cached_seconds" {}
        "Age of the oldest tenant keys in memory that could not be refreshed because the provider is unavailable; 0 while it responds.";
    Gauge ROOT_KEY_GRACE = "cloakroom_root_key_grace_seconds" {}
        "How long keys in memory remain usable while the provider is unavailable (`root_key.grace`).";
    Counter SECURITY_CODES = "cloakroom_security_codes_total" {
        outcome: &["sealed", "opened", "absent", "altered", "key_gone", "key_unreachable"]
    }
        "Operations on security codes.";
    Counter SECURITY_CODES_SWEPT = "cloakroom_security_codes_swept_total" {}
        "Expired security codes that were deleted.";
    Gauge SECURITY_CODE_KEYS = "cloakroom_security_code_keys" {}
        "Keys of security codes in the memory of this node.";

    // Audit log
    Counter AUDIT_ENTRIES = "cloakroom_audit_entries_total" {}
        "Audit log entries of reads that this node wrote.";
    Histogram AUDIT_ENTRIES_PER_COMMIT = "cloakroom_audit_entries_per_commit" {} in ITEMS
        "Audit log entries of reads that were written by one commit.";
    Counter AUDIT_ENTRIES_LOST = "cloakroom_audit_entries_lost_total" {}
        "Audit log entries of masked reads that the database rejected.";
    Counter AUDIT_WRITE_FAILURES = "cloakroom_audit_write_failures_total" {}
        "Attempts to write audit log entries of reads that failed. They are repeated.";
    Counter AUDIT_CHECKPOINTS = "cloakroom_audit_checkpoints_total" {}
        "Checkpoints of the audit log that this node wrote.";
    Counter AUDIT_ENTRIES_MISSING = "cloakroom_audit_entries_missing_total" {}
        "Entries that a checkpoint states and the audit log lacks, as found by streams.";
    Counter AUDIT_UNCLOSED_DAYS = "cloakroom_audit_day_close_failures_total" {}
        "Attempts to close a day of the audit log whose entries do not verify.";
    Counter AUDIT_SINK_FAILURES = "cloakroom_audit_sink_failures_total" {
        sink: &[
            "sink_file", "sink_url", "sink_syslog", "stream_file", "stream_url", "stream_syslog",
            "time_stamps",
        ]
    }
        "Runs in which a sink did not receive the checkpoints or entries of the audit log.";
    Gauge AUDIT_SINK_WAITING = "cloakroom_audit_sink_waiting" {
        sink: &[
            "sink_file", "sink_url", "sink_syslog", "stream_file", "stream_url", "stream_syslog",
        ]
    }
        "Checkpoints of the audit log that a sink has not received; of `stream_` sinks, with their entries. Every node measures it, whichever ships.";
    Gauge AUDIT_TIME_STAMP_AGE = "cloakroom_audit_time_stamp_age_seconds" {}
        "Age of the last time stamp of a checkpoint. Absent if time stamps are not configured.";
    Gauge AUDIT_LOG_BYTES = "cloakroom_audit_log_bytes" {}
        "Size of the audit log in the database.";

    // Outbound requests
    Counter EGRESS_REQUESTS = "cloakroom_egress_requests_total" { outcome: egress_failures!("response") }
        "Outbound requests of proxies and webhooks.";
    Counter EGRESS_RESPONSES_INCOMPLETE = "cloakroom_egress_responses_incomplete_total" {
        reason: &["response_timeout", "response_interrupted"]
    }
        "Bodies of responses to outbound requests that ended early.";
    Gauge EGRESS_REQUESTS_IN_FLIGHT = "cloakroom_egress_requests_in_flight" {}
        "Outbound requests that are running.";
    Gauge EGRESS_CONNECTIONS_IDLE = "cloakroom_egress_connections_idle" {}
        "Outbound connections that are open for further requests.";
    Gauge EGRESS_CIRCUITS_OPEN = "cloakroom_egress_circuits_open" {}
        "Tenants and destinations that cannot be connected to.";
    Counter PROXY_REQUESTS = "cloakroom_proxy_requests_total" {
        outcome: egress_failures!("2xx", "3xx", "4xx", "5xx")
    }
        "Proxied requests by the status class of the destination, or the reason that there is none.";
    Counter PROXY_UNRECORDED = "cloakroom_proxy_invocations_unrecorded_total" {}
        "Proxied requests whose outcome could not be written to the audit log. Their use of tokens was.";

    // Webhooks
    Gauge WEBHOOK_EVENTS_PENDING = "cloakroom_webhook_events_pending" {}
        "Events that wait for delivery (counted up to 10,000).";
    Gauge WEBHOOK_OLDEST_PENDING = "cloakroom_webhook_oldest_pending_seconds" {}
        "Age of the oldest event that waits for delivery.";
    Counter WEBHOOK_ATTEMPTS = "cloakroom_webhook_attempts_total" {
        outcome: &["delivered", "failed", "not_attempted"]
    }
        "Attempts to deliver events; `not_attempted` because of this node's own limits.";
    Counter WEBHOOK_EVENTS_FAILED = "cloakroom_webhook_events_failed_total" {}
        "Events that were given up.";
    Gauge WEBHOOKS_DISABLED = "cloakroom_webhooks_disabled" {}
        "Webhooks that are disabled because their endpoint failed.";
    Counter WEBHOOKS_DISABLED_TOTAL = "cloakroom_webhooks_disabled_total" {}
        "Webhooks that this node disabled because their endpoint failed.";

    // 3-D Secure and BINs
    Gauge CARD_RANGES_AGE = "cloakroom_threeds_card_ranges_age_seconds" { directory }
        "Age of the card ranges of a directory server.";
    Counter THREEDS_SESSIONS_UNREADABLE = "cloakroom_threeds_sessions_unreadable_total" {}
        "3-D Secure sessions that could not be decrypted.";
    Counter THREEDS_RESULTS_REJECTED = "cloakroom_threeds_results_rejected_total" {
        code: &[
            "101", "102", "103", "201", "202", "203", "204", "205", "206", "207", "301", "302", "303",
            "304", "305", "306", "307", "402", "403", "404", "405",
        ]
    }
        "Results of directory servers that were rejected, by EMV 3-D Secure error code.";
    Counter THREEDS_DECLINE_LIMIT = "cloakroom_threeds_decline_limit_total" {}
        "Authentications that were rejected because issuers declined too many cards from one address.";
    Gauge BIN_TABLE_VERSION = "cloakroom_bin_table_version" {}
        "Version of the BIN table in use.";
}

/// Registers the help texts, and every counter and histogram whose labels are known, so that its first event is an increase.
pub fn register() {
    for definition in ALL {
        definition.register();
    }
}

/// The reference of all metrics, in Markdown.
pub fn reference() -> String {
    let mut text = String::from(
        "<!-- Generated by `cargo xtask generate`. -->\n\
         # Metrics\n\n\
         A node serves its metrics in the Prometheus text format at `/metrics` of `admin.listen`. Counters whose labels have\n\
         known values are 0 from the start; a gauge is absent until it is measured. Alert rules and dashboards are in\n\
         [deploy/observability](../../deploy/observability/README.md).\n\n\
         | metric | kind | unit | labels | meaning |\n| --- | --- | --- | --- | --- |\n",
    );
    for definition in ALL {
        let labels: Vec<_> = definition.labels.iter().map(describe).collect();
        let row = format!(
            "| `{}` | {} | {} | {} | {} |\n",
            definition.name,
            definition.kind.name(),
            definition.unit(),
            labels.join("; "),
            definition.help,
        );
        text.push_str(&row);
    }
    text
}

fn describe(label: &Label) -> String {
    let values: Vec<_> = label.values.iter().map(|it| format!("`{it}`")).collect();
    match values.is_empty() {
        true => format!("`{}`", label.name),
        false => format!("`{}`: {}", label.name, values.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_follow_the_conventions() {
        let mut names: Vec<_> = ALL.iter().map(|it| it.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ALL.len());
        for definition in ALL {
            let Definition { name, help, .. } = definition;
            let is_counter = definition.kind == Kind::Counter;
            assert!(name.starts_with("cloakroom_"), "{name}");
            assert_eq!(name.ends_with("_total"), is_counter, "{name}");
            assert!(help.ends_with('.') && !help.contains('|'), "{name}");
            let has_buckets = !definition.buckets.is_empty();
            assert_eq!(has_buckets, definition.kind == Kind::Histogram, "{name}");
            // Prometheus adds these itself, and renames ours.
            let is_reserved = |label: &Label| ["job", "instance", "le"].contains(&label.name);
            assert!(!definition.labels.iter().any(is_reserved), "{name}");
        }
    }

    #[test]
    fn counters_are_0_before_their_first_event() {
        let recorder = super::super::recorder().unwrap().build_recorder();
        metrics::with_local_recorder(&recorder, register);

        let text = recorder.handle().render();

        for line in [
            "# HELP cloakroom_panics_total Panics, each a bug. The log has the location.",
            "cloakroom_panics_total 0",
            "cloakroom_webhook_attempts_total{outcome=\"failed\"} 0",
            "cloakroom_audit_entries_per_commit_bucket{le=\"1\"} 0",
        ] {
            assert!(text.lines().any(|it| it == line), "{line}\n{text}");
        }
        // Gauges have no value before they are measured.
        assert!(!text.contains("cloakroom_redis_up"), "{text}");
    }
}
