//! An event and its signed row.

use std::fmt::{Display, Write as _};

use cloakroom_crypto::{equal_in_constant_time, sha256};
use cloakroom_platform::card_numbers::contains_card_number;
use cloakroom_platform::ids;
use cloakroom_platform::storage::quote_field;
use jiff::Timestamp;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::EventKind;
use crate::keys::{ControlKey, Renewal, StoredMac};

const DOMAIN: &str = "event.v2";
/// Approximate size of an event's row without its payload.
const ROW_BYTES: usize = 400;

/// What happened to an entity. It holds ids, names and metadata, never data or secrets.
///
/// ```ignore
/// let event = Event::new(EventKind::ProxyDeleted, id, json!({"proxy": {"id": id}}));
/// let entry = Entry::new(caller, Operation::Delete, EntityKind::Proxy, id).with_event(event);
/// ```
#[derive(Clone, Debug)]
pub struct Event {
    kind: EventKind,
    /// Events with the same entity are delivered in order; empty for events without an order.
    entity: String,
    /// The object that `data` of the payload shows besides the actor, under its name, as JSON text.
    payload: String,
    /// When it happened; `None` means the time of the commit.
    pub(crate) at: Option<Timestamp>,
}

impl Event {
    /// An event about one entity: `data` is an object such as `{"token": {...}}`. A `created_at` or `modified_at` that
    /// is null stands for the time of the commit.
    ///
    /// Tenants can allow card numbers in metadata. They are encrypted with the token then, and must not be stored in
    /// the clear text of an event or leave the vault with it, so metadata that contains one is left out.
    pub fn new(kind: EventKind, id: impl Display, mut data: Value) -> Self {
        let objects = data.as_object_mut().into_iter().flatten();
        for (_, object) in objects {
            if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
                metadata.retain(|name, value| !has_card_number(name, value));
            }
        }
        Self {
            kind,
            entity: id.to_string(),
            payload: data.to_string(),
            at: None,
        }
    }

    /// An event whose order does not matter, such as a read.
    pub fn unordered(kind: EventKind, data: Value) -> Self {
        Self::new(kind, "", data)
    }

    /// An event that shows only the id of its entity, under `name`.
    pub fn of_id(kind: EventKind, name: &str, id: impl Display) -> Self {
        let id = id.to_string();
        let object = Map::from_iter([("id".to_owned(), Value::from(id.as_str()))]);
        let data = Map::from_iter([(name.to_owned(), Value::Object(object))]);
        Self::new(kind, id, Value::Object(data))
    }

    /// Approximate size of its row.
    pub(crate) fn size_bytes(&self) -> usize {
        ROW_BYTES + self.payload.len()
    }
}

fn has_card_number(name: &str, value: &Value) -> bool {
    let is_in_value = match value {
        Value::String(text) => contains_card_number(text),
        other => contains_card_number(&other.to_string()),
    };
    is_in_value || contains_card_number(name)
}

/// Who caused an event.
pub(crate) struct Origin<'a> {
    pub tenant: i32,
    pub actor_type: &'static str,
    /// `None` for the system.
    pub actor: Option<Uuid>,
    pub trace_id: &'a str,
}

/// An event as stored. The MAC proves that Cloakroom wrote it for this tenant and webhook.
pub struct SignedEvent {
    pub id: Uuid,
    pub event_type: String,
    pub entity: String,
    pub actor_type: String,
    pub actor: Option<Uuid>,
    pub trace_id: String,
    /// The object of the event, as JSON text.
    pub payload: String,
    pub mac: Vec<u8>,
}

impl SignedEvent {
    /// Whether the row is unchanged and belongs to this webhook. The time of the event is not covered: the database sets
    /// it.
    pub fn is_genuine(&self, key: &ControlKey, tenant: i32, webhook: Uuid) -> bool {
        let (tenant, actor) = (tenant.to_be_bytes(), self.actor.unwrap_or_default());
        let parts = self.parts(&tenant, actor.as_bytes());
        let mac = key.authenticate_like(&self.mac, DOMAIN, &parts);
        mac.is_some_and(|mac| equal_in_constant_time(&bind(&mac, webhook), &self.mac))
    }

    /// Verifies the row, and computes its MAC again if a former version of the key made it.
    pub fn renew(&self, key: &ControlKey, tenant: i32, webhook: Uuid) -> Renewal {
        if !self.is_genuine(key, tenant, webhook) {
            return Renewal::Altered;
        }
        let (tenant, actor) = (tenant.to_be_bytes(), self.actor.unwrap_or_default());
        let parts = self.parts(&tenant, actor.as_bytes());
        let renewed = bind(&key.authenticate(DOMAIN, &parts), webhook);
        match renewed[..] == self.mac[..] {
            true => Renewal::Current,
            false => Renewal::Renewed(renewed),
        }
    }

    fn parts<'a>(&'a self, tenant: &'a [u8; 4], actor: &'a [u8; 16]) -> [&'a [u8]; 8] {
        [
            tenant,
            self.id.as_bytes(),
            self.event_type.as_bytes(),
            self.entity.as_bytes(),
            self.actor_type.as_bytes(),
            actor,
            self.trace_id.as_bytes(),
            self.payload.as_bytes(),
        ]
    }
}

/// Binds the MAC of an event to a webhook, as `insert_events!` does. Which webhooks receive an event is decided by the
/// statement that inserts it, which cannot compute MACs. It stores only these digests, so the MAC itself, from which one
/// for another webhook could be made, is in no row.
fn bind(mac: &StoredMac, webhook: Uuid) -> StoredMac {
    let mut bound = *mac;
    let digest = sha256(&[&mac[..], webhook.as_bytes()].concat());
    bound[4..].copy_from_slice(&digest);
    bound
}

/// Signs an event and encodes it as a composite literal of `webhook_event`.
pub(crate) fn encode(key: &ControlKey, origin: &Origin<'_>, event: &Event) -> String {
    let signed = SignedEvent {
        id: ids::new_uuid(),
        event_type: event.kind.name().to_owned(),
        entity: event.entity.clone(),
        actor_type: origin.actor_type.to_owned(),
        actor: origin.actor,
        trace_id: origin.trace_id.to_owned(),
        payload: event.payload.clone(),
        mac: Vec::new(),
    };
    let actor = signed.actor.unwrap_or_default();
    let tenant = origin.tenant.to_be_bytes();
    let mac = key.authenticate(DOMAIN, &signed.parts(&tenant, actor.as_bytes()));

    let mut row = String::with_capacity(event.size_bytes());
    // Writing to a string cannot fail.
    let _ = write!(row, "({},{},", origin.tenant, signed.id);
    for text in [&signed.event_type, &signed.entity, &signed.actor_type] {
        quote_field(&mut row, text);
        row.push(',');
    }
    if let Some(actor) = signed.actor {
        let _ = write!(row, "{actor}");
    }
    row.push(',');
    quote_field(&mut row, &signed.trace_id);
    row.push(',');
    if let Some(at) = event.at {
        let _ = write!(row, "{at}");
    }
    row.push(',');
    quote_field(&mut row, &signed.payload);
    let _ = write!(row, ",\"\\\\x{}\")", hex::encode(mac));
    row
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn metadata_with_card_numbers_is_left_out() {
        let metadata = json!({
            "order": "17",
            "card": "4242424242424242",
            "4242 4242 4242 4242": "x",
            "text": "n 4242-4242-4242-4242",
            "number": 4_242_424_242_424_242_u64,
        });
        let data = json!({"token": {"id": "a", "metadata": metadata}, "other": {"id": "b"}});

        let event = Event::new(EventKind::TokenCreated, "a", data);

        let expected =
            json!({"token": {"id": "a", "metadata": {"order": "17"}}, "other": {"id": "b"}});
        assert_eq!(event.payload, expected.to_string());
    }
}
