//! Reads the input in batches of lines: JSON lines or CSV, in clear or as JWEs. Data in clear is only in memory.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::sync::Arc;

use cloakroom_crypto::{Sensitive, sha256};

use super::batch::StoredBatch;
use super::columns::Columns;
use super::csv_input::{CsvInput, Malformed};
use super::process::Context;
use super::{BatchReport, Error, Format};
use crate::transfer::export::Chunk;
use crate::transfer::{PrivateKey, jwe};

/// Lines of a batch: enough that the commit is a small part of its cost.
const BATCH_LINES: usize = 500;
/// A batch ends early when it has this size.
const BATCH_BYTES: usize = 4 * 1024 * 1024;
/// A token has at most 1 MiB of data, and its other attributes are smaller.
pub(super) const LINE_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// A JWE can contain a whole file.
const JWE_BYTES_MAX: u64 = 512 * 1024 * 1024;
const BUFFER_BYTES: usize = 256 * 1024;

/// One line of JSON, in the shape of a request that creates a token.
pub(super) struct Record {
    /// From this, ids and progress are derived. Of CSV, it is the parser's number, which may be lower than that of an editor.
    pub line: u64,
    /// The line where it begins, as an editor numbers lines. Reports have this one.
    pub shown_line: u64,
    pub text: Sensitive<String>,
    /// Why it is rejected as it is.
    pub problem: Option<&'static str>,
}

/// Consecutive lines.
pub(super) struct Batch {
    pub records: Vec<Record>,
    /// The progress of an earlier run that contains these lines.
    pub known: Option<(StoredBatch, Vec<u8>)>,
}

impl Batch {
    pub(super) fn first_line(&self) -> u64 {
        self.records.first().map_or(0, |record| record.line)
    }

    /// The first line, for messages.
    pub(super) fn shown_line(&self) -> u64 {
        self.records.first().map_or(0, |record| record.shown_line)
    }

    /// Numbers the lines of a report as an editor does.
    pub(super) fn number_lines(&self, report: &mut BatchReport) {
        let rejected = report.rejected.iter_mut().map(|it| &mut it.line);
        let mapped = report.mapped.iter_mut().map(|it| &mut it.line);
        for line in rejected.chain(mapped) {
            let found = self
                .records
                .binary_search_by_key(line, |record| record.line);
            if let Ok(index) = found {
                *line = self.records[index].shown_line;
            }
        }
    }
}

/// The batches of an input.
pub(super) struct Records<R: Read> {
    lines: Lines<R>,
    /// Read, but not part of a batch yet.
    next: Option<Record>,
    known: BTreeMap<u64, (StoredBatch, Vec<u8>)>,
    /// Lines that were read, and how many there must be.
    count: u64,
    expected: Option<u64>,
}

impl<R: Read> Records<R> {
    pub(super) fn new(
        input: R,
        context: Arc<Context>,
        known: BTreeMap<u64, (StoredBatch, Vec<u8>)>,
    ) -> Self {
        let input = BufReader::with_capacity(
            BUFFER_BYTES,
            Source {
                input,
                context: context.clone(),
                opened: Opened::new(),
            },
        );
        let expected = context.options.lines;
        let lines = match &context.options.format {
            Format::JsonLines => Lines::Json { input, line: 0 },
            Format::Csv(_) => Lines::Csv {
                reader: Box::new(csv_reader(input)),
                columns: None,
                context,
            },
        };
        Self {
            lines,
            next: None,
            known,
            count: 0,
            expected,
        }
    }

    fn read_batch(&mut self) -> Result<Option<Batch>, Error> {
        let first = match self.next.take() {
            Some(record) => record,
            None => match self.read()? {
                Some(record) => record,
                None => return Ok(None),
            },
        };
        let known = self.known.remove(&first.line);
        let limit = known.as_ref().map_or(BATCH_LINES, |(known, _)| {
            usize::try_from(known.lines).unwrap_or_default()
        });
        let mut bytes = first.text.expose().len();
        let mut records = vec![first];
        while records.len() < limit {
            let Some(record) = self.read()? else {
                break;
            };
            let is_full = known.is_none() && bytes >= BATCH_BYTES;
            if is_full || self.known.contains_key(&record.line) {
                self.next = Some(record);
                break;
            }
            bytes += record.text.expose().len();
            records.push(record);
        }
        Ok(Some(Batch { records, known }))
    }

    /// Reads the next line. Fails if the line that begins a known batch is not among those read: then the input is
    /// another one, of which nothing may be committed.
    fn read(&mut self) -> Result<Option<Record>, Error> {
        let record = self.lines.read()?;
        self.count += u64::from(record.is_some());
        self.check_count(record.is_none())?;
        let known = self.known.first_key_value().map(|(line, _)| *line);
        match (&record, known) {
            (Some(record), Some(line)) if line < record.line => Err(Error::Differs { line }),
            (None, Some(line)) => Err(Error::Shorter { line }),
            _ => Ok(record),
        }
    }

    /// Fails before the batch with the last line is complete, so that it is not committed.
    fn check_count(&self, is_end: bool) -> Result<(), Error> {
        let found = self.count;
        match self.expected {
            Some(expected) if found > expected => Err(Error::Longer { expected }),
            Some(expected) if is_end && found < expected => {
                Err(Error::Truncated { expected, found })
            }
            _ => Ok(()),
        }
    }
}

impl<R: Read> Iterator for Records<R> {
    type Item = Result<Batch, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read_batch().transpose()
    }
}

/// Lines by format.
enum Lines<R: Read> {
    Json {
        input: BufReader<Source<R>>,
        /// Lines read, counted from one.
        line: u64,
    },
    Csv {
        reader: Box<csv::Reader<CsvInput<BufReader<Source<R>>>>>,
        /// From the header.
        columns: Option<Columns>,
        context: Arc<Context>,
    },
}

impl<R: Read> Lines<R> {
    /// Reads the next line that is not empty.
    fn read(&mut self) -> Result<Option<Record>, Error> {
        match self {
            Self::Json { input, line } => read_json_line(input, line),
            Self::Csv {
                reader,
                columns,
                context,
            } => read_csv_record(reader, columns, context),
        }
    }
}

fn read_json_line(
    input: &mut BufReader<impl Read>,
    line: &mut u64,
) -> Result<Option<Record>, Error> {
    loop {
        let mut bytes = Vec::new();
        *line += 1;
        let failed = |error: std::io::Error| unreadable(*line, &error);
        let read = input
            .by_ref()
            .take(LINE_BYTES_MAX)
            .read_until(b'\n', &mut bytes);
        if read.map_err(failed)? == 0 {
            return Ok(None);
        }
        if bytes.len() as u64 == LINE_BYTES_MAX && bytes.last() != Some(&b'\n') {
            return Err(Error::Input {
                line: *line,
                reason: format!("it has more than {LINE_BYTES_MAX} bytes"),
            });
        }
        if bytes.trim_ascii().is_empty() {
            continue;
        }
        let (text, problem) = match String::from_utf8(bytes) {
            Ok(text) => (text, None),
            Err(error) => {
                let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
                (text, Some("the line is not UTF-8"))
            }
        };
        return Ok(Some(Record {
            line: *line,
            shown_line: *line,
            text: Sensitive::new(text),
            problem,
        }));
    }
}

fn csv_reader<R: Read>(input: R) -> csv::Reader<CsvInput<R>> {
    csv::ReaderBuilder::new()
        .trim(csv::Trim::All)
        .flexible(true)
        .from_reader(CsvInput::new(input))
}

fn read_csv_record<R: Read>(
    reader: &mut csv::Reader<CsvInput<R>>,
    columns: &mut Option<Columns>,
    context: &Context,
) -> Result<Option<Record>, Error> {
    if columns.is_none() {
        let Format::Csv(map) = &context.options.format else {
            return Ok(None);
        };
        let header = reader.headers().cloned();
        let line = reader.get_mut().next_start().unwrap_or(1);
        let header = header.map_err(|error| malformed(line, error))?;
        *columns = Some(Columns::new(map, header.iter()).map_err(Error::Columns)?);
    }
    let mut record = csv::StringRecord::new();
    let read = reader.read_record(&mut record);
    let line = record.position().map_or(0, csv::Position::line);
    let shown_line = reader.get_mut().next_start().unwrap_or(line);
    let is_read = read.map_err(|error| malformed(shown_line, error))?;
    let (true, Some(columns)) = (is_read, columns) else {
        return Ok(None);
    };
    let is_complete = record.len() == columns.count();
    Ok(Some(Record {
        line,
        shown_line,
        text: Sensitive::new(columns.to_json(record.iter())),
        problem: (!is_complete).then_some("the line has another number of columns than the header"),
    }))
}

/// The error of the parser, without the record, which it may quote.
fn malformed(line: u64, error: csv::Error) -> Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => unreadable(line, &error),
        _ => Error::Input {
            line,
            reason: "it is not a CSV record in UTF-8".to_owned(),
        },
    }
}

fn unreadable(line: u64, error: &std::io::Error) -> Error {
    let inner = error.get_ref();
    if let Some(error) = inner.and_then(|error| error.downcast_ref::<Malformed>()) {
        let (line, reason) = (error.line, error.reason.clone());
        return Error::Input { line, reason };
    }
    let reason = match error.kind() {
        // From `Source`, which names the JWE.
        std::io::ErrorKind::InvalidData => error.to_string(),
        kind => format!("the input cannot be read: {kind}"),
    };
    Error::Input { line, reason }
}

/// The input in clear: as it is, or decrypted JWE by JWE, in memory.
struct Source<R: Read> {
    input: R,
    context: Arc<Context>,
    opened: Opened,
}

/// State of an encrypted input.
struct Opened {
    /// Read, but not decrypted yet.
    encrypted: Vec<u8>,
    is_finished: bool,
    clear: Sensitive<Vec<u8>>,
    position: usize,
    /// JWEs decrypted so far.
    count: u64,
}

impl<R: Read> Read for Source<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let Some(key) = &self.context.options.key else {
            return self.input.read(buffer);
        };
        let (opened, chunks) = (&mut self.opened, self.context.options.chunks.as_deref());
        while opened.position == opened.clear.expose().len() {
            match next_jwe(&mut self.input, opened)? {
                Some(text) => {
                    opened.check(chunks, Some(text.trim()))?;
                    opened.decrypt(key, text.trim())?;
                }
                None => {
                    opened.check(chunks, None)?;
                    return Ok(0);
                }
            }
        }
        let rest = &opened.clear.expose()[opened.position..];
        let length = rest.len().min(buffer.len());
        buffer[..length].copy_from_slice(&rest[..length]);
        opened.position += length;
        Ok(length)
    }
}

impl Opened {
    fn new() -> Self {
        Self {
            encrypted: Vec::new(),
            is_finished: false,
            clear: Sensitive::new(Vec::new()),
            position: 0,
            count: 0,
        }
    }

    /// Fails if the next JWE, or the end of the input, is not what the manifest has.
    fn check(&self, chunks: Option<&[Chunk]>, text: Option<&str>) -> std::io::Result<()> {
        let Some(chunks) = chunks else {
            return Ok(());
        };
        let index = usize::try_from(self.count).unwrap_or(usize::MAX);
        let expected = chunks.get(index).map(|chunk| chunk.sha256.as_str());
        let found = text.map(|text| hex::encode(sha256(text.as_bytes())));
        if found.as_deref() == expected {
            return Ok(());
        }
        let reason = format!(
            "JWE {} differs from the manifest; the file was changed after it was verified",
            self.count + 1
        );
        Err(std::io::Error::new(std::io::ErrorKind::InvalidData, reason))
    }

    fn decrypt(&mut self, key: &PrivateKey, text: &str) -> std::io::Result<()> {
        self.count += 1;
        let mut clear = jwe::decrypt(key, text).ok_or_else(|| {
            let reason = format!(
                "JWE {} cannot be decrypted: it must be a compact JWE (ECDH-ES on X25519, A256GCM) for this key",
                self.count
            );
            std::io::Error::new(std::io::ErrorKind::InvalidData, reason)
        })?;
        if clear.expose().last() != Some(&b'\n') {
            clear.expose_mut().push(b'\n');
        }
        self.clear = clear;
        self.position = 0;
        Ok(())
    }
}

/// Reads the next line that is not empty.
fn next_jwe(input: &mut impl Read, opened: &mut Opened) -> std::io::Result<Option<String>> {
    let mut scanned = 0;
    loop {
        let end = opened.encrypted[scanned..]
            .iter()
            .position(|byte| *byte == b'\n');
        let end = end.map(|end| scanned + end + 1);
        scanned = opened.encrypted.len();
        let end = match (end, opened.is_finished) {
            (Some(end), _) => end,
            (None, true) if opened.encrypted.is_empty() => return Ok(None),
            (None, true) => opened.encrypted.len(),
            (None, false) => {
                let limit = BUFFER_BYTES as u64;
                let read = input.take(limit).read_to_end(&mut opened.encrypted)?;
                opened.is_finished = read == 0;
                if opened.encrypted.len() as u64 > JWE_BYTES_MAX {
                    let reason = "a JWE is too large; encrypt fewer tokens in each";
                    return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, reason));
                }
                continue;
            }
        };
        let line: Vec<u8> = opened.encrypted.drain(..end).collect();
        scanned = 0;
        let text = String::from_utf8_lossy(&line);
        if !text.trim().is_empty() {
            return Ok(Some(text.into_owned()));
        }
    }
}
