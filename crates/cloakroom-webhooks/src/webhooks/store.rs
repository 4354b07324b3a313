//! SQL statements for webhooks.

use std::time::Duration;

use cloakroom_core::access::{StoredBucket, TenantKind, TenantRow};
use cloakroom_core::{access_state_columns, fenced, join_access_state, resource_bucket_macs};
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{Db, Error, Params, Transaction, statements};
use jiff::Timestamp;
use tokio_postgres::Row;
use uuid::Uuid;

use super::webhook::WebhookRow;

/// A webhook as stored; its MAC is not yet verified.
pub(crate) struct StoredWebhook {
    pub row: WebhookRow,
    pub row_mac: Vec<u8>,
    pub created_by: Option<Uuid>,
    pub created_at: Timestamp,
    pub modified_by: Option<Uuid>,
    pub modified_at: Option<Timestamp>,
}

macro_rules! columns {
    () => {
        "webhook.tenant_id, webhook.webhook_id, webhook.name, webhook.url, webhook.notify_email,
               webhook.events, webhook.is_enabled, webhook.secret, webhook.row_mac"
    };
}

macro_rules! find {
    () => {
        concat!(
            "select ",
            columns!(),
            ", created_by, created_at, modified_by, modified_at
        from webhook
        where tenant_id = $1
          and webhook_id = $2"
        )
    };
}

statements! {
    LOCK_TENANT: "webhooks::lock_tenant" =
        "select true
        from tenant
        where tenant_id = $1
        for no key update";
    COUNT: "webhooks::count" =
        "select count(*)
        from webhook
        where tenant_id = $1";
    ANY: "webhooks::any" =
        "select exists (select from webhook)";
    INSERT: "webhooks::insert" = concat!(
        "insert into webhook
            (tenant_id, webhook_id, name, url, notify_email, events, is_enabled, secret, created_by, row_mac)
        values ($1, $2, $3, $4, $5, $6, $7, ", fenced!("$1", "$8"), ", $9, $10)
        returning created_at");
    FIND: "webhooks::find" = find!();
    LOCK: "webhooks::lock" = concat!(find!(), "\n        for update");
    LIST: "webhooks::list" = concat!(
        "select ", columns!(), ", created_by, created_at, modified_by, modified_at
        from webhook
        where tenant_id = $1
        order by created_at desc, webhook_id
        limit 100");
    // A change forgets earlier failures: the endpoint may be another one.
    UPDATE: "webhooks::update" =
        "update webhook
        set name = $3,
            url = $4,
            notify_email = $5,
            events = $6,
            is_enabled = $7,
            modified_by = $8,
            modified_at = now(),
            row_mac = $9,
            failures = 0,
            failing_since = null
        where tenant_id = $1
          and webhook_id = $2
        returning modified_at";
    REPLACE_SECRET: "webhooks::replace_secret" = concat!(
        "update webhook
        set secret = ", fenced!("$1", "$3"), ",
            row_mac = $4
        where tenant_id = $1
          and webhook_id = $2");
    DELETE: "webhooks::delete" =
        "delete from webhook
        where tenant_id = $1
          and webhook_id = $2
        returning row_mac";
    FIND_ENDPOINT: "webhooks::find_endpoint" = concat!(
        "select ", columns!(), ",
               tenant.public_id, tenant.name, tenant.kind, tenant.settings, tenant.quotas,
               tenant.deleted_at, tenant.row_mac,
               ", access_state_columns!("tenant_state", "array[tenant.row_mac]"), ",
               ", access_state_columns!("state", resource_bucket_macs!("$1")), "
        from webhook
        join tenant
          on tenant.tenant_id = webhook.tenant_id
         and tenant.deleted_at is null",
        join_access_state!("tenant_state", "webhook.tenant_id", "0"),
        join_access_state!("state", "webhook.tenant_id", "1"), "
        where webhook.tenant_id = $1
          and webhook.webhook_id = $2
          and webhook.is_enabled");
    // Webhooks of all tenants.
    LIST_FAILING: "webhooks::list_failing" =
        "select webhook.tenant_id, tenant.public_id, webhook.webhook_id
        from webhook
        join tenant
          on tenant.tenant_id = webhook.tenant_id
        where webhook.is_enabled
          and webhook.failures >= $1
          and webhook.failing_since <= now() - make_interval(secs => $2)
        limit $3";
}

/// Locks the tenant against concurrent creation of webhooks, and counts those that it has.
pub(super) async fn lock_and_count(
    transaction: &Transaction,
    tenant: TenantId,
) -> Result<usize, Error> {
    transaction.run(&LOCK_TENANT, &[&tenant.number]).await?;
    let rows = transaction.run(&COUNT, &[&tenant.number]).await?;
    let count: i64 = rows.first().map_or(0, |row| row.get(0));
    Ok(usize::try_from(count).unwrap_or(usize::MAX))
}

/// Whether any tenant has a webhook.
pub(super) async fn any(db: &Db) -> Result<bool, Error> {
    let row = db.read_optional(&ANY, &[]).await?;
    Ok(row.is_some_and(|row| row.get(0)))
}

pub(super) async fn insert(
    transaction: &Transaction,
    row: &WebhookRow,
    by: Uuid,
    row_mac: &[u8],
) -> Result<Timestamp, Error> {
    let params: Params<'_> = &[
        &row.tenant_number,
        &row.id,
        &row.name,
        &row.url,
        &row.notify_email,
        &row.events,
        &row.is_enabled,
        &row.secret,
        &by,
        &row_mac,
    ];
    let rows = transaction.run(&INSERT, params).await?;
    let created_at = rows.first().map(|row| row.get(0));
    created_at.ok_or(Error::RolledBack)
}

pub(crate) async fn find(
    db: &Db,
    tenant: TenantId,
    id: Uuid,
) -> Result<Option<StoredWebhook>, Error> {
    let row = db.read_optional(&FIND, &[&tenant.number, &id]).await?;
    Ok(row.as_ref().map(StoredWebhook::read))
}

/// Finds a webhook and locks it against changes.
pub(super) async fn lock(
    transaction: &Transaction,
    tenant: TenantId,
    id: Uuid,
) -> Result<Option<StoredWebhook>, Error> {
    let rows = transaction.run(&LOCK, &[&tenant.number, &id]).await?;
    Ok(rows.first().map(StoredWebhook::read))
}

pub(super) async fn list(db: &Db, tenant: TenantId) -> Result<Vec<StoredWebhook>, Error> {
    let rows = db.read(&LIST, &[&tenant.number]).await?;
    Ok(rows.iter().map(StoredWebhook::read).collect())
}

/// Updates a webhook and returns the time of the change.
pub(super) async fn update(
    transaction: &Transaction,
    row: &WebhookRow,
    by: Option<Uuid>,
    row_mac: &[u8],
) -> Result<Option<Timestamp>, Error> {
    let params: Params<'_> = &[
        &row.tenant_number,
        &row.id,
        &row.name,
        &row.url,
        &row.notify_email,
        &row.events,
        &row.is_enabled,
        &by,
        &row_mac,
    ];
    let rows = transaction.run(&UPDATE, params).await?;
    Ok(rows.first().map(|row| row.get(0)))
}

/// Replaces the secret of a locked webhook.
pub(super) async fn replace_secret(
    transaction: &Transaction,
    row: &WebhookRow,
    row_mac: &[u8],
) -> Result<(), Error> {
    let params: Params<'_> = &[&row.tenant_number, &row.id, &row.secret, &row_mac];
    transaction.run(&REPLACE_SECRET, params).await?;
    Ok(())
}

/// Deletes a webhook and returns its MAC; `None` if there is none.
pub(super) async fn delete(
    transaction: &Transaction,
    tenant: TenantId,
    id: Uuid,
) -> Result<Option<Vec<u8>>, Error> {
    let rows = transaction.run(&DELETE, &[&tenant.number, &id]).await?;
    Ok(rows.first().map(|row| row.get(0)))
}

/// An enabled webhook and its tenant as stored; the MACs are not yet verified.
pub(super) struct StoredEndpoint {
    pub webhook: WebhookRow,
    pub webhook_mac: Vec<u8>,
    pub tenant: TenantRow,
    pub tenant_mac: Vec<u8>,
    pub tenant_bucket: StoredBucket,
    pub bucket: StoredBucket,
}

pub(super) async fn find_endpoint(
    db: &Db,
    tenant: i32,
    webhook: Uuid,
) -> Result<Option<StoredEndpoint>, Error> {
    let row = db
        .read_optional(&FIND_ENDPOINT, &[&tenant, &webhook])
        .await?;
    Ok(row.and_then(|row| {
        Some(StoredEndpoint {
            webhook: webhook_row(&row),
            webhook_mac: row.get(8),
            tenant: TenantRow {
                id: TenantId {
                    number: tenant,
                    uuid: row.get(9),
                },
                name: row.get(10),
                kind: TenantKind::from_number(row.get(11))?,
                settings: row.get(12),
                quotas: row.get(13),
                deleted_at: row.get(14),
            },
            tenant_mac: row.get(15),
            tenant_bucket: StoredBucket::read(&row, 16),
            bucket: StoredBucket::read(&row, 20),
        })
    }))
}

/// Lists enabled webhooks without a success for `period` and with at least `failures` failed attempts.
pub(super) async fn list_failing(
    db: &Db,
    period: Duration,
    failures: i32,
    limit: i64,
) -> Result<Vec<(TenantId, Uuid)>, Error> {
    let params: Params<'_> = &[&failures, &period.as_secs_f64(), &limit];
    let rows = db.read(&LIST_FAILING, params).await?;
    let webhook = |row: &Row| {
        let tenant = TenantId {
            number: row.get(0),
            uuid: row.get(1),
        };
        (tenant, row.get(2))
    };
    Ok(rows.iter().map(webhook).collect())
}

impl StoredWebhook {
    fn read(row: &Row) -> Self {
        Self {
            row: webhook_row(row),
            row_mac: row.get(8),
            created_by: row.get(9),
            created_at: row.get(10),
            modified_by: row.get(11),
            modified_at: row.get(12),
        }
    }
}

/// Decodes the columns of `columns!`.
fn webhook_row(row: &Row) -> WebhookRow {
    WebhookRow {
        tenant_number: row.get(0),
        id: row.get(1),
        name: row.get(2),
        url: row.get(3),
        notify_email: row.get(4),
        events: row.get(5),
        is_enabled: row.get(6),
        secret: row.get(7),
    }
}
