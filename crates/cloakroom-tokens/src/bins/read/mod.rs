//! Reads the operator's file: CSV, JSON or Parquet, one row at a time.

mod csv;
mod json;
mod parquet;
mod rows;

use std::fs::File;
use std::path::PathBuf;

use self::rows::Rows;
use super::{Error, Problem, Progress, Table};

/// The operator's file and its format.
#[derive(Clone, Debug)]
pub struct BinFile {
    pub path: PathBuf,
    pub format: Format,
    /// Whether full-length numbers are prefixes that were padded with zeros and nines.
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
    /// Detects the format from the file extension.
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
    /// The file name without its directory.
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

    fn invalid(&self, problems: Vec<Problem>) -> Error {
        Error::Invalid {
            file: self.name(),
            problems,
        }
    }
}

/// Reads, validates and compiles a file.
pub fn read(
    file: &BinFile,
    on_progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<Table, Error> {
    let opened = File::open(&file.path).map_err(|error| file.unreadable(error.kind()))?;
    let total = opened.metadata().map_or(0, |metadata| metadata.len());
    let mut rows = Rows::new(file.is_padded, total, on_progress);
    match file.format {
        Format::Csv => csv::read(file, opened, &mut rows),
        Format::Json => json::read(file, opened, &mut rows),
        Format::Parquet => parquet::read(file, opened, &mut rows),
    }?;
    rows.compile(file)
}

#[cfg(test)]
pub(super) mod tests;
