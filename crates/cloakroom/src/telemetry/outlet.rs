//! Where the log leaves the process: lines of ordinary news go out together, bad news at once.
//!
//! A system call for each line costs a busy node as much as the line itself. Nothing waits for longer
//! than a blink, and nothing is lost unless the process is killed.

use std::io::{ErrorKind, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tracing::Level;

/// How long a line may wait for others.
const BLINK: Duration = Duration::from_millis(20);
/// What is written without waiting for more.
const ENOUGH_BYTES: usize = 32 * 1024;

/// What is kept while nobody reads.
const KEPT_BYTES: usize = 1024 * 1024;

/// Takes finished lines, and hands them on.
#[derive(Clone)]
pub(super) struct Outlet(Arc<Shared>);

struct Shared {
    waiting: Mutex<Waiting>,
    has_lines: Condvar,
}

struct Waiting {
    lines: Vec<u8>,
    to: Box<dyn Write + Send>,
}

impl Outlet {
    /// Starts the thread that hands lines on.
    pub(super) fn start(to: Box<dyn Write + Send>) -> std::io::Result<Self> {
        let lines = Vec::with_capacity(2 * ENOUGH_BYTES);
        let shared = Arc::new(Shared {
            waiting: Mutex::new(Waiting { lines, to }),
            has_lines: Condvar::new(),
        });
        let outlet = Self(shared.clone());
        thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || {
                loop {
                    let lines = shared.lock();
                    let is_empty = |waiting: &mut Waiting| waiting.lines.is_empty();
                    let lines = shared.has_lines.wait_while(lines, is_empty);
                    drop(lines);
                    thread::sleep(BLINK);
                    shared.lock().write_out();
                }
            })?;
        Ok(outlet)
    }

    pub(super) fn take(&self, level: Level, line: &[u8]) {
        let mut waiting = self.0.lock();
        let was_empty = waiting.lines.is_empty();
        waiting.lines.extend_from_slice(line);
        if level <= Level::WARN || waiting.lines.len() >= ENOUGH_BYTES {
            waiting.write_out();
        } else if was_empty {
            self.0.has_lines.notify_one();
        }
    }

    /// Hands on what is waiting.
    pub(super) fn flush(&self) {
        self.0.lock().write_out();
    }
}

/// Whoever lets go of it, at the latest when the process ends in good order, has nothing left behind.
impl Drop for Outlet {
    fn drop(&mut self) {
        self.flush();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    /// Writes as much as can be written. What a full pipe does not take waits; beyond `KEPT_BYTES`, and
    /// when nothing can be written at all, it is lost: a log has nowhere to complain.
    fn write_out(&mut self) {
        while !self.lines.is_empty() {
            match self.to.write(&self.lines) {
                Ok(0) => self.lines.clear(),
                Ok(written) => drop(self.lines.drain(..written)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if self.lines.len() > KEPT_BYTES {
                        self.lines.clear();
                    }
                    return;
                }
                Err(_) => self.lines.clear(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    /// Keeps each piece that is written.
    #[derive(Clone, Default)]
    struct Pieces(Arc<Mutex<Vec<String>>>);

    impl Write for Pieces {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let piece = String::from_utf8(bytes.to_vec()).unwrap();
            self.0.lock().unwrap().push(piece);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    impl Pieces {
        fn seen(&self) -> Vec<String> {
            self.0.lock().unwrap().clone()
        }
    }

    fn outlet() -> (Outlet, Pieces) {
        let pieces = Pieces::default();
        let outlet = Outlet::start(Box::new(pieces.clone())).unwrap();
        (outlet, pieces)
    }

    #[test]
    fn ordinary_lines_leave_together_and_soon() {
        let (outlet, pieces) = outlet();
        outlet.take(Level::INFO, b"one\n");
        outlet.take(Level::DEBUG, b"two\n");
        assert_eq!(pieces.seen(), Vec::<String>::new());

        let asked_at = Instant::now();
        while pieces.seen().is_empty() && asked_at.elapsed() < Duration::from_secs(10) {
            thread::sleep(Duration::from_millis(1));
        }

        assert_eq!(pieces.seen(), ["one\ntwo\n"]);
    }

    #[test]
    fn bad_news_leave_at_once_in_their_order() {
        for level in [Level::WARN, Level::ERROR] {
            let (outlet, pieces) = outlet();
            outlet.take(Level::INFO, b"before\n");
            outlet.take(level, b"bad\n");

            assert_eq!(pieces.seen(), ["before\nbad\n"]);
        }
    }

    #[test]
    fn much_leaves_at_once_and_the_rest_at_the_end() {
        let (outlet, pieces) = outlet();
        let long = "x".repeat(ENOUGH_BYTES);
        outlet.take(Level::INFO, long.as_bytes());
        assert_eq!(pieces.seen(), [long]);

        outlet.take(Level::INFO, b"last\n");
        outlet.flush();

        assert_eq!(pieces.seen().last().unwrap(), "last\n");
    }
}
