//! SQL statements for imports, which look up many tokens at once.

use cloakroom_core::access::Container;
use cloakroom_crypto::Fingerprint;
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{Db, Error, statements};
use uuid::Uuid;

use super::columns::{READ_COLUMNS, TokenRow, token_columns};

statements! {
    // `tokens::find_equal` for several fingerprints. The lateral join forces one index lookup per fingerprint.
    FIND_DUPLICATES: "tokens::find_duplicates" = concat!(
        "select found.*, wanted.position
        from unnest($2::bytea[], $3::text[], $4::bytea[]) with ordinality as wanted (term, path, fingerprint, position)
        cross join lateral (
            select ", token_columns!(), "
            from term
            join token
              on token.tenant_id = $1
             and token.token_id = term.token_id
            where term.tenant_id = $1
              and term.term = wanted.term
              and term.path = wanted.path
              and token.fingerprint = wanted.fingerprint
              and (token.expires_at is null or token.expires_at > now())
            order by term.created_at, term.token_id
            limit 1
        ) as found"
    );
    // Ids of tokens, expired or not, and ids that deleted tokens reserve.
    FIND_TAKEN: "tokens::find_taken" =
        "select token_id
        from token
        where tenant_id = $1
          and token_id = any($2)
        union all
        select token_id
        from reserved_token_id
        where tenant_id = $1
          and token_id = any($2)";
}

/// Finds the oldest token with each fingerprint in its container, with the position of the fingerprint.
pub(crate) async fn find_duplicates(
    db: &Db,
    tenant: TenantId,
    wanted: &[(Fingerprint, Container)],
) -> Result<Vec<(usize, TokenRow)>, Error> {
    let prints: Vec<&[u8]> = wanted.iter().map(|(it, _)| &it.as_bytes()[..]).collect();
    let terms: Vec<&[u8]> = prints.iter().map(|print| &print[..16]).collect();
    let paths: Vec<&str> = wanted.iter().map(|(_, it)| it.as_str()).collect();
    let params: [&(dyn tokio_postgres::types::ToSql + Sync); 4] =
        [&tenant.number, &terms, &paths, &prints];
    let rows = db.read(&FIND_DUPLICATES, &params).await?;
    let found = rows.iter().filter_map(|row| {
        let position = usize::try_from(row.get::<_, i64>(READ_COLUMNS) - 1).ok()?;
        Some((position, TokenRow::decode(row)))
    });
    Ok(found.collect())
}

/// Which of these ids are in use or reserved.
pub(crate) async fn find_taken(
    db: &Db,
    tenant: TenantId,
    keys: &[Uuid],
) -> Result<Vec<Uuid>, Error> {
    let rows = db.read(&FIND_TAKEN, &[&tenant.number, &keys]).await?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}
