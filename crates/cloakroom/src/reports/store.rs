//! Every SQL statement of reports.

use super::KindUsage;
use crate::ids::TenantId;
use crate::storage::{Db, Error, statements};
use crate::token_types::TokenKind;

statements! {
    // Counted exactly: expired tokens that are not swept yet do not exist.
    COUNT_TOKENS: "reports::count_tokens" =
        "select kind, count(*), max(created_at)
        from token
        where tenant_id = $1
          and (expires_at is null or expires_at > now())
        group by kind
        order by kind";
}

/// Tokens by type. A type that this version does not know has no name that could be told.
pub(super) async fn count_tokens(db: &Db, tenant: TenantId) -> Result<Vec<KindUsage>, Error> {
    let rows = db.read(&COUNT_TOKENS, &[&tenant.number]).await?;
    let usage = rows.iter().filter_map(|row| {
        Some(KindUsage {
            kind: TokenKind::from_number(row.get(0))?,
            count: row.get::<_, i64>(1).unsigned_abs(),
            last_created_at: row.get(2),
        })
    });
    Ok(usage.collect())
}
