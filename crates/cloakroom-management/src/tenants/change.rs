//! Updates a tenant: its name, settings and quotas.
//!
//! Nodes cache a tenant's settings together with its keys: a change takes effect on this node at once, and on every
//! node within five seconds.

use cloakroom_core::access::{
    self, AuthenticatedRow as _, Bucket, Permission, QuotaSource, TenantQuotas, TenantRow,
    TenantSettings,
};
use cloakroom_core::access_change;
use cloakroom_core::audit::{EntityKind, Entry, Operation};
use cloakroom_core::caller::Caller;
use cloakroom_core::events::{Event, EventKind};
use cloakroom_core::idempotency::ResponseTemplate;
use cloakroom_core::vault::Vault;
use cloakroom_platform::api::{FieldError, format_utc};
use cloakroom_platform::config::Config;
use cloakroom_platform::ids::TenantId;
use serde_json::{Value, json};

use super::find::verified;
use super::{Error, Tenant, store};

/// No setting has a longer name. Errors do not echo longer names, which the client made up.
const SETTING_NAME_MAX: usize = 50;

/// Requested changes. Absent attributes are unchanged.
#[derive(Debug, Default)]
pub struct TenantChanges {
    pub name: Option<String>,
    pub settings: Vec<(String, Value)>,
    /// Null restores the operator's value, or the deployment's.
    pub quotas: Vec<(String, Value)>,
}

/// Updates the caller's own tenant. Quotas that protect the operator can only become stricter.
pub async fn update(
    vault: &Vault,
    caller: &Caller,
    changes: &TenantChanges,
    template: &ResponseTemplate<'_, Tenant>,
) -> Result<Tenant, Error> {
    caller.require_plain(Permission::TenantUpdate)?;
    change(vault, caller.tenant, Some(caller), changes, template).await
}

/// Updates any tenant, for the operator.
pub async fn update_as_operator(
    vault: &Vault,
    tenant: TenantId,
    changes: &TenantChanges,
) -> Result<Tenant, Error> {
    change(vault, tenant, None, changes, &ResponseTemplate::none()).await
}

/// Locks the row, so that concurrent changes do not overwrite each other.
async fn change(
    vault: &Vault,
    tenant: TenantId,
    caller: Option<&Caller>,
    changes: &TenantChanges,
    template: &ResponseTemplate<'_, Tenant>,
) -> Result<Tenant, Error> {
    let errors = changes.validation_errors();
    if !errors.is_empty() {
        return Err(Error::Invalid(errors));
    }
    let control = vault.keys.control();
    let mut access = access_change::begin(vault, tenant, &[Bucket::TENANT]).await?;
    let locked = store::lock(&access, tenant).await?;
    let former_mac = locked.as_ref().map(|(stored, _)| stored.row_mac.clone());
    let found = locked.ok_or(Error::NotFound);
    let found = found.and_then(|(stored, _)| verified(control, stored).ok_or(Error::Altered));
    let by = caller.map_or(QuotaSource::Operator, |_| QuotaSource::Tenant);
    let changed = found.and_then(|tenant| changes.apply(tenant, by, &vault.config));
    let mut changed = match changed {
        Ok(tenant) => tenant,
        Err(error) => {
            access.roll_back().await;
            return Err(error);
        }
    };
    let row = to_row(&changed);
    let by = caller.map(|caller| caller.application);
    let row_mac = row.row_mac(control);
    changed.modified_at = store::update(&access, &row, &row_mac, by).await?;
    access.replace(Bucket::TENANT, &former_mac.unwrap_or_default(), &row_mac)?;
    changed.modified_by = by;
    let (operation, entity, id) = (Operation::Update, EntityKind::Tenant, tenant.uuid);
    let entry = match caller {
        Some(caller) => Entry::new(caller, operation, entity, id),
        None => Entry::by_system(tenant.number, operation, entity, id),
    };
    let entry = entry.with_event(updated_event(&changed));
    let response = template.render_pending(&changed)?;
    access.commit_with(&[entry], response).await?;
    vault.principals.invalidate_all();
    Ok(changed)
}

/// The event of a changed tenant.
pub(super) fn updated_event(tenant: &Tenant) -> Event {
    let data = json!({
        "id": tenant.id.uuid,
        "name": tenant.name,
        "created_by": tenant.created_by,
        "created_at": format_utc(tenant.created_at),
        "modified_by": tenant.modified_by,
        "modified_at": tenant.modified_at.map(format_utc),
    });
    Event::new(
        EventKind::TenantUpdated,
        tenant.id.uuid,
        json!({ "tenant": data }),
    )
}

impl TenantChanges {
    /// All validation errors that do not depend on the tenant.
    fn validation_errors(&self) -> Vec<FieldError> {
        let name = self.name.as_deref().map(access::check_name);
        let mut errors: Vec<FieldError> = name.and_then(Result::err).into_iter().collect();
        for (name, value) in &self.settings {
            let set = set(&mut TenantSettings::default(), name, value);
            errors.extend(
                set.err()
                    .map(|rule| FieldError::new(setting_path(name), rule)),
            );
        }
        for (name, value) in &self.quotas {
            let set = TenantQuotas::default().set(QuotaSource::Operator, name, value);
            errors.extend(
                set.err()
                    .map(|error| FieldError::new(name, validation_rule(error))),
            );
        }
        errors
    }

    /// Applies these changes, which are valid by themselves, to a tenant.
    fn apply(&self, mut tenant: Tenant, by: QuotaSource, config: &Config) -> Result<Tenant, Error> {
        if let Some(name) = &self.name {
            tenant.name.clone_from(name);
        }
        for (name, value) in &self.settings {
            let _ = set(&mut tenant.settings, name, value);
        }
        let mut errors = Vec::new();
        for (name, value) in &self.quotas {
            let _ = tenant.quotas.set(by, name, value);
            let violation = tenant.quotas.limit_violation(name, config);
            errors.extend(violation.map(|rule| FieldError::new(name, rule)));
        }
        match errors.is_empty() {
            true => Ok(tenant),
            false => Err(Error::Invalid(errors)),
        }
    }
}

/// The official clients type every setting as a string. Null is treated as absent.
fn set(settings: &mut TenantSettings, name: &str, value: &Value) -> Result<(), String> {
    match value {
        Value::String(text) => settings.set(name, text).map_err(validation_rule),
        Value::Null => Ok(()),
        _ => Err("must be a string".to_owned()),
    }
}

fn setting_path(name: &str) -> String {
    let is_plain = name.len() <= SETTING_NAME_MAX
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    if is_plain {
        format!("settings.{name}")
    } else {
        "settings".to_owned()
    }
}

fn validation_rule(error: access::Error) -> String {
    match error {
        access::Error::Invalid { rule, .. } => rule,
        other => other.to_string(),
    }
}

fn to_row(tenant: &Tenant) -> TenantRow {
    TenantRow {
        id: tenant.id,
        name: tenant.name.clone(),
        kind: tenant.kind,
        settings: tenant.settings.to_text(),
        quotas: tenant.quotas.to_text(),
        deleted_at: None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_validation_error_is_reported_without_echoing_input() {
        let setting = |name: &str, value: Value| (name.to_owned(), value);
        let changes = TenantChanges {
            name: Some("4242 4242 4242 4242".to_owned()),
            settings: vec![
                setting("deduplicate_tokens", json!("true")),
                setting("fingerprint_tokens", json!(null)),
                setting("disable_ephemeral_proxy", json!(true)),
                setting("token_deduplication_behavior", json!("replace")),
                setting("no_such_setting", json!("true")),
                setting("4242424242424242", json!("true")),
            ],
            quotas: vec![setting("tokenize_limit", json!(0))],
        };

        let errors = changes.validation_errors();

        let paths: Vec<&str> = errors.iter().map(|error| error.path.as_str()).collect();
        assert_eq!(
            paths,
            [
                "name",
                "settings.disable_ephemeral_proxy",
                "settings.token_deduplication_behavior",
                "settings.no_such_setting",
                "settings",
                "tokenize_limit",
            ]
        );
        assert!(!format!("{errors:?}").contains("4242"), "{errors:?}");
    }
}
