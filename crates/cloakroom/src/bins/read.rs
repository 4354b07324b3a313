//! Reading the operator's file: CSV, JSON or Parquet, one row at a time.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read};
use std::ops::ControlFlow;
use std::path::PathBuf;

use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::Field;
use serde::de::{DeserializeSeed, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::compile::Draft;
use super::row::{Cells, Column, Row};
use super::{Error, Problem, Progress, Table};

/// A file of the operator's, and how to read it.
#[derive(Clone, Debug)]
pub struct BinFile {
    pub path: PathBuf,
    pub format: Format,
    /// Whole numbers are prefixes that were filled up with zeros and nines.
    pub is_padded: bool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Format {
    Csv,
    /// One array of objects, or one object per line.
    Json,
    Parquet,
}

impl Format {
    /// The format that a file's name tells.
    pub fn of(path: &std::path::Path) -> Result<Self, Error> {
        let extension = path.extension().and_then(|extension| extension.to_str());
        match extension.map(str::to_ascii_lowercase).as_deref() {
            Some("csv") => Ok(Self::Csv),
            Some("json" | "jsonl" | "ndjson") => Ok(Self::Json),
            Some("parquet") => Ok(Self::Parquet),
            _ => Err(Error::UnknownFormat(path.display().to_string())),
        }
    }
}

impl BinFile {
    /// The file's name without its folder.
    pub fn name(&self) -> String {
        let name = self.path.file_name().unwrap_or(self.path.as_os_str());
        name.to_string_lossy().into_owned()
    }

    fn unreadable(&self, reason: impl ToString) -> Error {
        Error::Unreadable {
            file: self.name(),
            reason: reason.to_string(),
        }
    }

    fn refused(&self, problems: Vec<Problem>) -> Error {
        Error::Refused {
            file: self.name(),
            problems,
        }
    }
}

/// Reads, checks and compiles a whole file.
pub fn read(file: &BinFile, tell: &mut (dyn FnMut(Progress) + Send)) -> Result<Table, Error> {
    let opened = File::open(&file.path).map_err(|error| file.unreadable(error.kind()))?;
    let total = opened.metadata().map_or(0, |metadata| metadata.len());
    let mut rows = Rows {
        draft: Draft::default(),
        cells: Cells::default(),
        problems: Vec::new(),
        failure: None,
        count: 0,
        is_padded: file.is_padded,
        total,
        tell,
    };
    match file.format {
        Format::Csv => read_csv(file, opened, &mut rows),
        Format::Json => read_json(file, opened, &mut rows),
        Format::Parquet => read_parquet(file, opened, &mut rows),
    }?;
    if let Some(failure) = rows.failure {
        return Err(failure);
    }
    if rows.count == 0 && rows.problems.is_empty() {
        rows.problems.push(Problem::of_file("holds no rows"));
    }
    if !rows.problems.is_empty() {
        return Err(file.refused(rows.problems));
    }
    (rows.tell)(Progress::Compiling { rows: rows.count });
    rows.draft
        .finish()
        .map_err(|problems| file.refused(problems))
}

/// Where rows of every format end up.
struct Rows<'a> {
    draft: Draft,
    cells: Cells,
    problems: Vec<Problem>,
    failure: Option<Error>,
    count: u64,
    is_padded: bool,
    total: u64,
    tell: &'a mut (dyn FnMut(Progress) + Send),
}

const ROWS_PER_NEWS: u64 = 20_000;

impl Rows<'_> {
    /// Begins the next row with empty cells.
    fn next(&mut self) -> &mut Cells {
        self.count += 1;
        self.cells.clear();
        &mut self.cells
    }

    /// Checks and keeps the row whose cells were set; `done` is how far into the file that is.
    fn keep(&mut self, done: u64) -> ControlFlow<()> {
        match Row::check(&self.cells, self.is_padded) {
            Ok(row) => self.failure = self.draft.add(self.count, row).err(),
            Err(broken) => {
                let row = self.count;
                let problems = broken
                    .into_iter()
                    .map(|(column, rule)| Problem::of_cell(row, column, rule));
                self.problems.extend(problems);
            }
        }
        if self.count.is_multiple_of(ROWS_PER_NEWS) {
            (self.tell)(Progress::Reading {
                rows: self.count,
                done,
                total: self.total,
            });
        }
        self.go_on()
    }

    /// Notes what is wrong with the row as a whole.
    fn complain(&mut self, rule: impl Into<String>) -> ControlFlow<()> {
        self.problems.push(Problem::of_row(self.count, rule));
        self.go_on()
    }

    fn go_on(&mut self) -> ControlFlow<()> {
        if self.failure.is_some() || self.problems.len() >= Problem::MAX {
            self.problems.truncate(Problem::MAX);
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}

/// Finds the column of each name, or tells which names are none.
fn columns<'a>(names: impl Iterator<Item = &'a str>) -> Result<Vec<Column>, Vec<Problem>> {
    let mut columns = Vec::new();
    let mut problems = Vec::new();
    for (name, place) in names.zip(1..) {
        match Column::parse(name.trim()) {
            Some(column) if columns.contains(&column) => {
                let rule = format!("column {} is there twice", column.name());
                problems.push(Problem::of_file(rule));
            }
            Some(column) => columns.push(column),
            None => problems.push(Problem::of_file(format!(
                "column {place} has a name that is not known; known are {}",
                Column::ALL.map(Column::name).join(", ")
            ))),
        }
    }
    if problems.is_empty() && !columns.contains(&Column::Low) {
        problems.push(Problem::of_file("the column low is missing"));
    }
    problems.truncate(Problem::MAX);
    if problems.is_empty() {
        Ok(columns)
    } else {
        Err(problems)
    }
}

fn read_csv(file: &BinFile, opened: File, rows: &mut Rows<'_>) -> Result<(), Error> {
    // The reader looks at the lengths of rows itself, and its message would not say ours.
    let mut reader = csv::ReaderBuilder::new()
        .flexible(true)
        .from_reader(BufReader::new(opened));
    let header = reader
        .headers()
        .map_err(|error| csv_failure(file, &error))?;
    // Spreadsheet programs put a mark in front of the first name.
    let names = header
        .iter()
        .map(|name| name.trim_start_matches('\u{feff}'));
    let columns = columns(names).map_err(|problems| file.refused(problems))?;
    let mut record = csv::StringRecord::new();
    loop {
        let is_read = reader.read_record(&mut record);
        if matches!(is_read, Ok(false)) {
            return Ok(());
        }
        let cells = rows.next();
        let flow = match is_read {
            Err(error) if matches!(error.kind(), csv::ErrorKind::Utf8 { .. }) => {
                rows.complain("must be UTF-8")
            }
            Err(error) => return Err(csv_failure(file, &error)),
            Ok(_) if record.len() != columns.len() => {
                rows.complain("must have as many cells as the header")
            }
            Ok(_) => {
                for (column, text) in columns.iter().zip(&record) {
                    cells.set(*column, text);
                }
                rows.keep(reader.position().byte())
            }
        };
        if flow.is_break() {
            return Ok(());
        }
    }
}

fn csv_failure(file: &BinFile, error: &csv::Error) -> Error {
    match error.kind() {
        csv::ErrorKind::Io(error) => file.unreadable(error.kind()),
        csv::ErrorKind::Utf8 { .. } => {
            file.refused(vec![Problem::of_file("the header must be UTF-8")])
        }
        _ => file.unreadable("it is not CSV with a header"),
    }
}

/// Counts what was read through it.
struct Counted<R> {
    inner: R,
    bytes: std::rc::Rc<std::cell::Cell<u64>>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.bytes.set(self.bytes.get() + count as u64);
        Ok(count)
    }
}

fn read_json(file: &BinFile, opened: File, rows: &mut Rows<'_>) -> Result<(), Error> {
    let bytes = std::rc::Rc::new(std::cell::Cell::new(0));
    let mut reader = BufReader::new(Counted {
        inner: opened,
        bytes: bytes.clone(),
    });
    let start = reader
        .fill_buf()
        .map_err(|error| file.unreadable(error.kind()))?;
    let first = start.iter().find(|byte| !byte.is_ascii_whitespace());
    let is_array = first == Some(&b'[');
    let mut take = |value| take_object(rows, value, bytes.get());
    let result = if is_array {
        let mut parser = serde_json::Deserializer::from_reader(reader);
        let elements = Elements { take: &mut take };
        elements
            .deserialize(&mut parser)
            .and_then(|flow| match flow {
                ControlFlow::Continue(()) => parser.end(),
                ControlFlow::Break(()) => Ok(()),
            })
    } else {
        let mut values = serde_json::Deserializer::from_reader(reader).into_iter::<Value>();
        values
            .try_for_each(|value| match value.map(&mut take) {
                Ok(ControlFlow::Continue(())) => ControlFlow::Continue(()),
                Ok(ControlFlow::Break(())) => ControlFlow::Break(Ok(())),
                Err(error) => ControlFlow::Break(Err(error)),
            })
            .break_value()
            .unwrap_or(Ok(()))
    };
    match result {
        Err(_) if rows.go_on().is_break() => Ok(()),
        Err(error) if error.is_io() => Err(file.unreadable("its end was not reached")),
        // Only the place: the parser's words may quote the text.
        Err(error) => {
            let rule = format!("is not JSON (line {})", error.line());
            rows.problems.push(Problem::of_row(rows.count + 1, rule));
            Ok(())
        }
        Ok(()) => Ok(()),
    }
}

/// The elements of an array, given out one by one instead of being collected.
struct Elements<'a> {
    take: &'a mut dyn FnMut(Value) -> ControlFlow<()>,
}

impl<'de> DeserializeSeed<'de> for Elements<'_> {
    type Value = ControlFlow<()>;

    fn deserialize<D: serde::Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<ControlFlow<()>, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Elements<'_> {
    type Value = ControlFlow<()>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an array of objects")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<ControlFlow<()>, A::Error> {
        while let Some(value) = elements.next_element()? {
            if (self.take)(value).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

fn take_object(rows: &mut Rows<'_>, value: Value, done: u64) -> ControlFlow<()> {
    let cells = rows.next();
    let Value::Object(members) = value else {
        return rows.complain("must be an object");
    };
    match set_members(cells, &members) {
        Ok(()) => rows.keep(done),
        Err(rule) => rows.complain(rule),
    }
}

fn set_members(cells: &mut Cells, members: &Map<String, Value>) -> Result<(), String> {
    for (name, value) in members {
        let Some(column) = Column::parse(name) else {
            let known = Column::ALL.map(Column::name).join(", ");
            return Err(format!("has a member that is not known; known are {known}"));
        };
        match value {
            Value::Null => {}
            Value::String(text) => cells.set(column, text),
            Value::Bool(_) | Value::Number(_) => cells.set(column, &value.to_string()),
            Value::Array(_) if column == Column::Additional => {
                cells.set(column, &value.to_string());
            }
            Value::Array(_) | Value::Object(_) => {
                return Err(format!("has no plain value in {}", column.name()));
            }
        }
    }
    Ok(())
}

fn read_parquet(file: &BinFile, opened: File, rows: &mut Rows<'_>) -> Result<(), Error> {
    // The reader's words may quote what it read.
    let unreadable = |_| file.unreadable("it is not Parquet, or packed otherwise than by Snappy");
    let reader = SerializedFileReader::new(opened).map_err(unreadable)?;
    let metadata = reader.metadata().file_metadata();
    rows.total = u64::try_from(metadata.num_rows()).unwrap_or_default();
    let fields = metadata.schema_descr().root_schema().get_fields();
    let columns = columns(fields.iter().map(|field| field.name()))
        .map_err(|problems| file.refused(problems))?;
    for row in reader.get_row_iter(None).map_err(unreadable)? {
        let row = row.map_err(unreadable)?;
        let cells = rows.next();
        let mut rule = None;
        for (column, (_, field)) in columns.iter().zip(row.get_column_iter()) {
            if !set_field(cells, *column, field) {
                rule = Some(format!("has no plain value in {}", column.name()));
            }
        }
        let flow = match rule {
            None => rows.keep(rows.count),
            Some(rule) => rows.complain(rule),
        };
        if flow.is_break() {
            return Ok(());
        }
    }
    Ok(())
}

/// Whether the field is text, an integer, a truth value or nothing.
fn set_field(cells: &mut Cells, column: Column, field: &Field) -> bool {
    match field {
        Field::Null => {}
        Field::Str(text) => cells.set(column, text),
        Field::Bytes(bytes) => match bytes.as_utf8() {
            Ok(text) => cells.set(column, text),
            Err(_) => return false,
        },
        Field::Bool(value) => cells.set(column, &value.to_string()),
        Field::Byte(value) => cells.set(column, &value.to_string()),
        Field::Short(value) => cells.set(column, &value.to_string()),
        Field::Int(value) => cells.set(column, &value.to_string()),
        Field::Long(value) => cells.set(column, &value.to_string()),
        Field::UByte(value) => cells.set(column, &value.to_string()),
        Field::UShort(value) => cells.set(column, &value.to_string()),
        Field::UInt(value) => cells.set(column, &value.to_string()),
        Field::ULong(value) => cells.set(column, &value.to_string()),
        _ => return false,
    }
    true
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Arc;

    use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;

    use super::*;

    /// Every column, and every kind of range.
    pub(in crate::bins) const SAMPLE: &str = r#"low,high,bin_length,brand,funding,segment,issuer_name,issuer_country,product_code,authentication,additional
400000,400009,6,visa,debit,Consumer,"Bank, One",FR,F1,sca_required,"[{""brand"":""cartes-bancaires"",""funding"":""debit""}]"
40000512,,8,visa,credit,,Bank One,DE,,false,
5100000000000000,5100000000000099,,mastercard,prepaid,Business,,US,,,
"#;

    fn read_text(name: &str, text: &[u8]) -> Result<Table, Error> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        let format = Format::of(&path)?;
        let file = BinFile {
            path,
            format,
            is_padded: false,
        };
        read(&file, &mut |_| {})
    }

    pub(in crate::bins) fn table_of_csv(text: &str) -> Table {
        read_text("bins.csv", text.as_bytes()).unwrap()
    }

    fn refused(name: &str, text: impl AsRef<[u8]>) -> Vec<String> {
        match read_text(name, text.as_ref()) {
            Err(Error::Refused { problems, .. }) => {
                problems.iter().map(Problem::to_string).collect()
            }
            other => panic!("{other:?}"),
        }
    }

    /// The cells of the sample as objects.
    fn objects() -> Vec<Map<String, Value>> {
        let mut reader = csv::Reader::from_reader(SAMPLE.as_bytes());
        let names = reader.headers().unwrap().clone();
        let object = |row: csv::StringRecord| {
            let members = names.iter().zip(&row).filter(|(_, text)| !text.is_empty());
            members
                .map(|(name, text)| {
                    let value = match name {
                        "additional" => serde_json::from_str(text).unwrap(),
                        "bin_length" => Value::from(text.parse::<u64>().unwrap()),
                        _ => Value::from(text),
                    };
                    (name.to_owned(), value)
                })
                .collect()
        };
        reader.records().map(|row| object(row.unwrap())).collect()
    }

    /// The sample as Parquet: bounds as integers, the others as optional texts.
    fn parquet() -> Vec<u8> {
        let schema = Column::ALL.map(|column| match column {
            Column::Low => "required int64 low;".to_owned(),
            Column::High => "optional int64 high;".to_owned(),
            other => format!("optional binary {} (utf8);", other.name()),
        });
        let schema = format!("message bins {{ {} }}", schema.join(" "));
        let schema = Arc::new(parse_message_type(&schema).unwrap());
        let snappy = parquet::basic::Compression::SNAPPY;
        let properties = WriterProperties::builder().set_compression(snappy).build();
        let mut bytes = Vec::new();
        let mut writer =
            SerializedFileWriter::new(&mut bytes, schema, Arc::new(properties)).unwrap();
        let mut group = writer.next_row_group().unwrap();
        let objects = objects();
        for column in Column::ALL {
            let cells: Vec<_> = objects.iter().map(|row| row.get(column.name())).collect();
            let levels: Vec<i16> = cells.iter().map(|cell| i16::from(cell.is_some())).collect();
            let texts = cells.iter().flatten().map(|cell| match cell {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            });
            let mut sink = group.next_column().unwrap().unwrap();
            match column {
                Column::Low | Column::High => {
                    let values: Vec<i64> = texts.map(|text| text.parse().unwrap()).collect();
                    let levels = (column == Column::High).then_some(&levels[..]);
                    sink.typed::<Int64Type>()
                        .write_batch(&values, levels, None)
                        .unwrap();
                }
                _ => {
                    let values: Vec<ByteArray> =
                        texts.map(|text| ByteArray::from(text.as_str())).collect();
                    sink.typed::<ByteArrayType>()
                        .write_batch(&values, Some(&levels), None)
                        .unwrap();
                }
            }
            sink.close().unwrap();
        }
        group.close().unwrap();
        writer.close().unwrap();
        bytes
    }

    #[test]
    fn every_format_gives_the_same_table() {
        let expected = table_of_csv(SAMPLE);
        let objects = objects();
        let lines: Vec<_> = objects
            .iter()
            .map(|object| serde_json::to_string(object).unwrap())
            .collect();

        let cases = [
            ("a.json", serde_json::to_vec_pretty(&objects).unwrap()),
            ("a.jsonl", lines.join("\n").into_bytes()),
            (
                "a.NDJSON",
                format!("\n{}\n", lines.join("\n\n")).into_bytes(),
            ),
            ("a.parquet", parquet()),
            (
                "a.csv",
                format!("\u{feff}{}", SAMPLE.replace('\n', "\r\n")).into_bytes(),
            ),
        ];
        for (name, bytes) in cases {
            assert_eq!(read_text(name, &bytes).unwrap(), expected, "{name}");
        }
        assert_eq!(expected.rows(), 3);
        assert!(expected.holds("4000091234567890") && !expected.holds("4000101234567890"));
        assert!(expected.holds("5100000000000099") && !expected.holds("510000000000009"));
    }

    #[test]
    fn what_is_wrong_is_told_by_row_column_and_rule() {
        let cases: [(&str, &str, &[&str]); 12] = [
            ("a.csv", "low\n", &["holds no rows"]),
            ("a.csv", "high\n400000\n", &["the column low is missing"]),
            ("a.csv", "low,low\n1,2\n", &["column low is there twice"]),
            (
                "a.csv",
                "low,high\n400000,400001\n400002\n",
                &["row 2: must have as many cells as the header"],
            ),
            (
                "a.csv",
                "low,high,funding\n400000,3,x\n400002,,credit\n4,,\n",
                &[
                    "row 1, column high: must be 6 to 19 digits",
                    "row 1, column funding: must be credit, debit or prepaid",
                    "row 3, column low: must be 6 to 19 digits",
                ],
            ),
            ("a.json", "[]", &["holds no rows"]),
            ("a.json", "[1]", &["row 1: must be an object"]),
            (
                "a.json",
                r#"[{"low":"400000"},{"low":["400000"]}]"#,
                &["row 2: has no plain value in low"],
            ),
            (
                "a.json",
                r#"[{"low":"400000"},"#,
                &["row 2: is not JSON (line 1)"],
            ),
            (
                "a.json",
                r#"[{"low":400000}] x"#,
                &["row 2: is not JSON (line 1)"],
            ),
            (
                "a.jsonl",
                "{\"low\":400000}\n{\"low\n",
                &["row 2: is not JSON (line 3)"],
            ),
            (
                "a.jsonl",
                "{\"low\":4e5}",
                &["row 1, column low: must be 6 to 19 digits"],
            ),
        ];
        for (name, text, expected) in cases {
            assert_eq!(refused(name, text), expected, "{text}");
        }
        assert!(refused("a.csv", "low,hihg\n400000,4\n")[0].starts_with("column 2 has a name"));
        assert!(refused("a.json", r#"[{"colour":1}]"#)[0].contains("a member that is not known"));
        assert_eq!(refused("a.csv", b"low\n\xff\n"), ["row 1: must be UTF-8"]);
    }

    #[test]
    fn reading_stops_after_twenty_problems() {
        let mut text = "low\n".to_owned();
        text.push_str(&"4\n".repeat(50));

        let error = read_text("a.csv", text.as_bytes()).unwrap_err().to_string();

        assert_eq!(error.matches("must be 6 to 19 digits").count(), 20);
        assert!(error.contains("a.csv: row 20, column low"), "{error}");
        assert!(error.ends_with("reading stopped here"), "{error}");
    }

    #[test]
    fn what_cannot_be_read_is_said_plainly() {
        let cases = [
            ("a.txt", "", "say --format csv, json or parquet"),
            (
                "a.parquet",
                "PAR1",
                "a.parquet cannot be read: it is not Parquet",
            ),
        ];
        for (name, text, expected) in cases {
            let error = read_text(name, text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
