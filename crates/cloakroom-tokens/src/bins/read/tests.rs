//! Tests of the three formats and of the problems they report.

use std::sync::Arc;

use ::parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::parser::parse_message_type;
use serde_json::{Map, Value};

use super::*;
use crate::bins::row::Column;

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

fn invalid(name: &str, text: impl AsRef<[u8]>) -> Vec<String> {
    match read_text(name, text.as_ref()) {
        Err(Error::Invalid { problems, .. }) => problems.iter().map(Problem::to_string).collect(),
        other => panic!("{other:?}"),
    }
}

/// The rows of the sample as objects.
fn objects() -> Vec<Map<String, Value>> {
    let mut reader = ::csv::Reader::from_reader(SAMPLE.as_bytes());
    let names = reader.headers().unwrap().clone();
    let object = |row: ::csv::StringRecord| {
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

/// The sample as Parquet: bounds as integers, the others as optional strings.
fn parquet() -> Vec<u8> {
    let schema = Column::ALL.map(|column| match column {
        Column::Low => "required int64 low;".to_owned(),
        Column::High => "optional int64 high;".to_owned(),
        other => format!("optional binary {} (utf8);", other.name()),
    });
    let schema = format!("message bins {{ {} }}", schema.join(" "));
    let schema = Arc::new(parse_message_type(&schema).unwrap());
    let snappy = ::parquet::basic::Compression::SNAPPY;
    let properties = WriterProperties::builder().set_compression(snappy).build();
    let mut bytes = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut bytes, schema, Arc::new(properties)).unwrap();
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
fn all_formats_produce_the_same_table() {
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
fn problems_name_row_column_and_rule() {
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
        assert_eq!(invalid(name, text), expected, "{text}");
    }
    assert!(invalid("a.csv", "low,hihg\n400000,4\n")[0].starts_with("column 2 has a name"));
    assert!(invalid("a.json", r#"[{"colour":1}]"#)[0].contains("a member that is not known"));
    assert_eq!(invalid("a.csv", b"low\n\xff\n"), ["row 1: must be UTF-8"]);
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
fn unreadable_files_are_reported() {
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
