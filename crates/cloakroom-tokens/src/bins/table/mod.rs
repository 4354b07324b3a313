//! In-memory BIN table: sorted boundaries that refer to shared records.

mod space;

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use arc_swap::ArcSwap;

pub(super) use self::space::{NO_RECORD, Space};
use super::Brand;
use super::number::{CardNumber, DIGITS_MAX};
use super::record::{AdditionalCard, CardAttributes, Country, Funding};

/// The current BIN table of a node: a snapshot that is replaced atomically.
///
/// A lookup uses one snapshot throughout, so its result never mixes two tables, and it does not wait while the next one
/// is loaded.
#[derive(Default)]
pub struct Bins {
    snapshot: ArcSwap<Snapshot>,
    /// The last version that was found damaged, so that it is not loaded repeatedly.
    damaged: AtomicI32,
}

/// A table and its version; 0 before the first load.
#[derive(Default)]
pub(super) struct Snapshot {
    pub(super) version: i32,
    pub(super) table: Table,
}

impl Bins {
    /// Wraps a table that was not loaded from the database, for benchmarks and tests.
    pub fn holding(table: Table) -> Self {
        let bins = Self::default();
        bins.swap(1, table);
        bins
    }

    /// The version of the table in use; 0 if there is none.
    pub fn version(&self) -> i32 {
        self.snapshot.load().version
    }

    pub(super) fn snapshot(&self) -> impl std::ops::Deref<Target = Arc<Snapshot>> {
        self.snapshot.load()
    }

    pub(super) fn swap(&self, version: i32, table: Table) {
        self.snapshot.store(Arc::new(Snapshot { version, table }));
    }

    pub(super) fn mark_damaged(&self, version: i32) {
        self.damaged.store(version, Ordering::Relaxed);
    }

    pub(super) fn is_damaged(&self, version: i32) -> bool {
        self.damaged.load(Ordering::Relaxed) == version
    }
}

/// A compiled table. Ranges do not overlap, and equal records are stored once.
#[derive(Debug, Default, Eq, PartialEq)]
pub struct Table {
    pub(super) texts: Texts,
    pub(super) additional: Vec<Vec<AdditionalCard>>,
    pub(super) records: Vec<Record>,
    pub(super) spaces: [Space; SPACES],
    /// Number of rows in the operator's file.
    pub(super) rows: u64,
}

/// One space for prefixes, which match numbers of any length, and one per length of full numbers.
pub(super) const SPACES: usize = 8;
pub(super) const PREFIX_SPACE: usize = 0;
/// Bounds with at least this many digits are full numbers; shorter ones are prefixes.
pub(super) const FULL_DIGITS_MIN: u32 = 13;

/// The space of full numbers with this many digits; `None` for shorter numbers.
pub(super) fn space_of(digits: u32) -> Option<usize> {
    let is_full = (FULL_DIGITS_MIN..=DIGITS_MAX).contains(&digits);
    is_full.then(|| (digits - FULL_DIGITS_MIN) as usize + 1)
}

impl Table {
    /// Whether a range of the table contains this number.
    pub fn holds(&self, number: &str) -> bool {
        CardNumber::parse(number).is_some_and(|number| self.record(number).is_some())
    }

    /// Finds the attributes of a number. A range for its exact length takes precedence over a prefix.
    pub(super) fn find(&self, number: CardNumber) -> Option<CardAttributes<'_>> {
        let record = self.record(number)?;
        Some(CardAttributes {
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

    /// Memory used by the table in bytes, without allocator overhead.
    pub fn bytes(&self) -> usize {
        let spaces: usize = self.spaces.iter().map(Space::bytes).sum();
        let additional = self.additional.iter().flatten().count() * size_of::<AdditionalCard>();
        spaces + size_of_val(&self.records[..]) + self.texts.bytes() + additional
    }

    /// Number of rows in the operator's file.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Number of distinct records that the rows share.
    pub fn records(&self) -> usize {
        self.records.len()
    }
}

/// Attributes that rows share. Texts and additional entries are referenced by index plus one; 0 is none.
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

/// Concatenated texts, each stored once.
#[derive(Debug, Default, Eq, PartialEq)]
pub(super) struct Texts {
    text: String,
    ends: Vec<u32>,
}

impl Texts {
    /// Appends a text and returns its index plus one; `None` if the capacity is exhausted.
    pub(super) fn push(&mut self, text: &str) -> Option<u32> {
        let end = u32::try_from(self.text.len() + text.len()).ok()?;
        self.text.push_str(text);
        self.ends.push(end);
        u32::try_from(self.ends.len()).ok()
    }

    fn find(&self, index: u32) -> Option<&str> {
        let index = (index as usize).checked_sub(1)?;
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
        (1..).map_while(|index| self.find(index))
    }

    fn bytes(&self) -> usize {
        self.text.len() + size_of_val(&self.ends[..])
    }
}

#[cfg(test)]
mod tests;
