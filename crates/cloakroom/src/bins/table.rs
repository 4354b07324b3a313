//! The operator's table as nodes hold it: sorted boundaries that point at shared records.

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
/// A search costs what it waits for memory, so it touches little of it: one stretch of each level,
/// of which all but the largest stay in the processor's cache, and one block.
#[derive(Debug, Default, Eq, PartialEq)]
pub(super) struct Space {
    blocks: Vec<Block>,
    length: usize,
    /// The first starts of all blocks, then every so many of these, and so on up to a few.
    levels: Vec<Vec<u64>>,
}

/// Neighbouring boundaries, with starts and records side by side in three cache lines.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(align(64))]
struct Block {
    starts: [u64; FAN_OUT],
    records: [u32; FAN_OUT],
}

/// Stands between two ranges, where nothing is known.
pub(super) const NO_RECORD: u32 = u32::MAX;
const FAN_OUT: usize = 16;
/// Above every number: the unused end of the last block.
const NOWHERE: u64 = u64::MAX;

impl Space {
    /// Adds a boundary above all others.
    pub(super) fn push(&mut self, start: u64, record: u32) {
        let place = self.length % FAN_OUT;
        if place == 0 {
            self.blocks.push(Block {
                starts: [NOWHERE; FAN_OUT],
                records: [NO_RECORD; FAN_OUT],
            });
        }
        if let Some(block) = self.blocks.last_mut() {
            block.starts[place] = start;
            block.records[place] = record;
            self.length += 1;
        }
    }

    /// The boundary that was added last.
    pub(super) fn last(&self) -> Option<(u64, u32)> {
        let place = self.length.checked_sub(1)? % FAN_OUT;
        let block = self.blocks.last()?;
        Some((block.starts[place], block.records[place]))
    }

    /// Makes what is complete fit for searching.
    pub(super) fn index(&mut self) {
        self.blocks.shrink_to_fit();
        self.levels.clear();
        let mut level: Vec<u64> = self.blocks.iter().map(|block| block.starts[0]).collect();
        while level.len() > FAN_OUT {
            let above = level.iter().copied().step_by(FAN_OUT).collect();
            self.levels.push(std::mem::replace(&mut level, above));
        }
        self.levels.push(level);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, u32)> {
        let pairs = self.blocks.iter().flat_map(|block| {
            let starts = block.starts.iter().copied();
            starts.zip(block.records.iter().copied())
        });
        pairs.take(self.length)
    }

    fn find(&self, key: u64) -> Option<u32> {
        let mut index = 0;
        for level in self.levels.iter().rev() {
            let first = index * FAN_OUT;
            let last = level.len().min(first + FAN_OUT);
            index = first + last_at_most(level.get(first..last)?, key)?;
        }
        let block = self.blocks.get(index)?;
        let record = block.records[last_at_most(&block.starts, key)?];
        (record != NO_RECORD).then_some(record)
    }

    fn bytes(&self) -> usize {
        let levels: usize = self
            .levels
            .iter()
            .map(|level| size_of_val(&level[..]))
            .sum();
        size_of_val(&self.blocks[..]) + levels
    }
}

/// The place of the last start that is not above the key. Counting all of these few is quicker than
/// branching over them.
fn last_at_most(starts: &[u64], key: u64) -> Option<usize> {
    let count: usize = starts.iter().map(|start| usize::from(*start <= key)).sum();
    count.checked_sub(1)
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
