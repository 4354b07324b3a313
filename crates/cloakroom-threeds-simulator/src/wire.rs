//! Messages as JSON objects: field access and serialization.

use cloakroom_emv3ds::{
    ARes, CRes, Component, ErrorCode, Fault, Message, MessageKind, PRes, RReq, TransactionIds,
    Version,
};
use serde_json::{Map, Value};
use uuid::Uuid;

/// The fields of a message by their names on the wire. The simulator uses the received JSON instead of
/// the types of `cloakroom-emv3ds`, so that both implementations check each other.
pub(crate) type Fields = Map<String, Value>;

pub(crate) fn text<'a>(fields: &'a Fields, name: &str) -> Option<&'a str> {
    fields.get(name).and_then(Value::as_str)
}

pub(crate) fn put(fields: &mut Fields, name: &str, value: impl Into<Value>) {
    fields.insert(name.to_owned(), value.into());
}

pub(crate) fn put_some<T: Into<Value>>(fields: &mut Fields, name: &str, value: Option<T>) {
    if let Some(value) = value {
        put(fields, name, value);
    }
}

/// Parses a JSON object.
pub(crate) fn parse_object(body: &[u8]) -> Option<Fields> {
    serde_json::from_slice(body).ok()
}

/// Validates and serializes a message.
pub(crate) fn serialize(kind: MessageKind, fields: &Fields) -> Result<String, Fault> {
    let fields = fields.clone();
    let message: Message = match kind {
        MessageKind::PRes => PRes::from_object(fields)?.into(),
        MessageKind::ARes => ARes::from_object(fields)?.into(),
        MessageKind::CRes => CRes::from_object(fields)?.into(),
        MessageKind::RReq => RReq::from_object(fields)?.into(),
        other => {
            let detail = format!("the simulator does not send {other}");
            return Err(Fault::new(ErrorCode::PermanentFailure, detail));
        }
    };
    cloakroom_emv3ds::write(&message)
}

/// Serializes a message without validation, for deliberately invalid messages.
pub(crate) fn serialize_unchecked(fields: &Fields) -> String {
    Value::Object(fields.clone()).to_string()
}

/// A fault with an error code, and the names of the invalid fields or a description.
pub(crate) fn protocol_fault(code: &str, detail: impl Into<String>) -> Fault {
    let code = ErrorCode::from_code(code).unwrap_or(ErrorCode::PermanentFailure);
    Fault::new(code, detail)
}

/// The Erro for a fault in a request.
pub(crate) fn erro_fields(fault: Fault, component: Component, request: Option<&Fields>) -> Fields {
    let version = request
        .and_then(|fields| text(fields, "messageVersion"))
        .and_then(|version| version.parse().ok())
        .unwrap_or(Version::V2_2_0);
    let id = |name| {
        let id = request.and_then(|fields| text(fields, name));
        id.filter(|id| is_id(id)).map(Into::into)
    };
    let kind = request
        .and_then(|fields| fields.get("messageType"))
        .and_then(|kind| serde_json::from_value(kind.clone()).ok());
    let fault = match (fault.about, kind) {
        (None, Some(kind)) => {
            let ids = TransactionIds {
                threeds_server_trans_id: id("threeDSServerTransID"),
                acs_trans_id: id("acsTransID"),
                ds_trans_id: id("dsTransID"),
                sdk_trans_id: id("sdkTransID"),
            };
            fault.about(kind, ids)
        }
        _ => fault,
    };
    let erro = Message::Erro(fault.erro(component, version));
    cloakroom_emv3ds::write(&erro)
        .ok()
        .and_then(|text| parse_object(text.as_bytes()))
        .unwrap_or_default()
}

fn is_id(text: &str) -> bool {
    text.len() == 36 && Uuid::try_parse(text).is_ok()
}
