//! Creating an intent: check, fingerprint, seal, keep.

use jiff::Timestamp;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Error, IntentView, TokenIntent, store};
use crate::access::Permission;
use crate::api::Broken;
use crate::audit::{EntityKind, Entry, Operation};
use crate::caller::Caller;
use crate::client_encryption::{GivenData, given_data};
use crate::idempotency::Reply;
use crate::token_attributes::{
    self as attributes, Details, card_numbers_of, fingerprint_by_type, keep,
};
use crate::token_types::{SecurityCode, TokenKind, settle};
use crate::vault::Vault;
use crate::{ids, keys, security_codes, velocity};

/// An intent that is asked for; nothing in it is checked yet.
#[derive(Default)]
pub struct NewIntent<'a> {
    pub kind: Option<String>,
    pub data: Option<&'a RawValue>,
    /// The data as the client encrypted it.
    pub encrypted: Option<String>,
}

/// Keeps data for the time that the tenant's quota allows.
///
/// Returns once the intent is durable.
pub async fn create(
    vault: &Vault,
    caller: &Caller,
    new: NewIntent<'_>,
    reply: &Reply<'_, IntentView>,
) -> Result<IntentView, Error> {
    caller.require_somewhere(Permission::TokenIntentCreate)?;
    let mut broken = Vec::new();
    let kind = keep(kind(new.kind.as_deref()), &mut broken);
    let encrypted = new.encrypted.as_deref();
    let given = given_data(vault, caller.tenant, new.data, encrypted).await?;
    let given = keep(given, &mut broken);
    let settled = match (given.as_ref().map(GivenData::raw), kind) {
        (Some(None), _) => keep(Err(vec![Broken::new("data", "is required")]), &mut broken),
        (Some(Some(raw)), Some(kind)) => {
            let settled = attributes::data_size(raw.get().as_bytes())
                .and_then(|()| settle(kind, raw, caller.tenant_kind));
            keep(settled, &mut broken)
        }
        (None, _) | (_, None) => None,
    };
    let (Some(kind), Some(settled)) = (kind, settled) else {
        velocity::notice_refused(vault, caller, &broken).await?;
        return Err(Error::Invalid(broken));
    };

    let keys = vault.keys.of(caller.tenant).await?;
    let value: Value =
        serde_json::from_slice(settled.data.expose()).map_err(|_| keys::Error::Integrity)?;
    velocity::admit(vault, caller, &card_numbers_of(kind, &value, None)).await?;
    let created_at = vault.audit.now().await?;
    let retention = caller.quotas.token_intent_retention;
    let intent = TokenIntent {
        id: ids::new_uuid(),
        kind,
        fingerprint: fingerprint_by_type(&keys, kind, &value),
        created_by: caller.application,
        created_at,
        expires_at: created_at.checked_add(retention).unwrap_or(Timestamp::MAX),
    };
    let sealed = keys.seal(&intent.record(), settled.data.expose())?;
    let code = match &settled.security_code {
        SecurityCode::Given(code) => {
            // Not longer than the intent itself.
            let retention = caller.quotas.cvc_retention.min(retention);
            let code = (code.expose().as_str(), retention);
            Some(security_codes::seal(vault, caller.tenant, &intent.id, code).await?)
        }
        SecurityCode::Absent | SecurityCode::Removed => None,
    };
    let entry = Entry::of(
        caller,
        Operation::Create,
        EntityKind::TokenIntent,
        intent.id,
    );
    let view = IntentView {
        details: Details::of(vault, caller.tenant_kind, kind, &value),
        intent,
    };
    let values = store::Values {
        intent: &view.intent,
        sealed,
        code,
    };
    let kept = reply.keep(&view)?;
    store::insert(vault, caller.tenant, &values, entry, kept).await?;
    Ok(view)
}

/// Network tokens come from networks, not from clients.
fn kind(name: Option<&str>) -> Result<TokenKind, Vec<Broken>> {
    match attributes::kind(name)? {
        TokenKind::NetworkToken => {
            let rule = "must not be network_token for a token intent";
            Err(vec![Broken::new("type", rule)])
        }
        kind => Ok(kind),
    }
}
