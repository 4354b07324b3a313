//! Creates sessions.

use std::time::Duration;

use cloakroom_core::access::{
    ApiKey, ApplicationKind, AuthenticatedRow as _, SessionRow, key_digest, key_lookup,
};
use cloakroom_core::audit::{self, EntityKind, Entry, Operation};
use cloakroom_core::caller::Caller;
use cloakroom_core::events::{Event, EventKind};
use cloakroom_core::idempotency::ResponseTemplate;
use cloakroom_core::vault::Vault;
use cloakroom_crypto::{Sensitive, random_base58};
use cloakroom_platform::ids;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Error, event_object, nonce_digest, require_kind, store};

/// Long enough for a server to authorize the session, and for a browser to complete a short task.
const LIFETIME: Duration = Duration::from_secs(3 * 60);
const NONCE_LENGTH: usize = 22;

/// A new session. Key and nonce are shown once.
pub struct CreatedSession {
    pub key: ApiKey,
    pub nonce: Sensitive<String>,
    pub expires_at: Timestamp,
}

/// Creates a session without permissions, to be authorized by a private application.
pub async fn create(
    vault: &Vault,
    caller: &Caller,
    template: &ResponseTemplate<'_, CreatedSession>,
) -> Result<CreatedSession, Error> {
    require_kind(caller, ApplicationKind::Public)?;
    let control = vault.keys.control();
    let now = vault.clock.now().await?;
    let expires_at = now.checked_add(LIFETIME).unwrap_or(now);
    let created = CreatedSession {
        key: ApiKey::generate_for_session(caller.tenant_kind, vault.config.vault.region.as_str()),
        nonce: Sensitive::new(random_base58(NONCE_LENGTH)),
        expires_at,
    };
    let row = SessionRow {
        lookup: key_lookup(created.key.expose()),
        tenant_number: caller.tenant.number,
        application: caller.application,
        id: ids::new_uuid(),
        key_digest: key_digest(created.key.expose()).to_vec(),
        nonce_digest: nonce_digest(caller, created.nonce.expose()).to_vec(),
        grants: None,
        expires_at: created.expires_at,
    };
    let mut object = event_object(&row);
    object["created_at"] = Value::Null;
    let event = Event::new(
        EventKind::SessionCreated,
        row.id,
        json!({ "session": object }),
    );
    let entry =
        Entry::new(caller, Operation::Create, EntityKind::Session, row.id).with_event(event);
    let change =
        audit::begin_statement(&vault.audit, &[entry], template.render_pending(&created)?).await?;
    store::insert(change, &row, &row.row_mac(control)).await?;
    Ok(created)
}
