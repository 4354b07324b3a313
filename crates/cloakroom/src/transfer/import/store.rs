//! SQL statements for the progress of imports.

use std::collections::BTreeMap;

use cloakroom_core::fenced_mac;
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{Db, Error, Params, Transaction, statements};
use tokio_postgres::Row;
use uuid::Uuid;

use super::batch::StoredBatch;

statements! {
    INSERT: "imports::insert_batch" = concat!(
        "insert into import_batch
            (tenant_id, import_id, first_line, lines, created, dropped_codes, content_mac, outcomes, row_mac)
        values ($1, $2, $3, $4, $5, $6, $7, $8, ", fenced_mac!("$9"), ")");
    LIST: "imports::list_batches" =
        "select first_line, lines, created, dropped_codes, content_mac, outcomes, row_mac
        from import_batch
        where tenant_id = $1
          and import_id = $2";
    FIND: "imports::find_batch" =
        "select first_line, lines, created, dropped_codes, content_mac, outcomes, row_mac
        from import_batch
        where tenant_id = $1
          and import_id = $2
          and first_line = $3";
    // Rows of all tenants, for the rotation of the control key.
    LIST_AFTER: "imports::list_after" =
        "select first_line, lines, created, dropped_codes, content_mac, outcomes, row_mac, tenant_id, import_id
        from import_batch
        where (tenant_id, import_id, first_line) > ($1, $2, $3)
        order by tenant_id, import_id, first_line
        limit $4";
    RENEW: "imports::renew" =
        "update import_batch
        set row_mac = renewed.after
        from unnest($1::integer[], $2::uuid[], $3::bigint[], $4::bytea[], $5::bytea[])
            as renewed (tenant_id, import_id, first_line, before, after)
        where import_batch.tenant_id = renewed.tenant_id
          and import_batch.import_id = renewed.import_id
          and import_batch.first_line = renewed.first_line
          and import_batch.row_mac = renewed.before
        returning true";
}

pub(super) async fn insert(
    transaction: &Transaction,
    batch: &StoredBatch,
    row_mac: &[u8],
) -> Result<(), Error> {
    transaction
        .run(
            &INSERT,
            &[
                &batch.tenant,
                &batch.import,
                &batch.first_line,
                &batch.lines,
                &batch.created,
                &batch.dropped_codes,
                &batch.content_mac,
                &batch.outcomes,
                &row_mac,
            ],
        )
        .await?;
    Ok(())
}

/// All batches of an import by their first line, each with its MAC. Not verified yet.
pub(super) async fn list(
    db: &Db,
    tenant: TenantId,
    import: Uuid,
) -> Result<BTreeMap<u64, (StoredBatch, Vec<u8>)>, Error> {
    let rows = db.read(&LIST, &[&tenant.number, &import]).await?;
    let stored = rows.iter().map(|row| {
        let (batch, row_mac) = read(row, tenant.number, import);
        (batch.first_line.unsigned_abs(), (batch, row_mac))
    });
    Ok(stored.collect())
}

/// The batch that begins with a line, with its MAC. Not verified yet.
pub(super) async fn find(
    db: &Db,
    tenant: TenantId,
    import: Uuid,
    line: u64,
) -> Result<Option<(StoredBatch, Vec<u8>)>, Error> {
    let params: Params<'_> = &[&tenant.number, &import, &line.cast_signed()];
    let rows = db.read(&FIND, params).await?;
    Ok(rows.first().map(|row| read(row, tenant.number, import)))
}

fn read(row: &Row, tenant: i32, import: Uuid) -> (StoredBatch, Vec<u8>) {
    let batch = StoredBatch {
        tenant,
        import,
        first_line: row.get(0),
        lines: row.get(1),
        created: row.get(2),
        dropped_codes: row.get(3),
        content_mac: row.get(4),
        outcomes: row.get(5),
    };
    (batch, row.get(6))
}

/// Lists batches of all tenants after a tenant, import and line, in order, each with its MAC.
pub(super) async fn list_after(
    db: &Db,
    (tenant, import, line): (i32, Uuid, i64),
    limit: i64,
) -> Result<Vec<(StoredBatch, Vec<u8>)>, Error> {
    let params: Params<'_> = &[&tenant, &import, &line, &limit];
    let rows = db.read(&LIST_AFTER, params).await?;
    let batch = |row: &Row| read(row, row.get(7), row.get(8));
    Ok(rows.iter().map(batch).collect())
}

/// Replaces MACs, each if the row still has the one before; returns how many.
pub(super) async fn renew(
    db: &Db,
    renewed: &[(StoredBatch, Vec<u8>, Vec<u8>)],
) -> Result<u64, Error> {
    let tenants: Vec<i32> = renewed.iter().map(|(batch, ..)| batch.tenant).collect();
    let imports: Vec<Uuid> = renewed.iter().map(|(batch, ..)| batch.import).collect();
    let lines: Vec<i64> = renewed.iter().map(|(batch, ..)| batch.first_line).collect();
    let before: Vec<&[u8]> = renewed.iter().map(|(_, before, _)| &before[..]).collect();
    let after: Vec<&[u8]> = renewed.iter().map(|(.., after)| &after[..]).collect();
    let params: Params<'_> = &[&tenants, &imports, &lines, &before, &after];
    Ok(db.write(&RENEW, params).await?.len() as u64)
}
