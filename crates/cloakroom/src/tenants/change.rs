//! Changing a tenant: its name, its settings and its quotas.
//!
//! Nodes remember what a tenant wants for as long as they remember its keys: a change holds here at
//! once, and everywhere within five seconds.

use serde_json::Value;

use super::find::genuine;
use super::{Error, Tenant, store};
use crate::access::{
    self, Authenticated as _, Permission, TenantQuotas, TenantRow, TenantSettings,
};
use crate::api::Broken;
use crate::audit::{self, EntityKind, Entry, Operation};
use crate::caller::Caller;
use crate::idempotency::Reply;
use crate::ids::TenantId;
use crate::vault::Vault;

/// No setting has a longer name; a failure does not repeat what else a client made up.
const SETTING_NAME_MAX: usize = 50;

/// What is to be different. What is not named stays.
#[derive(Debug, Default)]
pub struct Changes {
    pub name: Option<String>,
    pub settings: Vec<(String, Value)>,
    /// Null goes back to the deployment's.
    pub quotas: Vec<(String, Value)>,
}

/// Changes the caller's own tenant.
pub async fn update(
    vault: &Vault,
    caller: &Caller,
    changes: &Changes,
    reply: &Reply<'_, Tenant>,
) -> Result<Tenant, Error> {
    caller.require_plain(Permission::TenantUpdate)?;
    change(vault, (caller.tenant, Some(caller)), changes, reply).await
}

/// Changes any tenant, for the operator.
pub async fn update_by_command(
    vault: &Vault,
    tenant: TenantId,
    changes: &Changes,
) -> Result<Tenant, Error> {
    change(vault, (tenant, None), changes, &Reply::none()).await
}

/// Under a lock on the row, so that of two changes at one moment neither is lost.
async fn change(
    vault: &Vault,
    (tenant, caller): (TenantId, Option<&Caller>),
    changes: &Changes,
    reply: &Reply<'_, Tenant>,
) -> Result<Tenant, Error> {
    let broken = changes.broken();
    if !broken.is_empty() {
        return Err(Error::Invalid(broken));
    }
    let control = vault.keys.control();
    let recorded = audit::begin(vault).await?;
    let locked = store::lock(&recorded, tenant).await?;
    let found = locked.ok_or(Error::NotFound);
    let found = found.and_then(|(kept, _)| genuine(control, kept).ok_or(Error::Altered));
    let mut changed = match found {
        Ok(tenant) => tenant,
        Err(error) => {
            recorded.roll_back().await;
            return Err(error);
        }
    };
    changes.apply(&mut changed);
    let row = row_of(&changed);
    let by = caller.map(|caller| caller.application);
    changed.modified_at = store::update(&recorded, &row, &row.row_mac(control), by).await?;
    changed.modified_by = by;
    let (operation, entity, id) = (Operation::Update, EntityKind::Tenant, tenant.uuid);
    let entry = match caller {
        Some(caller) => Entry::of(caller, operation, entity, id),
        None => Entry::by_system(tenant.number, operation, entity, id),
    };
    let kept = reply.keep(&changed)?;
    recorded.commit_with(&[entry], kept).await?;
    vault.authenticator.forget_all();
    Ok(changed)
}

impl Changes {
    /// Every rule that these changes break, whatever the tenant is like.
    fn broken(&self) -> Vec<Broken> {
        let name = self.name.as_deref().map(access::check_name);
        let mut broken: Vec<Broken> = name.and_then(Result::err).into_iter().collect();
        for (name, value) in &self.settings {
            let set = set(&mut TenantSettings::default(), name, value);
            broken.extend(set.err().map(|rule| Broken::new(setting_path(name), rule)));
        }
        for (name, value) in &self.quotas {
            let set = TenantQuotas::default().set(name, value);
            broken.extend(set.err().map(|error| Broken::new(name, rule_of(error))));
        }
        broken
    }

    /// Nothing here can fail: settings and quotas do not depend on each other.
    fn apply(&self, tenant: &mut Tenant) {
        if let Some(name) = &self.name {
            tenant.name.clone_from(name);
        }
        for (name, value) in &self.settings {
            let _ = set(&mut tenant.settings, name, value);
        }
        for (name, value) in &self.quotas {
            let _ = tenant.quotas.set(name, value);
        }
    }
}

/// Official clients type every setting as text; null is as good as absent.
fn set(settings: &mut TenantSettings, name: &str, value: &Value) -> Result<(), String> {
    match value {
        Value::String(text) => settings.set(name, text).map_err(rule_of),
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

fn rule_of(error: access::Error) -> String {
    match error {
        access::Error::Invalid { rule, .. } => rule,
        other => other.to_string(),
    }
}

fn row_of(tenant: &Tenant) -> TenantRow {
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
    fn every_broken_rule_is_named_and_nothing_a_client_made_up() {
        let setting = |name: &str, value: Value| (name.to_owned(), value);
        let changes = Changes {
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

        let broken = changes.broken();

        let paths: Vec<&str> = broken.iter().map(|broken| broken.path.as_str()).collect();
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
        assert!(!format!("{broken:?}").contains("4242"), "{broken:?}");
    }
}
