//! The events of sessions: what merchants need to continue, without device data and authentication values.

use cloakroom_core::events::{Event, EventKind};
use cloakroom_emv3ds::codes::TransStatus;
use cloakroom_platform::api::format_utc;
use serde_json::{Value, json};

use crate::sessions::session::{CardReference, Session};

impl Session {
    /// An event that shows how far the session is.
    pub(in crate::sessions) fn event(&self, kind: EventKind) -> Event {
        let mut session = self.identity();
        session["created_by"] = json!(self.created_by);
        session["created_at"] = format_utc(self.created_at).into();
        session["expires_at"] = json!(self.expires_at.map(format_utc));
        session["device"] = json!(self.facts.device);
        session["card_brand"] = json!(self.facts.brand);
        match &self.facts.card {
            CardReference::Token(id) => session["token_id"] = json!(id),
            CardReference::TokenIntent(id) => session["token_intent_id"] = json!(id),
        }
        if kind == EventKind::ThreedsAuthenticated {
            session["authentication_status"] = json!(self.status().map(TransStatus::name));
        }
        self.wrap(kind, session)
    }

    /// An event that shows only that something happened.
    pub(in crate::sessions) fn notification(&self, kind: EventKind) -> Event {
        let mut session = self.identity();
        if kind == EventKind::ThreedsChallengeCompleted {
            let status = self.outcome().map(|is_successful| match is_successful {
                true => TransStatus::Successful.name(),
                false => TransStatus::Failed.name(),
            });
            session["authentication_status"] = json!(status);
        }
        self.wrap(kind, session)
    }

    fn identity(&self) -> Value {
        json!({
            "id": self.id,
            "type": self.facts.kind.name(),
            "tenant_id": self.tenant.uuid,
        })
    }

    fn wrap(&self, kind: EventKind, session: Value) -> Event {
        Event::new(kind, self.id, json!({ "session": session }))
    }
}
