//! Tests of buffering and flushing.

use std::time::Instant;

use super::*;

/// Records each write.
#[derive(Clone, Default)]
struct Writes(Arc<Mutex<Vec<String>>>);

impl Write for Writes {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        self.0.lock().unwrap().push(text);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Writes {
    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

fn log_writer() -> (LogWriter, Writes) {
    let writes = Writes::default();
    let log_writer = LogWriter::start(Box::new(writes.clone())).unwrap();
    (log_writer, writes)
}

#[test]
fn info_lines_are_written_together() {
    let (log_writer, writes) = log_writer();
    log_writer.write(Level::INFO, b"one\n");
    log_writer.write(Level::DEBUG, b"two\n");
    assert_eq!(writes.all(), Vec::<String>::new());

    let started_at = Instant::now();
    while writes.all().is_empty() && started_at.elapsed() < Duration::from_secs(10) {
        thread::sleep(Duration::from_millis(1));
    }

    assert_eq!(writes.all(), ["one\ntwo\n"]);
}

#[test]
fn warnings_are_written_immediately_and_in_order() {
    for level in [Level::WARN, Level::ERROR] {
        let (log_writer, writes) = log_writer();
        log_writer.write(Level::INFO, b"before\n");
        log_writer.write(level, b"bad\n");

        assert_eq!(writes.all(), ["before\nbad\n"]);
    }
}

#[test]
fn full_buffers_are_written_immediately_and_the_rest_on_flush() {
    let (log_writer, writes) = log_writer();
    let long = "x".repeat(FLUSH_BYTES);
    log_writer.write(Level::INFO, long.as_bytes());
    assert_eq!(writes.all(), [long]);

    log_writer.write(Level::INFO, b"last\n");
    log_writer.flush();

    assert_eq!(writes.all().last().unwrap(), "last\n");
}
