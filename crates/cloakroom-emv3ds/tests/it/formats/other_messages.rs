//! Accepted values of messages other than the `AReq`, taken from the specification.

use cloakroom_emv3ds::{MessageKind, Version, field, field_for};
use serde_json::json;

/// Message type, path, accepted values, rejected values.
type Values = (
    MessageKind,
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
);

const OTHER_MESSAGES: &[Values] = &[
    (MessageKind::ARes, "eci", &["05", "N0"], &["5", "005", "é0"]),
    (
        MessageKind::ARes,
        "transStatusReason",
        &["01", "26", "80", "99"],
        &["1", "100", "A1"],
    ),
    (
        MessageKind::ARes,
        "acsChallengeMandated",
        &["Y", "N"],
        &["U"],
    ),
    (MessageKind::ARes, "acsDecConInd", &["Y", "N"], &["U"]),
    (
        MessageKind::ARes,
        "authenticationType",
        &["01", "04", "99"],
        &["1", "004"],
    ),
    (
        MessageKind::ARes,
        "whiteListStatus",
        &["Y", "N", "E", "P", "R", "U"],
        &["X", "y"],
    ),
    (
        MessageKind::ARes,
        "whiteListStatusSource",
        &["01", "02", "03"],
        &["04", "1"],
    ),
    (
        MessageKind::ARes,
        "acsURL",
        &["https://acs.example/c"],
        &["acs.example"],
    ),
    (MessageKind::RReq, "messageCategory", &["01", "02"], &["03"]),
    (
        MessageKind::RReq,
        "interactionCounter",
        &["00", "99"],
        &["0", "100", "-1"],
    ),
    (
        MessageKind::RReq,
        "challengeCancel",
        &["01", "10"],
        &["1", "x1"],
    ),
    (
        MessageKind::RRes,
        "resultsStatus",
        &["01", "02", "03"],
        &["04", "00", "1"],
    ),
    (
        MessageKind::CReq,
        "challengeWindowSize",
        &["01", "05"],
        &["00", "06", "5"],
    ),
    (
        MessageKind::CRes,
        "challengeCompletionInd",
        &["Y"],
        &["N", "y"],
    ),
    (
        MessageKind::PReq,
        "serialNum",
        &["1", "12345678901234567890"],
        &["123456789012345678901"],
    ),
    (
        MessageKind::PRes,
        "cardRangeData.startRange",
        &["4000000000000"],
        &["400000000000", "4x"],
    ),
    (
        MessageKind::PRes,
        "cardRangeData.endRange",
        &["4999999999999999999"],
        &["49999999999999999999"],
    ),
    (
        MessageKind::PRes,
        "cardRangeData.actionInd",
        &["A", "D", "M"],
        &["a", "X"],
    ),
    (
        MessageKind::PRes,
        "cardRangeData.acsEndProtocolVersion",
        &["2.2.0", "3.10.12"],
        &["2.2", "2"],
    ),
    (
        MessageKind::Erro,
        "errorCode",
        &["101", "405", "999"],
        &["1", "1010", "A01"],
    ),
    (
        MessageKind::Erro,
        "errorComponent",
        &["C", "S", "D", "A"],
        &["X", "s"],
    ),
    (
        MessageKind::Erro,
        "errorMessageType",
        &["AReq", "OReq"],
        &["Areq1", "A"],
    ),
];

#[test]
fn values_of_other_messages_match_the_specification() {
    for (kind, path, good, bad) in OTHER_MESSAGES {
        let format = field(*kind, path).unwrap().format;
        for text in *good {
            assert!(format.accepts(&json!(text)), "{kind} {path} {text}");
        }
        for text in bad.iter().chain(&[""]) {
            assert!(!format.accepts(&json!(text)), "{kind} {path} {text}");
        }
    }
    for (kind, path, max) in [
        (MessageKind::ARes, "cardholderInfo", 128),
        (MessageKind::ARes, "acsReferenceNumber", 32),
        (MessageKind::ARes, "dsReferenceNumber", 32),
        (MessageKind::ARes, "acsOperatorID", 32),
        (MessageKind::PReq, "threeDSServerRefNumber", 32),
        (MessageKind::PReq, "threeDSServerOperatorID", 32),
        (MessageKind::Erro, "errorDescription", 2048),
        (MessageKind::Erro, "errorDetail", 2048),
    ] {
        let format = field(kind, path).unwrap().format;
        assert!(format.accepts(&json!("ä".repeat(max))), "{kind} {path}");
        assert!(
            !format.accepts(&json!("ä".repeat(max + 1))),
            "{kind} {path}"
        );
    }
    let oldest = field_for(
        MessageKind::PRes,
        "cardRangeData.actionInd",
        Version::V2_1_0,
        None,
    );
    assert!(!oldest.unwrap().format.accepts(&json!("M")));
}
