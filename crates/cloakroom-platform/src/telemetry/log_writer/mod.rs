//! Buffered log output. Warnings and errors are written immediately, other lines within 20 ms.
//!
//! A system call per line would cost a busy node as much as formatting the line. Buffered lines are lost only if the
//! process is killed, or as described at [`Buffer::write_out`].

use std::io::{ErrorKind, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tracing::Level;

use super::catalog;

/// Maximum time that a line stays in the buffer.
const FLUSH_INTERVAL: Duration = Duration::from_millis(20);
/// Size from which the buffer is written without delay.
const FLUSH_BYTES: usize = 32 * 1024;

/// Maximum size of the buffer while the output is blocked.
const BUFFER_BYTES_MAX: usize = 1024 * 1024;

/// Buffers complete lines and writes them to the output.
#[derive(Clone)]
pub(super) struct LogWriter(Arc<Shared>);

struct Shared {
    buffer: Mutex<Buffer>,
    has_lines: Condvar,
}

struct Buffer {
    lines: Vec<u8>,
    output: Box<dyn Write + Send>,
}

impl LogWriter {
    /// Starts the thread that writes buffered lines.
    pub(super) fn start(output: Box<dyn Write + Send>) -> std::io::Result<Self> {
        let lines = Vec::with_capacity(2 * FLUSH_BYTES);
        let shared = Arc::new(Shared {
            buffer: Mutex::new(Buffer { lines, output }),
            has_lines: Condvar::new(),
        });
        let log_writer = Self(shared.clone());
        thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || {
                loop {
                    let lines = shared.lock();
                    let is_empty = |buffer: &mut Buffer| buffer.lines.is_empty();
                    let lines = shared.has_lines.wait_while(lines, is_empty);
                    drop(lines);
                    thread::sleep(FLUSH_INTERVAL);
                    shared.lock().write_out();
                }
            })?;
        Ok(log_writer)
    }

    pub(super) fn write(&self, level: Level, line: &[u8]) {
        let mut buffer = self.0.lock();
        let was_empty = buffer.lines.is_empty();
        buffer.lines.extend_from_slice(line);
        if level <= Level::WARN || buffer.lines.len() >= FLUSH_BYTES {
            buffer.write_out();
        } else if was_empty {
            self.0.has_lines.notify_one();
        }
    }

    /// Writes all buffered lines.
    pub(super) fn flush(&self) {
        self.0.lock().write_out();
    }
}

/// Flushes when any handle is dropped, at the latest at a regular exit of the process.
impl Drop for LogWriter {
    fn drop(&mut self) {
        self.flush();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Buffer> {
        self.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Buffer {
    /// Writes as much as possible. Lines that a full pipe does not accept stay buffered. They are dropped beyond
    /// `BUFFER_BYTES_MAX`, and after any other error, which the log cannot report.
    fn write_out(&mut self) {
        while !self.lines.is_empty() {
            match self.output.write(&self.lines) {
                Ok(0) => self.discard(),
                Ok(written) => drop(self.lines.drain(..written)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if self.lines.len() > BUFFER_BYTES_MAX {
                        self.discard();
                    }
                    return;
                }
                Err(_) => self.discard(),
            }
        }
    }

    fn discard(&mut self) {
        let count = self.lines.iter().filter(|byte| **byte == b'\n').count();
        catalog::LOG_LINES_DROPPED.increment(count as u64);
        self.lines.clear();
    }
}

#[cfg(test)]
mod tests;
