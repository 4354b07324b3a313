//! The body of a delivery: the envelope of an event.

use cloakroom_platform::api::format_utc;
use cloakroom_platform::ids::TenantId;
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::store::ClaimedDelivery;
use crate::signatures::canonical;

/// Times of an entity that are null in a stored event and stand for the time of the event.
const TIMES: [&str; 2] = ["created_at", "modified_at"];

/// Builds the canonical body of one attempt; `None` if the stored event cannot be read.
///
/// One key signs the events of all tenants. The body names the webhook, so that an endpoint can reject what was signed for
/// another one.
pub(super) fn envelope(
    tenant: TenantId,
    webhook: Uuid,
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
        "webhook_id": webhook,
    })))
}

/// Sets the times that the commit determined, and removes absent attributes.
fn complete(object: &mut Map<String, Value>, occurred_at: &str) {
    for name in TIMES {
        if let Some(time) = object.get_mut(name).filter(|time| time.is_null()) {
            *time = occurred_at.into();
        }
    }
    object.retain(|_, value| !value.is_null());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_completed_and_absent_attributes_removed() {
        let object = json!({
            "id": "a",
            "created_at": null,
            "expires_at": null,
            "metadata": {"order": "17"},
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
