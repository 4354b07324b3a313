//! The initial ranges of a DS.

use super::{Method, Range};
use crate::behavior::DIGITS_BIN;
use crate::cards::{Scenario, TestCard, test_cards};
use crate::networks;

/// Ranges of the test cards and of the digits BIN, and a range for each gap between them.
pub(super) fn ranges(network: &str) -> Vec<Range> {
    let mut ranges: Vec<Range> = test_cards()
        .iter()
        .filter(|card| [card.network(), card.other_network()].contains(&Some(network)))
        .filter_map(for_card)
        .collect();
    if network == "visa" {
        ranges.extend(for_digits_bin());
    }
    let mut taken: Vec<(u64, u64)> = ranges.iter().chain(&excluded()).map(bounds).collect();
    taken.sort_unstable();
    for (first, last) in networks::prefixes(network) {
        ranges.extend(gaps(pad(first, '0'), pad(last, '9'), &taken));
    }
    ranges.sort_by_key(|range| range.first);
    ranges
}

fn for_card(card: &TestCard) -> Option<Range> {
    let mut range = Range::new(card.number, card.number).ok()?;
    if !card.expected().has_method {
        range.method = Method::Absent;
    }
    if card.scenario == Scenario::InternalError {
        // An inverted version range makes version negotiation in the 3DS Server fail.
        range.acs_start = "2.2.0".to_owned();
        range.acs_end = "2.1.0".to_owned();
    }
    Some(range)
}

/// ACS versions and 3DS Methods by the digits `v` and `m`.
const VERSIONS: [(&str, &str); 4] = [
    ("2.1.0", "2.3.1"),
    ("2.1.0", "2.1.0"),
    ("2.2.0", "2.2.0"),
    ("2.3.1", "2.3.1"),
];
const METHODS: [Method; 3] = [Method::Completes, Method::Absent, Method::Silent];

/// The digit before the last four is free, so that one of ten numbers passes the Luhn check.
fn for_digits_bin() -> Vec<Range> {
    let mut ranges = Vec::new();
    for free in 0..10 {
        for (v, (start, end)) in VERSIONS.iter().enumerate() {
            for (m, method) in METHODS.iter().enumerate() {
                let head = format!("{DIGITS_BIN}00000{free}{v}{m}");
                let range = Range::new(&format!("{head}00"), &format!("{head}99"));
                ranges.extend(range.map(|range| Range {
                    acs_start: (*start).to_owned(),
                    acs_end: (*end).to_owned(),
                    method: *method,
                    ..range
                }));
            }
        }
    }
    ranges
}

/// Numbers that must not be in any range.
fn excluded() -> Vec<Range> {
    test_cards()
        .iter()
        .filter(|card| card.scenario == Scenario::WithoutThreeds)
        .filter_map(|card| Range::new(card.number, card.number).ok())
        .collect()
}

fn pad(prefix: &str, with: char) -> u64 {
    super::padded(prefix, with).unwrap_or_default()
}

fn bounds(range: &Range) -> (u64, u64) {
    (range.first, range.last)
}

/// The numbers from `start` to `end` that are not in `taken`, which is sorted.
fn gaps(start: u64, end: u64, taken: &[(u64, u64)]) -> Vec<Range> {
    let mut left = Vec::new();
    let mut next = start;
    let inside = taken
        .iter()
        .filter(|(first, last)| *first <= end && *last >= start);
    for (first, last) in inside {
        if next < *first {
            left.push((next, first - 1));
        }
        next = last.saturating_add(1);
    }
    if next <= end {
        left.push((next, end));
    }
    left.into_iter()
        .map(|(first, last)| Range {
            first,
            last,
            acs_start: "2.1.0".to_owned(),
            acs_end: "2.3.1".to_owned(),
            method: Method::Completes,
        })
        .collect()
}
