//! Reading and writing whole messages, and whether one fits another.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::codes::{DeviceChannel, TransStatus};
use crate::fault::{ErrorCode, Fault, Ids};
use crate::fields::{Facts, Findings, Strictness, check, is_uuid, known_path};
use crate::messages::{AReq, ARes, Message, MessageKind, RReq};
use crate::parse::{self, once};
use crate::version::{Announced, Version};

/// How long a message may be.
pub const MESSAGE_BYTES_MAX: usize = 128 * 1024;

/// How long a message may be where a `PRes` is expected: a large network has many thousand ranges.
pub const RANGES_BYTES_MAX: usize = 32 * 1024 * 1024;

/// The message in a text, if it is of an expected kind and version and holds what it must hold. An
/// `Erro` is always expected, in any version. Fields that its version does not know are left out.
///
/// Of several things that are wrong the first of these codes is told: 101, 102, 204, 201, 203, 202,
/// with the names of all fields it is about.
pub fn read(text: &[u8], expected: &[MessageKind], versions: &[Version]) -> Result<Message, Fault> {
    let parsed = parse_bounded(text, expected)?;
    let kind = kind_of(&parsed.object, expected)?;
    let fault = |fault: Fault| fault.about(kind, ids_of(&parsed.object));
    let version = version_of(kind, &parsed.object, versions);
    let unsupported = |fault: &Fault| fault.code == ErrorCode::VersionNotSupported;
    if !parsed.duplicates.is_empty() && !version.as_ref().is_err_and(unsupported) {
        let known = parsed
            .duplicates
            .iter()
            .map(|path| known_path(kind, path).to_owned());
        return Err(fault(named(ErrorCode::ElementDuplicated, known.collect())));
    }
    let version = version.map_err(fault)?;
    let facts = Facts::of(&parsed.object, version);
    let (known, findings) = check(kind, &facts, Strictness::Reading);
    verdict(findings).map_err(fault)?;
    if has_critical_extension(&known) {
        let critical = Fault::new(ErrorCode::ExtensionNotRecognised, "messageExtension");
        return Err(fault(critical));
    }
    typed(kind, known).map_err(fault)
}

/// The text of a message, after the same checks as in [`read`]; a field that its version or channel
/// does not know is an error here. A critical extension is not: who sends it knows it.
pub fn write(message: &Message) -> Result<String, Fault> {
    let kind = message.kind();
    let fields = match message {
        Message::PReq(message) => object_of(message),
        Message::PRes(message) => object_of(message),
        Message::AReq(message) => object_of(message),
        Message::ARes(message) => object_of(message),
        Message::CReq(message) => object_of(message),
        Message::CRes(message) => object_of(message),
        Message::RReq(message) => object_of(message),
        Message::RRes(message) => object_of(message),
        Message::Erro(message) => object_of(message),
    };
    let fields = fields.and_then(|fields| checked(kind, fields));
    let fields = fields.map_err(|fault| fault.about(kind, message.ids()))?;
    let mut typed = Map::from_iter([("messageType".to_owned(), kind.as_str().into())]);
    typed.extend(fields);
    let text = Value::Object(typed).to_string();
    if text.len() > bytes_max(&[kind]) {
        return Err(too_long().about(kind, message.ids()));
    }
    Ok(text)
}

/// A message made of fields, checked as in [`write()`].
pub(crate) fn from_object<T: DeserializeOwned>(
    kind: MessageKind,
    fields: Map<String, Value>,
) -> Result<T, Fault> {
    let ids = ids_of(&fields);
    let other_kind = fields
        .get("messageType")
        .is_some_and(|value| value != kind.as_str());
    if other_kind {
        let fault = Fault::new(ErrorCode::MessageInvalid, "messageType is not expected");
        return Err(fault.about(kind, ids));
    }
    let known = checked(kind, fields);
    let message = known.and_then(|known| deserialized(known));
    message.map_err(|fault| fault.about(kind, ids))
}

/// See [`ARes::answers`].
pub(crate) fn answers(answer: &ARes, request: &AReq) -> Result<(), Fault> {
    let about = |fault: Fault| fault.about(MessageKind::ARes, answer.ids());
    let mut strangers = Vec::new();
    if !same(
        &answer.threeds_server_trans_id,
        &request.threeds_server_trans_id,
    ) {
        strangers.push("threeDSServerTransID".to_owned());
    }
    if !same_if_any(
        answer.sdk_trans_id.as_deref(),
        request.sdk_trans_id.as_deref(),
    ) {
        strangers.push("sdkTransID".to_owned());
    }
    if !strangers.is_empty() {
        return Err(about(named(ErrorCode::TransactionUnknown, strangers)));
    }
    let fields = object_of(answer).map_err(about)?;
    let facts = Facts {
        channel: request.channel(),
        category: request.category(),
        ..Facts::of(&fields, answer.message_version)
    };
    let (_, mut findings) = check(MessageKind::ARes, &facts, Strictness::Reading);
    if answer.message_version != request.message_version {
        findings.malformed.push("messageVersion".to_owned());
    }
    let asked = request
        .threeds_requestor_dec_req_ind
        .as_deref()
        .unwrap_or("N")
        != "N";
    let unasked = match answer.trans_status {
        Some(TransStatus::DecoupledChallenge) => !asked,
        Some(TransStatus::Challenge) => request.channel() == Some(DeviceChannel::ThreeRi),
        _ => false,
    };
    if unasked {
        findings.malformed.push("transStatus".to_owned());
    }
    verdict(findings).map_err(about)
}

/// See [`RReq::concludes`].
pub(crate) fn concludes(result: &RReq, answer: &ARes, channel: DeviceChannel) -> Result<(), Fault> {
    let about = |fault: Fault| fault.about(MessageKind::RReq, result.ids());
    let pairs = [
        (
            "threeDSServerTransID",
            &result.threeds_server_trans_id,
            &answer.threeds_server_trans_id,
        ),
        ("acsTransID", &result.acs_trans_id, &answer.acs_trans_id),
        ("dsTransID", &result.ds_trans_id, &answer.ds_trans_id),
    ];
    let differ = pairs
        .into_iter()
        .filter(|(_, ours, theirs)| !same(ours, theirs));
    let mut strangers: Vec<_> = differ.map(|(name, _, _)| name.to_owned()).collect();
    if !same_if_any(
        result.sdk_trans_id.as_deref(),
        answer.sdk_trans_id.as_deref(),
    ) {
        strangers.push("sdkTransID".to_owned());
    }
    if !strangers.is_empty() {
        return Err(about(named(ErrorCode::TransactionUnknown, strangers)));
    }
    let fields = object_of(result).map_err(about)?;
    let facts = Facts {
        channel: Some(channel),
        answered: answer.trans_status,
        ..Facts::of(&fields, result.message_version)
    };
    let (_, mut findings) = check(MessageKind::RReq, &facts, Strictness::Reading);
    if result.message_version != answer.message_version {
        findings.malformed.push("messageVersion".to_owned());
    }
    verdict(findings).map_err(about)
}

/// Ids are hexadecimal, and not everybody keeps the case of what is echoed.
fn same(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other)
}

/// Whether an id is there at all is for the table to say.
fn same_if_any(one: Option<&str>, other: Option<&str>) -> bool {
    one.zip(other).is_none_or(|(one, other)| same(one, other))
}

fn bytes_max(expected: &[MessageKind]) -> usize {
    if expected.contains(&MessageKind::PRes) {
        RANGES_BYTES_MAX
    } else {
        MESSAGE_BYTES_MAX
    }
}

fn too_long() -> Fault {
    Fault::new(ErrorCode::MessageInvalid, "the message is too long")
}

fn parse_bounded(text: &[u8], expected: &[MessageKind]) -> Result<parse::Parsed, Fault> {
    if text.len() > bytes_max(expected) {
        return Err(too_long());
    }
    let fault = |_| {
        Fault::new(
            ErrorCode::MessageInvalid,
            "the message is not a JSON object",
        )
    };
    parse::object(text).map_err(fault)
}

fn kind_of(object: &Map<String, Value>, expected: &[MessageKind]) -> Result<MessageKind, Fault> {
    let invalid = |detail| Fault::new(ErrorCode::MessageInvalid, detail);
    let told = object
        .get("messageType")
        .ok_or_else(|| invalid("messageType is missing"))?;
    let kind = told
        .as_str()
        .and_then(|text| text.parse::<MessageKind>().ok());
    let kind = kind.ok_or_else(|| invalid("messageType is not known"))?;
    if kind != MessageKind::Erro && !expected.contains(&kind) {
        return Err(invalid("messageType is not expected").about(kind, ids_of(object)));
    }
    Ok(kind)
}

/// The version by whose rules a message is checked. Without one nothing else can be said about it.
fn version_of(
    kind: MessageKind,
    object: &Map<String, Value>,
    versions: &[Version],
) -> Result<Version, Fault> {
    let fault = |code| Fault::new(code, "messageVersion");
    let told = object
        .get("messageVersion")
        .ok_or_else(|| fault(ErrorCode::ElementMissing))?;
    let announced = told
        .as_str()
        .and_then(|text| text.parse::<Announced>().ok());
    let announced = announced.ok_or_else(|| fault(ErrorCode::FormatInvalid))?;
    match announced.known() {
        // All versions have the same error message.
        known if kind == MessageKind::Erro => Ok(known.unwrap_or(Version::V2_2_0)),
        Some(version) if versions.contains(&version) => Ok(version),
        _ => Err(fault(ErrorCode::VersionNotSupported)),
    }
}

/// The transaction that a message is about, as far as its ids are ids.
fn ids_of(object: &Map<String, Value>) -> Ids {
    let id = |name| {
        let text = object.get(name).and_then(Value::as_str);
        text.filter(|text| is_uuid(text)).map(Into::into)
    };
    Ids {
        threeds_server_trans_id: id("threeDSServerTransID"),
        acs_trans_id: id("acsTransID"),
        ds_trans_id: id("dsTransID"),
        sdk_trans_id: id("sdkTransID"),
    }
}

fn checked(kind: MessageKind, fields: Map<String, Value>) -> Result<Map<String, Value>, Fault> {
    let version = version_of(kind, &fields, &Version::ALL)?;
    let facts = Facts::of(&fields, version);
    let (known, findings) = check(kind, &facts, Strictness::Writing);
    verdict(findings)?;
    Ok(known)
}

fn named(code: ErrorCode, paths: Vec<String>) -> Fault {
    Fault::new(code, once(paths).join(","))
}

fn verdict(findings: Findings) -> Result<(), Fault> {
    if !findings.missing.is_empty() {
        return Err(named(ErrorCode::ElementMissing, findings.missing));
    }
    if !findings.malformed.is_empty() {
        return Err(named(ErrorCode::FormatInvalid, findings.malformed));
    }
    Ok(())
}

/// No extension is known, so every critical one is an unknown one.
fn has_critical_extension(known: &Map<String, Value>) -> bool {
    let extensions = known.get("messageExtension").and_then(Value::as_array);
    let critical = |extension: &Value| extension.get("criticalityIndicator") == Some(&true.into());
    extensions.is_some_and(|extensions| extensions.iter().any(critical))
}

fn object_of(message: &impl Serialize) -> Result<Map<String, Value>, Fault> {
    match serde_json::to_value(message) {
        Ok(Value::Object(object)) => Ok(object),
        _ => Err(unlike_its_table()),
    }
}

fn deserialized<T: DeserializeOwned>(known: Map<String, Value>) -> Result<T, Fault> {
    T::deserialize(Value::Object(known)).map_err(|_| unlike_its_table())
}

/// A message that its table accepts and its struct does not. A test shows that both have the same
/// fields, so only what an extension holds could bring that about.
fn unlike_its_table() -> Fault {
    Fault::new(ErrorCode::FormatInvalid, "messageExtension")
}

fn typed(kind: MessageKind, known: Map<String, Value>) -> Result<Message, Fault> {
    Ok(match kind {
        MessageKind::PReq => Message::PReq(deserialized(known)?),
        MessageKind::PRes => Message::PRes(deserialized(known)?),
        MessageKind::AReq => Message::AReq(Box::new(deserialized(known)?)),
        MessageKind::ARes => Message::ARes(Box::new(deserialized(known)?)),
        MessageKind::CReq => Message::CReq(deserialized(known)?),
        MessageKind::CRes => Message::CRes(deserialized(known)?),
        MessageKind::RReq => Message::RReq(Box::new(deserialized(known)?)),
        MessageKind::RRes => Message::RRes(deserialized(known)?),
        MessageKind::Erro => Message::Erro(deserialized(known)?),
    })
}
