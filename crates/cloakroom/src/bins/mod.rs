//! What the first digits of a card number tell: test numbers, the operator's table, brands.

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
mod row;
mod store;
mod table;
mod test_card;

use std::fmt;

pub use self::brand::Brand;
pub use self::card_details::{CardDetails, IssuerCountry, Product, Source};
pub use self::examine::{Status, show, status};
pub use self::import::{Imported, import};
pub use self::read::{BinFile, Format, read};
pub use self::record::{AdditionalCard, Funding, Issuer};
pub use self::refresh::refresh;
use self::row::Column;
pub(crate) use self::store::STATEMENTS;
pub use self::table::{Bins, Table};
use crate::storage;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{file} cannot be read: {reason}")]
    Unreadable { file: String, reason: String },
    #[error("the format of {0} is not known by its name: say --format csv, json or parquet")]
    UnknownFormat(String),
    #[error("{file} is refused, and nothing was changed{}", list(file, problems))]
    Refused {
        file: String,
        problems: Vec<Problem>,
    },
    #[error("a table has at most {0} rows")]
    TooManyRows(usize),
    #[error("another import was running at the same time; nothing was changed by this one")]
    Superseded,
    #[error("the BIN table in the database is damaged: import it again")]
    Damaged,
    #[error("a card number is 12 to 19 digits, a BIN 6 to 11")]
    NotDigits,
    #[error(transparent)]
    Storage(#[from] storage::Error),
}

/// Something about the operator's file, without any of its text.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Problem {
    row: Option<u64>,
    column: Option<&'static str>,
    rule: String,
}

impl Problem {
    /// How many are told before reading stops.
    pub(crate) const MAX: usize = 20;

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

/// How far an import has come.
#[derive(Clone, Copy, Debug)]
pub enum Progress {
    /// Rows so far, and how much of the file that was; bytes, or rows where a file counts them.
    Reading { rows: u64, done: u64, total: u64 },
    /// All rows are read and being put in order.
    Compiling { rows: u64 },
    /// Bytes written to the database so far.
    Writing { bytes: u64 },
}
