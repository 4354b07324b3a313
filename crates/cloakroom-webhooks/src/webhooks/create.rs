//! Creates webhooks.

use cloakroom_core::access::{AuthenticatedRow as _, Bucket, Permission};
use cloakroom_core::access_change::{self, AccessChange};
use cloakroom_core::audit::{EntityKind, Entry, Operation};
use cloakroom_core::caller::Caller;
use cloakroom_core::current_keys::with_current_keys;
use cloakroom_core::idempotency::ResponseTemplate;
use cloakroom_crypto::Sensitive;
use cloakroom_platform::ids;
use jiff::Timestamp;

use super::webhook::WebhookRow;
use super::{Error, NewWebhook, Webhook, store};
use crate::server::WebhookServer;
use crate::signatures::{self, Secret};

/// As the reference has it.
const WEBHOOKS_MAX: usize = 5;

/// A new webhook, with its secret, which is shown once.
pub struct CreatedWebhook {
    pub webhook: Webhook,
    pub secret: Sensitive<String>,
}

/// Creates a webhook. It receives the events of every change whose statement starts after this returns.
pub async fn create(
    server: &WebhookServer,
    caller: &Caller,
    new: NewWebhook,
    template: &ResponseTemplate<'_, CreatedWebhook>,
) -> Result<CreatedWebhook, Error> {
    let create = || create_once(server, caller, new.clone(), template);
    with_current_keys(&server.keys, caller, create).await
}

async fn create_once(
    server: &WebhookServer,
    caller: &Caller,
    new: NewWebhook,
    template: &ResponseTemplate<'_, CreatedWebhook>,
) -> Result<CreatedWebhook, Error> {
    caller.require_plain(Permission::WebhookCreate)?;
    let new = new.validate(&server.egress, &caller.settings);
    let new = new.map_err(Error::Invalid)?;
    signatures::ensure_key(server, store::any(&server.db).await?).await?;
    let secret = Secret::generate();
    let id = ids::new_uuid();
    let row = WebhookRow {
        tenant_number: caller.tenant.number,
        id,
        name: new.name,
        url: new.url,
        notify_email: new.notify_email,
        events: new.events,
        is_enabled: new.is_enabled,
        secret: secret.seal(&*server.keys.of(caller.tenant).await?, id)?,
    };
    let mut change = access_change::begin(server, caller.tenant, &[Bucket::RESOURCES]).await?;
    let created_at = match insert(server, &mut change, caller, &row).await {
        Ok(created_at) => created_at,
        Err(error) => {
            change.roll_back().await;
            return Err(error);
        }
    };
    let created = CreatedWebhook {
        webhook: Webhook {
            id,
            name: row.name,
            url: row.url,
            notify_email: row.notify_email,
            events: row.events,
            is_enabled: row.is_enabled,
            created_by: Some(caller.application),
            created_at,
            modified_by: None,
            modified_at: None,
        },
        secret: secret.text(),
    };
    let entry = Entry::new(caller, Operation::Create, EntityKind::Webhook, id);
    change
        .commit_with(&[entry], template.render_pending(&created)?)
        .await?;
    Ok(created)
}

/// Locks the tenant before its webhooks are counted, so that concurrent requests cannot exceed the maximum.
async fn insert(
    server: &WebhookServer,
    change: &mut AccessChange<'_>,
    caller: &Caller,
    row: &WebhookRow,
) -> Result<Timestamp, Error> {
    if store::lock_and_count(change, caller.tenant).await? >= WEBHOOKS_MAX {
        return Err(Error::TooMany(WEBHOOKS_MAX));
    }
    let row_mac = row.row_mac(server.keys.control());
    let created_at = store::insert(change, row, caller.application, &row_mac).await?;
    change.insert(Bucket::RESOURCES, &row_mac)?;
    Ok(created_at)
}
