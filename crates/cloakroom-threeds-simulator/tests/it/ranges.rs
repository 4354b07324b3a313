//! Downloading card ranges.

use cloakroom_emv3ds::{MessageKind, PRes, RangeTable, Version};
use cloakroom_threeds_simulator::{NETWORKS, test_cards};
use serde_json::{Value, json};

use crate::stand_in::{Stage, new_id, start, text, with};

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

/// Asks and reads the answer as strictly as a 3DS Server does.
async fn download(stage: &Stage, network: &str, version: &str, serial: Option<&str>) -> PRes {
    let (_, answer) = stage
        .send(network, &preq(version, serial).to_string())
        .await
        .unwrap();
    let read = cloakroom_emv3ds::read(answer.as_bytes(), &[MessageKind::PRes], &Version::ALL);
    match read {
        Ok(cloakroom_emv3ds::Message::PRes(answer)) => answer,
        other => panic!("{other:?}: {}", &answer[..answer.len().min(400)]),
    }
}

#[tokio::test]
async fn every_network_tells_its_ranges_and_then_only_the_changes() {
    let stage = start().await;
    for network in NETWORKS {
        for version in ["2.1.0", "2.2.0", "2.3.1"] {
            let mut table = RangeTable::default();
            table
                .apply(&download(&stage, network, version, None).await, true)
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
            let nothing = download(&stage, network, version, Some(&serial)).await;
            assert!(nothing.card_range_data.is_none());

            let added =
                json!({"action": "add", "start": "9999990000000000", "end": "9999990000000099"});
            let path = format!("/control/ranges/{network}");
            assert_eq!(stage.control(&path, Some(added.clone())).await.0, 200);
            let delta = download(&stage, network, version, Some(&serial)).await;
            assert_eq!(delta.card_range_data.as_ref().map(Vec::len), Some(1));
            table.apply(&delta, false).unwrap();
            assert!(table.find("9999990000000007").is_some());

            let changes = [
                with(added.clone(), "action", "modify"),
                with(added, "action", "delete"),
            ];
            let serial = table.serial().unwrap().to_owned();
            for change in changes {
                assert_eq!(stage.control(&path, Some(change)).await.0, 200);
            }
            table
                .apply(
                    &download(&stage, network, version, Some(&serial)).await,
                    false,
                )
                .unwrap();
            assert!(table.find("9999990000000007").is_none());
        }
    }
}

#[tokio::test]
async fn a_card_that_breaks_the_3ds_server_has_an_inverted_span() {
    let stage = start().await;
    let mut table = RangeTable::default();
    table
        .apply(&download(&stage, "visa", "2.2.0", None).await, true)
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
async fn a_serial_number_that_nobody_gave_is_not_valid() {
    let stage = start().await;
    let answer = stage.exchange("visa", &preq("2.2.0", Some("17"))).await;
    assert_eq!(text(&answer, "errorCode"), Some("307"));

    let serial = download(&stage, "visa", "2.2.0", None)
        .await
        .serial_num
        .unwrap();
    assert_eq!(
        stage
            .control("/control/ranges/visa/forget", Some(json!({})))
            .await
            .0,
        200
    );
    let answer = stage.exchange("visa", &preq("2.2.0", Some(&serial))).await;
    assert_eq!(text(&answer, "errorCode"), Some("307"));
    assert_eq!(text(&answer, "errorComponent"), Some("D"));
    assert_eq!(text(&answer, "errorMessageType"), Some("PReq"));
}

#[tokio::test]
async fn impossible_changes_can_be_announced() {
    let stage = start().await;
    let mut table = RangeTable::default();
    table
        .apply(&download(&stage, "jcb", "2.2.0", None).await, true)
        .unwrap();
    let before = table.clone();
    let overlap = json!({"action": "add", "start": "3566002020360505", "end": "3566002020360505"});
    let path = "/control/ranges/jcb";
    assert_eq!(stage.control(path, Some(overlap.clone())).await.0, 409);
    let mut pretended = overlap;
    pretended["pretend"] = json!(true);
    assert_eq!(stage.control(path, Some(pretended)).await.0, 200);
    let delta = download(&stage, "jcb", "2.2.0", before.serial()).await;
    assert!(table.apply(&delta, false).is_err());
    assert_eq!(table, before);
}

#[tokio::test]
async fn who_shows_no_certificate_is_refused() {
    let stage = start().await;
    let message = preq("2.2.0", None).to_string();
    assert!(stage.send_without_certificate(&message).await.is_err());
    assert_eq!(stage.send("visa", &message).await.unwrap().0, 200);
    assert_eq!(
        stage.control("/control/messages", None).await.1["received"]["PReq"],
        1
    );
    assert_eq!(stage.send("nobody", &message).await.unwrap().0, 404);
}
