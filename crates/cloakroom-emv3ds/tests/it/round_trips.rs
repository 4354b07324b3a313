//! What is written is read again, and what is not understood is left out.

use std::sync::LazyLock;

use cloakroom_emv3ds::{
    AReq, ARes, CReq, CRes, Erro, Fault, Format, Message, MessageKind, PReq, PRes, RReq, RRes,
    Version, fields, read, write,
};
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Map, Value, json};

use crate::samples::{Case, Fields, all, areq, object, text};
use crate::values;

pub(crate) fn message(kind: MessageKind, fields: Fields) -> Result<Message, Fault> {
    Ok(match kind {
        MessageKind::PReq => PReq::from_object(fields)?.into(),
        MessageKind::PRes => PRes::from_object(fields)?.into(),
        MessageKind::AReq => AReq::from_object(fields)?.into(),
        MessageKind::ARes => ARes::from_object(fields)?.into(),
        MessageKind::CReq => CReq::from_object(fields)?.into(),
        MessageKind::CRes => CRes::from_object(fields)?.into(),
        MessageKind::RReq => RReq::from_object(fields)?.into(),
        MessageKind::RRes => RRes::from_object(fields)?.into(),
        MessageKind::Erro => Erro::from_object(fields)?.into(),
    })
}

fn version_of(fields: &Fields) -> Version {
    fields["messageVersion"].as_str().unwrap().parse().unwrap()
}

fn channel_of(fields: &Fields) -> Option<cloakroom_emv3ds::codes::DeviceChannel> {
    let code = fields.get("deviceChannel")?.as_str()?;
    cloakroom_emv3ds::codes::DeviceChannel::from_code(code)
}

/// A value for the field at that path, with all that an object there must have.
fn value_at(
    kind: MessageKind,
    path: &str,
    sample: &Fields,
    runner: &mut TestRunner,
) -> Option<Value> {
    let here = |row: &&cloakroom_emv3ds::Field| row.applies(version_of(sample), channel_of(sample));
    let row = fields(kind).filter(here).find(|row| row.path == path)?;
    let inner = |runner: &mut TestRunner| {
        let mut object = Map::new();
        for row in fields(kind).filter(here) {
            if row
                .path
                .rsplit_once('.')
                .is_some_and(|(parent, _)| parent == path)
            {
                let value = value_at(kind, row.path, sample, runner).unwrap();
                object.insert(row.name().to_owned(), value);
            }
        }
        Value::Object(object)
    };
    Some(match row.format {
        Format::Object => inner(runner),
        Format::Objects { .. } => json!([inner(runner), inner(runner)]),
        _ => values::of(&row.format).new_tree(runner).unwrap().current(),
    })
}

/// What decides about other fields stays as it is.
const DECIDING: &[&str] = &[
    "messageType",
    "messageVersion",
    "messageCategory",
    "deviceChannel",
    "transStatus",
    "threeDSRequestorAuthenticationInd",
    "threeRIInd",
    "acsDecConInd",
];

static SAMPLES: LazyLock<Vec<(MessageKind, Version, Fields)>> = LazyLock::new(all);

/// A sample with other values, and with some of the fields that it may have.
pub(crate) fn any_message() -> impl Strategy<Value = (MessageKind, Fields)> {
    let choices = (
        any::<Index>(),
        proptest::collection::vec(any::<Index>(), 0..12),
        any::<bool>(),
    );
    choices.prop_perturb(|(sample, more, other_values), rng| {
        let (kind, _, mut sample) = sample.get(&SAMPLES).clone();
        let config = proptest::test_runner::Config::default();
        let mut runner = TestRunner::new_with_rng(config, rng);
        let paths: Vec<_> = fields(kind)
            .map(|row| row.path)
            .filter(|path| !path.contains('.'))
            .collect();
        let mut chosen: Vec<String> = more
            .iter()
            .map(|index| (*index.get(&paths)).to_owned())
            .collect();
        if other_values {
            chosen.extend(sample.keys().cloned());
        }
        loop {
            for path in chosen
                .iter()
                .filter(|path| !DECIDING.contains(&path.as_str()))
            {
                if let Some(value) = value_at(kind, path, &sample, &mut runner) {
                    sample.insert(path.clone(), value);
                }
            }
            match message(kind, sample.clone()) {
                Err(fault) if fault.code.code() == "201" => {
                    chosen = fault.detail.split(',').map(str::to_owned).collect();
                }
                _ => break,
            }
        }
        (kind, sample)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn a_message_is_read_as_it_was_written((kind, fields) in any_message()) {
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

    /// Whatever others add, the rest is read as if it were not there.
    #[test]
    fn unknown_fields_are_read_over((kind, fields) in any_message(), name in "[a-z]{1,4}X", value in values::any_json()) {
        let without = read(&text(&fields), &[kind], &Version::ALL);
        let mut more = fields;
        more.insert(name, value.clone());
        for inner in more.values_mut().filter_map(Value::as_object_mut) {
            if inner.contains_key("cc") || inner.contains_key("acsInterface") {
                inner.insert("unheardOf".to_owned(), value.clone());
            }
        }
        prop_assert_eq!(read(&text(&more), &[kind], &Version::ALL), without);
        let refused = message(kind, more).unwrap_err();
        prop_assert_eq!(refused.code.code(), "203");
    }

    /// What is accepted of damaged messages can be written, and is then read as the same.
    #[test]
    fn a_damaged_message_is_refused_or_kept_whole(
        (_, fields) in any_message(),
        damages in proptest::collection::vec((any::<Index>(), 0..3, any::<u8>()), 1..4),
    ) {
        let mut damaged = text(&fields);
        for (place, how, byte) in damages {
            let place = place.index(damaged.len());
            match how {
                0 => damaged[place] = byte,
                1 => damaged.insert(place, byte),
                _ => drop(damaged.remove(place)),
            }
        }
        if let Ok(read_once) = read(&damaged, &MessageKind::ALL, &Version::ALL) {
            let written = write(&read_once).unwrap();
            prop_assert_eq!(read(written.as_bytes(), &MessageKind::ALL, &Version::ALL), Ok(read_once));
        }
    }

    #[test]
    fn nonsense_is_no_message(noise in proptest::collection::vec(any::<u8>(), 0..200)) {
        prop_assert_eq!(read(&noise, &MessageKind::ALL, &Version::ALL).unwrap_err().code.code(), "101");
    }
}

#[test]
fn fields_of_other_versions_and_channels_are_read_over_and_not_written() {
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
fn nothing_is_paid_without_the_cardholder_in_the_oldest_version() {
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
fn a_message_is_of_its_kind() {
    let mut fields = areq(Case {
        version: Version::V2_2_0,
        channel: "02",
        category: "01",
        indicator: "01",
    });
    fields.shift_remove("messageType");
    assert!(
        AReq::from_object(fields.clone()).is_ok(),
        "the type may be left out"
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
fn a_message_that_would_be_refused_is_not_written() {
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
        assert_eq!(fault.ids.acs_trans_id, None, "only ids are told as ids");
    }
}
