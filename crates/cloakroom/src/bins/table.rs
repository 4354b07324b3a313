//! The operator's table as nodes hold it: sorted boundaries that lead to shared records.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use arc_swap::ArcSwap;

use super::Brand;
use super::number::{CardNumber, DIGITS_MAX};
use super::record::{AdditionalCard, Country, Funding, Known};

/// What a node knows from the operator: a snapshot that is replaced as a whole.
///
/// Whoever looks something up keeps the snapshot it started with, so that no answer is ever made of
/// two tables, and nobody waits while the next one is loaded.
#[derive(Default)]
pub struct Bins {
    snapshot: ArcSwap<Snapshot>,
    /// The version that was found damaged last, so that it is not loaded again and again.
    refused: AtomicI32,
}

/// A table and the version it came with; 0 before anything was loaded.
#[derive(Default)]
pub(super) struct Snapshot {
    pub(super) version: i32,
    pub(super) table: Table,
}

impl Bins {
    /// Takes a table that did not come from the database, for measurements and tests.
    pub fn holding(table: Table) -> Self {
        let bins = Self::default();
        bins.swap(1, table);
        bins
    }

    /// The version of the table in use; 0 when there is none.
    pub fn version(&self) -> i32 {
        self.snapshot.load().version
    }

    pub(super) fn snapshot(&self) -> impl std::ops::Deref<Target = Arc<Snapshot>> {
        self.snapshot.load()
    }

    pub(super) fn swap(&self, version: i32, table: Table) {
        self.snapshot.store(Arc::new(Snapshot { version, table }));
    }

    pub(super) fn refuse(&self, version: i32) {
        self.refused.store(version, Ordering::Relaxed);
    }

    pub(super) fn has_refused(&self, version: i32) -> bool {
        self.refused.load(Ordering::Relaxed) == version
    }
}

/// A compiled table. Ranges do not overlap any more, and equal records are kept once.
#[derive(Debug, Default, Eq, PartialEq)]
pub struct Table {
    pub(super) texts: Texts,
    pub(super) additional: Vec<Vec<AdditionalCard>>,
    pub(super) records: Vec<Record>,
    pub(super) spaces: [Space; SPACES],
    /// How many rows the operator's file had.
    pub(super) rows: u64,
}

/// One space for prefixes, which hold for numbers of any length, and one per length of whole numbers.
pub(super) const SPACES: usize = 8;
pub(super) const PREFIX_SPACE: usize = 0;
/// Bounds with at least this many digits are whole numbers; shorter ones are prefixes.
pub(super) const WHOLE_DIGITS_MIN: u32 = 13;

/// The space of whole numbers with so many digits; shorter numbers have none.
pub(super) fn space_of(digits: u32) -> Option<usize> {
    let is_whole = (WHOLE_DIGITS_MIN..=DIGITS_MAX).contains(&digits);
    is_whole.then(|| (digits - WHOLE_DIGITS_MIN) as usize + 1)
}

impl Table {
    /// Whether a range of the table holds this number.
    pub fn holds(&self, number: &str) -> bool {
        CardNumber::parse(number).is_some_and(|number| self.record(number).is_some())
    }

    /// What the table says of a number. A range for its exact length goes before a prefix.
    pub(super) fn find(&self, number: CardNumber) -> Option<Known<'_>> {
        let record = self.record(number)?;
        Some(Known {
            bin_length: (record.bin_length > 0).then_some(record.bin_length),
            brand: Brand::from_number(record.brand),
            funding: Funding::from_number(record.funding),
            needs_sca: record.needs_sca,
            segment: self.texts.find(record.segment),
            issuer_name: self.texts.find(record.issuer_name),
            country: std::str::from_utf8(&record.country)
                .ok()
                .and_then(Country::parse),
            product_code: self.texts.find(record.product_code),
            additional: (record.additional as usize)
                .checked_sub(1)
                .and_then(|index| self.additional.get(index))
                .map_or(&[], Vec::as_slice),
        })
    }

    fn record(&self, number: CardNumber) -> Option<&Record> {
        let exact =
            space_of(number.digits()).and_then(|space| self.spaces[space].find(number.value()));
        let index = exact.or_else(|| self.spaces[PREFIX_SPACE].find(number.padded()))?;
        self.records.get(index as usize)
    }

    /// How many bytes of memory the table takes, without what allocators add.
    pub fn bytes(&self) -> usize {
        let spaces: usize = self.spaces.iter().map(Space::bytes).sum();
        let additional = self.additional.iter().flatten().count() * size_of::<AdditionalCard>();
        spaces + size_of_val(&self.records[..]) + self.texts.bytes() + additional
    }

    /// How many rows the operator's file had.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// How many different records the rows share.
    pub fn records(&self) -> usize {
        self.records.len()
    }
}

/// Boundaries in ascending order: each record holds from its start up to the next start.
///
/// A search costs what it waits for memory. The directory leads to the few boundaries around a key,
/// which lie side by side: two places to wait for, where a plain binary search has twenty.
#[derive(Debug, Default, Eq, PartialEq)]
pub(super) struct Space {
    boundaries: Vec<Boundary>,
    /// For each stretch of keys, the first boundary at or after its beginning; one more at the end.
    directory: Vec<u32>,
    first: u64,
    /// A stretch is this power of two wide.
    stretch: u32,
}

/// From its start on, a record holds. The start is in halves, to lie close: 12 bytes, not 16.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Boundary {
    start: [u32; 2],
    record: u32,
}

impl Boundary {
    fn start(self) -> u64 {
        let [high, low] = self.start;
        u64::from(high) << 32 | u64::from(low)
    }
}

/// Stands between two ranges, where nothing is known.
pub(super) const NO_RECORD: u32 = u32::MAX;
const BOUNDARIES_PER_STRETCH: u64 = 4;

impl Space {
    /// Adds a boundary above all others.
    pub(super) fn push(&mut self, start: u64, record: u32) {
        let [high, low] = [start >> 32, start & u64::from(u32::MAX)];
        self.boundaries.push(Boundary {
            start: [high as u32, low as u32],
            record,
        });
    }

    /// The boundary that was added last.
    pub(super) fn last(&self) -> Option<(u64, u32)> {
        let last = self.boundaries.last()?;
        Some((last.start(), last.record))
    }

    /// Makes what is complete fit for searching.
    pub(super) fn index(&mut self) {
        self.boundaries.shrink_to_fit();
        self.first = self.boundaries.first().map_or(0, |first| first.start());
        let span = self.last().map_or(0, |(start, _)| start - self.first);
        let stretches = self.boundaries.len() as u64 / BOUNDARIES_PER_STRETCH;
        self.stretch = 0;
        while span >> self.stretch > stretches {
            self.stretch += 1;
        }
        self.directory = Vec::with_capacity((span >> self.stretch) as usize + 2);
        for (place, boundary) in (0..).zip(&self.boundaries) {
            let stretch = (boundary.start() - self.first) >> self.stretch;
            while self.directory.len() as u64 <= stretch {
                self.directory.push(place);
            }
        }
        self.directory.push(self.boundaries.len() as u32);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, u32)> {
        let boundaries = self.boundaries.iter();
        boundaries.map(|boundary| (boundary.start(), boundary.record))
    }

    fn find(&self, key: u64) -> Option<u32> {
        let stretch = (key.checked_sub(self.first)? >> self.stretch) as usize;
        // Behind the last stretch, the last boundary holds.
        let after = match self.directory.get(stretch..stretch + 2) {
            Some(&[from, to]) => {
                let near = self.boundaries.get(from as usize..to as usize)?;
                from as usize + near.partition_point(|boundary| boundary.start() <= key)
            }
            _ => self.boundaries.len(),
        };
        let record = self.boundaries.get(after.checked_sub(1)?)?.record;
        (record != NO_RECORD).then_some(record)
    }

    fn bytes(&self) -> usize {
        size_of_val(&self.boundaries[..]) + size_of_val(&self.directory[..])
    }
}

/// What rows share. Texts and additional entries are named by their place plus one; 0 is none.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct Record {
    pub(super) segment: u32,
    pub(super) issuer_name: u32,
    pub(super) product_code: u32,
    pub(super) additional: u32,
    pub(super) country: [u8; 2],
    pub(super) bin_length: u8,
    pub(super) brand: u8,
    pub(super) funding: u8,
    pub(super) needs_sca: bool,
}

/// Texts one after the other, each kept once.
#[derive(Debug, Default, Eq, PartialEq)]
pub(super) struct Texts {
    text: String,
    ends: Vec<u32>,
}

impl Texts {
    /// Keeps a text and returns its place plus one; nothing when there is no room left.
    pub(super) fn push(&mut self, text: &str) -> Option<u32> {
        let end = u32::try_from(self.text.len() + text.len()).ok()?;
        self.text.push_str(text);
        self.ends.push(end);
        u32::try_from(self.ends.len()).ok()
    }

    fn find(&self, place: u32) -> Option<&str> {
        let index = (place as usize).checked_sub(1)?;
        let start = match index.checked_sub(1) {
            Some(before) => *self.ends.get(before)?,
            None => 0,
        };
        self.text
            .get(start as usize..*self.ends.get(index)? as usize)
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        (1..).map_while(|place| self.find(place))
    }

    fn bytes(&self) -> usize {
        self.text.len() + size_of_val(&self.ends[..])
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::access::TenantKind;
    use crate::bins::CardDetails;
    use crate::bins::read::tests::table_of_csv;

    #[test]
    fn no_answer_is_made_of_two_tables() {
        let table = |name: &str, country: &str| {
            let header = "low,segment,issuer_name,product_code,issuer_country";
            table_of_csv(&format!(
                "{header}\n400000,{name},{name},{name},{country}\n"
            ))
        };
        let bins = Bins::holding(table("BM", "BM"));
        let is_over = AtomicBool::new(false);

        let seen = std::thread::scope(|scope| {
            let look = || {
                let mut seen = std::collections::HashSet::new();
                while !is_over.load(Ordering::Relaxed) {
                    let details =
                        CardDetails::of(&bins, TenantKind::Production, "4000001111111111").unwrap();
                    let issuer = details.issuer.unwrap();
                    let told = [
                        details.segment,
                        issuer.name,
                        issuer.country,
                        details.product.map(|product| product.code),
                        details
                            .issuer_country
                            .map(|country| country.alpha2.to_owned()),
                    ];
                    assert!(told.iter().all(|text| *text == told[0]), "{told:?}");
                    seen.insert(told[0].clone());
                }
                seen.len()
            };
            let lookers = [scope.spawn(look), scope.spawn(look)];
            for version in 2..400 {
                let name = if version % 2 == 0 { "FR" } else { "BM" };
                bins.swap(version, table(name, name));
            }
            is_over.store(true, Ordering::Relaxed);
            lookers.map(|looker| looker.join().unwrap())
        });

        assert!(seen.contains(&2), "nobody saw a swap: {seen:?}");
    }
}
