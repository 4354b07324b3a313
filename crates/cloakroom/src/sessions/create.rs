//! Asking for a session.

use std::time::Duration;

use cloakroom_crypto::{Sensitive, random_base58};
use jiff::Timestamp;

use super::{Error, nonce_mac, require_kind, store};
use crate::access::{
    ApiKey, ApplicationKind, Authenticated as _, KeyParts, SessionRow, secret_mac,
};
use crate::audit::{EntityKind, Entry, Operation};
use crate::caller::Caller;
use crate::idempotency::Reply;
use crate::ids;
use crate::vault::Vault;

/// Enough for a server to authorize it, and for the browser to be done with little.
const LIFE: Duration = Duration::from_secs(3 * 60);
const NONCE_LENGTH: usize = 22;

/// A new session. Key and nonce are shown only now.
pub struct CreatedSession {
    pub key: ApiKey,
    pub nonce: Sensitive<String>,
    pub expires_at: Timestamp,
}

/// Makes a session that may do nothing until a private application authorizes it.
pub async fn create(
    vault: &Vault,
    caller: &Caller,
    reply: &Reply<'_, CreatedSession>,
) -> Result<CreatedSession, Error> {
    require_kind(caller, ApplicationKind::Public)?;
    let control = vault.keys.control();
    let now = vault.audit.now().await?;
    let expires_at = now.checked_add(LIFE).unwrap_or(now);
    let created = CreatedSession {
        key: ApiKey::generate_for_session(caller.tenant_kind, vault.config.vault.region.as_str()),
        nonce: Sensitive::new(random_base58(NONCE_LENGTH)),
        expires_at,
    };
    let parts = KeyParts::parse(created.key.expose());
    let row = SessionRow {
        lookup: parts.map_or_else(String::new, |parts| parts.lookup.to_owned()),
        tenant_number: caller.tenant.number,
        application: caller.application,
        id: ids::new_uuid(),
        secret_mac: secret_mac(control, created.key.expose()).to_vec(),
        nonce_mac: nonce_mac(control, caller, created.nonce.expose()).to_vec(),
        grants: None,
        expires_at: created.expires_at,
    };
    let entry = Entry::of(caller, Operation::Create, EntityKind::Session, row.id);
    let kept = reply.keep(&created)?;
    store::insert(vault, &row, &row.row_mac(control), entry, kept).await?;
    Ok(created)
}
