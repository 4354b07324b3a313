//! The card range table of a DS.

mod model;

use cloakroom_emv3ds::{PRes, RangeTable, Version};
use serde_json::{Value, json};

use crate::samples::{DS_ID, SERVER_ID, object};

fn pres(version: Version, serial: &str, elements: Vec<Value>) -> PRes {
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

fn range_group(ranges: &[(&str, &str)], action: &str) -> Value {
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
fn a_card_number_of_any_length_is_found_in_its_range() {
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
        .apply(&pres(Version::V2_2_0, "1", ranges), true)
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
fn a_range_has_versions_and_method_urls() {
    let mut table = RangeTable::default();
    let mut own = range("4000000000000000", "4000009999999999", "A");
    own["dsEndProtocolVersion"] = "2.1.0".into();
    own["acsInfoInd"] = json!(["01", "80"]);
    own["threeDSMethodURL"] = "https://acs.example/method".into();
    table
        .apply(&pres(Version::V2_2_0, "1", vec![own]), true)
        .unwrap();
    let found = table.find("4000000000000000").unwrap();
    assert_eq!(
        found.directory_server.end.to_string(),
        "2.1.0",
        "the range overrides the message"
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
    let newest = pres(Version::V2_3_1, "2", vec![range_group(&ranges, "A")]);
    table.apply(&newest, true).unwrap();
    assert_eq!(table.len(), 2, "a full download replaces all ranges");
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
fn an_invalid_update_leaves_the_table_unchanged() {
    let known = ("4000000000000000", "4000009999999999");
    let inside = ("4000001000000000", "4000001999999999");
    for version in Version::ALL {
        let newest = version == Version::V2_3_1;
        let element = |(start, end), action| {
            if newest {
                range_group(&[(start, end)], action)
            } else {
                range(start, end, action)
            }
        };
        let mut table = RangeTable::default();
        table
            .apply(&pres(version, "1", vec![element(known, "A")]), true)
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
            let changes = pres(version, "2", vec![fine, element(wrong, change)]);
            let before = table.clone();
            let fault = table.apply(&changes, is_full).unwrap_err();
            assert_eq!(fault.code.code(), code, "{version} {change} {wrong:?}");
            assert!(fault.about.is_some() && fault.ids.ds_trans_id.is_some());
            assert_eq!(table, before);
        }
        if version > Version::V2_1_0 {
            let fault = table.apply(&pres(version, "2", vec![element(inside, "M")]), false);
            assert_eq!(fault.unwrap_err().code.code(), action);
        }
    }
}

#[test]
fn changes_apply_in_order_and_survive_serialization() {
    let mut table = RangeTable::default();
    let known = ("4000000000000000", "4000009999999999");
    table
        .apply(
            &pres(Version::V2_2_0, "1", vec![range(known.0, known.1, "A")]),
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
        .apply(&pres(Version::V2_2_0, "2", changes), false)
        .unwrap();
    assert_eq!((table.len(), table.serial()), (2, Some("2")));
    assert_eq!(
        table.find("4000000000000000").unwrap().acs_information,
        ["03"]
    );
    table
        .apply(&pres(Version::V2_2_0, "3", vec![]), false)
        .unwrap();
    assert_eq!(
        (table.len(), table.serial()),
        (2, Some("3")),
        "nothing changed"
    );
    let stored = serde_json::to_string(&table).unwrap();
    assert_eq!(serde_json::from_str::<RangeTable>(&stored).unwrap(), table);
    let starts: Vec<_> = table.iter().map(|range| range.start.as_str()).collect();
    assert_eq!(starts, ["4000000000000000", "4000005000000000"]);
}
