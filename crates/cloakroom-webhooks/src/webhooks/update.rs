//! Replaces webhooks, and enables those that were disabled.

use cloakroom_core::access::{AuthenticatedRow as _, Bucket, Permission};
use cloakroom_core::access_change::{self, AccessChange};
use cloakroom_core::audit::{EntityKind, Entry, Operation};
use cloakroom_core::caller::Caller;
use cloakroom_core::idempotency::ResponseTemplate;
use cloakroom_core::vault::Vault;
use cloakroom_platform::ids::TenantId;
use uuid::Uuid;

use super::find::parse_id;
use super::webhook::ValidatedWebhook;
use super::{Error, NewWebhook, Webhook, store};
use crate::server::WebhookServer;

/// Replaces everything but the secret. Enables the webhook unless `status` is `disabled`.
pub async fn update(
    server: &WebhookServer,
    caller: &Caller,
    id: &str,
    new: NewWebhook,
    template: &ResponseTemplate<'_, Webhook>,
) -> Result<Webhook, Error> {
    caller.require_plain(Permission::WebhookUpdate)?;
    let new = new.validate(&server.egress, &caller.settings);
    let new = new.map_err(Error::Invalid)?;
    let id = parse_id(id)?;
    let mut access = access_change::begin(server, caller.tenant, &[Bucket::RESOURCES]).await?;
    let by = Some(caller.application);
    match write(server, &mut access, (caller.tenant, id), by, |_| new).await {
        Ok(updated) => {
            let entry = Entry::new(caller, Operation::Update, EntityKind::Webhook, id);
            access
                .commit_with(&[entry], template.render_pending(&updated)?)
                .await?;
            Ok(updated)
        }
        Err(error) => {
            access.roll_back().await;
            Err(error)
        }
    }
}

/// Enables a webhook, for an operator.
pub async fn enable(vault: &Vault, tenant: TenantId, id: Uuid) -> Result<Webhook, Error> {
    set_enabled(vault, tenant, id, true).await
}

/// Enables or disables a webhook, as the system.
pub(super) async fn set_enabled(
    vault: &Vault,
    tenant: TenantId,
    id: Uuid,
    is_enabled: bool,
) -> Result<Webhook, Error> {
    let mut access = access_change::begin(vault, tenant, &[Bucket::RESOURCES]).await?;
    let change = |webhook: Webhook| ValidatedWebhook {
        name: webhook.name,
        url: webhook.url,
        notify_email: webhook.notify_email,
        events: webhook.events,
        is_enabled,
    };
    match write(vault, &mut access, (tenant, id), None, change).await {
        Ok(updated) => {
            let (operation, entity) = (Operation::Update, EntityKind::Webhook);
            let entry = Entry::by_system(tenant.number, operation, entity, id);
            access.commit(&[entry]).await?;
            Ok(updated)
        }
        Err(error) => {
            access.roll_back().await;
            Err(error)
        }
    }
}

/// Locks the row and verifies its MAC first, so that a row written by SQL never gets a valid MAC.
async fn write(
    vault: &Vault,
    access: &mut AccessChange<'_>,
    (tenant, id): (TenantId, Uuid),
    by: Option<Uuid>,
    change: impl FnOnce(Webhook) -> ValidatedWebhook,
) -> Result<Webhook, Error> {
    let control = vault.keys.control();
    let stored = store::lock(access, tenant, id).await?;
    let stored = stored.ok_or(Error::NotFound)?;
    let mut row = stored.row.clone();
    let former_mac = stored.row_mac.clone();
    let mut webhook = super::verified(control, stored)?;
    let new = change(webhook.clone());
    row.name = new.name;
    row.url = new.url;
    row.notify_email = new.notify_email;
    row.events = new.events;
    row.is_enabled = new.is_enabled;
    let row_mac = row.row_mac(control);
    let modified_at = store::update(access, &row, by, &row_mac).await?;
    access.replace(Bucket::RESOURCES, &former_mac, &row_mac)?;
    webhook.name = row.name;
    webhook.url = row.url;
    webhook.notify_email = row.notify_email;
    webhook.events = row.events;
    webhook.is_enabled = row.is_enabled;
    webhook.modified_by = by;
    webhook.modified_at = modified_at;
    Ok(webhook)
}
