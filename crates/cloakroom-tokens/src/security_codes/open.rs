//! Opens stored security codes.

use cloakroom_crypto::Sensitive;
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::telemetry::catalog;
use uuid::Uuid;

use super::fetch::{KeyError, find_or_fetch};
use super::live_keys::{CodeContext, KeyId};
use super::{SealedCode, SecurityCodes, count};

/// Opens an unexpired code; `None` if its key has expired or is unavailable.
///
/// A code that was altered or copied from another token is absent as well: the card remains usable without it. That is
/// logged as an integrity error, because a row was tampered with.
pub async fn open(
    codes: &SecurityCodes,
    tenant: TenantId,
    token_id: &Uuid,
    stored: &SealedCode,
) -> Option<Sensitive<String>> {
    let context = CodeContext {
        environment: codes.vault.keys.environment(),
        tenant,
        token_id,
        until: stored.until,
    };
    let opened = match KeyId::from_slice(&stored.key_id) {
        Some(id) => find_or_fetch(codes, id).await,
        None => Err(KeyError::Altered),
    }
    .and_then(|key| {
        key.open(&context, &stored.sealed)
            .map_err(|_| KeyError::Altered)
    });
    match opened {
        Ok(code) => {
            count("opened");
            Some(code)
        }
        Err(error) => {
            report(error);
            None
        }
    }
}

fn report(error: KeyError) {
    match error {
        KeyError::Gone => count("key_gone"),
        KeyError::Unreachable => count("key_unreachable"),
        KeyError::Altered => {
            count("altered");
            catalog::INTEGRITY_ERRORS.increment(1);
            tracing::error!(
                error.kind = "integrity_error",
                "a security code or its key was altered, and is treated as absent"
            );
        }
    }
}
