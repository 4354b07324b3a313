//! Finding an intent, to look at it or to make a token of it.

use serde_json::Value;
use uuid::Uuid;

use super::intent::OpenedIntent;
use super::{Error, IntentView, store};
use crate::access::Permission;
use crate::audit::{EntityKind, Entry, Operation};
use crate::caller::Caller;
use crate::keys;
use crate::storage;
use crate::token_attributes::Details;
use crate::vault::Vault;

/// Finds an intent by id; expired ones and those of other tenants do not exist.
pub async fn find(vault: &Vault, caller: &Caller, id: &str) -> Result<IntentView, Error> {
    caller.require_somewhere(Permission::TokenIntentRead)?;
    let OpenedIntent { intent, data } = open(vault, caller, id).await?;
    let value: Value = serde_json::from_slice(data.expose()).map_err(|_| keys::Error::Integrity)?;
    let entry = Entry::of(caller, Operation::Read, EntityKind::TokenIntent, intent.id);
    vault.audit.note(vec![entry]).await?;
    Ok(IntentView {
        details: Details::of(vault, caller.tenant_kind, intent.kind, &value),
        intent,
    })
}

/// Opens the data of an intent, which proves that nobody changed what it is bound to.
pub(crate) async fn open(vault: &Vault, caller: &Caller, id: &str) -> Result<OpenedIntent, Error> {
    let id: Uuid = id.parse().map_err(|_| Error::NotFound)?;
    let row = store::find(&vault.db, caller.tenant, &id).await?;
    let (intent, sealed) = row.ok_or(Error::NotFound)?;
    let intent = intent.ok_or(keys::Error::Integrity)?;
    let record = intent.record();
    let data = vault.keys.open(caller.tenant, &record, &sealed).await?;
    Ok(OpenedIntent { intent, data })
}

/// Whether an intent can still be converted.
pub(crate) async fn exists(
    vault: &Vault,
    caller: &Caller,
    id: &Uuid,
) -> Result<bool, storage::Error> {
    let row = store::find(&vault.db, caller.tenant, id).await?;
    Ok(row.is_some())
}
