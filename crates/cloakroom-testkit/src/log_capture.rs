//! Captured log output of a test, with every field, level and target.

use std::fmt::{Debug, Write as _};
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};

/// Log lines of the current thread, captured until this value is dropped.
pub struct LogCapture {
    text: Arc<Mutex<String>>,
    _capturing: DefaultGuard,
}

impl LogCapture {
    /// Starts capturing. Tests run on one thread, so this includes everything that their vaults log.
    pub fn start() -> Self {
        let text = Arc::<Mutex<String>>::default();
        let subscriber = tracing_subscriber::registry().with(Capture(text.clone()));
        Self {
            text,
            _capturing: tracing::subscriber::set_default(subscriber),
        }
    }

    pub fn text(&self) -> String {
        self.text.lock().unwrap().clone()
    }

    /// Number of lines that contain `words`.
    pub fn count(&self, words: &str) -> usize {
        let text = self.text();
        text.lines().filter(|line| line.contains(words)).count()
    }
}

struct Capture(Arc<Mutex<String>>);

impl<S: Subscriber> Layer<S> for Capture {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        let mut text = self.0.lock().unwrap();
        writeln!(text, "{}{}", event.metadata().target(), line.0).unwrap();
    }
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, " {}={value:?}", field.name()).unwrap();
    }
}
