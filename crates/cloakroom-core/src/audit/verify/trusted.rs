//! Checkpoints that a sink received, to compare the log with.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::path::Path;

use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Line {
    number: i64,
    note: String,
}

/// A checkpoint as one line of a sink file.
pub fn checkpoint_line(number: i64, note: &str) -> String {
    let line = Line {
        number,
        note: note.to_owned(),
    };
    // A number and a string can always be serialized.
    serde_json::to_string(&line).unwrap_or_default()
}

/// Reads the checkpoints of a sink file in their order.
pub struct TrustedCheckpoints {
    lines: Box<dyn Iterator<Item = (i64, String)> + Send>,
    next: Option<(i64, String)>,
    last: Option<i64>,
}

impl TrustedCheckpoints {
    /// Opens a file of the sink. Fails if its first line is not a checkpoint.
    pub fn open(path: &Path) -> io::Result<Self> {
        let lines = BufReader::new(File::open(path)?).lines();
        Self::new(lines.map_while(Result::ok))
    }

    /// Lines of a sink. A line that a crash cut off is skipped, and so are repeated ones.
    pub fn new(lines: impl Iterator<Item = String> + Send + 'static) -> io::Result<Self> {
        let lines = lines.filter_map(|line| {
            let line: Line = serde_json::from_str(&line).ok()?;
            Some((line.number, line.note))
        });
        // Checkpoints are shipped at least once.
        let mut greatest = 0;
        let mut lines = lines.filter(move |(number, _)| {
            let is_new = greatest < *number;
            greatest = greatest.max(*number);
            is_new
        });
        let next = lines.next().ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                "it contains no checkpoint of a sink",
            )
        })?;
        Ok(Self {
            last: Some(next.0),
            next: Some(next),
            lines: Box::new(lines),
        })
    }

    /// The next checkpoint, unless its number is greater than `number`.
    pub(super) fn next_through(&mut self, number: i64) -> Option<(i64, String)> {
        if self.next.as_ref().is_none_or(|next| number < next.0) {
            return None;
        }
        let taken = self.next.take();
        self.next = self.lines.next();
        if let Some((number, _)) = &self.next {
            self.last = self.last.max(Some(*number));
        }
        taken
    }

    /// The greatest number in the file.
    pub(super) fn last_number(&mut self) -> Option<i64> {
        while self.next_through(i64::MAX).is_some() {}
        self.last
    }
}
