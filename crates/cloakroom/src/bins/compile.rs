//! Turning checked rows into a table: equal records shared, nested ranges laid flat.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::record::AdditionalCard;
use super::row::{Bounds, Column, Row};
use super::table::{NO_RECORD, Record, SPACES, Space, Table};
use super::{Error, Problem};

/// More rows than any published table has; their number must fit the columns that count them.
const ROWS_MAX: usize = 20_000_000;

/// A table in the making.
#[derive(Default)]
pub(super) struct Draft {
    table: Table,
    texts: HashMap<String, u32>,
    additional: HashMap<Vec<AdditionalCard>, u32>,
    records: HashMap<Record, u32>,
    ranges: Vec<Range>,
}

/// A range with its record, and the row it came from.
#[derive(Clone, Copy, Debug)]
struct Range {
    low: u64,
    high: u64,
    record: u32,
    row: u32,
    space: u8,
}

impl Draft {
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

    /// The place of the row's record, which many rows share.
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
        if let Some(place) = self.records.get(&record) {
            return Some(*place);
        }
        let place = u32::try_from(self.table.records.len()).ok()?;
        self.table.records.push(record);
        self.records.insert(record, place);
        Some(place)
    }

    fn text(&mut self, text: Option<&str>) -> Option<u32> {
        let Some(text) = text else { return Some(0) };
        if let Some(place) = self.texts.get(text) {
            return Some(*place);
        }
        let place = self.table.texts.push(text)?;
        self.texts.insert(text.to_owned(), place);
        Some(place)
    }

    fn additional(&mut self, entries: &[AdditionalCard]) -> Option<u32> {
        if entries.is_empty() {
            return Some(0);
        }
        if let Some(place) = self.additional.get(entries) {
            return Some(*place);
        }
        self.table.additional.push(entries.to_vec());
        let place = u32::try_from(self.table.additional.len()).ok()?;
        self.additional.insert(entries.to_vec(), place);
        Some(place)
    }

    /// Lays the ranges flat, or tells which of them contradict each other.
    pub(super) fn finish(self) -> Result<Table, Vec<Problem>> {
        let Self {
            mut table,
            mut ranges,
            ..
        } = self;
        table.rows = ranges.len() as u64;
        // An outer range comes before what lies inside it.
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

/// Walks over the ranges of one space with those that are open on a stack: the innermost holds.
fn flatten(ranges: &[Range], problems: &mut Vec<Problem>) -> Space {
    let mut boundaries = Boundaries::default();
    let mut open: Vec<&Range> = Vec::new();
    for range in ranges {
        close(&mut open, &mut boundaries, Some(range.low));
        match open.last().map(|outer| (outer.row, meet(outer, range))) {
            None | Some((_, Meeting::Inside)) => {}
            Some((_, Meeting::Double)) => continue,
            Some((outer, Meeting::Contradiction(rule))) => {
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

/// How a range lies to one that began before it, or with it, and has not ended.
enum Meeting {
    Inside,
    Double,
    Contradiction(&'static str),
}

fn meet(outer: &Range, inner: &Range) -> Meeting {
    let is_same = (outer.low, outer.high) == (inner.low, inner.high);
    match is_same {
        true if outer.record == inner.record => Meeting::Double,
        true => Meeting::Contradiction("is the same range as in another row, with other details"),
        false if inner.high > outer.high => Meeting::Contradiction(
            "overlaps the range of another row, and neither lies inside the other",
        ),
        false => Meeting::Inside,
    }
}

/// Ends the open ranges that lie before `low`; all of them when nothing follows.
fn close(open: &mut Vec<&Range>, boundaries: &mut Boundaries, low: Option<u64>) {
    while let Some(range) = open.pop_if(|range| low.is_none_or(|low| range.high < low)) {
        let outer = open.last().map_or(NO_RECORD, |outer| outer.record);
        boundaries.set(range.high + 1, outer);
    }
}

/// The boundaries of a space, of which the last may still change.
#[derive(Default)]
struct Boundaries {
    space: Space,
    pending: Option<(u64, u32)>,
}

impl Boundaries {
    /// From here on this record holds. Boundaries that change nothing are left out.
    fn set(&mut self, start: u64, record: u32) {
        if let Some((before, holds)) = self.pending.take()
            && before != start
        {
            self.space.push(before, holds);
        }
        let changes = self.space.last().map(|(_, holds)| holds) != Some(record);
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
mod tests {
    use super::*;
    use crate::bins::number::CardNumber;
    use crate::bins::row::Cells;

    /// Low, high and segment.
    type Plain<'a> = (&'a str, &'a str, &'a str);

    fn compile(rows: &[Plain<'_>]) -> Result<Table, Vec<String>> {
        let mut draft = Draft::default();
        for (number, (low, high, segment)) in (1..).zip(rows) {
            let mut cells = Cells::default();
            cells.set(Column::Low, low);
            cells.set(Column::High, high);
            cells.set(Column::Segment, segment);
            draft
                .add(number, Row::check(&cells, false).unwrap())
                .unwrap();
        }
        let told = |problems: Vec<Problem>| problems.iter().map(Problem::to_string).collect();
        draft.finish().map_err(told)
    }

    fn segment<'a>(table: &'a Table, number: &str) -> &'a str {
        let number = CardNumber::parse(number).unwrap();
        table
            .find(number)
            .and_then(|known| known.segment)
            .unwrap_or("-")
    }

    #[test]
    fn the_narrowest_range_decides() {
        let table = compile(&[
            ("40000010", "40000019", "inner"),
            ("400000", "400009", "outer"),
            ("4000001500000000", "4000001500000009", "exact"),
            ("40000012", "", "innermost"),
            ("40000019", "", "last"),
            ("400010", "400010", "next"),
        ])
        .unwrap();

        let cases = [
            ("3999999999999999", "-"),
            ("4000000000000000", "outer"),
            ("4000000999999999", "outer"),
            ("4000001000000000", "inner"),
            ("4000001199999999", "inner"),
            ("4000001200000000", "innermost"),
            ("4000001299999999999", "innermost"),
            ("4000001300000000", "inner"),
            ("4000001499999999", "inner"),
            ("4000001500000000", "exact"),
            ("4000001500000009", "exact"),
            ("4000001500000010", "inner"),
            ("400000150000000", "inner"),
            ("4000001500000000000", "inner"),
            ("4000001899999999", "inner"),
            ("4000001900000000", "last"),
            ("4000001999999999", "last"),
            ("4000002000000000", "outer"),
            ("4000099999999999", "outer"),
            ("4000100000000000", "next"),
            ("4000109999999999", "next"),
            ("4000110000000000", "-"),
        ];
        for (number, expected) in cases {
            assert_eq!(segment(&table, number), expected, "{number}");
        }
    }

    #[test]
    fn the_highest_numbers_have_an_end_too() {
        let table = compile(&[("999999", "", "any"), ("9999999999999999999", "", "one")]).unwrap();

        assert_eq!(segment(&table, "9999999999999999999"), "one");
        assert_eq!(segment(&table, "9999999999999999998"), "any");
        assert_eq!(segment(&table, "9999980000000000"), "-");
    }

    #[test]
    fn neighbours_and_doubles_with_equal_details_become_one_range() {
        let rows = [
            ("400000", "400001", "a"),
            ("400002", "400003", "a"),
            ("400002", "400003", "a"),
            ("400004", "", "b"),
        ];

        let table = compile(&rows).unwrap();

        assert_eq!(table.records.len(), 2);
        assert_eq!(table.spaces[0].iter().count(), 3);
        assert_eq!(table.rows(), 4);
    }

    #[test]
    fn ranges_that_contradict_each_other_are_refused() {
        let cases: [(&[Plain<'_>], &str); 3] = [
            (
                &[("400000", "400005", "a"), ("400005", "400009", "b")],
                "row 2, column low: overlaps the range of another row, and neither lies inside \
                 the other (row 1)",
            ),
            (
                &[("400000", "", "a"), ("400000", "", "b")],
                "row 2, column low: is the same range as in another row, with other details (row 1)",
            ),
            (
                &[
                    ("4000000000000000", "4000000000000005", "a"),
                    ("4000000000000002", "4000000000000007", "a"),
                ],
                "row 2, column low: overlaps the range of another row, and neither lies inside \
                 the other (row 1)",
            ),
        ];
        for (rows, expected) in cases {
            assert_eq!(compile(rows).unwrap_err(), [expected]);
        }
    }

    #[test]
    fn a_large_table_finds_what_a_walk_over_its_rows_finds() {
        let rows: Vec<(String, String)> = (0..400)
            .map(|n| {
                (
                    format!("{}", 40_000_000 + n * 7),
                    format!("{}", 40_000_003 + n * 7),
                )
            })
            .collect();
        let rows: Vec<Plain<'_>> = rows
            .iter()
            .zip(["a", "b", "c"].into_iter().cycle())
            .map(|((low, high), segment)| (low.as_str(), high.as_str(), segment))
            .collect();
        let table = compile(&rows).unwrap();

        for prefix in 39_999_990..40_002_810 {
            let text = prefix.to_string();
            let walked = rows
                .iter()
                .find(|(low, high, _)| (*low..=*high).contains(&text.as_str()))
                .map_or("-", |row| row.2);
            assert_eq!(
                segment(&table, &format!("{prefix}00000000")),
                walked,
                "{prefix}"
            );
        }
    }
}
