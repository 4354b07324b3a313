//! Reads intents, reveals their data and opens them for conversion.

use cloakroom_core::access::{Permission, PermissionDenied, Purpose, Resource, Transform};
use cloakroom_core::audit::{EntityKind, Entry, Operation, Outcome};
use cloakroom_core::caller::Caller;
use cloakroom_core::keys;
use cloakroom_crypto::Sensitive;
use cloakroom_platform::storage;
use serde_json::Value;
use uuid::Uuid;

use super::intent::{OpenedIntent, RevealedIntent};
use super::{Error, IntentView, store};
use crate::attributes::Details;
use crate::data_vault::DataVault;
use crate::security_codes;

/// Finds an intent by id. Expired intents and intents of other tenants are not found.
pub async fn find(vault: &DataVault, caller: &Caller, id: &str) -> Result<IntentView, Error> {
    caller.require_anywhere(Permission::TokenIntentRead)?;
    let OpenedIntent { intent, data } = open(vault, caller, id).await?;
    let value: Value = serde_json::from_slice(data.expose()).map_err(|_| keys::Error::Integrity)?;
    let entry = Entry::new(caller, Operation::Read, EntityKind::TokenIntent, intent.id);
    vault.audit.enqueue(vec![entry]).await?;
    Ok(IntentView {
        details: Details::of(&vault.bins, caller.tenant_kind, intent.kind, &value),
        intent,
    })
}

/// Decrypts the data of an intent, which authenticates the attributes that it is bound to.
pub async fn open(vault: &DataVault, caller: &Caller, id: &str) -> Result<OpenedIntent, Error> {
    let id: Uuid = id.parse().map_err(|_| Error::NotFound)?;
    let row = store::find(&vault.db, caller.tenant, &id).await?;
    let (intent, sealed) = row.ok_or(Error::NotFound)?;
    let intent = intent.ok_or(keys::Error::Integrity)?;
    let record = intent.record();
    let data = vault.keys.open(caller.tenant, &record, &sealed).await?;
    Ok(OpenedIntent { intent, data })
}

/// Reveals the data of opened intents, with unexpired security codes.
///
/// Intents have no container. The caller needs the permission of the purpose, with the transform `reveal`, in the default
/// container of the intent's type. Does not write to the audit log: see `read_entries`.
pub async fn reveal(
    vault: &DataVault,
    caller: &Caller,
    opened: Vec<OpenedIntent>,
    purpose: Purpose,
) -> Result<Vec<RevealedIntent>, Error> {
    for OpenedIntent { intent, .. } in &opened {
        let (container, id) = (&intent.kind.default_container(), None);
        let subject = Resource { container, id };
        if purpose.require_on(caller, subject)? != Transform::Reveal {
            return Err(PermissionDenied(Permission::TokenRead).into());
        }
    }
    let mut revealed = Vec::with_capacity(opened.len());
    for OpenedIntent { intent, data } in opened {
        let mut value: Value =
            serde_json::from_slice(data.expose()).map_err(|_| keys::Error::Integrity)?;
        let view = IntentView {
            details: Details::of(&vault.bins, caller.tenant_kind, intent.kind, &value),
            intent,
        };
        let code = find_code(vault, caller, &view.intent.id).await?;
        if let (Some(code), Some(members)) = (code, value.as_object_mut()) {
            members.insert("cvc".to_owned(), code.expose().as_str().into());
        }
        revealed.push(RevealedIntent { view, data: value });
    }
    Ok(revealed)
}

/// The audit log entries of revealed intents. They must be recorded before the data is sent.
pub fn read_entries(
    caller: &Caller,
    operation: Operation,
    revealed: &[RevealedIntent],
) -> Vec<Entry> {
    let entry = |intent: &RevealedIntent| {
        let id = intent.view.intent.id;
        Entry::new(caller, operation, EntityKind::TokenIntent, id).with_outcome(Outcome::Revealed)
    };
    revealed.iter().map(entry).collect()
}

async fn find_code(
    vault: &DataVault,
    caller: &Caller,
    id: &Uuid,
) -> Result<Option<Sensitive<String>>, storage::Error> {
    match store::find_code(&vault.db, caller.tenant, id).await? {
        Some(code) => {
            Ok(security_codes::open(&vault.security_codes, caller.tenant, id, &code).await)
        }
        None => Ok(None),
    }
}

/// Whether an intent can still be converted.
pub async fn exists(vault: &DataVault, caller: &Caller, id: &Uuid) -> Result<bool, storage::Error> {
    let row = store::find(&vault.db, caller.tenant, id).await?;
    Ok(row.is_some())
}
