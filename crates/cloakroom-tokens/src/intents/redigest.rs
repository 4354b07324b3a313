//! Computes the fingerprints of a tenant's intents again after their key was replaced.

use cloakroom_core::keys::{self, ResealedPage, SEALED_IDENTITY, ScannedPage, TenantKeys};
use cloakroom_core::vault::Vault;
use cloakroom_crypto::Fingerprint;
use cloakroom_platform::ids::TenantId;
use serde_json::Value;
use uuid::Uuid;

use super::store::{self, RefingerprintedIntents};
use super::{Error, TokenIntent};
use crate::attributes::{default_text, fingerprint_of};

/// Replaces the fingerprints of up to `limit` intents after the id `after`.
pub async fn redigest(
    vault: &Vault,
    tenant: TenantId,
    keys: &TenantKeys,
    after: Uuid,
    limit: i64,
) -> Result<ResealedPage, Error> {
    let (mut page, mut intents) = (ResealedPage::default(), RefingerprintedIntents::default());
    for (id, intent, sealed) in store::list_sealed(&vault.db, tenant, after, limit).await? {
        page.scanned += 1;
        page.last = Some(id);
        let fingerprint = examine(vault, (tenant, keys), intent.as_ref(), &sealed).await?;
        match (intent, fingerprint, sealed.get(SEALED_IDENTITY)) {
            (Some(intent), Some((fingerprint, _)), _) if intent.fingerprint == fingerprint => {}
            (Some(mut intent), Some((fingerprint, data)), Some(opened)) => {
                intent.fingerprint = fingerprint;
                let sealed = keys.seal(&intent.record(), data.expose())?;
                intents.push(&intent, opened.to_vec(), sealed);
            }
            _ => page.unreadable += 1,
        }
    }
    let epoch = keys.digest_epoch();
    page.rewritten = store::replace_fingerprints(&vault.db, tenant, &intents, epoch).await?;
    Ok(page)
}

/// Counts the intents among up to `limit` after the id `after` whose fingerprint is not that of the active key.
pub async fn count_former(
    vault: &Vault,
    tenant: TenantId,
    keys: &TenantKeys,
    after: Uuid,
    limit: i64,
) -> Result<ScannedPage, Error> {
    let mut page = ScannedPage::default();
    for (id, intent, sealed) in store::list_sealed(&vault.db, tenant, after, limit).await? {
        page.rows += 1;
        page.last = Some(id);
        let fingerprint = examine(vault, (tenant, keys), intent.as_ref(), &sealed).await?;
        let stored = intent.map(|intent| intent.fingerprint);
        page.found += u64::from(fingerprint.map(|(print, _)| print) != stored || stored.is_none());
    }
    Ok(page)
}

type Plaintext = cloakroom_crypto::Sensitive<Vec<u8>>;

/// The fingerprint of an intent under the active key, and its data; `None` if it does not open.
async fn examine(
    vault: &Vault,
    (tenant, keys): (TenantId, &TenantKeys),
    intent: Option<&TokenIntent>,
    sealed: &[u8],
) -> Result<Option<(Option<Fingerprint>, Plaintext)>, Error> {
    let Some(intent) = intent else {
        return Ok(None);
    };
    let data = match vault.keys.open(tenant, &intent.record(), sealed).await {
        Err(keys::Error::Integrity) => return Ok(None),
        data => data?,
    };
    let Ok(value) = serde_json::from_slice::<Value>(data.expose()) else {
        return Ok(None);
    };
    // An intent that the velocity limit left without a fingerprint gets none here.
    let text = intent
        .fingerprint
        .and_then(|_| default_text(intent.kind, &value));
    let fingerprint = text.map(|text| fingerprint_of(keys, intent.kind, &text));
    Ok(Some((fingerprint, data)))
}
