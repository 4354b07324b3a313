//! Reads CSV with a header.

use std::fs::File;
use std::io::BufReader;

use super::BinFile;
use super::rows::{Rows, columns};
use crate::bins::{Error, Problem};

pub(super) fn read(file: &BinFile, opened: File, rows: &mut Rows<'_>) -> Result<(), Error> {
    // Row lengths are checked below, with a better error message than the reader's.
    let mut reader = csv::ReaderBuilder::new()
        .flexible(true)
        .from_reader(BufReader::new(opened));
    let header = reader.headers().map_err(|error| csv_error(file, &error))?;
    // Spreadsheet programs write a byte order mark before the first name.
    let names = header
        .iter()
        .map(|name| name.trim_start_matches('\u{feff}'));
    let columns = columns(names).map_err(|problems| file.invalid(problems))?;
    let mut record = csv::StringRecord::new();
    loop {
        let is_read = reader.read_record(&mut record);
        if matches!(is_read, Ok(false)) {
            return Ok(());
        }
        let cells = rows.next();
        let flow = match is_read {
            Err(error) if matches!(error.kind(), csv::ErrorKind::Utf8 { .. }) => {
                rows.reject("must be UTF-8")
            }
            Err(error) => return Err(csv_error(file, &error)),
            Ok(_) if record.len() != columns.len() => {
                rows.reject("must have as many cells as the header")
            }
            Ok(_) => {
                for (column, text) in columns.iter().zip(&record) {
                    cells.set(*column, text);
                }
                rows.add(reader.position().byte())
            }
        };
        if flow.is_break() {
            return Ok(());
        }
    }
}

fn csv_error(file: &BinFile, error: &csv::Error) -> Error {
    match error.kind() {
        csv::ErrorKind::Io(error) => file.unreadable(error.kind()),
        csv::ErrorKind::Utf8 { .. } => {
            file.invalid(vec![Problem::of_file("the header must be UTF-8")])
        }
        _ => file.unreadable("it is not CSV with a header"),
    }
}
