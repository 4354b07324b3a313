//! Collects the rows of a file, and the problems in them.

use std::ops::ControlFlow;

use super::BinFile;
use crate::bins::compile::TableBuilder;
use crate::bins::row::{Cells, Column, Row};
use crate::bins::{Error, Problem, Progress, Table};

/// Collects rows of all formats.
pub(super) struct Rows<'a> {
    builder: TableBuilder,
    cells: Cells,
    pub(super) problems: Vec<Problem>,
    failure: Option<Error>,
    pub(super) count: u64,
    is_padded: bool,
    pub(super) total: u64,
    on_progress: &'a mut (dyn FnMut(Progress) + Send),
}

const ROWS_PER_PROGRESS: u64 = 20_000;

impl<'a> Rows<'a> {
    /// `total` is the size of the file, in the unit of `Rows::add`.
    pub(super) fn new(
        is_padded: bool,
        total: u64,
        on_progress: &'a mut (dyn FnMut(Progress) + Send),
    ) -> Self {
        Self {
            builder: TableBuilder::default(),
            cells: Cells::default(),
            problems: Vec::new(),
            failure: None,
            count: 0,
            is_padded,
            total,
            on_progress,
        }
    }

    /// Starts the next row with empty cells.
    pub(super) fn next(&mut self) -> &mut Cells {
        self.count += 1;
        self.cells.clear();
        &mut self.cells
    }

    /// Validates and adds the current row; `done` is the position in the file.
    pub(super) fn add(&mut self, done: u64) -> ControlFlow<()> {
        match Row::check(&self.cells, self.is_padded) {
            Ok(row) => self.failure = self.builder.add(self.count, row).err(),
            Err(broken) => {
                let row = self.count;
                let problems = broken
                    .into_iter()
                    .map(|(column, rule)| Problem::of_cell(row, column, rule));
                self.problems.extend(problems);
            }
        }
        if self.count.is_multiple_of(ROWS_PER_PROGRESS) {
            (self.on_progress)(Progress::Reading {
                rows: self.count,
                done,
                total: self.total,
            });
        }
        self.flow()
    }

    /// Records a problem with the row as a whole.
    pub(super) fn reject(&mut self, rule: impl Into<String>) -> ControlFlow<()> {
        self.problems.push(Problem::of_row(self.count, rule));
        self.flow()
    }

    pub(super) fn flow(&mut self) -> ControlFlow<()> {
        if self.failure.is_some() || self.problems.len() >= Problem::MAX {
            self.problems.truncate(Problem::MAX);
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    /// Compiles all rows of `file`, or returns their problems.
    pub(super) fn compile(mut self, file: &BinFile) -> Result<Table, Error> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        if self.count == 0 && self.problems.is_empty() {
            self.problems.push(Problem::of_file("holds no rows"));
        }
        if !self.problems.is_empty() {
            return Err(file.invalid(self.problems));
        }
        (self.on_progress)(Progress::Compiling { rows: self.count });
        self.builder
            .finish()
            .map_err(|problems| file.invalid(problems))
    }
}

/// Maps header names to columns, or returns the unknown ones as problems.
pub(super) fn columns<'a>(
    names: impl Iterator<Item = &'a str>,
) -> Result<Vec<Column>, Vec<Problem>> {
    let mut columns = Vec::new();
    let mut problems = Vec::new();
    for (name, number) in names.zip(1..) {
        match Column::parse(name.trim()) {
            Some(column) if columns.contains(&column) => {
                let rule = format!("column {} is there twice", column.name());
                problems.push(Problem::of_file(rule));
            }
            Some(column) => columns.push(column),
            None => problems.push(Problem::of_file(format!(
                "column {number} has a name that is not known; known are {}",
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
