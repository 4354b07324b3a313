//! Values that the client encrypted for this request, in the header `BT-ENCRYPTED`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cloakroom_core::access::{Purpose, Resource, Transform};
use cloakroom_core::audit::{EntityKind, Entry, Operation, Outcome};
use cloakroom_core::caller::Caller;
use cloakroom_core::keys;
use cloakroom_platform::api::{ApiError, FieldError, read_json};
use cloakroom_platform::card_numbers::card_numbers_in;
use cloakroom_tokens::client_encryption::{RequestData, SentData, key_id, resolve_request_data};
use cloakroom_tokens::tokens::reveals_in;
use cloakroom_tokens::types::TokenKind;
use http::{HeaderMap, HeaderName};
use serde_json::{Map, Value};

use super::call::single;
use super::error::Error;
use crate::server::ProxyServer;

const ENCRYPTED: HeaderName = HeaderName::from_static("bt-encrypted");
/// Values in one header, as many as a request may refer to tokens.
const VALUES_MAX: usize = 20;

/// The decrypted values of a request.
pub(super) struct Decrypted {
    /// `None` if the header is one value.
    names: Option<Vec<String>>,
    values: Vec<DecryptedValue>,
}

struct DecryptedValue {
    /// As sent, without `encrypted`.
    members: Map<String, Value>,
    data: Value,
    kind: Option<TokenKind>,
    /// The id of the key.
    key_id: String,
}

/// Decrypted values as the caller may use them.
#[derive(Default)]
pub(super) struct UsableValues {
    pub(super) value: Value,
    pub(super) entries: Vec<Entry>,
    /// Whether the caller does not see all of the data.
    pub(super) are_hidden: bool,
}

impl Decrypted {
    /// All values with their data, for transforms, which have the permissions of the proxy's application.
    pub(super) fn all(&self) -> Value {
        let values = self.values.iter();
        self.assemble(
            values
                .map(|value| value.with_data(value.data.clone()))
                .collect(),
        )
    }

    /// Requires the permission to use each value, which is treated as an intent in the default container of its type.
    pub(super) fn require_use(&self, caller: &Caller) -> Result<UsableValues, Error> {
        let mut usable = UsableValues::default();
        let mut values = Vec::new();
        for value in &self.values {
            let rule = "must have a `type`, the type of a token";
            let kind = value
                .kind
                .ok_or_else(|| Error::invalid_at("BT-ENCRYPTED", rule))?;
            // The caller chooses the type. A card is a card under any.
            let number = !card_numbers_in(&value.data.to_string()).is_empty();
            let kinds = [Some(kind), number.then_some(TokenKind::Card)];
            let mut transform = Transform::Reveal;
            for kind in kinds.into_iter().flatten() {
                let (container, id) = (&kind.default_container(), None);
                let granted = Purpose::Use.require_on(caller, Resource { container, id })?;
                transform = transform.min(granted);
                usable.are_hidden |= !reveals_in(caller, container);
            }
            let (data, outcome) = match (transform, kind.default_mask()) {
                (Transform::Reveal, _) => (value.data.clone(), Outcome::Revealed),
                _ if number && !kind.is_card() => (Value::Null, Outcome::Masked),
                (_, Some(mask)) => (mask.mask.apply(&value.data), Outcome::Masked),
                (_, None) => (Value::Null, Outcome::Masked),
            };
            values.push(value.with_data(data));
            let entry = Entry::new(caller, Operation::Use, EntityKind::ClientKey, &value.key_id);
            usable.entries.push(entry.with_outcome(outcome));
        }
        usable.value = self.assemble(values);
        Ok(usable)
    }

    fn assemble(&self, values: Vec<Value>) -> Value {
        match &self.names {
            None => values.into_iter().next().unwrap_or_default(),
            Some(names) => Value::Object(names.iter().cloned().zip(values).collect()),
        }
    }
}

impl DecryptedValue {
    fn with_data(&self, data: Value) -> Value {
        let mut members = self.members.clone();
        members.insert("data".to_owned(), data);
        Value::Object(members)
    }
}

/// Decrypts the header: base64 of `{"type", "encrypted"}`, or of an object of these. `None` if there is no such header.
pub(super) async fn decrypt(
    server: &ProxyServer,
    caller: &Caller,
    headers: &HeaderMap,
) -> Result<Option<Decrypted>, Error> {
    if !headers.contains_key(ENCRYPTED) {
        return Ok(None);
    }
    let rule =
        "must be base64 of a JSON object with `type` and `encrypted`, or of an object of these";
    let malformed = || Error::invalid_at("BT-ENCRYPTED", rule);
    let text = single(headers, &ENCRYPTED).ok_or_else(malformed)?;
    let json = STANDARD.decode(text.trim()).map_err(|_| malformed())?;
    let sent: Map<String, Value> = read_json(&json).map_err(|_| malformed())?;
    if sent.contains_key("encrypted") {
        let one = decrypt_one(server, caller, sent).await?;
        return Ok(Some(Decrypted {
            names: None,
            values: vec![one],
        }));
    }
    if sent.len() > VALUES_MAX {
        let rule = format!("must contain at most {VALUES_MAX} values");
        return Err(Error::invalid_at("BT-ENCRYPTED", rule));
    }
    let (mut names, mut values) = (Vec::new(), Vec::new());
    for (name, one) in sent {
        let Value::Object(one) = one else {
            return Err(malformed());
        };
        values.push(decrypt_one(server, caller, one).await?);
        names.push(name);
    }
    Ok(Some(Decrypted {
        names: Some(names),
        values,
    }))
}

async fn decrypt_one(
    server: &ProxyServer,
    caller: &Caller,
    mut sent: Map<String, Value>,
) -> Result<DecryptedValue, Error> {
    let encrypted = sent.remove("encrypted");
    let text = encrypted.as_ref().and_then(Value::as_str);
    let text = text.unwrap_or_default();
    let data = SentData {
        plain: None,
        encrypted: Some(text),
    };
    let failed = |error: keys::Error| Error::from(ApiError::from(error));
    let resolved = resolve_request_data(server, caller, data, None).await;
    let data = match resolved.map_err(failed)? {
        Ok(RequestData::Opened(opened)) => read_json::<Value>(opened.expose()).ok(),
        Ok(RequestData::Plain(_)) => None,
        Err(errors) => {
            let rule = errors
                .into_iter()
                .next()
                .map(|FieldError { rule, .. }| rule);
            return Err(Error::invalid_at("BT-ENCRYPTED", rule.unwrap_or_default()));
        }
    };
    let kind = sent
        .get("type")
        .and_then(Value::as_str)
        .and_then(TokenKind::parse);
    Ok(DecryptedValue {
        members: sent,
        data: data.unwrap_or_default(),
        kind,
        key_id: key_id(text).unwrap_or_default(),
    })
}
