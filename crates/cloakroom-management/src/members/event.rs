//! The events of invitations and members.

use cloakroom_core::events::{Event, EventKind};
use cloakroom_platform::api::format_utc;
use serde_json::json;

use super::{Invitation, Member};

impl Invitation {
    pub(super) fn event(&self, kind: EventKind) -> Event {
        let invitation = json!({
            "id": self.id,
            "email": self.email.as_str(),
            "role": self.role.name(),
            "expires_at": format_utc(self.expires_at),
            "created_by": self.created_by,
            "created_at": format_utc(self.created_at),
        });
        Event::new(kind, self.id, json!({ "invitation": invitation }))
    }
}

impl Member {
    pub(super) fn created_event(&self) -> Event {
        let member = json!({
            "id": self.id,
            "user_id": self.user.id,
            "role": self.role.name(),
            "created_by": self.created_by,
            "created_at": format_utc(self.created_at),
        });
        Event::new(
            EventKind::MemberCreated,
            self.id,
            json!({ "member": member }),
        )
    }
}
