//! Lists the deliveries of a webhook.

use std::collections::HashMap;
use std::time::Duration;

use cloakroom_core::access::Permission;
use cloakroom_core::caller::Caller;
use cloakroom_core::vault::Vault;
use cloakroom_platform::ids::TenantId;
use jiff::Timestamp;
use uuid::Uuid;

use super::store;
use super::{Delivery, State};
use crate::webhooks::{self, Error};

/// Which deliveries to list.
#[derive(Clone, Copy, Debug)]
pub struct PageRequest {
    pub state: Option<State>,
    /// Only deliveries older than this one.
    pub before: Option<Position>,
    pub size: usize,
}

/// A place in the log: microseconds since 1970, and the id of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    at: Timestamp,
    event: Uuid,
}

impl Position {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (at, event) = text.split_once('_')?;
        Some(Self {
            at: Timestamp::from_microsecond(at.parse().ok()?).ok()?,
            event: event.parse().ok()?,
        })
    }

    pub(super) fn text(self) -> String {
        format!("{}_{}", self.at.as_microsecond(), self.event)
    }
}

/// A page of deliveries, newest first.
pub struct DeliveryPage {
    pub deliveries: Vec<Delivery>,
    pub next: Option<Position>,
}

/// How long the oldest event of each webhook of a tenant has been pending; webhooks without a pending event are left out.
pub async fn oldest_pending(
    vault: &Vault,
    tenant: TenantId,
) -> Result<HashMap<Uuid, Duration>, Error> {
    let oldest = store::oldest_pending(&vault.db, tenant).await?;
    let age = |seconds: f64| Duration::try_from_secs_f64(seconds).unwrap_or_default();
    Ok(oldest
        .into_iter()
        .map(|(id, seconds)| (id, age(seconds)))
        .collect())
}

/// Lists the deliveries of a webhook of the caller's tenant.
pub async fn list(
    vault: &Vault,
    caller: &Caller,
    webhook: &str,
    page: &PageRequest,
) -> Result<DeliveryPage, Error> {
    let webhook = webhooks::find(vault, caller, webhook).await?;
    caller.require_plain(Permission::WebhookRead)?;
    let before = page.before.map(|before| (before.at, before.event));
    let limit = i64::try_from(page.size + 1).unwrap_or(1);
    let (db, tenant) = (&vault.db, caller.tenant);
    let mut deliveries = store::list(db, tenant, webhook.id, page.state, (before, limit)).await?;
    let has_next = deliveries.len() > page.size;
    deliveries.truncate(page.size);
    let last = deliveries.last().filter(|_| has_next);
    let next = last.map(|last| Position {
        at: last.recorded_at,
        event: last.event_id,
    });
    Ok(DeliveryPage { deliveries, next })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_read_as_they_are_written() {
        let position = Position {
            at: "2030-01-31T12:00:00.123456Z".parse().unwrap(),
            event: Uuid::from_u128(7),
        };
        assert_eq!(Position::parse(&position.text()), Some(position));
        for text in ["", "_", "1", "1_x", "x_1", "99999999999999999999_1"] {
            assert_eq!(Position::parse(text), None, "{text}");
        }
    }
}
