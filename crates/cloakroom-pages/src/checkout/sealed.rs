//! Encrypts the attributes of sessions, and decrypts rows, which verifies the columns that they are bound to.

use cloakroom_core::keys;
use cloakroom_crypto::Sensitive;
use cloakroom_platform::ids::TenantId;
use cloakroom_tokens::TokenVault;

use super::Error;
use super::session::{Facts, Session};
use super::store::StoredSession;

pub(super) async fn seal(
    vault: &TokenVault,
    tenant: TenantId,
    session: &Session,
) -> Result<Vec<u8>, Error> {
    let keys = vault.keys.of(tenant).await?;
    let facts = serde_json::to_vec(&session.facts).map_err(|_| keys::Error::Seal)?;
    let facts = Sensitive::new(facts);
    Ok(keys.seal(&session.columns.record(), facts.expose())?)
}

pub(super) async fn open(
    vault: &TokenVault,
    tenant: TenantId,
    stored: StoredSession,
) -> Result<Session, Error> {
    let StoredSession { columns, sealed } = stored;
    let columns = columns.ok_or(keys::Error::Integrity)?;
    let facts = vault.keys.open(tenant, &columns.record(), &sealed).await?;
    let facts: Facts =
        serde_json::from_slice(facts.expose()).map_err(|_| keys::Error::Integrity)?;
    Ok(Session { columns, facts })
}
