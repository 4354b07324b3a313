//! Events of proxies. They contain neither keys nor configuration values.

use cloakroom_core::events::{Event, EventKind};
use cloakroom_platform::api::format_utc;
use serde_json::json;

use super::Proxy;

impl Proxy {
    /// The event of a change. The query of the destination may contain a credential, and is not shown.
    pub(super) fn event(&self, kind: EventKind) -> Event {
        let url = &self.destination_url;
        let mut proxy = json!({
            "id": self.id,
            "name": self.name,
            "application_id": self.application,
            "destination_url": url.split_once('?').map_or(url.as_str(), |(url, _)| url),
            "require_authentication": self.sealed.require_auth,
            "created_by": self.created_by,
            "created_at": format_utc(self.created_at),
            "modified_by": self.modified_by,
        });
        if let Some(at) = self.modified_at {
            proxy["modified_at"] = format_utc(at).into();
        }
        Event::new(kind, self.id, json!({ "proxy": proxy }))
    }
}
