//! SQL statements for reports.

use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{Db, Error, statements};

use super::TypeUsage;
use crate::types::TokenKind;

statements! {
    // An exact count: expired tokens are excluded, even before they are swept.
    COUNT_TOKENS: "reports::count_tokens" =
        "select kind, count(*), max(created_at)
        from token
        where tenant_id = $1
          and (expires_at is null or expires_at > now())
        group by kind
        order by kind";
}

/// Counts tokens by type. Types that this version does not know are omitted.
pub(super) async fn count_tokens(db: &Db, tenant: TenantId) -> Result<Vec<TypeUsage>, Error> {
    let rows = db.read(&COUNT_TOKENS, &[&tenant.number]).await?;
    let usage = rows.iter().filter_map(|row| {
        Some(TypeUsage {
            kind: TokenKind::from_number(row.get(0))?,
            count: row.get::<_, i64>(1).unsigned_abs(),
            last_created_at: row.get(2),
        })
    });
    Ok(usage.collect())
}
