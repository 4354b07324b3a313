//! Shows and changes the settings and quotas of a tenant.

use std::time::Duration;

use anyhow::Context as _;
use cloakroom::Vault;
use cloakroom::access::{QuotaSource, Quotas, Tenant, TenantQuotas};
use cloakroom::tenants::{self, TenantChanges};
use serde_json::{Map, Value, json};

use crate::manage::EFFECTIVE_WITHIN;
use crate::output::print_result;

pub(crate) async fn setting(
    vault: &Vault,
    mut tenant: Tenant,
    changes: &[String],
) -> anyhow::Result<()> {
    let mut settings = Vec::new();
    for change in changes {
        let (name, text) = pair(change)?;
        settings.push((name.to_owned(), Value::from(text)));
    }
    if !settings.is_empty() {
        let changes = TenantChanges {
            settings,
            ..TenantChanges::default()
        };
        tenant = tenants::update_as_operator(vault, tenant.id, &changes).await?;
    }
    let current: Value = serde_json::from_str(&tenant.settings.to_text())?;
    let lines = current.as_object().into_iter().flatten();
    let lines =
        lines.map(|(name, value)| format!("{name:30}  {}", value.as_str().unwrap_or_default()));
    let lines: Vec<String> = lines.chain(when_effective(changes)).collect();
    print_result(&current, &lines);
    vault.audit.close().await;
    Ok(())
}

pub(crate) async fn quota(
    vault: &Vault,
    mut tenant: Tenant,
    changes: &[String],
) -> anyhow::Result<()> {
    let mut quotas = Vec::new();
    for change in changes {
        let (name, text) = pair(change)?;
        quotas.push((name.to_owned(), TenantQuotas::value_of(name, text)?));
    }
    if !quotas.is_empty() {
        let changes = TenantChanges {
            quotas,
            ..TenantChanges::default()
        };
        tenant = tenants::update_as_operator(vault, tenant.id, &changes).await?;
    }
    let source = |name| match tenant.quotas.set_by(name) {
        Some(QuotaSource::Tenant) => "set by the tenant",
        Some(QuotaSource::Operator) => "set by command",
        None => "deployment default",
    };
    let (mut object, mut lines) = (Map::new(), Vec::new());
    for (name, text) in quota_rows(&tenant.quotas.or_default(&vault.config)) {
        lines.push(format!("{name:24}  {text:>10}  {}", source(name)));
        object.insert(
            name.to_owned(),
            json!({"value": text, "source": source(name)}),
        );
    }
    lines.extend(when_effective(changes));
    print_result(&object.into(), &lines);
    vault.audit.close().await;
    Ok(())
}

fn pair(change: &str) -> anyhow::Result<(&str, &str)> {
    change
        .split_once('=')
        .with_context(|| format!("{change}: expected NAME=VALUE"))
}

fn when_effective(changes: &[String]) -> Option<String> {
    (!changes.is_empty()).then(|| EFFECTIVE_WITHIN.to_owned())
}

fn quota_rows(quotas: &Quotas) -> [(&'static str, String); 8] {
    [
        ("rate_limit", quotas.rate_limit.to_string()),
        ("log_retention", format_duration(quotas.log_retention)),
        ("tokenize_limit", quotas.tokenize_limit.to_string()),
        ("detokenize_limit", quotas.detokenize_limit.to_string()),
        ("cvc_retention", format_duration(quotas.cvc_retention)),
        (
            "token_intent_retention",
            format_duration(quotas.token_intent_retention),
        ),
        (
            "card_velocity_limit",
            quotas.card_velocity_limit.to_string(),
        ),
        ("threeds", quotas.threeds.to_string()),
    ]
}

/// Formats a duration as accepted on input: `24h`, `1h30m`, `90s`.
fn format_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
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
    fn durations_are_formatted_as_accepted() {
        for (seconds, text) in [(86_400, "24h"), (5_400, "1h30m"), (90, "1m30s"), (1, "1s")] {
            assert_eq!(format_duration(Duration::from_secs(seconds)), text);
            let value = TenantQuotas::value_of("cvc_retention", text).unwrap();
            assert_eq!(value, Value::from(seconds), "{text}");
        }
    }
}
