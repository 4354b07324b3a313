//! SQL statements for search expressions.

use std::collections::HashSet;

use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{Db, Error, statements};

use super::domain::ExpressionDigest;

/// The highest number that the table accepts.
pub(super) const REGISTERED_MAX: usize = 32;

statements! {
    LIST: "search_expressions::list" =
        "select digest
        from search_expression
        where tenant_id = $1";
    INSERT: "search_expressions::insert" =
        "insert into search_expression (tenant_id, number, digest)
        select $1, coalesce(max(number), 0) + 1, $2
        from search_expression
        where tenant_id = $1
        having coalesce(max(number), 0) < 32
        on conflict do nothing";
}

pub(super) async fn list(db: &Db, tenant: TenantId) -> Result<HashSet<ExpressionDigest>, Error> {
    let rows = db.read(&LIST, &[&tenant.number]).await?;
    let digest = |row: &tokio_postgres::Row| row.get::<_, &[u8]>(0).try_into().ok();
    Ok(rows.iter().filter_map(digest).collect())
}

/// Registers an expression, unless it is registered, the number was taken concurrently or there are too many.
pub(super) async fn insert(
    db: &Db,
    tenant: TenantId,
    digest: &ExpressionDigest,
) -> Result<(), Error> {
    db.write(&INSERT, &[&tenant.number, &&digest[..]]).await?;
    Ok(())
}
