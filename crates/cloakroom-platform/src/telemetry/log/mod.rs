//! The log: one line per event, with allowlisted fields only.

use std::fmt::{self, Write as _};

use tracing::field::{Field, Visit};
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, filter_fn};
use tracing_subscriber::layer::{Context, Filter};

use super::{catalog, fields};
use crate::config::{Config, Format, Level};

/// Receives complete lines.
pub(super) type Sink = Box<dyn Fn(tracing::Level, &[u8]) + Send + Sync>;

/// Formats events as lines and passes each to `sink` in one call.
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

/// Passes events of this workspace at `level` or more severe, and of libraries warnings and errors only.
pub(super) fn filter<S>(level: Level) -> impl Filter<S> {
    let level = match level {
        Level::Error => LevelFilter::ERROR,
        Level::Warn => LevelFilter::WARN,
        Level::Info => LevelFilter::INFO,
        Level::Debug => LevelFilter::DEBUG,
        Level::Trace => LevelFilter::TRACE,
    };
    filter_fn(move |metadata: &Metadata<'_>| {
        let is_warning = *metadata.level() <= tracing::Level::WARN;
        let is_allowed = is_warning || fields::is_ours(metadata);
        metadata.is_event() && *metadata.level() <= level && is_allowed
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
            catalog::LOG_FIELDS_DROPPED.increment(line.dropped);
        }
        let level = *metadata.level();
        (self.sink)(level, line.finish(level, &self.node).as_bytes());
    }
}

/// A line under construction.
struct Line {
    format: Format,
    message: String,
    fields: String,
    /// Reusable buffer for formatting a value before escaping it.
    buffer: String,
    dropped: u64,
}

impl Line {
    fn new(format: Format) -> Self {
        Self {
            format,
            message: String::new(),
            fields: String::with_capacity(512),
            buffer: String::with_capacity(64),
            dropped: 0,
        }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "log lines use the clock of the node"
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
        // Writing to a `String` cannot fail.
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

    /// Writes the name of an allowed field and returns true. Counts and omits any other.
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

    /// Fast path for text that needs no escaping, which is the common case.
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
            let mut text = std::mem::take(&mut self.buffer);
            let _ = write!(text, "{value:?}");
            self.plain_or_quoted(&text);
            text.clear();
            self.buffer = text;
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

    /// Omits errors: their text may quote the data that caused them.
    fn record_error(&mut self, _: &Field, _: &(dyn std::error::Error + 'static)) {
        self.dropped += 1;
    }
}

/// Whether a byte needs no escaping. Non-ASCII text is checked by character instead.
fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\'
}

/// Escapes quotes, backslashes and control characters, so that a value cannot break out of its quotes or its line.
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
mod tests;
