//! Creates an intent: validate, fingerprint, encrypt, insert; the last alone, or in a transaction with other changes.

use cloakroom_core::access::Permission;
use cloakroom_core::audit::{
    self, AuditedStatement, AuditedTransaction, EntityKind, Entry, Operation,
};
use cloakroom_core::caller::Caller;
use cloakroom_core::current_keys::with_current_keys;
use cloakroom_core::idempotency::ResponseTemplate;
use cloakroom_core::{keys, velocity};
use cloakroom_platform::api::FieldError;
use cloakroom_platform::ids::{self, TenantId};
use jiff::Timestamp;
use serde_json::Value;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::store::SealedIntent;
use super::{Error, IntentView, TokenIntent, store};
use crate::attributes::{
    self as attributes, Details, default_text, fingerprint_of, numbers_of, ok_or_collect,
    other_fingerprints_of,
};
use crate::client_encryption::{RequestData, SentData, resolve_request_data};
use crate::data_vault::DataVault;
use crate::fingerprint_pairs;
use crate::security_codes::{self, Retention, SealedCode};
use crate::types::{SecurityCode, TokenKind, ValidatedData, validate_data};

/// An intent to create, not yet validated.
#[derive(Clone, Default)]
pub struct NewIntent<'a> {
    pub kind: Option<String>,
    pub data: Option<&'a RawValue>,
    /// The data as a JWE that the client encrypted.
    pub encrypted: Option<String>,
}

/// Creates an intent that expires after the retention in the tenant's quotas.
///
/// Returns once the intent is durable.
pub async fn create(
    vault: &DataVault,
    caller: &Caller,
    new: NewIntent<'_>,
    template: &ResponseTemplate<'_, IntentView>,
) -> Result<IntentView, Error> {
    let create = || create_once(vault, caller, new.clone(), template);
    with_current_keys(&vault.keys, caller, create).await
}

async fn create_once(
    vault: &DataVault,
    caller: &Caller,
    new: NewIntent<'_>,
    template: &ResponseTemplate<'_, IntentView>,
) -> Result<IntentView, Error> {
    let prepared = prepare(vault, caller, new).await?;
    let entry = prepared.entry(caller);
    let response = template.render_pending(&prepared.view)?;
    let change = audit::begin_statement(&vault.audit, &[entry], response).await?;
    store::insert(change, caller.tenant, &prepared.sealed()).await?;
    Ok(prepared.view)
}

/// An intent that is validated and encrypted, but not stored.
pub struct PreparedIntent {
    view: IntentView,
    sealed: Vec<u8>,
    digest_epoch: i32,
    code: Option<SealedCode>,
}

impl PreparedIntent {
    pub fn id(&self) -> Uuid {
        self.view.intent.id
    }

    /// The audit log entry of its creation.
    pub fn entry(&self, caller: &Caller) -> Entry {
        let intent = &self.view.intent;
        Entry::new(
            caller,
            Operation::Create,
            EntityKind::TokenIntent,
            intent.id,
        )
        .with_event(intent.created_event())
    }

    fn sealed(&self) -> SealedIntent<'_> {
        SealedIntent {
            intent: &self.view.intent,
            sealed: &self.sealed,
            digest_epoch: self.digest_epoch,
            code: self.code.as_ref(),
        }
    }
}

/// Inserts an intent in a transaction with other changes. The caller commits its entry.
pub async fn insert_within(
    transaction: &AuditedTransaction<'_>,
    tenant: TenantId,
    prepared: &PreparedIntent,
) -> Result<(), Error> {
    let change = AuditedStatement::within(transaction);
    Ok(store::insert(change, tenant, &prepared.sealed()).await?)
}

/// Validates and encrypts an intent, and counts its number toward the velocity limit.
pub async fn prepare(
    vault: &DataVault,
    caller: &Caller,
    new: NewIntent<'_>,
) -> Result<PreparedIntent, Error> {
    caller.require_anywhere(Permission::TokenIntentCreate)?;
    let (kind, validated) = validate(vault, caller, new).await?;
    let keys = vault.keys.of(caller.tenant).await?;
    let value: Value =
        serde_json::from_slice(validated.data.expose()).map_err(|_| keys::Error::Integrity)?;
    let numbers = numbers_of(kind, &value, None);
    let text = match velocity::admits(&vault.velocity, caller, &numbers).await? {
        true => default_text(kind, &value),
        false => None,
    };
    let text = text.as_deref();
    let fingerprint = text.map(|text| fingerprint_of(&keys, kind, text));
    let others = text.map(|text| other_fingerprints_of(&keys, kind, text));
    let pairs = std::iter::once((fingerprint, others.as_deref().unwrap_or_default()));
    fingerprint_pairs::insert(&vault.db, caller.tenant, pairs).await?;
    let created_at = vault.clock.now().await?;
    let retention = caller.quotas.token_intent_retention;
    let intent = TokenIntent {
        id: ids::new_uuid(),
        kind,
        fingerprint,
        created_by: caller.application,
        created_at,
        expires_at: created_at.checked_add(retention).unwrap_or(Timestamp::MAX),
    };
    let sealed = keys.seal(&intent.record(), validated.data.expose())?;
    let code = match &validated.security_code {
        SecurityCode::Given(code) => {
            // At most as long as the intent itself.
            let retention = Retention {
                from: created_at,
                duration: caller.quotas.cvc_retention.min(retention),
            };
            let (codes, code) = (&vault.security_codes, code.expose());
            Some(security_codes::seal(codes, caller.tenant, &intent.id, code, retention).await?)
        }
        SecurityCode::Absent | SecurityCode::Removed => None,
    };
    let details = Details::of(&vault.bins, caller.tenant_kind, kind, &value);
    Ok(PreparedIntent {
        view: IntentView { intent, details },
        sealed,
        digest_epoch: keys.digest_epoch(),
        code,
    })
}

/// Validates all attributes, so that one response reports all validation errors.
async fn validate(
    vault: &DataVault,
    caller: &Caller,
    new: NewIntent<'_>,
) -> Result<(TokenKind, ValidatedData), Error> {
    let mut broken = Vec::new();
    let kind = ok_or_collect(kind(new.kind.as_deref()), &mut broken);
    let sent = SentData {
        plain: new.data,
        encrypted: new.encrypted.as_deref(),
    };
    // An intent has no container and can be converted into a token in any.
    let given = resolve_request_data(vault, caller, sent, None).await?;
    let given = ok_or_collect(given, &mut broken);
    let validated = match (given.as_ref().map(RequestData::raw), kind) {
        (Some(None), _) => ok_or_collect(
            Err(vec![FieldError::new("data", "is required")]),
            &mut broken,
        ),
        (Some(Some(raw)), Some(kind)) => {
            let validated = attributes::data_size(raw.get().as_bytes())
                .and_then(|()| validate_data(kind, raw, caller.tenant_kind));
            ok_or_collect(validated, &mut broken)
        }
        (None, _) | (_, None) => None,
    };
    let (Some(kind), Some(validated)) = (kind, validated) else {
        velocity::count_invalid_numbers(&vault.velocity, caller, &broken).await?;
        return Err(Error::Invalid(broken));
    };
    Ok((kind, validated))
}

/// Parses the type. Network tokens are issued by card networks, so clients cannot create intents for them.
fn kind(name: Option<&str>) -> Result<TokenKind, Vec<FieldError>> {
    match attributes::kind(name)? {
        TokenKind::NetworkToken => {
            let rule = "must not be network_token for a token intent";
            Err(vec![FieldError::new("type", rule)])
        }
        kind => Ok(kind),
    }
}
