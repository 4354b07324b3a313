//! Opening what a client encrypted.

use cloakroom_crypto::{ClientKey, Sensitive};
use serde_json::value::RawValue;

use super::jwe::Jwe;
use super::store;
use crate::api::{Broken, read_json};
use crate::ids::TenantId;
use crate::keys;
use crate::vault::Vault;

/// The data of a request, whichever way it came.
pub enum GivenData<'a> {
    Plain(Option<&'a RawValue>),
    Opened(Sensitive<Vec<u8>>),
}

impl GivenData<'_> {
    pub fn is_encrypted(&self) -> bool {
        matches!(self, Self::Opened(_))
    }

    /// What was given, if anything: JSON's null counts as absent.
    pub fn raw(&self) -> Option<&RawValue> {
        match self {
            Self::Plain(plain) => *plain,
            Self::Opened(opened) => serde_json::from_slice(opened.expose()).ok().flatten(),
        }
    }
}

/// The data of a request that has `data`, or `encrypted` in its place, or the rule that it breaks.
///
/// For every room that takes data: from here on nobody has to know how it came.
pub async fn given_data<'a>(
    vault: &Vault,
    tenant: TenantId,
    data: Option<&'a RawValue>,
    encrypted: Option<&str>,
) -> Result<Result<GivenData<'a>, Vec<Broken>>, keys::Error> {
    let refused = |rule: &str| Ok(Err(vec![Broken::new("encrypted", rule)]));
    let text = match (data, encrypted) {
        (_, None) => return Ok(Ok(GivenData::Plain(data))),
        (Some(_), Some(_)) => return refused("must not be given together with data"),
        (None, Some(text)) => text,
    };
    let opened = open_encrypted(vault, tenant, text).await?;
    // The limits of a body hold for what was hidden in it as well.
    match opened.filter(|opened| read_json::<&RawValue>(opened.expose()).is_ok()) {
        Some(opened) => Ok(Ok(GivenData::Opened(opened))),
        None => refused(
            "cannot be opened: it must be a compact JWE (ECDH-ES with A256GCM) of JSON, for one of \
             the tenant's keys that has not expired",
        ),
    }
}

/// Opens what a client encrypted to one of the tenant's keys; whatever is wrong with it, there is
/// nothing.
///
/// A row that was altered is not the client's fault: it is told as loudly as any other sealed value
/// that does not open.
pub async fn open_encrypted(
    vault: &Vault,
    tenant: TenantId,
    text: &str,
) -> Result<Option<Sensitive<Vec<u8>>>, keys::Error> {
    let Some(jwe) = Jwe::parse(text) else {
        return Ok(None);
    };
    let Some(kept) = store::find(&vault.db, tenant, jwe.key_id).await? else {
        return Ok(None);
    };
    let record = kept.key.record(&kept.public_key);
    let private = vault.keys.open(tenant, &record, &kept.sealed).await?;
    let key = ClientKey::from_sealed(&private).map_err(|_| keys::Error::Integrity)?;
    Ok(key.open(&jwe.message()).ok())
}
