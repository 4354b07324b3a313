//! Reads and writes whole messages.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::fault::{ErrorCode, Fault, TransactionIds};
use crate::fields::{Context, FieldErrors, UnknownFields, is_uuid, known_path, validate};
use crate::messages::{Message, MessageKind};
use crate::parse::{self, unique};
use crate::version::{Announced, Version};

/// Maximum size of a message.
pub const MESSAGE_BYTES_MAX: usize = 128 * 1024;

/// Maximum size where a `PRes` is expected: a large network has many thousands of card ranges.
pub const RANGES_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Parses and validates a message of an expected type and version. An `Erro` is always accepted, in
/// any version. Fields that are unknown in the message's version are ignored.
///
/// If a message has several errors, the fault has the first applicable code in the order 101, 102,
/// 204, 201, 203, 202 and names all fields with that error.
pub fn read(text: &[u8], expected: &[MessageKind], versions: &[Version]) -> Result<Message, Fault> {
    let parsed = parse_bounded(text, expected)?;
    let kind = message_kind(&parsed.object, expected)?;
    let fault = |fault: Fault| fault.about(kind, transaction_ids(&parsed.object));
    let version = message_version(kind, &parsed.object, versions);
    let unsupported = |fault: &Fault| fault.code == ErrorCode::VersionNotSupported;
    if !parsed.duplicates.is_empty() && !version.as_ref().is_err_and(unsupported) {
        let known = parsed
            .duplicates
            .iter()
            .map(|path| known_path(kind, path).to_owned());
        return Err(fault(field_fault(
            ErrorCode::ElementDuplicated,
            known.collect(),
        )));
    }
    let version = version.map_err(fault)?;
    let context = Context::of(&parsed.object, version);
    let (known, errors) = validate(kind, &context, UnknownFields::Ignore);
    ensure_valid(errors).map_err(fault)?;
    if has_critical_extension(&known) {
        let critical = Fault::new(ErrorCode::ExtensionNotRecognized, "messageExtension");
        return Err(fault(critical));
    }
    to_message(kind, known).map_err(fault)
}

/// Validates a message as [`read`] does and serializes it. A field that is unknown in the message's
/// version or device channel is an error here. A critical extension is allowed: the sender knows it.
pub fn write(message: &Message) -> Result<String, Fault> {
    let kind = message.kind();
    let fields = match message {
        Message::PReq(message) => to_object(message),
        Message::PRes(message) => to_object(message),
        Message::AReq(message) => to_object(message),
        Message::ARes(message) => to_object(message),
        Message::CReq(message) => to_object(message),
        Message::CRes(message) => to_object(message),
        Message::RReq(message) => to_object(message),
        Message::RRes(message) => to_object(message),
        Message::Erro(message) => to_object(message),
    };
    let fields = fields.and_then(|fields| validate_outgoing(kind, fields));
    let fields = fields.map_err(|fault| fault.about(kind, message.ids()))?;
    let mut object = Map::from_iter([("messageType".to_owned(), kind.as_str().into())]);
    object.extend(fields);
    let text = Value::Object(object).to_string();
    if text.len() > max_bytes(&[kind]) {
        return Err(message_too_long().about(kind, message.ids()));
    }
    Ok(text)
}

/// Builds a message from its fields, validated as in [`write()`].
pub(crate) fn from_object<T: DeserializeOwned>(
    kind: MessageKind,
    fields: Map<String, Value>,
) -> Result<T, Fault> {
    let ids = transaction_ids(&fields);
    let other_kind = fields
        .get("messageType")
        .is_some_and(|value| value != kind.as_str());
    if other_kind {
        let fault = Fault::new(ErrorCode::MessageInvalid, "messageType is not expected");
        return Err(fault.about(kind, ids));
    }
    let known = validate_outgoing(kind, fields);
    let message = known.and_then(|known| deserialize(known));
    message.map_err(|fault| fault.about(kind, ids))
}

fn max_bytes(expected: &[MessageKind]) -> usize {
    if expected.contains(&MessageKind::PRes) {
        RANGES_BYTES_MAX
    } else {
        MESSAGE_BYTES_MAX
    }
}

fn message_too_long() -> Fault {
    Fault::new(ErrorCode::MessageInvalid, "the message is too long")
}

fn parse_bounded(text: &[u8], expected: &[MessageKind]) -> Result<parse::ParsedObject, Fault> {
    if text.len() > max_bytes(expected) {
        return Err(message_too_long());
    }
    let fault = |_| {
        Fault::new(
            ErrorCode::MessageInvalid,
            "the message is not a JSON object",
        )
    };
    parse::parse_object(text).map_err(fault)
}

fn message_kind(
    object: &Map<String, Value>,
    expected: &[MessageKind],
) -> Result<MessageKind, Fault> {
    let invalid = |detail| Fault::new(ErrorCode::MessageInvalid, detail);
    let value = object
        .get("messageType")
        .ok_or_else(|| invalid("messageType is missing"))?;
    let kind = value
        .as_str()
        .and_then(|text| text.parse::<MessageKind>().ok());
    let kind = kind.ok_or_else(|| invalid("messageType is not known"))?;
    if kind != MessageKind::Erro && !expected.contains(&kind) {
        return Err(invalid("messageType is not expected").about(kind, transaction_ids(object)));
    }
    Ok(kind)
}

/// The version whose rules apply to a message. A message without one cannot be validated further.
fn message_version(
    kind: MessageKind,
    object: &Map<String, Value>,
    versions: &[Version],
) -> Result<Version, Fault> {
    let fault = |code| Fault::new(code, "messageVersion");
    let value = object
        .get("messageVersion")
        .ok_or_else(|| fault(ErrorCode::ElementMissing))?;
    let announced = value
        .as_str()
        .and_then(|text| text.parse::<Announced>().ok());
    let announced = announced.ok_or_else(|| fault(ErrorCode::FormatInvalid))?;
    match announced.supported() {
        // The Erro is the same in all versions.
        known if kind == MessageKind::Erro => Ok(known.unwrap_or(Version::V2_2_0)),
        Some(version) if versions.contains(&version) => Ok(version),
        _ => Err(fault(ErrorCode::VersionNotSupported)),
    }
}

/// The transaction ids of a message; values that are not UUIDs are left out.
fn transaction_ids(object: &Map<String, Value>) -> TransactionIds {
    let id = |name| {
        let text = object.get(name).and_then(Value::as_str);
        text.filter(|text| is_uuid(text)).map(Into::into)
    };
    TransactionIds {
        threeds_server_trans_id: id("threeDSServerTransID"),
        acs_trans_id: id("acsTransID"),
        ds_trans_id: id("dsTransID"),
        sdk_trans_id: id("sdkTransID"),
    }
}

fn validate_outgoing(
    kind: MessageKind,
    fields: Map<String, Value>,
) -> Result<Map<String, Value>, Fault> {
    let version = message_version(kind, &fields, &Version::ALL)?;
    let context = Context::of(&fields, version);
    let (known, errors) = validate(kind, &context, UnknownFields::Reject);
    ensure_valid(errors)?;
    Ok(known)
}

pub(crate) fn field_fault(code: ErrorCode, paths: Vec<String>) -> Fault {
    Fault::new(code, unique(paths).join(","))
}

pub(crate) fn ensure_valid(errors: FieldErrors) -> Result<(), Fault> {
    if !errors.missing.is_empty() {
        return Err(field_fault(ErrorCode::ElementMissing, errors.missing));
    }
    if !errors.malformed.is_empty() {
        return Err(field_fault(ErrorCode::FormatInvalid, errors.malformed));
    }
    Ok(())
}

/// No extension is supported, so any critical extension is unrecognized.
fn has_critical_extension(known: &Map<String, Value>) -> bool {
    let extensions = known.get("messageExtension").and_then(Value::as_array);
    let critical = |extension: &Value| extension.get("criticalityIndicator") == Some(&true.into());
    extensions.is_some_and(|extensions| extensions.iter().any(critical))
}

pub(crate) fn to_object(message: &impl Serialize) -> Result<Map<String, Value>, Fault> {
    match serde_json::to_value(message) {
        Ok(Value::Object(object)) => Ok(object),
        _ => Err(table_mismatch()),
    }
}

fn deserialize<T: DeserializeOwned>(known: Map<String, Value>) -> Result<T, Fault> {
    T::deserialize(Value::Object(known)).map_err(|_| table_mismatch())
}

/// The field table accepts a message that its struct does not. Both have the same fields (tested),
/// so only the content of an extension can cause this.
fn table_mismatch() -> Fault {
    Fault::new(ErrorCode::FormatInvalid, "messageExtension")
}

fn to_message(kind: MessageKind, known: Map<String, Value>) -> Result<Message, Fault> {
    Ok(match kind {
        MessageKind::PReq => Message::PReq(deserialize(known)?),
        MessageKind::PRes => Message::PRes(deserialize(known)?),
        MessageKind::AReq => Message::AReq(Box::new(deserialize(known)?)),
        MessageKind::ARes => Message::ARes(Box::new(deserialize(known)?)),
        MessageKind::CReq => Message::CReq(deserialize(known)?),
        MessageKind::CRes => Message::CRes(deserialize(known)?),
        MessageKind::RReq => Message::RReq(Box::new(deserialize(known)?)),
        MessageKind::RRes => Message::RRes(deserialize(known)?),
        MessageKind::Erro => Message::Erro(deserialize(known)?),
    })
}
