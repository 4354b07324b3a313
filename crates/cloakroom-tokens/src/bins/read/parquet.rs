//! Reads Parquet.

use std::fs::File;

use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::Field;

use super::BinFile;
use super::rows::{Rows, columns};
use crate::bins::Error;
use crate::bins::row::{Cells, Column};

pub(super) fn read(file: &BinFile, opened: File, rows: &mut Rows<'_>) -> Result<(), Error> {
    // The reader's message may quote the content.
    let unreadable = |_| file.unreadable("it is not Parquet, or not compressed with Snappy");
    let reader = SerializedFileReader::new(opened).map_err(unreadable)?;
    let metadata = reader.metadata().file_metadata();
    rows.total = u64::try_from(metadata.num_rows()).unwrap_or_default();
    let fields = metadata.schema_descr().root_schema().get_fields();
    let columns = columns(fields.iter().map(|field| field.name()))
        .map_err(|problems| file.invalid(problems))?;
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
            None => rows.add(rows.count),
            Some(rule) => rows.reject(rule),
        };
        if flow.is_break() {
            return Ok(());
        }
    }
    Ok(())
}

/// Sets a cell; false if the field is not a string, an integer, a boolean or null.
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
