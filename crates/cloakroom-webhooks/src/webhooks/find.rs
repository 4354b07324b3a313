//! Reads and lists webhooks.

use cloakroom_core::access::{
    self, AuthenticatedRow as _, Bucket, Permission, Stale, TenantRow, TenantSettings,
};
use cloakroom_core::audit::{EntityKind, Entry, Operation};
use cloakroom_core::caller::Caller;
use cloakroom_core::keys::ControlKey;
use cloakroom_core::vault::Vault;
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::telemetry::catalog;
use uuid::Uuid;

use super::store::{self, StoredEndpoint, StoredWebhook};
use super::webhook::WebhookRow;
use super::{Error, Webhook};

/// Finds a webhook of the caller's tenant.
pub async fn find(vault: &Vault, caller: &Caller, id: &str) -> Result<Webhook, Error> {
    caller.require_plain(Permission::WebhookRead)?;
    let stored = store::find(&vault.db, caller.tenant, parse_id(id)?).await?;
    let stored = stored.ok_or(Error::NotFound)?;
    let webhook = verified(vault.keys.control(), stored)?;
    let entry = Entry::new(caller, Operation::Read, EntityKind::Webhook, webhook.id);
    vault.audit.enqueue(vec![entry]).await?;
    Ok(webhook)
}

/// Lists the webhooks of the caller's tenant, newest first.
pub async fn list(vault: &Vault, caller: &Caller) -> Result<Vec<Webhook>, Error> {
    caller.require_plain(Permission::WebhookRead)?;
    list_of(vault, caller.tenant).await
}

/// Lists the webhooks of a tenant, newest first. A row that was changed by SQL is left out and reported: it receives no
/// events, and must not hide the others.
pub async fn list_of(vault: &Vault, tenant: TenantId) -> Result<Vec<Webhook>, Error> {
    let mut webhooks = Vec::new();
    for stored in store::list(&vault.db, tenant).await? {
        match verified(vault.keys.control(), stored) {
            Ok(webhook) => webhooks.push(webhook),
            Err(_) => report_altered(tenant),
        }
    }
    Ok(webhooks)
}

/// An id that is not a UUID is not found.
pub(super) fn parse_id(id: &str) -> Result<Uuid, Error> {
    id.parse().map_err(|_| Error::NotFound)
}

/// Verifies the MAC of a stored webhook.
pub(crate) fn verified(control: &ControlKey, stored: StoredWebhook) -> Result<Webhook, Error> {
    let StoredWebhook { row, row_mac, .. } = stored;
    if !row.is_genuine(control, &row_mac) {
        return Err(Error::Altered);
    }
    Ok(Webhook {
        id: row.id,
        name: row.name,
        url: row.url,
        notify_email: row.notify_email,
        events: row.events,
        is_enabled: row.is_enabled,
        created_by: stored.created_by,
        created_at: stored.created_at,
        modified_by: stored.modified_by,
        modified_at: stored.modified_at,
    })
}

/// An enabled webhook with what a delivery needs of its tenant.
pub(crate) struct Endpoint {
    pub tenant: TenantId,
    pub settings: TenantSettings,
    pub row: WebhookRow,
}

/// Finds an enabled webhook for a delivery; `None` if it or its tenant was deleted or disabled. One that was changed by
/// SQL is reported, and an error.
pub(crate) async fn find_endpoint(
    vault: &Vault,
    tenant: i32,
    webhook: Uuid,
) -> Result<Option<Endpoint>, Error> {
    vault.keys.refresh_if_stale().await;
    let found = access::read_current(
        || store::find_endpoint(&vault.db, tenant, webhook),
        |found| found.verify_current(vault),
    );
    let Some((found, current)) = found.await? else {
        return Ok(None);
    };
    let control = vault.keys.control();
    let owner: &TenantRow = &found.tenant;
    let is_genuine = owner.is_genuine(control, &found.tenant_mac)
        && found.webhook.is_genuine(control, &found.webhook_mac)
        && current.is_ok();
    let settings = TenantSettings::parse(&owner.settings).filter(|_| is_genuine);
    let Some(settings) = settings else {
        report_altered(owner.id);
        return Err(Error::Altered);
    };
    Ok(Some(Endpoint {
        tenant: owner.id,
        settings,
        row: found.webhook,
    }))
}

impl StoredEndpoint {
    fn verify_current(&self, vault: &Vault) -> Result<(), Stale> {
        let (states, control) = (&vault.access_states, vault.keys.control());
        let tenant = self.tenant.id.number;
        states.verify(control, tenant, Bucket::TENANT, &self.tenant_bucket)?;
        states.verify(control, tenant, Bucket::RESOURCES, &self.bucket)
    }
}

fn report_altered(tenant: TenantId) {
    catalog::ACCESS_ALTERED_ROWS.increment(1);
    tracing::error!(
        error.kind = "altered_row",
        tenant.id = %tenant.uuid,
        "a webhook was changed or restored outside the vault; it receives no events"
    );
}
