//! Faults and `Debug` output contain no values of a message except transaction ids.

use cloakroom_emv3ds::{Confidential, Message, MessageKind, Version, read, write};
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};

use crate::generate::{any_message, message};
use crate::samples::{Fields, text};

const IDS: &[&str] = &[
    "threeDSServerTransID",
    "acsTransID",
    "dsTransID",
    "sdkTransID",
];

/// Shorter values may also occur in names, descriptions and error codes.
const SHORT_VALUE_MAX: usize = 6;

/// Collects all strings that are too long to occur by chance.
fn values(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) if text.len() > SHORT_VALUE_MAX => found.push(text.clone()),
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

fn output(fields: &Fields, kind: MessageKind) -> Vec<String> {
    let mut output = Vec::new();
    let mut record = |result: Result<Message, cloakroom_emv3ds::Fault>| match result {
        Ok(message) => output.push(format!("{message:?} {message:#?}")),
        Err(fault) => {
            let erro = fault.erro(cloakroom_emv3ds::Component::S, Version::V2_2_0);
            output.push(format!("{fault} {fault:?} {:?}", write(&erro.into())));
        }
    };
    record(read(&text(fields), &MessageKind::ALL, &Version::ALL));
    record(read(&text(fields), &[], &[]));
    record(message(kind, fields.clone()));
    output
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn faults_and_debug_output_contain_no_values(
        (kind, valid) in any_message(),
        place in any::<Index>(),
        secret in "S3CR3T[a-z0-9]{6,30}",
        how in 0..5,
    ) {
        let mut fields = valid.clone();
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
        let mut shown = output(&fields, kind).join(" ");
        let twice = Value::Object(fields).to_string().replacen('{', &format!("{{{secret:?}:1,{secret:?}:2,"), 1);
        shown += &format!("{:?}", read(twice.as_bytes(), &MessageKind::ALL, &Version::ALL));
        for value in hidden {
            prop_assert!(!shown.contains(&value), "{} is shown", value);
        }
    }
}

#[test]
fn debug_output_of_nested_objects_is_redacted() {
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
fn debug_output_of_a_message_shows_type_version_and_ids() {
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
