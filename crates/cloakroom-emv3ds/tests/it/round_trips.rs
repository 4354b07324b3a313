//! Written messages are read back unchanged, and unknown fields are ignored.

use cloakroom_emv3ds::{AReq, Message, MessageKind, Version, read, write};
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};

use crate::generate::{any_message, message};
use crate::samples::{Case, all, areq, object, text};
use crate::values;

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn a_written_message_is_read_back_unchanged((kind, fields) in any_message()) {
        let made = message(kind, fields.clone());
        prop_assert!(made.is_ok(), "{kind}: {:?}", made.err());
        let made = made.unwrap();
        let written = write(&made).unwrap();
        prop_assert_eq!(object(serde_json::from_str(&written).unwrap()), fields.clone());
        let start = format!("{{\"messageType\":\"{kind}\",");
        prop_assert!(written.starts_with(&start));
        let mut noncritical = fields;
        for extension in noncritical.get_mut("messageExtension").and_then(Value::as_array_mut).into_iter().flatten() {
            extension["criticalityIndicator"] = false.into();
        }
        let made = message(kind, noncritical).unwrap();
        let written = write(&made).unwrap();
        prop_assert_eq!(read(written.as_bytes(), &[kind], &Version::ALL), Ok(made));
    }

    #[test]
    fn unknown_fields_are_ignored_when_reading(
        (kind, fields) in any_message(),
        name in "[a-z]{1,4}X",
        value in values::any_json(),
    ) {
        let without = read(&text(&fields), &[kind], &Version::ALL);
        let mut more = fields;
        more.insert(name, value.clone());
        for inner in more.values_mut().filter_map(Value::as_object_mut) {
            if inner.contains_key("cc") || inner.contains_key("acsInterface") {
                inner.insert("unheardOf".to_owned(), value.clone());
            }
        }
        prop_assert_eq!(read(&text(&more), &[kind], &Version::ALL), without);
        let fault = message(kind, more).unwrap_err();
        prop_assert_eq!(fault.code.code(), "203");
    }

    #[test]
    fn a_corrupted_message_is_rejected_or_round_trips(
        (_, fields) in any_message(),
        corruptions in proptest::collection::vec((any::<Index>(), 0..3, any::<u8>()), 1..4),
    ) {
        let mut corrupted = text(&fields);
        for (place, how, byte) in corruptions {
            let place = place.index(corrupted.len());
            match how {
                0 => corrupted[place] = byte,
                1 => corrupted.insert(place, byte),
                _ => drop(corrupted.remove(place)),
            }
        }
        if let Ok(read_once) = read(&corrupted, &MessageKind::ALL, &Version::ALL) {
            let written = write(&read_once).unwrap();
            prop_assert_eq!(read(written.as_bytes(), &MessageKind::ALL, &Version::ALL), Ok(read_once));
        }
    }

    #[test]
    fn random_bytes_are_rejected(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        prop_assert_eq!(read(&bytes, &MessageKind::ALL, &Version::ALL).unwrap_err().code.code(), "101");
    }
}

#[test]
fn fields_of_other_versions_and_channels_are_ignored_when_reading_and_rejected_when_writing() {
    let case = |version, channel| Case {
        version,
        channel,
        category: "02",
        indicator: "04",
    };
    for (case, name, value) in [
        (
            case(Version::V2_1_0, "02"),
            "browserJavascriptEnabled",
            json!(true),
        ),
        (
            case(Version::V2_1_0, "02"),
            "threeDSRequestorDecReqInd",
            json!("Y"),
        ),
        (case(Version::V2_1_0, "03"), "purchaseAmount", json!("1")),
        (case(Version::V2_2_0, "02"), "acceptLanguage", json!(["de"])),
        (case(Version::V2_3_1, "02"), "whiteListStatus", json!("Y")),
        (
            case(Version::V2_2_0, "02"),
            "sdkTransID",
            json!("not even an id"),
        ),
        (case(Version::V2_2_0, "03"), "browserIP", json!("192.0.2.1")),
        (
            case(Version::V2_2_0, "03"),
            "threeDSRequestorChallengeInd",
            json!("02"),
        ),
        (case(Version::V2_2_0, "03"), "notificationURL", json!(7)),
    ] {
        let mut fields = areq(case);
        let without = read(&text(&fields), &[MessageKind::AReq], &Version::ALL).unwrap();
        fields.insert(name.to_owned(), value);
        let with = read(&text(&fields), &[MessageKind::AReq], &Version::ALL).unwrap();
        assert_eq!(with, without, "{case:?} {name}");
        let fault = AReq::from_object(fields).unwrap_err();
        assert_eq!((fault.code.code(), fault.detail.as_str()), ("203", name));
    }
    let mut request = AReq::from_object(areq(case(Version::V2_1_0, "02"))).unwrap();
    request.browser_javascript_enabled = Some(true);
    assert_eq!(
        write(&request.into()).unwrap_err().detail,
        "browserJavascriptEnabled"
    );
}

#[test]
fn three_ri_payments_are_rejected_in_2_1_0() {
    let mut fields = areq(Case {
        version: Version::V2_1_0,
        channel: "03",
        category: "02",
        indicator: "03",
    });
    assert!(AReq::from_object(fields.clone()).is_ok());
    fields["messageCategory"] = "01".into();
    fields.extend(object(json!({
        "acquirerBIN": "1", "acquirerMerchantID": "1", "mcc": "5411", "merchantCountryCode": "826", "merchantName": "x",
    })));
    let fault = AReq::from_object(fields).unwrap_err();
    assert_eq!(
        (fault.code.code(), fault.detail.as_str()),
        ("203", "messageCategory")
    );
}

#[test]
fn message_type_and_version_are_validated() {
    let mut fields = areq(Case {
        version: Version::V2_2_0,
        channel: "02",
        category: "01",
        indicator: "01",
    });
    fields.shift_remove("messageType");
    assert!(
        AReq::from_object(fields.clone()).is_ok(),
        "messageType is optional"
    );
    fields.insert("messageType".into(), "ARes".into());
    assert_eq!(
        AReq::from_object(fields.clone()).unwrap_err().code.code(),
        "101"
    );
    fields["messageType"] = "AReq".into();
    fields["messageVersion"] = "2.0.0".into();
    assert_eq!(AReq::from_object(fields).unwrap_err().code.code(), "102");
}

#[test]
fn an_invalid_message_is_not_written() {
    for (kind, _, sample) in all() {
        let mut fields = sample;
        fields["messageVersion"] = "2.2.0".into();
        let Ok(Message::CReq(mut request)) = message(kind, fields) else {
            continue;
        };
        request.challenge_window_size = "06".to_owned();
        assert_eq!(
            write(&request.clone().into()).unwrap_err().detail,
            "challengeWindowSize"
        );
        request.challenge_window_size = String::new();
        request.acs_trans_id = "4111111111111111".to_owned();
        let fault = write(&request.into()).unwrap_err();
        assert_eq!(fault.detail, "acsTransID,challengeWindowSize");
        assert_eq!(
            fault.ids.acs_trans_id, None,
            "values that are not UUIDs are left out"
        );
    }
}
