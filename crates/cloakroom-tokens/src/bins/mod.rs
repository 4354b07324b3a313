//! BIN lookups: test card numbers, the operator's BIN table, and brand inference.

mod brand;
mod card_details;
mod chunk;
mod compile;
mod examine;
mod import;
mod number;
mod read;
mod record;
mod refresh;
mod renew;
mod row;
mod store;
mod table;
mod test_card;

use std::fmt;

use cloakroom_platform::storage;

pub use self::brand::Brand;
pub use self::card_details::{CardDetails, IssuerCountry, Product, Source};
pub use self::examine::{Status, show, status};
pub use self::import::{ImportedTable, import};
pub use self::read::{BinFile, Format, read};
pub use self::record::{AdditionalCard, Funding, Issuer};
pub use self::refresh::refresh;
pub use self::renew::renew_macs;
use self::row::Column;
pub(crate) use self::store::STATEMENTS;
pub use self::table::{Bins, Table};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{file} cannot be read: {reason}")]
    Unreadable { file: String, reason: String },
    #[error("the format of {0} is not known by its name: say --format csv, json or parquet")]
    UnknownFormat(String),
    #[error("{file} is invalid; nothing was changed{}", list(file, problems))]
    Invalid {
        file: String,
        problems: Vec<Problem>,
    },
    #[error("a table has at most {0} rows")]
    TooManyRows(usize),
    #[error(
        "a concurrent import superseded this one, or the control key was replaced meanwhile; nothing was changed: run the import again"
    )]
    Superseded,
    #[error("the BIN table in the database is damaged: import it again")]
    Damaged,
    #[error("a card number is 12 to 19 digits, a BIN 6 to 11")]
    NotDigits,
    #[error(transparent)]
    Storage(#[from] storage::Error),
}

/// A problem in the operator's file. Never quotes the file's content.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Problem {
    row: Option<u64>,
    column: Option<&'static str>,
    rule: String,
}

impl Problem {
    /// Reading stops after this many problems.
    pub const MAX: usize = 20;

    fn of_file(rule: impl Into<String>) -> Self {
        Self {
            row: None,
            column: None,
            rule: rule.into(),
        }
    }

    fn of_row(row: u64, rule: impl Into<String>) -> Self {
        Self {
            row: Some(row),
            ..Self::of_file(rule)
        }
    }

    fn of_cell(row: u64, column: Column, rule: impl Into<String>) -> Self {
        Self {
            column: Some(column.name()),
            ..Self::of_row(row, rule)
        }
    }

    fn of_rows(row: u32, other: u32, column: Column, rule: &str) -> Self {
        Self::of_cell(row.into(), column, format!("{rule} (row {other})"))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.row, self.column) {
            (Some(row), Some(column)) => write!(f, "row {row}, column {column}: {}", self.rule),
            (Some(row), None) => write!(f, "row {row}: {}", self.rule),
            _ => write!(f, "{}", self.rule),
        }
    }
}

fn list(file: &str, problems: &[Problem]) -> String {
    let mut text = String::new();
    for problem in problems {
        text.push_str(&format!("\n  {file}: {problem}"));
    }
    if problems.len() >= Problem::MAX {
        text.push_str("\n  there may be more: reading stopped here");
    }
    text
}

/// Progress of an import.
#[derive(Clone, Copy, Debug)]
pub enum Progress {
    /// Rows read so far, and the position in the file: in bytes, or in rows if the format counts them.
    Reading { rows: u64, done: u64, total: u64 },
    /// All rows are read; the table is being compiled.
    Compiling { rows: u64 },
    /// Bytes written to the database so far.
    Writing { bytes: u64 },
}
