//! Card range downloads.

use cloakroom_emv3ds::{MessageKind, PRes, RangeTable, Version};
use cloakroom_threeds_simulator::{NETWORKS, test_cards};
use serde_json::{Value, json};

use crate::harness::{Harness, new_id, start, text, with};

fn preq(version: &str, serial: Option<&str>) -> Value {
    let message = json!({
        "messageType": "PReq", "messageVersion": version, "threeDSServerTransID": new_id(),
        "threeDSServerRefNumber": "ref", "threeDSServerOperatorID": "operator",
    });
    match serial {
        Some(serial) => with(message, "serialNum", serial),
        None => message,
    }
}

/// Downloads ranges, and validates the PRes as a 3DS Server does.
async fn download(harness: &Harness, network: &str, version: &str, serial: Option<&str>) -> PRes {
    let (_, response) = harness
        .send(network, &preq(version, serial).to_string())
        .await
        .unwrap();
    let read = cloakroom_emv3ds::read(response.as_bytes(), &[MessageKind::PRes], &Version::ALL);
    match read {
        Ok(cloakroom_emv3ds::Message::PRes(response)) => response,
        other => panic!("{other:?}: {}", &response[..response.len().min(400)]),
    }
}

#[tokio::test]
async fn every_network_returns_its_ranges_and_then_the_changes() {
    let harness = start().await;
    for network in NETWORKS {
        for version in ["2.1.0", "2.2.0", "2.3.1"] {
            let mut table = RangeTable::default();
            table
                .apply(&download(&harness, network, version, None).await, true)
                .unwrap();
            for card in test_cards() {
                let is_owned = [card.network(), card.other_network()].contains(&Some(*network));
                let range = table.find(card.number);
                assert_eq!(range.is_some(), is_owned, "{} at {network}", card.number);
                let has_url = range.is_some_and(|range| range.method_url.is_some());
                assert_eq!(
                    has_url,
                    is_owned && card.expected().has_method,
                    "{}",
                    card.number
                );
            }
            let serial = table.serial().unwrap().to_owned();
            let nothing = download(&harness, network, version, Some(&serial)).await;
            assert!(nothing.card_range_data.is_none());

            let added =
                json!({"action": "add", "start": "9999990000000000", "end": "9999990000000099"});
            let path = format!("/control/ranges/{network}");
            assert_eq!(harness.control(&path, Some(added.clone())).await.0, 200);
            let delta = download(&harness, network, version, Some(&serial)).await;
            assert_eq!(delta.card_range_data.as_ref().map(Vec::len), Some(1));
            table.apply(&delta, false).unwrap();
            assert!(table.find("9999990000000007").is_some());

            let changes = [
                with(added.clone(), "action", "modify"),
                with(added, "action", "delete"),
            ];
            let serial = table.serial().unwrap().to_owned();
            for change in changes {
                assert_eq!(harness.control(&path, Some(change)).await.0, 200);
            }
            table
                .apply(
                    &download(&harness, network, version, Some(&serial)).await,
                    false,
                )
                .unwrap();
            assert!(table.find("9999990000000007").is_none());
        }
    }
}

#[tokio::test]
async fn the_internal_error_card_has_an_inverted_version_span() {
    let harness = start().await;
    let mut table = RangeTable::default();
    table
        .apply(&download(&harness, "visa", "2.2.0", None).await, true)
        .unwrap();
    for number in ["4264281500001119", "4200000000000013"] {
        assert!(!table.find(number).unwrap().acs.is_sound());
    }
    assert!(table.find("4100000000000003").is_none());
    let all = &Version::ALL;
    let versions = |number: &str| table.find(number).unwrap().common_versions(all);
    assert_eq!(versions("9000100000000000"), Version::ALL);
    assert_eq!(versions("9000100000031000"), [Version::V2_1_0]);
    assert_eq!(versions("9000100000002000"), [Version::V2_2_0]);
    assert_eq!(versions("9000100000003000"), [Version::V2_3_1]);
}

#[tokio::test]
async fn unknown_serial_numbers_are_rejected() {
    let harness = start().await;
    let response = harness.exchange("visa", &preq("2.2.0", Some("17"))).await;
    assert_eq!(text(&response, "errorCode"), Some("307"));

    let serial = download(&harness, "visa", "2.2.0", None)
        .await
        .serial_num
        .unwrap();
    assert_eq!(
        harness
            .control("/control/ranges/visa/forget", Some(json!({})))
            .await
            .0,
        200
    );
    let response = harness
        .exchange("visa", &preq("2.2.0", Some(&serial)))
        .await;
    assert_eq!(text(&response, "errorCode"), Some("307"));
    assert_eq!(text(&response, "errorComponent"), Some("D"));
    assert_eq!(text(&response, "errorMessageType"), Some("PReq"));
}

#[tokio::test]
async fn invalid_changes_can_be_announced() {
    let harness = start().await;
    let mut table = RangeTable::default();
    table
        .apply(&download(&harness, "jcb", "2.2.0", None).await, true)
        .unwrap();
    let before = table.clone();
    let overlap = json!({"action": "add", "start": "3566002020360505", "end": "3566002020360505"});
    let path = "/control/ranges/jcb";
    assert_eq!(harness.control(path, Some(overlap.clone())).await.0, 409);
    let mut pretended = overlap;
    pretended["pretend"] = json!(true);
    assert_eq!(harness.control(path, Some(pretended)).await.0, 200);
    let delta = download(&harness, "jcb", "2.2.0", before.serial()).await;
    assert!(table.apply(&delta, false).is_err());
    assert_eq!(table, before);
}

#[tokio::test]
async fn connections_without_certificate_are_rejected() {
    let harness = start().await;
    let message = preq("2.2.0", None).to_string();
    assert!(harness.send_without_certificate(&message).await.is_err());
    assert_eq!(harness.send("visa", &message).await.unwrap().0, 200);
    assert_eq!(
        harness.control("/control/messages", None).await.1["received"]["PReq"],
        1
    );
    assert_eq!(harness.send("unknown", &message).await.unwrap().0, 404);
}
