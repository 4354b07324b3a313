//! Follows the structure of a CSV file while the parser reads it: counts lines, and rejects what the parser would misread.
//!
//! The parser counts a line when it reads `\n`, but ends a record at the `\r` before it, and skips empty lines only when it reads
//! the next record. So its numbers are not those of an editor.

use std::collections::VecDeque;
use std::io::{self, Read};

use super::input::LINE_BYTES_MAX;

const BYTE_ORDER_MARK: [u8; 3] = [0xef, 0xbb, 0xbf];

/// Position in the grammar, as the parser has it with its default settings.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    RecordStart,
    FieldStart,
    Unquoted,
    Quoted,
    /// After a quote in a quoted field, which ends the field or is the first of two.
    QuoteInQuoted,
}

/// Why the file cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{reason}")]
pub(super) struct Malformed {
    pub line: u64,
    pub reason: String,
}

/// The input of the parser.
pub(super) struct CsvInput<R> {
    input: R,
    state: State,
    has_begun: bool,
    /// The current line, counted from one.
    line: u64,
    /// The record ended with `\r`, which `\n` must follow.
    is_after_return: bool,
    /// The first lines of records that the parser has not returned yet.
    starts: VecDeque<u64>,
    /// Bytes of the current record so far.
    record_bytes: u64,
    /// The line of the last quote that opened a field.
    quote_line: u64,
}

impl<R: Read> CsvInput<R> {
    pub(super) fn new(input: R) -> Self {
        Self {
            input,
            state: State::RecordStart,
            has_begun: false,
            line: 1,
            is_after_return: false,
            starts: VecDeque::new(),
            record_bytes: 0,
            quote_line: 1,
        }
    }

    /// The line where the next record that the parser returns begins.
    pub(super) fn next_start(&mut self) -> Option<u64> {
        self.starts.pop_front()
    }

    fn too_large(&self) -> Malformed {
        match self.state {
            State::Quoted => Malformed {
                line: self.quote_line,
                reason: format!(
                    "the quote that opens here is not closed within {LINE_BYTES_MAX} bytes"
                ),
            },
            _ => Malformed {
                line: self.line,
                reason: format!("the record has more than {LINE_BYTES_MAX} bytes"),
            },
        }
    }

    /// Fails if the input ends within a quoted field, which would contain all records after the quote.
    fn end(&self) -> Result<(), Malformed> {
        match self.state {
            State::Quoted => Err(Malformed {
                line: self.quote_line,
                reason: "the quote that opens here is not closed".to_owned(),
            }),
            _ => Ok(()),
        }
    }

    fn follow(&mut self, byte: u8) -> Result<(), Malformed> {
        let is_end = matches!(byte, b'\r' | b'\n');
        if self.is_after_return && !is_end {
            return Err(Malformed {
                line: self.line,
                reason: "it ends with a carriage return alone; lines must end with \\n or \\r\\n"
                    .to_owned(),
            });
        }
        if self.state == State::RecordStart && !is_end {
            self.starts.push_back(self.line);
            self.state = State::FieldStart;
        }
        self.record_bytes += 1;
        if self.record_bytes > LINE_BYTES_MAX {
            return Err(self.too_large());
        }
        self.state = match (self.state, byte) {
            (State::FieldStart, b'"') => {
                self.quote_line = self.line;
                State::Quoted
            }
            (State::QuoteInQuoted, b'"') => State::Quoted,
            (State::Quoted, b'"') => State::QuoteInQuoted,
            (State::Quoted, _) => State::Quoted,
            (_, b'\r' | b'\n') => State::RecordStart,
            (_, b',') => State::FieldStart,
            _ => State::Unquoted,
        };
        let has_ended = self.state == State::RecordStart;
        if has_ended {
            self.record_bytes = 0;
        }
        self.is_after_return = byte == b'\r' && has_ended;
        self.line += u64::from(byte == b'\n');
        Ok(())
    }
}

impl<R: Read> Read for CsvInput<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.input.read(buffer)?;
        if length == 0 && !buffer.is_empty() {
            self.end().map_err(invalid)?;
        }
        let mut bytes = &buffer[..length];
        if !self.has_begun {
            self.has_begun = true;
            bytes = bytes.strip_prefix(&BYTE_ORDER_MARK).unwrap_or(bytes);
        }
        for byte in bytes {
            self.follow(*byte).map_err(invalid)?;
        }
        Ok(length)
    }
}

fn invalid(error: Malformed) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All texts of up to seven of these characters.
    fn texts() -> Vec<String> {
        let mut texts = vec![String::new()];
        let mut first = 0;
        for _ in 0..7 {
            let last = texts.len();
            for index in first..last {
                for part in ["\"", ",", "\n", "\r\n", "a"] {
                    texts.push(format!("{}{part}", texts[index]));
                }
            }
            first = last;
        }
        texts
    }

    #[test]
    fn records_begin_where_the_parser_finds_them() {
        for text in texts() {
            let mut reader = csv::ReaderBuilder::new()
                .has_headers(false)
                .flexible(true)
                .from_reader(CsvInput::new(text.as_bytes()));
            let mut record = csv::ByteRecord::new();
            // Fails at the end if a quote is not closed.
            while reader.read_byte_record(&mut record).unwrap_or_default() {
                let rest = &text[usize::try_from(record.position().unwrap().byte()).unwrap()..];
                let skipped = rest.len() - rest.trim_start_matches(['\r', '\n']).len();
                let before = &text[..text.len() - rest.len() + skipped];
                let line = 1 + before.matches('\n').count() as u64;
                assert_eq!(reader.get_mut().next_start(), Some(line), "{text:?}");
            }
            let is_open = reader.get_ref().end().is_err();
            assert_eq!(reader.get_mut().next_start().is_some(), is_open, "{text:?}");
        }
    }
}
