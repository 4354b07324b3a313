//! SQL statements for the progress of imports.

use std::collections::BTreeMap;

use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{Db, Error, Transaction, statements};
use uuid::Uuid;

use super::batch::StoredBatch;

statements! {
    INSERT: "imports::insert_batch" =
        "insert into import_batch
            (tenant_id, import_id, first_line, lines, created, dropped_codes, content_mac, outcomes, row_mac)
        values ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
    LIST: "imports::list_batches" =
        "select first_line, lines, created, dropped_codes, content_mac, outcomes, row_mac
        from import_batch
        where tenant_id = $1
          and import_id = $2";
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
        let batch = StoredBatch {
            tenant: tenant.number,
            import,
            first_line: row.get(0),
            lines: row.get(1),
            created: row.get(2),
            dropped_codes: row.get(3),
            content_mac: row.get(4),
            outcomes: row.get(5),
        };
        (batch.first_line.unsigned_abs(), (batch, row.get(6)))
    });
    Ok(stored.collect())
}
