//! Tests of log lines and of the fields that are dropped.

use std::sync::{Arc, Mutex};

use metrics_exporter_prometheus::PrometheusBuilder;
use serde_json::{Value, json};
use tracing::Level as At;
use tracing_subscriber::prelude::*;

use super::*;

/// Runs `act` with its own log and returns the lines.
fn written(format: Format, level: Level, act: impl FnOnce()) -> String {
    let mut config = Config::default();
    config.vault.node = Some("left".to_owned());
    config.log.format = format;
    let lines = Arc::new(Mutex::new(Vec::new()));
    let sink: Sink = {
        let lines = Arc::clone(&lines);
        Box::new(move |_, line| lines.lock().unwrap().extend_from_slice(line))
    };
    let layer = Lines::new(&config, sink).with_filter(filter(level));
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), act);
    let bytes = lines.lock().unwrap().clone();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn json_lines_contain_the_allowed_fields() {
    let line = written(Format::Json, Level::Info, || {
        tracing::info!(
            request.id = "a\"b\\c\nd",
            status = 200_u16,
            duration_ms = 1.25,
            request.bytes = Some(7_u64),
            response.bytes = None::<u64>,
            code = %"no_such_token",
            "request"
        );
    });

    let mut parsed: Value = serde_json::from_str(&line).unwrap();
    let time = parsed.as_object_mut().unwrap().remove("time").unwrap();
    assert_eq!(
        time.as_str().unwrap().len(),
        "2030-01-01T00:00:00.000Z".len()
    );
    assert_eq!(
        parsed,
        json!({
            "level": "info", "node": "left", "message": "request", "request.id": "a\"b\\c\nd",
            "status": 200, "duration_ms": 1.25, "request.bytes": 7, "code": "no_such_token",
        })
    );
    assert_eq!(line.matches('\n').count(), 1);
}

#[test]
fn text_with_line_breaks_is_logged_in_one_line() {
    let line = written(Format::Text, Level::Info, || {
        tracing::warn!(setting = "a\nb", count = 3, "two\nlines");
    });

    let (_, rest) = line.split_once(' ').unwrap();
    assert_eq!(
        rest,
        "WARN  two\\u000alines setting=a\\u000ab count=3 node=left\n"
    );
}

#[test]
fn values_of_fields_outside_of_the_allowlist_are_not_logged() {
    let error = std::io::Error::other("canary-9");
    let act = || {
        tracing::error!(card = "canary-1", number = %"canary-2", "one");
        tracing::warn!(data = ?"canary-3", path = "/tokens/canary-4", "two");
        tracing::info!(headers = ?["canary-5"], body = "canary-6", "three");
        tracing::debug!(query = "canary-7", "four");
        tracing::trace!(key = "canary-8", "five");
        tracing::error!(error.kind = &error as &dyn std::error::Error, "six");
        let _span = tracing::error_span!("canary-10", secret = "canary-11").entered();
        tracing::error!("seven");
    };

    for format in [Format::Json, Format::Text] {
        let lines = written(format, Level::Trace, act);
        assert_eq!(lines.lines().count(), 7, "{lines}");
        assert!(!lines.contains("canary"), "{lines}");
    }
}

#[test]
fn dropped_fields_are_counted() {
    let recorder = PrometheusBuilder::new().build_recorder();

    metrics::with_local_recorder(&recorder, || {
        written(Format::Json, Level::Info, || {
            tracing::info!(a = 1, b = "x", count = 2, "m")
        });
    });

    assert!(
        recorder
            .handle()
            .render()
            .contains("log_fields_dropped_total 2")
    );
}

#[test]
fn warnings_of_libraries_are_logged_without_their_text() {
    let lines = written(Format::Text, Level::Trace, || {
        tracing::event!(target: "hyper::proto", At::ERROR, "canary {}", 1);
        tracing::event!(target: "hyper::proto", At::WARN, status = "canary", "m");
        tracing::event!(target: "hyper::proto", At::INFO, "canary");
        tracing::event!(target: "hyper::proto", At::TRACE, "canary");
    });

    assert!(!lines.contains("canary"), "{lines}");
    let without_time: Vec<&str> = lines
        .lines()
        .map(|line| line.split_once(' ').unwrap().1)
        .collect();
    let expected = "a library reported a problem target=hyper::proto node=left";
    assert_eq!(
        without_time,
        [format!("ERROR {expected}"), format!("WARN  {expected}")]
    );
}

#[test]
fn events_below_the_level_are_not_logged() {
    let cases = [
        (Level::Error, "e"),
        (Level::Warn, "ew"),
        (Level::Info, "ewi"),
        (Level::Debug, "ewid"),
        (Level::Trace, "ewidt"),
    ];
    for (level, expected) in cases {
        let lines = written(Format::Json, level, || {
            tracing::error!("e");
            tracing::warn!("w");
            tracing::info!("i");
            tracing::debug!("d");
            tracing::trace!("t");
        });
        let messages: String = lines
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["message"].clone())
            .map(|message| message.as_str().unwrap().to_owned())
            .collect();
        assert_eq!(messages, expected, "{level:?}");
    }
}
