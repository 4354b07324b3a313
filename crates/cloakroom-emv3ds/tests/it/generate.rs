//! Generates arbitrary valid messages.

use std::sync::LazyLock;

use cloakroom_emv3ds::{
    AReq, ARes, CReq, CRes, Erro, Fault, Format, Message, MessageKind, PReq, PRes, RReq, RRes,
    Version, fields,
};
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Map, Value, json};

use crate::samples::{Fields, all};
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

/// A value for the field at a path; objects contain all their fields.
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

/// Fields that other fields depend on are not changed.
const CONTROLLING_FIELDS: &[&str] = &[
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

/// A sample with other values and with some optional fields.
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
                .filter(|path| !CONTROLLING_FIELDS.contains(&path.as_str()))
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
