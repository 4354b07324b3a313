//! Which ranges a directory server has when it starts.

use super::{Method, Range};
use crate::behaviour::DIGITS_BIN;
use crate::cards::{Scenario, TestCard, test_cards};
use crate::networks;

/// Ranges of the test cards and of the digits, and between them one range for each gap.
pub(super) fn of(network: &str) -> Vec<Range> {
    let mut ranges: Vec<Range> = test_cards()
        .iter()
        .filter(|card| [card.network(), card.other_network()].contains(&Some(network)))
        .filter_map(of_card)
        .collect();
    if network == "visa" {
        ranges.extend(of_digits());
    }
    let mut taken: Vec<(u64, u64)> = ranges.iter().chain(&holes()).map(ends).collect();
    taken.sort_unstable();
    for (first, last) in networks::beginnings(network) {
        ranges.extend(gaps(&whole(first, last), &taken));
    }
    ranges.sort_by_key(|range| range.first);
    ranges
}

fn of_card(card: &TestCard) -> Option<Range> {
    let mut range = Range::new(card.number, card.number).ok()?;
    if !card.expected().has_method {
        range.method = Method::Absent;
    }
    if card.scenario == Scenario::InternalError {
        // No version can be chosen out of this: that is the 3DS Server's internal error.
        range.acs_start = "2.2.0".to_owned();
        range.acs_end = "2.1.0".to_owned();
    }
    Some(range)
}

/// By the digits `v` and `m`.
const VERSIONS: [(&str, &str); 4] = [
    ("2.1.0", "2.3.1"),
    ("2.1.0", "2.1.0"),
    ("2.2.0", "2.2.0"),
    ("2.3.1", "2.3.1"),
];
const METHODS: [Method; 3] = [Method::Answers, Method::Absent, Method::Silent];

/// The digit before the last four may be any, so that one number of ten passes the Luhn check.
fn of_digits() -> Vec<Range> {
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

/// Numbers that must be in no range.
fn holes() -> Vec<Range> {
    test_cards()
        .iter()
        .filter(|card| card.scenario == Scenario::WithoutThreeds)
        .filter_map(|card| Range::new(card.number, card.number).ok())
        .collect()
}

fn whole(first: &str, last: &str) -> (u64, u64) {
    let filled = |text: &str, with| super::padded(text, with).unwrap_or_default();
    (filled(first, '0'), filled(last, '9'))
}

fn ends(range: &Range) -> (u64, u64) {
    (range.first, range.last)
}

/// What is left of a stretch of numbers when the taken ones are cut out, in order.
fn gaps(whole: &(u64, u64), taken: &[(u64, u64)]) -> Vec<Range> {
    let mut left = Vec::new();
    let mut next = whole.0;
    let inside = taken
        .iter()
        .filter(|(first, last)| *first <= whole.1 && *last >= whole.0);
    for (first, last) in inside {
        if next < *first {
            left.push((next, first - 1));
        }
        next = last.saturating_add(1);
    }
    if next <= whole.1 {
        left.push((next, whole.1));
    }
    left.into_iter()
        .map(|(first, last)| Range {
            first,
            last,
            acs_start: "2.1.0".to_owned(),
            acs_end: "2.3.1".to_owned(),
            method: Method::Answers,
        })
        .collect()
}
