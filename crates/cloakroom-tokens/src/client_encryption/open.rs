//! Decrypts data that a client encrypted.

use std::time::Duration;

use cloakroom_core::access::Container;
use cloakroom_core::caller::Caller;
use cloakroom_core::keys;
use cloakroom_core::vault::Vault;
use cloakroom_crypto::{ClientKey, Sensitive};
use cloakroom_platform::api::{FieldError, read_json};
use cloakroom_platform::config::ClientEncryption;
use jiff::Timestamp;
use serde_json::value::RawValue;

use super::jwe::Jwe;
use super::store;

/// The data of a request, sent in plaintext or encrypted.
pub enum RequestData<'a> {
    Plain(Option<&'a RawValue>),
    Opened(Sensitive<Vec<u8>>),
}

impl RequestData<'_> {
    pub fn is_encrypted(&self) -> bool {
        matches!(self, Self::Opened(_))
    }

    /// The data, if any; JSON's null counts as absent.
    pub fn raw(&self) -> Option<&RawValue> {
        match self {
            Self::Plain(plain) => *plain,
            Self::Opened(opened) => serde_json::from_slice(opened.expose()).ok().flatten(),
        }
    }
}

/// The data of a request as sent: in plaintext, or as a JWE.
pub struct SentData<'a, 'e> {
    pub plain: Option<&'a RawValue>,
    pub encrypted: Option<&'e str>,
}

/// How far a client's clock may be ahead of the database's.
const CLOCK_SKEW: Duration = Duration::from_secs(60);

/// Returns the data of a request that has either `data` or `encrypted`, or a validation error.
///
/// `destination` is the container that the data is stored in, if any. Callers treat both kinds of data alike.
pub async fn resolve_request_data<'a>(
    vault: &Vault,
    caller: &Caller,
    sent: SentData<'a, '_>,
    destination: Option<&Container>,
) -> Result<Result<RequestData<'a>, Vec<FieldError>>, keys::Error> {
    let rejected = |rule: &str| Ok(Err(vec![FieldError::new("encrypted", rule)]));
    let text = match (sent.plain, sent.encrypted) {
        (plain, None) => return Ok(Ok(RequestData::Plain(plain))),
        (Some(_), Some(_)) => return rejected("must not be given together with data"),
        (None, Some(text)) => text,
    };
    let opened = open_encrypted(vault, caller, text, destination).await?;
    // The limits of JSON bodies also apply to decrypted data.
    match opened.filter(|opened| read_json::<&RawValue>(opened.expose()).is_ok()) {
        Some(opened) => Ok(Ok(RequestData::Opened(opened))),
        None => rejected(
            "cannot be decrypted: it must be a compact JWE (ECDH-ES with A256GCM) of JSON, for one of \
             the tenant's keys that has not expired and that this application may use in this \
             container, and not older than allowed",
        ),
    }
}

/// Decrypts a JWE for one of the tenant's keys that the caller may use; `None` if that fails for any reason that the
/// client can cause.
///
/// An altered row is not the client's fault: it fails like any other sealed value that does not open.
async fn open_encrypted(
    vault: &Vault,
    caller: &Caller,
    text: &str,
    destination: Option<&Container>,
) -> Result<Option<Sensitive<Vec<u8>>>, keys::Error> {
    let Some(jwe) = Jwe::parse(text) else {
        return Ok(None);
    };
    let settings = &vault.config.client_encryption;
    if !is_fresh(settings, jwe.issued_at, vault.clock.now().await?) {
        return Ok(None);
    }
    let tenant = caller.tenant;
    let Some(stored) = store::find(&vault.db, tenant, jwe.key_id).await? else {
        return Ok(None);
    };
    let record = stored.key.record(&stored.public_key);
    let private = vault.keys.open(tenant, &record, &stored.sealed).await?;
    // Checked after opening: the binding is authenticated together with the private key.
    if !stored.key.binding.allows(caller.application, destination) {
        return Ok(None);
    }
    let key = ClientKey::from_sealed(&private).map_err(|_| keys::Error::Integrity)?;
    Ok(key.open(&jwe.message()).ok())
}

/// Whether a value was encrypted within the allowed window, according to its authenticated header.
fn is_fresh(settings: &ClientEncryption, issued_at: Option<Timestamp>, now: Timestamp) -> bool {
    let Some(issued_at) = issued_at else {
        return !settings.require_iat;
    };
    let oldest = now.checked_sub(settings.iat_window);
    let newest = now.checked_add(CLOCK_SKEW);
    oldest.is_ok_and(|oldest| oldest <= issued_at) && newest.is_ok_and(|newest| issued_at <= newest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_accepted_within_the_iat_window() {
        let now: Timestamp = "2030-01-01T12:00:00Z".parse().unwrap();
        let cases = [
            (None, true, false),
            (Some("2030-01-01T12:00:00Z"), true, true),
            (Some("2030-01-01T11:55:00Z"), true, true),
            (Some("2030-01-01T11:54:59Z"), false, false),
            (Some("2030-01-01T12:01:00Z"), true, true),
            (Some("2030-01-01T12:01:01Z"), false, false),
        ];
        for (issued_at, expected, expected_if_required) in cases {
            let issued_at = issued_at.map(|text| text.parse().unwrap());
            for (require_iat, expected) in [(false, expected), (true, expected_if_required)] {
                let settings = ClientEncryption {
                    require_iat,
                    ..ClientEncryption::default()
                };
                assert_eq!(
                    is_fresh(&settings, issued_at, now),
                    expected,
                    "{issued_at:?}"
                );
            }
        }
    }
}
