//! What a tenant wants and may use: its settings and quotas, shown and changed.

use std::time::Duration;

use anyhow::Context as _;
use cloakroom::Vault;
use cloakroom::access::{Quotas, TenantQuotas};
use cloakroom::tenants::{self, Changes};
use serde_json::Value;
use uuid::Uuid;

pub(crate) async fn setting(vault: &Vault, id: Uuid, changes: &[String]) -> anyhow::Result<()> {
    let mut tenant = tenants::find(vault, id).await?;
    let mut settings = Vec::new();
    for change in changes {
        let (name, text) = pair(change)?;
        settings.push((name.to_owned(), Value::from(text)));
    }
    if !settings.is_empty() {
        let changes = Changes {
            settings,
            ..Changes::default()
        };
        tenant = tenants::update_by_command(vault, tenant.id, &changes).await?;
    }
    let shown: Value = serde_json::from_str(&tenant.settings.to_text())?;
    for (name, value) in shown.as_object().into_iter().flatten() {
        say!("{name:30}  {}", value.as_str().unwrap_or_default());
    }
    tell_when(changes);
    vault.audit.close().await;
    Ok(())
}

pub(crate) async fn quota(vault: &Vault, id: Uuid, changes: &[String]) -> anyhow::Result<()> {
    let mut tenant = tenants::find(vault, id).await?;
    let mut quotas = Vec::new();
    for change in changes {
        let (name, text) = pair(change)?;
        quotas.push((name.to_owned(), TenantQuotas::value_of(name, text)?));
    }
    if !quotas.is_empty() {
        let changes = Changes {
            quotas,
            ..Changes::default()
        };
        tenant = tenants::update_by_command(vault, tenant.id, &changes).await?;
    }
    let own: Value = serde_json::from_str(&tenant.quotas.to_text())?;
    for (name, text) in shown(&tenant.quotas.or_default(&vault.config)) {
        let whose = match own.get(name) {
            Some(_) => "the tenant's own",
            None => "the deployment's",
        };
        say!("{name:24}  {text:>10}  {whose}");
    }
    tell_when(changes);
    vault.audit.close().await;
    Ok(())
}

fn pair(change: &str) -> anyhow::Result<(&str, &str)> {
    change
        .split_once('=')
        .with_context(|| format!("{change} is not written NAME=VALUE"))
}

fn tell_when(changes: &[String]) {
    if !changes.is_empty() {
        say!("every node knows of it within five seconds");
    }
}

fn shown(quotas: &Quotas) -> [(&'static str, String); 7] {
    [
        ("rate_limit", quotas.rate_limit.to_string()),
        ("log_retention", time(quotas.log_retention)),
        ("tokenize_limit", quotas.tokenize_limit.to_string()),
        ("detokenize_limit", quotas.detokenize_limit.to_string()),
        ("cvc_retention", time(quotas.cvc_retention)),
        (
            "token_intent_retention",
            time(quotas.token_intent_retention),
        ),
        (
            "card_velocity_limit",
            quotas.card_velocity_limit.to_string(),
        ),
    ]
}

/// As it can be given back: `24h`, `1h30m`, `90s`.
fn time(time: Duration) -> String {
    let seconds = time.as_secs();
    let parts = [
        (seconds / 3600, "h"),
        (seconds / 60 % 60, "m"),
        (seconds % 60, "s"),
    ];
    parts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, unit)| format!("{count}{unit}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_as_they_can_be_given() {
        for (seconds, text) in [(86_400, "24h"), (5_400, "1h30m"), (90, "1m30s"), (1, "1s")] {
            assert_eq!(time(Duration::from_secs(seconds)), text);
            let value = TenantQuotas::value_of("cvc_retention", text).unwrap();
            assert_eq!(value, Value::from(seconds), "{text}");
        }
    }
}
