//! Opening a kept code, which may have become impossible.

use cloakroom_crypto::Sensitive;
use uuid::Uuid;

use super::count;
use super::fetch::{Absence, key_of};
use super::live_keys::{KeyId, Place};
use crate::ids::TenantId;
use crate::vault::Vault;

/// Opens a code that has not expired; none when its key is gone or out of reach.
///
/// A code that was altered, or moved here from another token, is none as well: the card stays usable
/// without it. It is told loudly, as an integrity error, because somebody has changed a row.
pub async fn open(
    vault: &Vault,
    tenant: TenantId,
    token_id: &Uuid,
    key_id: &[u8],
    sealed: &[u8],
) -> Option<Sensitive<String>> {
    let place = Place {
        environment: vault.keys.environment(),
        tenant,
        token_id,
    };
    let opened = match KeyId::from_slice(key_id) {
        Some(id) => key_of(vault, id).await,
        None => Err(Absence::Altered),
    }
    .and_then(|key| key.open(&place, sealed).map_err(|_| Absence::Altered));
    match opened {
        Ok(code) => {
            count("opened");
            Some(code)
        }
        Err(absence) => {
            tell(absence);
            None
        }
    }
}

fn tell(absence: Absence) {
    match absence {
        Absence::Gone => count("key_gone"),
        Absence::Unreachable => count("key_unreachable"),
        Absence::Altered => {
            count("altered");
            metrics::counter!("integrity_errors_total").increment(1);
            tracing::error!(
                error.kind = "integrity_error",
                "a security code or its key was altered, and is treated as absent"
            );
        }
    }
}
