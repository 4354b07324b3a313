//! Days of the audit log, their partitions, and the identity of chains.

use jiff::Timestamp;

/// Number of partitions of `log`; days take turns.
pub(in crate::audit) const SLOTS: i32 = 100;
const SECONDS: i64 = 24 * 60 * 60;

/// Identifies a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChainId {
    /// Days since 1970.
    pub day: i32,
    /// A thousand times the number of the key that signs the chain, plus its position among the chains of the key.
    pub number: i32,
}

impl ChainId {
    pub(in crate::audit) fn key_number(self) -> i32 {
        self.number / CHAINS_PER_KEY
    }
}

/// Distance between the numbers of two keys' first chains.
pub(in crate::audit) const CHAINS_PER_KEY: i32 = 1_000;

/// Day of a timestamp, counted from 1970-01-01 in UTC.
pub(in crate::audit) fn day_of(at: Timestamp) -> i32 {
    i32::try_from(at.as_second().div_euclid(SECONDS)).unwrap_or(i32::MAX)
}

pub(in crate::audit) fn start_of_day(day: i32) -> Timestamp {
    Timestamp::from_second(i64::from(day) * SECONDS).unwrap_or_default()
}

pub(in crate::audit) fn slot_of(day: i32) -> i16 {
    i16::try_from(day.rem_euclid(SLOTS)).unwrap_or_default()
}

/// The date of a day, for messages.
pub(in crate::audit) fn date(day: i32) -> String {
    start_of_day(day).strftime("%Y-%m-%d").to_string()
}

/// Parses a date like `2030-02-05`.
pub fn parse_day(text: &str) -> Option<i32> {
    let date: jiff::civil::Date = text.parse().ok()?;
    let start = date.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
    Some(day_of(start.timestamp()))
}

/// The day of a time, as checkpoints and exports count it.
pub fn day_number(at: Timestamp) -> i32 {
    day_of(at)
}
