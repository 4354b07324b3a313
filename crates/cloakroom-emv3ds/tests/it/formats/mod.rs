//! Accepted values of the `AReq`, taken from the specification.

mod codes;
mod other_messages;
mod text;
mod types;

use cloakroom_emv3ds::codes::DeviceChannel;
use cloakroom_emv3ds::{MessageKind, Version, field_for};
use serde_json::{Value, json};

const V210: Version = Version::V2_1_0;
const V220: Version = Version::V2_2_0;
const V231: Version = Version::V2_3_1;

fn accepts(path: &str, version: Version, value: &Value) -> bool {
    let channels = [
        DeviceChannel::Browser,
        DeviceChannel::App,
        DeviceChannel::ThreeRi,
    ];
    let row = channels
        .iter()
        .find_map(|channel| field_for(MessageKind::AReq, path, version, Some(*channel)));
    row.unwrap_or_else(|| panic!("{path} in {version}"))
        .format
        .accepts(value)
}

fn check(path: &str, versions: &[Version], good: &[&str], bad: &[&str]) {
    for version in versions {
        for text in good {
            assert!(
                accepts(path, *version, &json!(text)),
                "{path} {version} {text:?}"
            );
        }
        for text in bad {
            assert!(
                !accepts(path, *version, &json!(text)),
                "{path} {version} {text:?}"
            );
        }
    }
}
