//! Ranges cover the test cards, do not overlap, and report changes.

use super::*;
use crate::cards::test_cards;
use crate::networks::NETWORKS;

const ENCODER: RangeEncoder<'static> = RangeEncoder {
    version: "2.2.0",
    acs_url: "https://127.0.0.1:1",
};

fn elements(download: Download) -> (String, Vec<Value>) {
    match download {
        Download::Elements { serial, elements } => (serial, elements),
        Download::UnknownSerial => panic!("the serial number is unknown"),
    }
}

#[test]
fn each_test_card_is_in_the_ranges_of_its_networks_only() {
    for network in NETWORKS {
        let ranges = Ranges::of(network);
        for card in test_cards() {
            let is_known = ranges.find(card.number).is_some();
            let is_owned = [card.network(), card.other_network()].contains(&Some(*network));
            assert_eq!(is_known, is_owned, "{} at {network}", card.number);
        }
        assert!(ranges.find("4100000000000003").is_none());
    }
}

#[test]
fn ranges_are_sorted_and_do_not_overlap() {
    for network in NETWORKS {
        let ranges = Ranges::of(network);
        assert!(!ranges.current.is_empty());
        for pair in ranges.current.windows(2) {
            assert!(pair[0].last < pair[1].first, "{network}: {pair:?}");
        }
    }
}

#[test]
fn digits_select_version_and_method() {
    let ranges = Ranges::of("visa");
    let of = |tail: &str| ranges.find(&format!("900010000004{tail}")).unwrap().clone();
    assert_eq!(of("1000").acs_end, "2.1.0");
    assert_eq!(of("2000").acs_start, "2.2.0");
    assert_eq!(of("3000").acs_start, "2.3.1");
    assert_eq!(of("0199").method, Method::Absent);
    assert_eq!(of("0200").method, Method::Silent);
    assert_eq!(of("0000").method, Method::Completes);
    let inverted = ranges.find("4200000000000013").unwrap();
    assert!(inverted.acs_end < inverted.acs_start);
}

#[test]
fn a_range_is_encoded_with_as_few_digits_as_possible() {
    let (first, last) = Range::new("4111111111111111", "4111111111111111")
        .unwrap()
        .numbers();
    assert_eq!(
        (first.as_str(), last.as_str()),
        ("4111111111111111", "4111111111111111")
    );
    let (first, last) = Range::new("4000000000000000", "4999999999999999")
        .unwrap()
        .numbers();
    assert_eq!(
        (first.as_str(), last.as_str()),
        ("4000000000000", "4999999999999")
    );
}

#[test]
fn changes_are_reported_by_serial_number() {
    let mut ranges = Ranges::of("visa");
    let (serial, all) = elements(ranges.download(None, &ENCODER));
    assert!(all.len() > 150);
    assert!(
        elements(ranges.download(Some(&serial), &ENCODER))
            .1
            .is_empty()
    );

    let added = Range::new("4100000000000003", "4100000000000003").unwrap();
    ranges.change(Action::Add, added.clone()).unwrap();
    assert!(matches!(
        ranges.change(Action::Add, added.clone()),
        Err(RangeError::Overlap)
    ));
    let (next, changes) = elements(ranges.download(Some(&serial), &ENCODER));
    assert_ne!(next, serial);
    assert_eq!(changes.len(), 1);
    assert_eq!(changes[0]["actionInd"], "A");
    assert!(ranges.find("4100000000000003").is_some());

    let modified = Range {
        method: Method::Absent,
        ..added.clone()
    };
    ranges.change(Action::Modify, modified).unwrap();
    let older = RangeEncoder {
        version: "2.1.0",
        ..ENCODER
    };
    let actions = |encoder: &RangeEncoder<'_>| -> Vec<Value> {
        let (_, changes) = elements(ranges.download(Some(&next), encoder));
        changes
            .iter()
            .map(|change| change["actionInd"].clone())
            .collect()
    };
    assert_eq!(actions(&ENCODER), ["M"]);
    assert_eq!(actions(&older), ["D", "A"]);

    ranges.change(Action::Delete, added.clone()).unwrap();
    assert!(matches!(
        ranges.change(Action::Delete, added),
        Err(RangeError::Unknown)
    ));
    assert_eq!(
        elements(ranges.download(Some(&serial), &ENCODER)).1.len(),
        3
    );

    ranges.invalidate_serials();
    assert!(matches!(
        ranges.download(Some(&serial), &ENCODER),
        Download::UnknownSerial
    ));
    let now = ranges.serial();
    assert!(elements(ranges.download(Some(&now), &ENCODER)).1.is_empty());
    assert!(matches!(
        ranges.download(Some("17"), &ENCODER),
        Download::UnknownSerial
    ));
}
