//! The body of a delivery: the envelope of an event.

use cloakroom_platform::api::format_utc;
use cloakroom_platform::card_numbers::contains_card_number;
use cloakroom_platform::ids::TenantId;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::store::ClaimedDelivery;
use crate::signatures::canonical;

/// Times of an entity that are null in a stored event and stand for the time of the event.
const TIMES: [&str; 2] = ["created_at", "modified_at"];

/// Builds the canonical body of one attempt; `None` if the stored event cannot be read.
pub(super) fn envelope(
    tenant: TenantId,
    claimed: &ClaimedDelivery,
    delivered_at: Timestamp,
) -> Option<String> {
    let event = &claimed.event;
    let occurred_at = format_utc(claimed.occurred_at);
    let mut data: Map<String, Value> = serde_json::from_str(&event.payload).ok()?;
    for object in data.values_mut().filter_map(Value::as_object_mut) {
        complete(object, &occurred_at);
    }
    let actor = json!({
        "id": event.actor.map(|id| id.to_string()).unwrap_or_default(),
        "type": event.actor_type,
        "name": claimed.actor_name.as_deref().unwrap_or_default(),
    });
    data.insert("actor".to_owned(), actor);
    Some(canonical(&json!({
        "event": {
            "id": event.id,
            "type": event.event_type,
            "timestamp": occurred_at,
            "tenant_id": tenant.uuid,
            "trace_id": event.trace_id,
            "data": data,
        },
        "delivered_at": format_utc(delivered_at),
    })))
}

/// Sets the times that the commit determined, and removes absent attributes and metadata with card numbers.
///
/// Tenants can allow card numbers in metadata. They are stored with the token then, but do not leave the vault.
fn complete(object: &mut Map<String, Value>, occurred_at: &str) {
    for name in TIMES {
        if let Some(time) = object.get_mut(name).filter(|time| time.is_null()) {
            *time = occurred_at.into();
        }
    }
    object.retain(|_, value| !value.is_null());
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.retain(|name, value| {
            let text = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            !contains_card_number(name) && !contains_card_number(&text)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_completed_and_card_numbers_removed() {
        let object = json!({
            "id": "a",
            "created_at": null,
            "expires_at": null,
            "metadata": {"order": "17", "card": "4242424242424242", "4242 4242 4242 4242": "x", "text": "n 4242-4242-4242-4242"},
        });
        let Value::Object(mut object) = object else {
            unreachable!()
        };

        complete(&mut object, "2030-01-01T00:00:00+00:00");

        let expected = json!({
            "id": "a",
            "created_at": "2030-01-01T00:00:00+00:00",
            "metadata": {"order": "17"},
        });
        assert_eq!(Value::Object(object), expected);
    }
}
