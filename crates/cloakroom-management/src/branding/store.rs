//! SQL statements for branding.

use cloakroom_core::access::StoredBucket;
use cloakroom_core::audit::{AuditedStatement, audited};
use cloakroom_core::{access_state_columns, join_access_state, resource_bucket_macs};
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{Db, Error, Params, Transaction, statements};
use jiff::Timestamp;
use tokio_postgres::Row;
use uuid::Uuid;

use super::row::BrandingRow;

/// A branding as stored; its MAC is not yet verified.
pub(super) struct StoredBranding {
    pub row: BrandingRow,
    pub row_mac: Vec<u8>,
    pub bucket: StoredBucket,
    pub created_at: Timestamp,
}

/// Columns in the order that `StoredBranding::read` expects.
macro_rules! columns {
    () => {
        "tenant_id, branding_id, name, accent, accent_text, dark_accent, dark_accent_text, logo, logo_type,
               created_by, created_at, row_mac"
    };
}

/// A branding with the bucket of its tenant's resources.
macro_rules! found {
    ($condition:literal) => {
        concat!(
            "select found.*,
               ",
            access_state_columns!("state", resource_bucket_macs!("found.tenant_id")),
            "
        from (
            select ",
            columns!(),
            "
            from branding
            where ",
            $condition,
            "
        ) found",
            join_access_state!("state", "found.tenant_id", "1")
        )
    };
}

statements! {
    SET: "branding::set" = concat!(
        "with fresh as (
            insert into branding
                (", columns!(), ")
            values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
            on conflict (tenant_id) do update
            set branding_id = excluded.branding_id,
                name = excluded.name,
                accent = excluded.accent,
                accent_text = excluded.accent_text,
                dark_accent = excluded.dark_accent,
                dark_accent_text = excluded.dark_accent_text,
                logo = excluded.logo,
                logo_type = excluded.logo_type,
                created_by = excluded.created_by,
                created_at = excluded.created_at,
                row_mac = excluded.row_mac
            returning true
        ), ", audited!("fresh", entries = "$13", responses = "$14", events = "$15"), "
        select true
        from fresh");
    FIND: "branding::find" = found!("tenant_id = $1");
    // Not limited to a tenant: browsers load logo and colors by the id alone.
    FIND_BY_ID: "branding::find_by_id" = found!("branding_id = $1");
    FIND_MAC: "branding::find_mac" =
        "select row_mac
        from branding
        where tenant_id = $1";
    DELETE: "branding::delete" = concat!(
        "with gone as (
            delete from branding
            where tenant_id = $1
            returning row_mac
        ), ", audited!("gone", entries = "$2", responses = "$3", events = "$4"), "
        select row_mac
        from gone");
}

pub(super) async fn set(
    change: AuditedStatement<'_>,
    row: &BrandingRow,
    created_at: Timestamp,
    row_mac: &[u8],
) -> Result<(), Error> {
    let params: Params<'_> = &[
        &row.tenant_number,
        &row.id,
        &row.name,
        &row.colors.0,
        &row.colors.1,
        &row.dark_colors.0,
        &row.dark_colors.1,
        &row.logo,
        &row.logo_type,
        &row.created_by,
        &created_at,
        &row_mac,
    ];
    change.run(&SET, params).await?;
    Ok(())
}

pub(super) async fn find(db: &Db, tenant: TenantId) -> Result<Option<StoredBranding>, Error> {
    let row = db.read_optional(&FIND, &[&tenant.number]).await?;
    Ok(row.as_ref().map(StoredBranding::read))
}

pub(super) async fn find_by_id(db: &Db, id: Uuid) -> Result<Option<StoredBranding>, Error> {
    let row = db.read_optional(&FIND_BY_ID, &[&id]).await?;
    Ok(row.as_ref().map(StoredBranding::read))
}

/// Returns the MAC of a tenant's branding.
pub(super) async fn find_mac(
    transaction: &Transaction,
    tenant: TenantId,
) -> Result<Option<Vec<u8>>, Error> {
    let rows = transaction.run(&FIND_MAC, &[&tenant.number]).await?;
    Ok(rows.first().map(|row| row.get(0)))
}

/// Deletes the branding of a tenant and returns its MAC; `None` if it has none.
pub(super) async fn delete(
    change: AuditedStatement<'_>,
    tenant: TenantId,
) -> Result<Option<Vec<u8>>, Error> {
    let deleted = change.run(&DELETE, &[&tenant.number]).await?;
    Ok(deleted.first().map(|row| row.get(0)))
}

impl StoredBranding {
    fn read(row: &Row) -> Self {
        Self {
            row: BrandingRow {
                tenant_number: row.get(0),
                id: row.get(1),
                name: row.get(2),
                colors: (row.get(3), row.get(4)),
                dark_colors: (row.get(5), row.get(6)),
                logo: row.get(7),
                logo_type: row.get(8),
                created_by: row.get(9),
            },
            created_at: row.get(10),
            row_mac: row.get(11),
            bucket: StoredBucket::read(row, 12),
        }
    }
}
