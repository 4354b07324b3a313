//! The log: one line per event, made of allowed fields only.

use std::fmt::{self, Write as _};

use tracing::field::{Field, Visit};
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, filter_fn};
use tracing_subscriber::layer::{Context, Filter};

use super::fields;
use crate::config::{Config, Format, Level};

/// Where finished lines go.
pub(super) type Sink = Box<dyn Fn(tracing::Level, &[u8]) + Send + Sync>;

/// Writes events to `sink` as lines, each in one piece.
pub(super) struct Lines {
    node: String,
    format: Format,
    sink: Sink,
}

impl Lines {
    pub(super) fn new(config: &Config, sink: Sink) -> Self {
        Self {
            node: config.vault.node_name(),
            format: config.log.format,
            sink,
        }
    }
}

/// Passes our events from `level` on, and from libraries what went wrong.
pub(super) fn filter<S>(level: Level) -> impl Filter<S> {
    let level = match level {
        Level::Error => LevelFilter::ERROR,
        Level::Warn => LevelFilter::WARN,
        Level::Info => LevelFilter::INFO,
        Level::Debug => LevelFilter::DEBUG,
        Level::Trace => LevelFilter::TRACE,
    };
    filter_fn(move |metadata: &Metadata<'_>| {
        let is_trouble = *metadata.level() <= tracing::Level::WARN;
        let is_heard = is_trouble || fields::is_ours(metadata);
        metadata.is_event() && *metadata.level() <= level && is_heard
    })
    .with_max_level_hint(level)
}

impl<S: Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let metadata = event.metadata();
        let mut line = Line::new(self.format);
        if fields::is_ours(metadata) {
            event.record(&mut line);
        } else {
            line.message.push_str("a library reported a problem");
            line.text("target", metadata.target());
        }
        if line.dropped > 0 {
            metrics::counter!("log_fields_dropped_total").increment(line.dropped);
        }
        let level = *metadata.level();
        (self.sink)(level, line.finish(level, &self.node).as_bytes());
    }
}

/// A line while its fields are being visited.
struct Line {
    format: Format,
    message: String,
    fields: String,
    /// Room to write a value in before it is looked at.
    spare: String,
    dropped: u64,
}

impl Line {
    fn new(format: Format) -> Self {
        Self {
            format,
            message: String::new(),
            fields: String::with_capacity(512),
            spare: String::with_capacity(64),
            dropped: 0,
        }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "a line carries the time of its own node"
    )]
    fn finish(self, level: tracing::Level, node: &str) -> String {
        let Self {
            format,
            message,
            fields,
            ..
        } = self;
        let time = jiff::Timestamp::now();
        let mut line = String::with_capacity(fields.len() + message.len() + 128);
        let node = Escaped(node);
        // Writing to a string cannot fail.
        let _ = match format {
            Format::Json => {
                let level = level.as_str().to_ascii_lowercase();
                writeln!(
                    line,
                    r#"{{"time":"{time:.3}","level":"{level}","node":"{node}","message":"{message}"{fields}}}"#
                )
            }
            Format::Text => writeln!(line, "{time:.3} {level:5} {message}{fields} node={node}"),
        };
        line
    }

    /// Writes the name of an allowed field; any other is counted and left out.
    fn begin(&mut self, field: &str) -> bool {
        let allowed = fields::may_be_logged(field);
        if allowed {
            self.name(field);
        } else {
            self.dropped += 1;
        }
        allowed
    }

    fn name(&mut self, field: &str) {
        let (before, after) = match self.format {
            Format::Json => (",\"", "\":"),
            Format::Text => (" ", "="),
        };
        for part in [before, field, after] {
            self.fields.push_str(part);
        }
    }

    fn text(&mut self, field: &str, value: impl fmt::Display) {
        self.name(field);
        self.quoted(value);
    }

    fn quoted(&mut self, value: impl fmt::Display) {
        let value = Escaped(value);
        let _ = match self.format {
            Format::Json => write!(self.fields, "\"{value}\""),
            Format::Text => write!(self.fields, "{value}"),
        };
    }

    /// Most text is plain, and goes without the machinery that shows other values.
    fn plain_or_quoted(&mut self, text: &str) {
        if !text.bytes().all(is_plain) {
            return self.quoted(text);
        }
        let quote = match self.format {
            Format::Json => "\"",
            Format::Text => "",
        };
        for part in [quote, text, quote] {
            self.fields.push_str(part);
        }
    }

    fn number(&mut self, field: &Field, value: impl fmt::Display) {
        if self.begin(field.name()) {
            let _ = write!(self.fields, "{value}");
        }
    }
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            let _ = write!(self.message, "{}", Escaped(format_args!("{value:?}")));
        } else if self.begin(field.name()) {
            let mut text = std::mem::take(&mut self.spare);
            let _ = write!(text, "{value:?}");
            self.plain_or_quoted(&text);
            text.clear();
            self.spare = text;
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            let _ = write!(self.message, "{}", Escaped(value));
        } else if self.begin(field.name()) {
            self.plain_or_quoted(value);
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.number(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.number(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.number(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        if value.is_finite() {
            self.number(field, value);
        }
    }

    /// The text of an error may quote what it failed on, so it is never written.
    fn record_error(&mut self, _: &Field, _: &(dyn std::error::Error + 'static)) {
        self.dropped += 1;
    }
}

/// Whether a byte can stand in a line as it is; those of other alphabets are looked at as characters.
fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\'
}

/// Shows a value so that it stays within its quotes and its line.
struct Escaped<T>(T);

impl<T: fmt::Display> fmt::Display for Escaped<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Escaper(f), "{}", self.0)
    }
}

struct Escaper<'a, 'b>(&'a mut fmt::Formatter<'b>);

impl fmt::Write for Escaper<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let is_plain = |c: char| !c.is_control() && c != '"' && c != '\\';
        if text.chars().all(is_plain) {
            return self.0.write_str(text);
        }
        for c in text.chars() {
            match c {
                '"' | '\\' => write!(self.0, "\\{c}")?,
                c if c.is_control() => write!(self.0, "\\u{:04x}", u32::from(c))?,
                c => self.0.write_char(c)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use metrics_exporter_prometheus::PrometheusBuilder;
    use serde_json::{Value, json};
    use tracing::Level as At;
    use tracing_subscriber::prelude::*;

    use super::*;

    /// Runs `act` with a log of its own and returns what was written.
    fn written(format: Format, level: Level, act: impl FnOnce()) -> String {
        let mut config = Config::default();
        config.vault.node = Some("left".to_owned());
        config.log.format = format;
        let (lines, keep) = (Arc::new(Mutex::new(Vec::new())), level);
        let sink: Sink = {
            let lines = Arc::clone(&lines);
            Box::new(move |_, line| lines.lock().unwrap().extend_from_slice(line))
        };
        let layer = Lines::new(&config, sink).with_filter(filter(keep));
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), act);
        let bytes = lines.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_json_line_holds_the_allowed_fields() {
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
    fn a_text_line_stays_one_line() {
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
    fn what_is_not_allowed_never_shows_its_value() {
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
    fn libraries_are_heard_only_in_trouble_and_without_their_words() {
        let lines = written(Format::Text, Level::Trace, || {
            tracing::event!(target: "hyper::proto", At::ERROR, "canary {}", 1);
            tracing::event!(target: "hyper::proto", At::WARN, status = "canary", "m");
            tracing::event!(target: "hyper::proto", At::INFO, "canary");
            tracing::event!(target: "hyper::proto", At::TRACE, "canary");
        });

        assert!(!lines.contains("canary"), "{lines}");
        let rests: Vec<&str> = lines
            .lines()
            .map(|line| line.split_once(' ').unwrap().1)
            .collect();
        let said = "a library reported a problem target=hyper::proto node=left";
        assert_eq!(rests, [format!("ERROR {said}"), format!("WARN  {said}")]);
    }

    #[test]
    fn the_level_decides_what_is_written() {
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
}
