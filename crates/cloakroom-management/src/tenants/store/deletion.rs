//! SQL statements for pending deletions of tenants.

use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{Db, Error, Transaction, statements};
use tokio_postgres::Row;

use crate::tenants::Deletion;

/// A deletion as stored, with its row MAC.
type Stored = (Deletion, Vec<u8>);

/// Columns in the order that `stored` reads them.
macro_rules! select {
    ($rest:literal) => {
        concat!(
            "select tenant.tenant_id, tenant.public_id, requested_by, requested_at, confirmed_by, due_at,
               tenant_deletion.row_mac
        from tenant_deletion
        join tenant on tenant.tenant_id = tenant_deletion.tenant_id
        where deleted_at is null
        ",
            $rest
        )
    };
}

statements! {
    FIND: "tenants::find_deletion" = select!("and tenant_deletion.tenant_id = $1");
    LOCK: "tenants::lock_deletion" =
        select!("and tenant_deletion.tenant_id = $1
        for update of tenant_deletion");
    WRITE: "tenants::write_deletion" =
        "insert into tenant_deletion
            (tenant_id, requested_by, requested_at, confirmed_by, due_at, row_mac)
        values ($1, $2, $3, $4, $5, $6)
        on conflict (tenant_id) do update
        set requested_by = excluded.requested_by,
            requested_at = excluded.requested_at,
            confirmed_by = excluded.confirmed_by,
            due_at = excluded.due_at,
            row_mac = excluded.row_mac";
    CANCEL: "tenants::cancel_deletion" =
        "delete from tenant_deletion
        where tenant_id = $1
        returning row_mac";
    LIST: "tenants::list_deletions" =
        select!("order by tenant.tenant_id
        limit $1");
    LIST_DUE: "tenants::list_due_deletions" =
        select!("and due_at <= now()
        order by due_at
        limit $1");
}

pub(crate) async fn find_deletion(db: &Db, tenant: TenantId) -> Result<Option<Stored>, Error> {
    let row = db.read_optional(&FIND, &[&tenant.number]).await?;
    Ok(row.as_ref().map(stored))
}

pub(crate) async fn lock_deletion(
    transaction: &Transaction,
    tenant: TenantId,
) -> Result<Option<Stored>, Error> {
    let rows = transaction.run(&LOCK, &[&tenant.number]).await?;
    Ok(rows.first().map(stored))
}

pub(crate) async fn write_deletion(
    transaction: &Transaction,
    deletion: &Deletion,
    row_mac: &[u8],
) -> Result<(), Error> {
    transaction
        .run(
            &WRITE,
            &[
                &deletion.tenant.number,
                &deletion.requested_by,
                &deletion.requested_at,
                &deletion.confirmed_by,
                &deletion.due_at,
                &row_mac,
            ],
        )
        .await?;
    Ok(())
}

/// Deletes a deletion and returns its MAC; `None` if there was none.
pub(crate) async fn remove_deletion(
    transaction: &Transaction,
    tenant: TenantId,
) -> Result<Option<Vec<u8>>, Error> {
    let rows = transaction.run(&CANCEL, &[&tenant.number]).await?;
    Ok(rows.first().map(|row| row.get(0)))
}

pub(crate) async fn list_deletions(db: &Db, limit: i64) -> Result<Vec<Stored>, Error> {
    let rows = db.read(&LIST, &[&limit]).await?;
    Ok(rows.iter().map(stored).collect())
}

/// Lists deletions that are due by the database's clock.
pub(crate) async fn list_due(db: &Db, limit: i64) -> Result<Vec<Stored>, Error> {
    let rows = db.read(&LIST_DUE, &[&limit]).await?;
    Ok(rows.iter().map(stored).collect())
}

fn stored(row: &Row) -> Stored {
    let deletion = Deletion {
        tenant: TenantId {
            number: row.get(0),
            uuid: row.get(1),
        },
        requested_by: row.get(2),
        requested_at: row.get(3),
        confirmed_by: row.get(4),
        due_at: row.get(5),
    };
    (deletion, row.get(6))
}
