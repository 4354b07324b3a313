//! Seals rows again under the new version of their key, or computes their digests again, one page at a time.

use std::time::Duration;

use cloakroom_core::keys::{ResealedPage, TenantKeys};
use cloakroom_crypto::KeyPurpose;
use cloakroom_pages::checkout;
use cloakroom_platform::failpoint;
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage;
use cloakroom_platform::telemetry::catalog;
use cloakroom_proxy::proxies;
use cloakroom_threeds::sessions as threeds;
use cloakroom_tokens::{client_encryption, intents, tokens};
use cloakroom_webhooks::webhooks;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::advance::Step;
use super::store::{self, Counts, TABLES};
use super::{Error, Phase, Rotation, remac};
use crate::node::Node;

/// Rows of one statement. It locks them for a few milliseconds.
const PAGE: i64 = 200;
/// A page is followed by a pause of at least its own duration, so that requests have at least half of the database.
const PAUSE_MIN: f64 = 1.0;
/// The longest pause, in durations of a page, on a busy database.
const PAUSE_MAX: f64 = 8.0;
/// What a page of full size takes on an idle database; slower ones are followed by longer pauses.
const IDLE_PAGE: Duration = Duration::from_millis(25);

/// Seals the next page, and saves the position.
pub(super) async fn page(node: &Node, rotation: &Rotation) -> Result<Step, Error> {
    let Some(table) = table(rotation) else {
        failpoint("rotation.rewritten")?;
        store::move_to(&node.db, rotation, Phase::Proving).await?;
        return Ok(Step::Changed);
    };
    let keys = node.keys.of(rotation.tenant).await?;
    if keys.active_version(rotation.purpose) != Some(rotation.to) {
        // This node does not write under the new version yet.
        node.keys.replace_stale(rotation.tenant).await;
        return Ok(Step::Waiting);
    }
    let started_at = Instant::now();
    let page = match rotation.purpose {
        KeyPurpose::Data => reseal(node, table, rotation.tenant, &keys, rotation.position).await,
        _ => redigest(node, table, rotation.tenant, &keys, rotation.position).await,
    };
    let page = match page {
        Err(Error::Storage(storage::Error::StaleKey)) => {
            node.keys.replace_stale(rotation.tenant).await;
            return Ok(Step::Waiting);
        }
        page => page?,
    };
    failpoint("rotation.page_written")?;
    let (step, position) = match page.last {
        Some(last) => (rotation.step, last),
        None => (rotation.step + 1, Uuid::nil()),
    };
    let counts = Counts {
        scanned: page.scanned,
        rewritten: page.rewritten,
        unreadable: page.unreadable,
    };
    store::save_progress(&node.db, rotation, (step, position), counts).await?;
    catalog::KEY_ROTATION_ROWS.increment(page.rewritten);
    report_unreadable(rotation, page.unreadable);
    sleep(pause(started_at.elapsed(), page.scanned)).await;
    Ok(Step::Page { step, position })
}

/// Rows that were altered outside the vault. No request may ever read them.
fn report_unreadable(rotation: &Rotation, rows: u64) {
    if rows > 0 {
        catalog::INTEGRITY_ERRORS.increment(rows);
        tracing::error!(
            job = "rotate_keys",
            error.kind = "integrity_error",
            tenant.id = %rotation.tenant.uuid,
            count = rows,
            "rows were changed outside the vault; the former key cannot be destroyed before they are restored or deleted"
        );
    }
}

/// The table that is being rewritten; `None` after the last one.
pub(super) fn table(rotation: &Rotation) -> Option<&'static str> {
    let step = usize::try_from(rotation.step).ok()?;
    match rotation.purpose {
        KeyPurpose::Data => TABLES.get(step).map(|(table, _)| *table),
        KeyPurpose::Fingerprint => ["token", "token_intent"].get(step).copied(),
        KeyPurpose::Index => ["token"].get(step).copied(),
        KeyPurpose::Control => remac::STEPS.get(step).copied(),
        _ => None,
    }
}

/// The pause after a page: the slower the database, the longer.
fn pause(duration: Duration, rows: u64) -> Duration {
    let share = (rows as f64 / PAGE as f64).max(0.1);
    let slowness = duration.as_secs_f64() / (IDLE_PAGE.as_secs_f64() * share);
    duration.mul_f64(slowness.clamp(PAUSE_MIN, PAUSE_MAX))
}

async fn reseal(
    node: &Node,
    table: &str,
    tenant: TenantId,
    keys: &TenantKeys,
    after: Uuid,
) -> Result<ResealedPage, Error> {
    let failed = |error: &dyn std::error::Error| Error::Rewrite(error.to_string());
    Ok(match table {
        "token" => match tokens::reseal(node, tenant, keys, after, PAGE).await {
            Err(tokens::Error::Storage(error)) => return Err(error.into()),
            page => page.map_err(|error| failed(&error))?,
        },
        "token_intent" => intents::reseal(node, tenant, keys, after, PAGE).await?,
        "client_key" => client_encryption::reseal(node, tenant, keys, after, PAGE).await?,
        "threeds_session" => threeds::reseal(node, tenant, keys, after, PAGE).await?,
        "checkout_session" => checkout::reseal(node, tenant, keys, after, PAGE).await?,
        "proxy" => match proxies::reseal(node, tenant, keys, after, PAGE).await {
            Err(proxies::Error::Storage(error)) => return Err(error.into()),
            page => page.map_err(|error| failed(&error))?,
        },
        _ => match webhooks::reseal(node, tenant, keys).await {
            Err(webhooks::Error::Storage(error)) => return Err(error.into()),
            page => page.map_err(|error| failed(&error))?,
        },
    })
}

/// Computes the digests of a page of rows again.
async fn redigest(
    node: &Node,
    table: &str,
    tenant: TenantId,
    keys: &TenantKeys,
    after: Uuid,
) -> Result<ResealedPage, Error> {
    let failed = |error: &dyn std::error::Error| Error::Rewrite(error.to_string());
    match table {
        "token" => match tokens::redigest(node, tenant, keys, after, PAGE).await {
            Err(tokens::Error::Storage(error)) => Err(error.into()),
            page => page.map_err(|error| failed(&error)),
        },
        _ => match intents::redigest(node, tenant, keys, after, PAGE).await {
            Err(intents::Error::Storage(error)) => Err(error.into()),
            page => page.map_err(|error| failed(&error)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_database_gets_longer_pauses() {
        let idle = pause(IDLE_PAGE, 200);
        let busy = pause(4 * IDLE_PAGE, 200);
        let overloaded = pause(100 * IDLE_PAGE, 200);

        assert_eq!(idle, IDLE_PAGE);
        assert_eq!(busy, 16 * IDLE_PAGE);
        assert_eq!(overloaded, 800 * IDLE_PAGE);
    }
}
