//! SQL statements for requested exports.

use cloakroom_core::access::Container;
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{Db, Error, Params, Transaction, statements};
use cloakroom_tokens::tokens::ExportFilter;
use cloakroom_tokens::types::TokenKind;
use tokio_postgres::Row;
use uuid::Uuid;

use super::ExportRequest;
use crate::transfer::PublicKey;

/// A request as stored, with its MAC. Not verified yet.
pub(super) type Stored = (ExportRequest, Vec<u8>);

/// Columns in the order that `stored` reads them.
macro_rules! select {
    ($rest:literal) => {
        concat!(
            "select export_id, container, kind, receiver, reason, requested_by, requested_at, approved_by,
               approved_at, row_mac
        from export_request
        where tenant_id = $1
        ",
            $rest
        )
    };
}

statements! {
    INSERT: "exports::insert" =
        "insert into export_request
            (tenant_id, export_id, container, kind, receiver, reason, requested_by, requested_at, row_mac)
        values ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
    LIST: "exports::list" = select!("order by requested_at, export_id");
    FIND: "exports::find" = select!("and export_id = $2");
    APPROVE: "exports::approve" =
        "update export_request
        set approved_by = $3,
            approved_at = $4,
            row_mac = $5
        where tenant_id = $1
          and export_id = $2";
    REMOVE: "exports::remove" =
        "delete from export_request
        where tenant_id = $1
          and export_id = $2";
}

pub(super) async fn insert(
    transaction: &Transaction,
    request: &ExportRequest,
    row_mac: &[u8],
) -> Result<(), Error> {
    let container = request.filter.container.as_ref().map(Container::as_str);
    let kind = request.filter.kind.map(|kind| kind as i16);
    let params: Params<'_> = &[
        &request.tenant.number,
        &request.id,
        &container,
        &kind,
        &&request.receiver.0[..],
        &request.reason,
        &request.requested_by,
        &request.requested_at,
        &row_mac,
    ];
    transaction.run(&INSERT, params).await?;
    Ok(())
}

pub(super) async fn list(db: &Db, tenant: TenantId) -> Result<Vec<Stored>, Error> {
    let rows = db.read(&LIST, &[&tenant.number]).await?;
    Ok(rows.iter().map(|row| stored(tenant, row)).collect())
}

pub(super) async fn find(
    transaction: &Transaction,
    tenant: TenantId,
    id: Uuid,
) -> Result<Option<Stored>, Error> {
    let rows = transaction.run(&FIND, &[&tenant.number, &id]).await?;
    Ok(rows.first().map(|row| stored(tenant, row)))
}

pub(super) async fn approve(
    transaction: &Transaction,
    request: &ExportRequest,
    row_mac: &[u8],
) -> Result<(), Error> {
    let params: Params<'_> = &[
        &request.tenant.number,
        &request.id,
        &request.approved_by,
        &request.approved_at,
        &row_mac,
    ];
    transaction.run(&APPROVE, params).await?;
    Ok(())
}

pub(super) async fn remove(
    transaction: &Transaction,
    tenant: TenantId,
    id: Uuid,
) -> Result<(), Error> {
    transaction.run(&REMOVE, &[&tenant.number, &id]).await?;
    Ok(())
}

/// Values that Cloakroom does not write become others, which the MAC does not cover.
fn stored(tenant: TenantId, row: &Row) -> Stored {
    let (container, kind): (Option<&str>, Option<i16>) = (row.get(1), row.get(2));
    let receiver: &[u8] = row.get(3);
    let request = ExportRequest {
        tenant,
        id: row.get(0),
        filter: ExportFilter {
            container: container.map(Container::known),
            kind: kind.and_then(TokenKind::from_number),
        },
        receiver: PublicKey(receiver.try_into().unwrap_or_default()),
        reason: row.get(4),
        requested_by: row.get(5),
        requested_at: row.get(6),
        approved_by: row.get(7),
        approved_at: row.get(8),
    };
    (request, row.get(9))
}
