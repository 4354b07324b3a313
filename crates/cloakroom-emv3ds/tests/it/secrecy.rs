//! What is in a message is in no fault and in no `Debug`, except for the ids of its transaction.

use cloakroom_emv3ds::{Confidential, Message, MessageKind, Version, read, write};
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};

use crate::round_trips::{any_message, message};
use crate::samples::{Fields, text};

const IDS: &[&str] = &[
    "threeDSServerTransID",
    "acsTransID",
    "dsTransID",
    "sdkTransID",
];

/// What ours is in faults and `Debug` by itself: names, descriptions, codes of errors.
const OURS_AT_MOST: usize = 6;

/// All texts and keys that are long enough not to appear by chance.
fn values(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) if text.len() > OURS_AT_MOST => found.push(text.clone()),
        Value::Array(elements) => elements.iter().for_each(|element| values(element, found)),
        Value::Object(object) => object.values().for_each(|inner| values(inner, found)),
        _ => {}
    }
}

fn secrets(fields: &Fields) -> Vec<String> {
    let mut found = Vec::new();
    for (name, value) in fields {
        if !IDS.contains(&name.as_str()) {
            values(value, &mut found);
        }
    }
    found
}

fn told(fields: &Fields, kind: MessageKind) -> Vec<String> {
    let mut told = Vec::new();
    let mut tell = |result: Result<Message, cloakroom_emv3ds::Fault>| match result {
        Ok(message) => told.push(format!("{message:?} {message:#?}")),
        Err(fault) => {
            let erro = fault.erro(cloakroom_emv3ds::Component::S, Version::V2_2_0);
            told.push(format!("{fault} {fault:?} {:?}", write(&erro.into())));
        }
    };
    tell(read(&text(fields), &MessageKind::ALL, &Version::ALL));
    tell(read(&text(fields), &[], &[]));
    tell(message(kind, fields.clone()));
    told
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn no_value_is_told(
        (kind, sound) in any_message(),
        place in any::<Index>(),
        secret in "S3CR3T[a-z0-9]{6,30}",
        how in 0..5,
    ) {
        let mut fields = sound.clone();
        let name = place.get(&fields.keys().cloned().collect::<Vec<_>>()).clone();
        match how {
            0 => fields[&name] = secret.as_str().into(),
            1 => fields[&name] = json!({ &secret: &secret }),
            2 => fields[&name] = json!([&secret, { &secret: 1 }]),
            3 => {
                fields.insert(secret.clone(), secret.as_str().into());
            }
            _ => {}
        }
        let mut hidden = secrets(&fields);
        hidden.push(secret.clone());
        let mut shown = told(&fields, kind).join(" ");
        let twice = Value::Object(fields).to_string().replacen('{', &format!("{{{secret:?}:1,{secret:?}:2,"), 1);
        shown += &format!("{:?}", read(twice.as_bytes(), &MessageKind::ALL, &Version::ALL));
        for value in hidden {
            prop_assert!(!shown.contains(&value), "{} is shown", value);
        }
    }
}

#[test]
fn parts_of_messages_do_not_show_their_values() {
    let secret = Confidential::new("4111111111111111");
    assert_eq!(
        format!("{secret:?} {secret:#?}"),
        "Confidential(..) Confidential(..)"
    );
    assert_eq!(secret.expose(), "4111111111111111");
    let phone: cloakroom_emv3ds::Phone =
        serde_json::from_value(json!({"cc": "49", "subscriber": "301234567"})).unwrap();
    assert_eq!(format!("{phone:?}"), "Phone(..)");
    let info: cloakroom_emv3ds::CardholderInfo = serde_json::from_value(json!("call us")).unwrap();
    assert_eq!(format!("{info:?}"), "CardholderInfo(..)");
}

#[test]
fn a_message_shows_what_it_is_and_its_ids() {
    let fields = crate::samples::small(MessageKind::CReq, Version::V2_2_0);
    let request = message(MessageKind::CReq, fields).unwrap();
    let shown = format!("{request:?}");
    for part in [
        "CReq",
        "V2_2_0",
        crate::samples::SERVER_ID,
        crate::samples::ACS_ID,
    ] {
        assert!(shown.contains(part), "{shown}");
    }
}
