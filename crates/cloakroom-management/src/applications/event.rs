//! The events of applications and their keys, without secrets.

use cloakroom_core::events::{Event, EventKind};
use cloakroom_platform::api::format_utc;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Application, ApplicationKey};

impl Application {
    /// The event of a created or updated application.
    pub(super) fn event(&self, kind: EventKind) -> Event {
        let mut application = json!({
            "id": self.id,
            "type": self.kind.name(),
            "name": self.name,
            "permissions": self.grants.permissions,
            "rules": self.grants.rules,
            "created_by": self.created_by,
            "created_at": format_utc(self.created_at),
            "modified_by": self.modified_by,
        });
        if let Some(at) = self.modified_at {
            application["modified_at"] = format_utc(at).into();
        }
        Event::new(kind, self.id, json!({ "application": application }))
    }
}

impl ApplicationKey {
    pub(super) fn created_event(&self, application: Uuid) -> Event {
        let key = json!({
            "id": self.id,
            "application_id": application,
            "version": self.version(),
            "created_by": self.created_by,
            "created_at": format_utc(self.created_at),
        });
        key_event(EventKind::ApplicationKeyCreated, application, key)
    }
}

pub(super) fn key_deleted(application: Uuid, id: Uuid) -> Event {
    let key = json!({"id": id, "application_id": application});
    key_event(EventKind::ApplicationKeyDeleted, application, key)
}

/// Events of a key are delivered in order with those of its application.
fn key_event(kind: EventKind, application: Uuid, key: Value) -> Event {
    Event::new(kind, application, json!({ "application_key": key }))
}
