//! SQL statements for tenants.

mod deletion;
mod remove;

use std::time::Duration;

use cloakroom_core::access::{TenantKind, TenantRow};
use cloakroom_core::caller::Caller;
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{Db, Error, Transaction, statements};
use jiff::Timestamp;
use tokio_postgres::Row;
use uuid::Uuid;

pub(crate) use self::deletion::STATEMENTS as DELETION_STATEMENTS;
pub(super) use self::deletion::{
    find_deletion, list_deletions, list_due, lock_deletion, remove_deletion, write_deletion,
};
pub(crate) use self::remove::STATEMENTS as REMOVE_STATEMENTS;
pub(super) use self::remove::{REMOVALS, remove};
use crate::members::Email;

/// A tenant as stored; its MAC is not yet verified.
pub(super) struct StoredTenant {
    pub row: TenantRow,
    pub row_mac: Vec<u8>,
    pub created_by: Option<Uuid>,
    pub created_at: Timestamp,
    pub modified_by: Option<Uuid>,
    pub modified_at: Option<Timestamp>,
}

/// Columns of a tenant in the order that `to_stored` reads them.
macro_rules! tenant_columns {
    () => {
        "tenant_id, public_id, name, kind, settings, quotas, deleted_at, row_mac, created_by,
               created_at, modified_by, modified_at"
    };
}

statements! {
    NEXT_NUMBER: "tenants::next_number" =
        "select coalesce(max(tenant_id), 0) + 1
        from tenant";
    INSERT: "tenants::insert" =
        "insert into tenant (tenant_id, public_id, name, kind, settings, quotas, row_mac)
        values ($1, $2, $3, $4, $5, $6, $7)
        on conflict (tenant_id) do nothing
        returning created_at";
    FIND: "tenants::find" = concat!(
        "select ", tenant_columns!(), "
        from tenant
        where public_id = $1
          and deleted_at is null"
    );
    LIST: "tenants::list" = concat!(
        "select ", tenant_columns!(), "
        from tenant
        where tenant_id > $1
          and deleted_at is null
        order by tenant_id
        limit $2"
    );
    LOCK: "tenants::lock" = concat!(
        "select ", tenant_columns!(), ", now()
        from tenant
        where tenant_id = $1
          and deleted_at is null
        for update"
    );
    UPDATE: "tenants::update" =
        "update tenant
        set name = $2,
            settings = $3,
            quotas = $4,
            row_mac = $5,
            modified_by = $6,
            modified_at = now()
        where tenant_id = $1
        returning modified_at";
    MARK_DELETED: "tenants::mark_deleted" =
        "update tenant
        set deleted_at = $2,
            row_mac = $3,
            security_contact = null,
            modified_by = $4,
            modified_at = now()
        where tenant_id = $1";
    LIST_DELETED: "tenants::list_deleted" = concat!(
        "select ", tenant_columns!(), "
        from tenant
        where deleted_at is not null
          and swept_at is null
        order by tenant_id
        limit $1"
    );
    MARK_SWEPT: "tenants::mark_swept" =
        "update tenant
        set swept_at = now()
        where tenant_id = $1
          and deleted_at <= now() - make_interval(secs => $2)";
    FIND_SECURITY_CONTACT: "tenants::find_security_contact" =
        "select security_contact
        from tenant
        where tenant_id = $1
          and deleted_at is null";
    UPDATE_SECURITY_CONTACT: "tenants::update_security_contact" =
        "update tenant
        set security_contact = $2,
            modified_by = $3,
            modified_at = now()
        where tenant_id = $1
          and deleted_at is null
        returning modified_at";
}

pub(super) async fn next_number(db: &Db) -> Result<i32, Error> {
    let row = db.read_optional(&NEXT_NUMBER, &[]).await?;
    Ok(row.map_or(1, |row| row.get(0)))
}

/// Inserts a tenant; `None` if a concurrent one took the number.
pub(super) async fn insert(
    transaction: &Transaction,
    tenant: &TenantRow,
    row_mac: &[u8],
) -> Result<Option<Timestamp>, Error> {
    let kind = tenant.kind as i16;
    let rows = transaction
        .run(
            &INSERT,
            &[
                &tenant.id.number,
                &tenant.id.uuid,
                &tenant.name,
                &kind,
                &tenant.settings,
                &tenant.quotas,
                &row_mac,
            ],
        )
        .await?;
    Ok(rows.first().map(|row| row.get(0)))
}

/// Finds a tenant that is not deleted.
pub(super) async fn find(db: &Db, id: Uuid) -> Result<Option<StoredTenant>, Error> {
    let row = db.read_optional(&FIND, &[&id]).await?;
    Ok(row.as_ref().and_then(to_stored))
}

/// Lists tenants after the given number that are not deleted, in order.
pub(super) async fn list(db: &Db, after: i32, limit: i64) -> Result<Vec<StoredTenant>, Error> {
    let rows = db.read(&LIST, &[&after, &limit]).await?;
    Ok(rows.iter().filter_map(to_stored).collect())
}

/// Locks a tenant that is not deleted, and returns the database's time.
pub(super) async fn lock(
    transaction: &Transaction,
    tenant: TenantId,
) -> Result<Option<(StoredTenant, Timestamp)>, Error> {
    let rows = transaction.run(&LOCK, &[&tenant.number]).await?;
    let row = rows.first();
    Ok(row.and_then(|row| Some((to_stored(row)?, row.get(12)))))
}

/// Updates a tenant and returns the time of the change.
pub(super) async fn update(
    transaction: &Transaction,
    tenant: &TenantRow,
    row_mac: &[u8],
    by: Option<Uuid>,
) -> Result<Option<Timestamp>, Error> {
    let rows = transaction
        .run(
            &UPDATE,
            &[
                &tenant.id.number,
                &tenant.name,
                &tenant.settings,
                &tenant.quotas,
                &row_mac,
                &by,
            ],
        )
        .await?;
    Ok(rows.first().map(|row| row.get(0)))
}

pub(super) async fn mark_deleted(
    transaction: &Transaction,
    tenant: &TenantRow,
    row_mac: &[u8],
    by: Option<Uuid>,
) -> Result<(), Error> {
    transaction
        .run(
            &MARK_DELETED,
            &[&tenant.id.number, &tenant.deleted_at, &row_mac, &by],
        )
        .await?;
    Ok(())
}

/// Lists deleted tenants that may still have rows.
pub(super) async fn list_deleted(db: &Db, limit: i64) -> Result<Vec<StoredTenant>, Error> {
    let rows = db.read(&LIST_DELETED, &[&limit]).await?;
    Ok(rows.iter().filter_map(to_stored).collect())
}

/// Excludes a deleted tenant from further sweeps if it was deleted at least `late` ago.
pub(super) async fn mark_swept(db: &Db, tenant: TenantId, late: Duration) -> Result<(), Error> {
    db.write(&MARK_SWEPT, &[&tenant.number, &late.as_secs_f64()])
        .await?;
    Ok(())
}

/// Finds the security contact of a tenant that is not deleted.
pub(super) async fn find_security_contact(
    db: &Db,
    tenant: TenantId,
) -> Result<Option<Option<String>>, Error> {
    let row = db
        .read_optional(&FIND_SECURITY_CONTACT, &[&tenant.number])
        .await?;
    Ok(row.map(|row| row.get(0)))
}

/// Sets the contact and returns the time of the change; `None` if the tenant is deleted.
pub(super) async fn update_security_contact(
    transaction: &Transaction,
    caller: &Caller,
    email: &Email,
) -> Result<Option<Timestamp>, Error> {
    let rows = transaction
        .run(
            &UPDATE_SECURITY_CONTACT,
            &[&caller.tenant.number, &email.as_str(), &caller.application],
        )
        .await?;
    Ok(rows.first().map(|row| row.get(0)))
}

/// Converts a row; `None` for a tenant type that this version does not know.
fn to_stored(row: &Row) -> Option<StoredTenant> {
    Some(StoredTenant {
        row: TenantRow {
            id: TenantId {
                number: row.get(0),
                uuid: row.get(1),
            },
            name: row.get(2),
            kind: TenantKind::from_number(row.get(3))?,
            settings: row.get(4),
            quotas: row.get(5),
            deleted_at: row.get(6),
        },
        row_mac: row.get(7),
        created_by: row.get(8),
        created_at: row.get(9),
        modified_by: row.get(10),
        modified_at: row.get(11),
    })
}
