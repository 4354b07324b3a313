//! SQL statements for containers.

use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{Db, Error, statements};

statements! {
    FIND_NUMBER: "containers::find_number" =
        "select container_id
        from container
        where tenant_id = $1
          and path = $2";
    FIND_PATH: "containers::find_path" =
        "select path
        from container
        where tenant_id = $1
          and container_id = $2";
    INSERT: "containers::insert" =
        "insert into container (tenant_id, container_id, path)
        select $1, coalesce(max(container_id), 0) + $3, $2
        from container
        where tenant_id = $1
        on conflict do nothing";
}

pub(super) async fn find_number(
    db: &Db,
    tenant: TenantId,
    path: &str,
) -> Result<Option<i32>, Error> {
    let row = db
        .read_optional(&FIND_NUMBER, &[&tenant.number, &path])
        .await?;
    Ok(row.map(|row| row.get(0)))
}

pub(super) async fn find_path(
    db: &Db,
    tenant: TenantId,
    number: i32,
) -> Result<Option<String>, Error> {
    let row = db
        .read_optional(&FIND_PATH, &[&tenant.number, &number])
        .await?;
    Ok(row.map(|row| row.get(0)))
}

/// Assigns a path the number `gap` above the highest, unless the path or the number exists.
pub(super) async fn insert(db: &Db, tenant: TenantId, path: &str, gap: i32) -> Result<(), Error> {
    db.write(&INSERT, &[&tenant.number, &path, &gap]).await?;
    Ok(())
}
