//! Disables webhooks whose endpoint has been failing for days.

use std::time::Duration;

use cloakroom_core::vault::Vault;
use cloakroom_platform::storage;
use cloakroom_platform::telemetry::catalog;

use super::update::set_enabled;
use super::{Error, store};

/// How long an endpoint may fail without any success, and how many attempts must have failed.
const FAILING_MAX: Duration = Duration::from_secs(72 * 60 * 60);
const FAILURES_MIN: i32 = 50;
/// Webhooks that one run disables.
const BATCH: i64 = 100;

/// Disables every webhook that has failed for three days and at least fifty times; returns how many.
///
/// The change is in the audit log, and a warning names the webhook.
pub async fn disable_failing(vault: &Vault) -> Result<usize, storage::Error> {
    let failing = store::list_failing(&vault.db, FAILING_MAX, FAILURES_MIN, BATCH).await?;
    let mut disabled = 0;
    for (tenant, id) in failing {
        match set_enabled(vault, tenant, id, false).await {
            Ok(_) => {
                disabled += 1;
                catalog::WEBHOOKS_DISABLED_TOTAL.increment(1);
                tracing::warn!(
                    job = "webhooks",
                    tenant.id = %tenant.uuid,
                    webhook.id = %id,
                    "a webhook was disabled: its endpoint has failed for 72 hours"
                );
            }
            Err(Error::Storage(error)) => return Err(error),
            // Deleted or altered since it was listed; an altered one receives nothing anyway.
            Err(_) => {}
        }
    }
    Ok(disabled)
}
