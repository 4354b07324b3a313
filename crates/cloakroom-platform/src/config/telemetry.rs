//! Trace export settings.

use http::Uri;

use super::finding::Finding;
use super::section::section;

section! {
    /// Export of traces. If no endpoint is set, nothing is exported.
    pub struct Telemetry in "telemetry" {
        /// OTLP endpoint over HTTP, such as `http://127.0.0.1:4318/v1/traces`.
        pub otlp_endpoint: Option<String> = None,
        /// Fraction of requests that are traced, from 0.0 to 1.0. The sampling decision of the caller, if any, takes
        /// precedence.
        pub sample_ratio: f64 = 1.0,
    }
}

impl Telemetry {
    pub(super) fn check(&self, findings: &mut Vec<Finding>) {
        let is_plain_http = |endpoint: &String| {
            endpoint.parse::<Uri>().is_ok_and(|uri| {
                uri.scheme_str() == Some("http") && uri.host().is_some_and(|host| !host.is_empty())
            })
        };
        if !self.otlp_endpoint.as_ref().is_none_or(is_plain_http) {
            let message = "must be an http URL; for https, use a collector on this host";
            findings.push(Finding::error("telemetry.otlp_endpoint", message));
        }
        if !(0.0..=1.0).contains(&self.sample_ratio) {
            findings.push(Finding::error(
                "telemetry.sample_ratio",
                "must be from 0.0 to 1.0",
            ));
        }
    }
}
