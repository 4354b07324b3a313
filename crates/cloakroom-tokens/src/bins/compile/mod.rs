//! Compiles validated rows into a table: deduplicates records and flattens nested ranges.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::record::AdditionalCard;
use super::row::{Bounds, Column, Row};
use super::table::{NO_RECORD, Record, SPACES, Space, Table};
use super::{Error, Problem};

/// More rows than any published table has; row numbers must fit the columns that store them.
const ROWS_MAX: usize = 20_000_000;

/// Builds a table from rows.
#[derive(Default)]
pub(super) struct TableBuilder {
    table: Table,
    texts: HashMap<String, u32>,
    additional: HashMap<Vec<AdditionalCard>, u32>,
    records: HashMap<Record, u32>,
    ranges: Vec<Range>,
}

/// A range with its record and the number of its row.
#[derive(Clone, Copy, Debug)]
struct Range {
    low: u64,
    high: u64,
    record: u32,
    row: u32,
    space: u8,
}

impl TableBuilder {
    pub(super) fn add(&mut self, row_number: u64, row: Row<'_>) -> Result<(), Error> {
        if self.ranges.len() >= ROWS_MAX {
            return Err(Error::TooManyRows(ROWS_MAX));
        }
        let full = Error::TooManyRows(ROWS_MAX);
        let Bounds { space, low, high } = row.bounds;
        let record = self.record(&row).ok_or(full)?;
        self.ranges.push(Range {
            low,
            high,
            record,
            row: u32::try_from(row_number).unwrap_or(u32::MAX),
            space: u8::try_from(space).unwrap_or_default(),
        });
        Ok(())
    }

    /// The index of the row's record, which many rows share.
    fn record(&mut self, row: &Row<'_>) -> Option<u32> {
        let mut country = [0; 2];
        if let Some(known) = row.country {
            country.copy_from_slice(known.alpha2().as_bytes().get(..2)?);
        }
        let record = Record {
            segment: self.text(row.segment)?,
            issuer_name: self.text(row.issuer_name)?,
            product_code: self.text(row.product_code)?,
            additional: self.additional(&row.additional)?,
            country,
            bin_length: row.bin_length.unwrap_or(0),
            brand: row.brand.map_or(0, |brand| brand as u8),
            funding: row.funding.map_or(0, |funding| funding as u8),
            needs_sca: row.needs_sca,
        };
        if let Some(index) = self.records.get(&record) {
            return Some(*index);
        }
        let index = u32::try_from(self.table.records.len()).ok()?;
        self.table.records.push(record);
        self.records.insert(record, index);
        Some(index)
    }

    fn text(&mut self, text: Option<&str>) -> Option<u32> {
        let Some(text) = text else { return Some(0) };
        if let Some(index) = self.texts.get(text) {
            return Some(*index);
        }
        let index = self.table.texts.push(text)?;
        self.texts.insert(text.to_owned(), index);
        Some(index)
    }

    fn additional(&mut self, entries: &[AdditionalCard]) -> Option<u32> {
        if entries.is_empty() {
            return Some(0);
        }
        if let Some(index) = self.additional.get(entries) {
            return Some(*index);
        }
        self.table.additional.push(entries.to_vec());
        let index = u32::try_from(self.table.additional.len()).ok()?;
        self.additional.insert(entries.to_vec(), index);
        Some(index)
    }

    /// Flattens the ranges, or returns the conflicts between them.
    pub(super) fn finish(self) -> Result<Table, Vec<Problem>> {
        let Self {
            mut table,
            mut ranges,
            ..
        } = self;
        table.rows = ranges.len() as u64;
        // Sorts outer ranges before the ranges inside them.
        ranges
            .sort_unstable_by_key(|range| (range.space, range.low, Reverse(range.high), range.row));
        let mut problems = Vec::new();
        let mut rest = &ranges[..];
        let mut spaces: [Space; SPACES] = Default::default();
        for (number, space) in spaces.iter_mut().enumerate() {
            let end = rest.partition_point(|range| usize::from(range.space) <= number);
            let (own, others) = rest.split_at(end);
            *space = flatten(own, &mut problems);
            rest = others;
        }
        if problems.is_empty() {
            table.spaces = spaces;
            Ok(table)
        } else {
            Err(problems)
        }
    }
}

/// Sweeps over the ranges of one space with a stack of open ranges: the innermost one applies.
fn flatten(ranges: &[Range], problems: &mut Vec<Problem>) -> Space {
    let mut boundaries = Boundaries::default();
    let mut open: Vec<&Range> = Vec::new();
    for range in ranges {
        close(&mut open, &mut boundaries, Some(range.low));
        match open.last().map(|outer| (outer.row, overlap(outer, range))) {
            None | Some((_, Overlap::Inside)) => {}
            Some((_, Overlap::Duplicate)) => continue,
            Some((outer, Overlap::Conflict(rule))) => {
                if problems.len() < Problem::MAX {
                    problems.push(Problem::of_rows(range.row, outer, Column::Low, rule));
                }
                continue;
            }
        }
        boundaries.set(range.low, range.record);
        open.push(range);
    }
    close(&mut open, &mut boundaries, None);
    boundaries.finish()
}

/// Relation of a range to an open range that starts before or with it.
enum Overlap {
    Inside,
    Duplicate,
    Conflict(&'static str),
}

fn overlap(outer: &Range, inner: &Range) -> Overlap {
    let is_same = (outer.low, outer.high) == (inner.low, inner.high);
    match is_same {
        true if outer.record == inner.record => Overlap::Duplicate,
        true => Overlap::Conflict("is the same range as in another row, with other details"),
        false if inner.high > outer.high => Overlap::Conflict(
            "overlaps the range of another row, and neither lies inside the other",
        ),
        false => Overlap::Inside,
    }
}

/// Closes the open ranges that end before `low`, or all of them if it is `None`.
fn close(open: &mut Vec<&Range>, boundaries: &mut Boundaries, low: Option<u64>) {
    while let Some(range) = open.pop_if(|range| low.is_none_or(|low| range.high < low)) {
        let outer = open.last().map_or(NO_RECORD, |outer| outer.record);
        boundaries.set(range.high + 1, outer);
    }
}

/// The boundaries of a space; the last one may still change.
#[derive(Default)]
struct Boundaries {
    space: Space,
    pending: Option<(u64, u32)>,
}

impl Boundaries {
    /// Applies `record` from `start` on. Omits boundaries that change nothing.
    fn set(&mut self, start: u64, record: u32) {
        if let Some((before, current)) = self.pending.take()
            && before != start
        {
            self.space.push(before, current);
        }
        let changes = self.space.last().map(|(_, current)| current) != Some(record);
        self.pending = changes.then_some((start, record));
    }

    fn finish(mut self) -> Space {
        if let Some((start, record)) = self.pending {
            self.space.push(start, record);
        }
        self.space.index();
        self.space
    }
}

#[cfg(test)]
mod tests;
