//! Turning the text of an API key into a caller.

use std::sync::Arc;

use cloakroom_crypto::equal_in_constant_time;
use moka::future::Cache;

use super::row_mac::Authenticated as _;
use super::store::{self, Credential};
use super::{Error, Grants, KeyParts};
use crate::caller::Caller;
use crate::config;
use crate::keys::ControlKey;
use crate::storage::{self, Db};
use crate::vault::Vault;

/// Callers seen in the last seconds, by the look-up part of their key.
///
/// The time to live bounds how long a deleted key still works on this node.
pub struct Authenticator {
    known: Cache<Box<str>, Known>,
}

#[derive(Clone)]
struct Known {
    secret_mac: Arc<[u8]>,
    caller: Arc<Caller>,
}

/// Why nobody is known under a look-up part.
#[derive(Debug)]
enum Nobody {
    Unknown,
    Failed(storage::Error),
}

impl Authenticator {
    pub fn new(config: &config::Access) -> Self {
        let known = Cache::builder()
            .max_capacity(config.key_cache_size as u64)
            .time_to_live(config.key_cache_ttl)
            .build();
        Self { known }
    }
}

/// Finds out who is asking.
///
/// Malformed text costs no look-up. After that, known and unknown keys take the same steps: one
/// look-up by id, one digest, one comparison in constant time.
pub async fn authenticate(vault: &Vault, text: &str) -> Result<Arc<Caller>, Error> {
    let parts = KeyParts::parse(text).ok_or(Error::Unauthorized)?;
    let control = vault.keys.control();
    let found = match look_up(vault, parts.lookup).await {
        Ok(known) => Some(known),
        Err(nobody) => match &*nobody {
            Nobody::Unknown => None,
            Nobody::Failed(error) => {
                return Err(storage::Error::Unavailable(error.to_string()).into());
            }
        },
    };

    let offered = secret_mac(control, text);
    let expected = found
        .as_ref()
        .map_or(&[0; 32][..], |known| &known.secret_mac);
    let matches = equal_in_constant_time(&offered, expected);
    match found {
        Some(known) if matches && says_what_it_is(&parts, &known.caller) => Ok(known.caller),
        _ => Err(Error::Unauthorized),
    }
}

/// The digest under which a key's secret is kept.
pub(super) fn secret_mac(control: &ControlKey, text: &str) -> [u8; 32] {
    control.authenticate("api-key.v1", &[text.as_bytes()])
}

/// Test keys reach test tenants only, and a key never serves another kind of application.
fn says_what_it_is(parts: &KeyParts<'_>, caller: &Caller) -> bool {
    parts.tenant_kind == caller.tenant_kind && parts.application_kind == caller.application_kind
}

/// Looks in memory, then in the database; equal look-ups at one moment share one statement.
async fn look_up(vault: &Vault, lookup: &str) -> Result<Known, Arc<Nobody>> {
    if let Some(known) = vault.authenticator.known.get(lookup).await {
        return Ok(known);
    }
    let load = load(&vault.db, vault.keys.control(), lookup);
    vault
        .authenticator
        .known
        .try_get_with(lookup.into(), load)
        .await
}

async fn load(db: &Db, control: &ControlKey, lookup: &str) -> Result<Known, Nobody> {
    let found = store::find_credential(db, lookup)
        .await
        .map_err(Nobody::Failed)?;
    let credential = found.ok_or(Nobody::Unknown)?;
    let genuine = credential.key.is_genuine(control, &credential.key_mac)
        && credential
            .application
            .is_genuine(control, &credential.application_mac)
        && credential
            .tenant
            .is_genuine(control, &credential.tenant_mac);
    if !genuine {
        metrics::counter!("access_altered_rows_total").increment(1);
        tracing::error!(
            error.kind = "altered_row",
            tenant.id = %credential.tenant.id.uuid,
            application.id = %credential.application.id,
            key.id = %credential.key.id,
            "a key, its application or its tenant was changed outside the vault; the key is refused"
        );
        return Err(Nobody::Unknown);
    }
    known(credential).ok_or(Nobody::Unknown)
}

fn known(credential: Credential) -> Option<Known> {
    let Credential {
        key,
        application,
        tenant,
        ..
    } = credential;
    let grants: Grants = serde_json::from_str(&application.grants).ok()?;
    let caller = Caller {
        tenant: tenant.id,
        tenant_kind: tenant.kind,
        application: application.id,
        application_kind: application.kind,
        key: key.id,
        grants,
    };
    Some(Known {
        secret_mac: key.secret_mac.into(),
        caller: Arc::new(caller),
    })
}
