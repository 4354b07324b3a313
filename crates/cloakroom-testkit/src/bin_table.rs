//! BIN tables of an operator.

use std::path::Path;

use cloakroom::bins::{self, BinFile, Format, Table};

/// Reads a table as `cloakroom bins import` does.
pub fn bin_table(text: &str) -> Table {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bins.csv");
    std::fs::write(&path, text).unwrap();
    let format = Format::of(Path::new("bins.csv")).unwrap();
    let file = BinFile {
        path,
        format,
        is_padded: false,
    };
    bins::read(&file, &mut |_| {}).unwrap()
}

pub fn table_with_funding(funding: &str) -> Table {
    bin_table(&format!(
        "low,funding,segment\n400000,{funding},{funding}\n"
    ))
}
