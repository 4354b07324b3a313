//! The card ranges of a directory server, against a model that is too simple to be wrong.

use cloakroom_emv3ds::{PRes, RangeTable, Version};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::samples::{DS_ID, SERVER_ID, object};

fn answer(version: Version, serial: &str, elements: Vec<Value>) -> PRes {
    let mut fields = json!({
        "messageVersion": version, "threeDSServerTransID": SERVER_ID, "dsTransID": DS_ID,
        "serialNum": serial,
    });
    if version == Version::V2_3_1 {
        fields["dsProtocolVersions"] = json!(["2.3.1", "2.2.0"]);
    } else {
        fields["dsStartProtocolVersion"] = "2.1.0".into();
        fields["dsEndProtocolVersion"] = "2.2.0".into();
    }
    if !elements.is_empty() {
        fields["cardRangeData"] = elements.into();
    }
    PRes::from_object(object(fields)).unwrap()
}

fn range(start: &str, end: &str, action: &str) -> Value {
    json!({
        "startRange": start, "endRange": end, "actionInd": action,
        "acsStartProtocolVersion": "2.1.0", "acsEndProtocolVersion": "2.2.0",
    })
}

fn several(ranges: &[(&str, &str)], action: &str) -> Value {
    let ranges: Vec<_> = ranges
        .iter()
        .map(|(s, e)| json!({"startRange": s, "endRange": e}))
        .collect();
    json!({
        "ranges": ranges, "actionInd": action,
        "acsProtocolVersions": [
            {"version": "2.2.0", "acsInfoInd": ["01"], "threeDSMethodURL": "https://acs.example/220"},
            {"version": "2.3.1", "acsInfoInd": ["01", "03"]},
            {"version": "2.1.0"},
        ],
    })
}

#[test]
fn a_number_is_found_in_its_range_whatever_its_length() {
    let mut table = RangeTable::default();
    assert!(table.is_empty() && table.serial().is_none());
    assert!(table.find("4000000000000000").is_none());
    let ranges = vec![
        range("4000000000000000", "4000009999999999", "A"),
        range("5100000000000", "5199999999999", "A"),
        range("6011000000000000000", "6011000000000000999", "A"),
        range("6011100000000000", "6011100000000000", "A"),
    ];
    table
        .apply(&answer(Version::V2_2_0, "1", ranges), true)
        .unwrap();
    let start = |number| table.find(number).map(|range| range.start.as_str());
    for (number, found) in [
        ("4000000000000000", Some("4000000000000000")),
        ("4000009999999999", Some("4000000000000000")),
        ("4000010000000000", None),
        ("3999999999999999", None),
        ("4000000000000", Some("4000000000000000")),
        ("4000009999999999999", Some("4000000000000000")),
        ("4000010000000000000", None),
        ("5199999999999999999", Some("5100000000000")),
        ("5100000000000000", Some("5100000000000")),
        ("5200000000000000", None),
        ("6011000000000000", Some("6011000000000000000")),
        ("6011000000000000998", Some("6011000000000000000")),
        ("6011000000000001", None),
        ("6011100000000000", Some("6011100000000000")),
        ("6011100000000000999", Some("6011100000000000")),
        ("6011100000000001", None),
        ("", None),
        ("4000 0000 0000 00", None),
        ("40000000000000000000", None),
    ] {
        assert_eq!(start(number), found, "{number}");
    }
    assert_eq!((table.len(), table.serial()), (4, Some("1")));
}

#[test]
fn a_range_tells_versions_and_addresses() {
    let mut table = RangeTable::default();
    let mut own = range("4000000000000000", "4000009999999999", "A");
    own["dsEndProtocolVersion"] = "2.1.0".into();
    own["acsInfoInd"] = json!(["01", "80"]);
    own["threeDSMethodURL"] = "https://acs.example/method".into();
    table
        .apply(&answer(Version::V2_2_0, "1", vec![own]), true)
        .unwrap();
    let found = table.find("4000000000000000").unwrap();
    assert_eq!(
        found.directory_server.end.to_string(),
        "2.1.0",
        "that of the range goes first"
    );
    assert_eq!(found.directory_server.start.to_string(), "2.1.0");
    assert_eq!(found.acs_information, ["01", "80"]);
    assert_eq!(
        found.method_url_in(Version::V2_2_0),
        Some("https://acs.example/method")
    );
    assert_eq!(found.common_versions(&Version::ALL), [Version::V2_1_0]);

    let ranges = [
        ("4100000000000000", "4100009999999999"),
        ("4200000000000000", "4200009999999999"),
    ];
    let newest = answer(Version::V2_3_1, "2", vec![several(&ranges, "A")]);
    table.apply(&newest, true).unwrap();
    assert_eq!(table.len(), 2, "a full answer replaces everything");
    let found = table.find("4200000000000000").unwrap();
    assert_eq!(found.acs.start.to_string(), "2.1.0");
    assert_eq!(found.acs.end.to_string(), "2.3.1");
    assert_eq!(found.acs_information, ["01", "03"]);
    assert_eq!(found.method_url, None);
    assert_eq!(
        found.method_url_in(Version::V2_2_0),
        Some("https://acs.example/220")
    );
    assert_eq!(found.acs_information_in(Version::V2_2_0), ["01"]);
    assert_eq!(
        found.common_versions(&Version::ALL),
        [Version::V2_2_0, Version::V2_3_1]
    );
}

#[test]
fn what_does_not_fit_changes_nothing() {
    let known = ("4000000000000000", "4000009999999999");
    let inside = ("4000001000000000", "4000001999999999");
    for version in Version::ALL {
        let newest = version == Version::V2_3_1;
        let element = |(start, end), action| {
            if newest {
                several(&[(start, end)], action)
            } else {
                range(start, end, action)
            }
        };
        let mut table = RangeTable::default();
        table
            .apply(&answer(version, "1", vec![element(known, "A")]), true)
            .unwrap();
        let (overlap, action) = if newest {
            ("205", "206")
        } else {
            ("203", "203")
        };
        for (is_full, change, wrong, code) in [
            (false, "A", known, overlap),
            (false, "A", inside, overlap),
            (
                false,
                "A",
                ("3999999999999999", "4000000000000000"),
                overlap,
            ),
            (
                false,
                "A",
                ("4000009999999999", "4000010000000000"),
                overlap,
            ),
            (
                false,
                "A",
                ("3000000000000000", "5000000000000000"),
                overlap,
            ),
            (
                false,
                "A",
                ("4000009999999999999", "4000010000000000000"),
                overlap,
            ),
            (false, "D", inside, action),
            (false, "D", ("4000000000000000", "4000008999999999"), action),
            (true, "D", known, action),
            (false, "A", ("5000000000000000", "4999999999999999"), "203"),
            (false, "A", ("5000000000000", "50000000000000"), "203"),
        ] {
            let fine = element(("5500000000000000", "5500000000000001"), "A");
            let changes = answer(version, "2", vec![fine, element(wrong, change)]);
            let before = table.clone();
            let fault = table.apply(&changes, is_full).unwrap_err();
            assert_eq!(fault.code.code(), code, "{version} {change} {wrong:?}");
            assert!(fault.about.is_some() && fault.ids.ds_trans_id.is_some());
            assert_eq!(table, before);
        }
        if version > Version::V2_1_0 {
            let fault = table.apply(&answer(version, "2", vec![element(inside, "M")]), false);
            assert_eq!(fault.unwrap_err().code.code(), action);
        }
    }
}

#[test]
fn changes_apply_in_order_and_outlive_a_restart() {
    let mut table = RangeTable::default();
    let known = ("4000000000000000", "4000009999999999");
    table
        .apply(
            &answer(Version::V2_2_0, "1", vec![range(known.0, known.1, "A")]),
            true,
        )
        .unwrap();
    let mut modified = range("4000000000000000", "4000004999999999", "M");
    modified["acsInfoInd"] = json!(["03"]);
    let changes = vec![
        range(known.0, known.1, "D"),
        range("4000000000000000", "4000004999999999", "A"),
        range("4000005000000000", "4000009999999999", "A"),
        modified,
    ];
    table
        .apply(&answer(Version::V2_2_0, "2", changes), false)
        .unwrap();
    assert_eq!((table.len(), table.serial()), (2, Some("2")));
    assert_eq!(
        table.find("4000000000000000").unwrap().acs_information,
        ["03"]
    );
    table
        .apply(&answer(Version::V2_2_0, "3", vec![]), false)
        .unwrap();
    assert_eq!(
        (table.len(), table.serial()),
        (2, Some("3")),
        "nothing changed"
    );
    let kept = serde_json::to_string(&table).unwrap();
    assert_eq!(serde_json::from_str::<RangeTable>(&kept).unwrap(), table);
    let starts: Vec<_> = table.iter().map(|range| range.start.as_str()).collect();
    assert_eq!(starts, ["4000000000000000", "4000005000000000"]);
}

/// A small world of numbers, so that changes meet each other.
fn bounds() -> impl Strategy<Value = (u64, u64)> {
    (0u64..40, 0u64..6).prop_map(|(start, length)| (start, start + length))
}

fn number(small: u64) -> String {
    format!("400000000000{small:04}")
}

/// A list of ranges, searched from one end to the other.
#[derive(Clone, Default)]
struct Model(Vec<(u64, u64, String)>);

impl Model {
    fn act(&mut self, action: &str, (start, end): (u64, u64), mark: &str) -> bool {
        let place = self.0.iter().position(|(s, e, _)| (*s, *e) == (start, end));
        match (action, place) {
            ("A", _) if self.0.iter().all(|(s, e, _)| *e < start || end < *s) => {
                self.0.push((start, end, mark.to_owned()));
            }
            ("D", Some(place)) => {
                self.0.remove(place);
            }
            ("M", Some(place)) => self.0[place].2 = mark.to_owned(),
            _ => return false,
        }
        true
    }
}

proptest! {
    #[test]
    fn the_table_is_what_a_plain_list_would_be(
        answers in vec((any::<bool>(), vec((prop::sample::select(&["A", "A", "A", "D", "M"][..]), bounds()), 0..6)), 1..20)
    ) {
        let mut table = RangeTable::default();
        let mut model = Model::default();
        for (step, (is_full, changes)) in answers.into_iter().enumerate() {
            let is_full = is_full && step % 4 == 0;
            let mark = format!("{:02}", step + 10);
            let mut next = if is_full { Model::default() } else { model.clone() };
            let fits = changes.iter().all(|(action, bounds)| next.act(action, *bounds, &mark));
            let elements = changes.iter().map(|(action, (start, end))| {
                let mut element = range(&number(*start), &number(*end), action);
                element["acsInfoInd"] = json!([mark]);
                element
            });
            let answer = answer(Version::V2_2_0, &mark, elements.collect());
            prop_assert_eq!(table.apply(&answer, is_full).is_ok(), fits);
            if fits {
                model = next;
                prop_assert_eq!(table.serial(), Some(mark.as_str()));
            }
            prop_assert_eq!(table.len(), model.0.len());
            for small in 0..50 {
                let expected = model.0.iter().find(|(s, e, _)| (*s..=*e).contains(&small));
                let found = table.find(&number(small));
                let told = found.map(|range| (range.start.clone(), range.end.clone(), range.acs_information[0].clone()));
                prop_assert_eq!(told, expected.map(|(s, e, mark)| (number(*s), number(*e), mark.clone())));
            }
        }
    }
}
