//! Settings of the export of traces and metrics.

use std::path::PathBuf;
use std::time::Duration;

use http::header::{HeaderName, HeaderValue};
use http::{HeaderMap, Uri};

use super::finding::Finding;
use super::plaintext;
use super::section::section;

/// Shorter intervals cost more than they show.
const METRICS_INTERVAL_MIN: Duration = Duration::from_secs(1);

section! {
    /// Export of traces and metrics with OTLP over HTTP. Without an endpoint, nothing is exported.
    pub struct Telemetry in "telemetry" {
        /// Endpoint of traces, such as `https://collector.example.com:4318/v1/traces`.
        pub otlp_endpoint: Option<String> = None,
        /// Endpoint of metrics, such as `https://collector.example.com:4318/v1/metrics`. They are the metrics of `/metrics`.
        pub otlp_metrics_endpoint: Option<String> = None,
        /// Time between two exports of metrics.
        pub otlp_metrics_interval: Duration = Duration::from_secs(60),
        /// Certificate authorities of both endpoints in PEM; those of the system by default.
        pub otlp_ca_file: Option<PathBuf> = None,
        /// File of headers that both endpoints require, one `Name: value` per line, such as `Authorization: Bearer ...`.
        pub otlp_headers_file: Option<PathBuf> = None,
        /// Fraction of requests that are traced, from 0.0 to 1.0. The sampling decision of the caller, if any, takes
        /// precedence.
        pub sample_ratio: f64 = 1.0,
    }
}

impl Telemetry {
    pub(super) fn check(&self, findings: &mut Vec<Finding>) {
        self.check_endpoint("otlp_endpoint", self.otlp_endpoint.as_deref(), findings);
        self.check_endpoint(
            "otlp_metrics_endpoint",
            self.otlp_metrics_endpoint.as_deref(),
            findings,
        );
        if self.otlp_metrics_interval < METRICS_INTERVAL_MIN {
            let message = "must be at least 1s";
            findings.push(Finding::error("telemetry.otlp_metrics_interval", message));
        }
        if !(0.0..=1.0).contains(&self.sample_ratio) {
            findings.push(Finding::error(
                "telemetry.sample_ratio",
                "must be from 0.0 to 1.0",
            ));
        }
    }

    fn check_endpoint(&self, key: &str, endpoint: Option<&str>, findings: &mut Vec<Finding>) {
        let Some(endpoint) = endpoint else { return };
        let setting = format!("telemetry.{key}");
        let uri = endpoint.parse::<Uri>().ok();
        let uri = uri.filter(|uri| uri.host().is_some_and(|host| !host.is_empty()));
        match uri.as_ref().and_then(Uri::scheme_str) {
            Some("https") => {}
            Some("http") => {
                let is_local = uri.and_then(|uri| uri.host().map(plaintext::is_local_name));
                if self.otlp_headers_file.is_some() && is_local != Some(true) {
                    let message = "must be an https URL: telemetry.otlp_headers_file has secrets";
                    findings.push(Finding::error(setting, message));
                }
            }
            _ => findings.push(Finding::error(setting, "must be an https or http URL")),
        }
    }

    /// Reads `otlp_headers_file`. The message names the line, never its text.
    pub fn headers(&self) -> Result<HeaderMap, String> {
        let mut headers = HeaderMap::new();
        let Some(path) = &self.otlp_headers_file else {
            return Ok(headers);
        };
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("cannot read {}: {}", path.display(), error.kind()))?;
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (name, value) = parse_header(line)
                .ok_or_else(|| format!("line {} is not `Name: value`", index + 1))?;
            headers.append(name, value);
        }
        Ok(headers)
    }
}

fn parse_header(line: &str) -> Option<(HeaderName, HeaderValue)> {
    let (name, value) = line.split_once(':')?;
    let name = HeaderName::from_bytes(name.trim_end().as_bytes()).ok()?;
    let mut value = HeaderValue::from_str(value.trim()).ok()?;
    if value.is_empty() {
        return None;
    }
    value.set_sensitive(true);
    Some((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_from_their_file_and_errors_do_not_show_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("headers");
        let telemetry = Telemetry {
            otlp_headers_file: Some(path.clone()),
            ..Telemetry::default()
        };
        let text = "# collector\nAuthorization: Bearer canary:1\n\nx-scope: shop\n";
        std::fs::write(&path, text).unwrap();

        let headers = telemetry.headers().unwrap();
        assert_eq!(headers["authorization"], "Bearer canary:1");
        assert_eq!(headers["x-scope"], "shop");
        assert!(!format!("{headers:?}").contains("canary"));

        for broken in [
            "canary",
            "x: 1\ncanary name: 1",
            "x: 1\ncanary:",
            ": canary",
        ] {
            std::fs::write(&path, broken).unwrap();
            let message = telemetry.headers().unwrap_err();
            assert!(message.starts_with("line "), "{message}");
            assert!(!message.contains("canary"), "{message}");
        }
        std::fs::remove_file(&path).unwrap();
        assert!(telemetry.headers().unwrap_err().starts_with("cannot read"));
    }

    #[test]
    fn headers_are_only_sent_over_tls_or_within_the_host() {
        let check = |endpoint: &str, headers: bool| {
            let telemetry = Telemetry {
                otlp_metrics_endpoint: Some(endpoint.to_owned()),
                otlp_headers_file: headers.then(|| "headers".into()),
                ..Telemetry::default()
            };
            let mut findings = Vec::new();
            telemetry.check(&mut findings);
            findings.len()
        };
        assert_eq!(check("https://collector:4318/v1/metrics", true), 0);
        assert_eq!(check("http://127.0.0.1:4318/v1/metrics", true), 0);
        assert_eq!(check("http://[::1]:4318/v1/metrics", true), 0);
        assert_eq!(check("http://collector:4318/v1/metrics", false), 0);
        assert_eq!(check("http://collector:4318/v1/metrics", true), 1);
        assert_eq!(check("ftp://collector/v1/metrics", false), 1);
        assert_eq!(check("collector:4318", false), 1);
    }
}
