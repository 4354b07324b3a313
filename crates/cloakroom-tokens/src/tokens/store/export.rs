//! SQL statements for exports, which read all tokens of a tenant in one snapshot.

use cloakroom_core::access::Container;
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{Connection, Error, Params, statements};
use futures_util::{Stream, TryStreamExt as _};
use tokio_postgres::Row;

use super::columns::{TokenRow, token_columns};
use crate::types::TokenKind;

/// The tokens of a filter: a tenant, a container with those below it, and a type.
macro_rules! filtered {
    () => {
        "
        from token
        where tenant_id = $1
          and ($2::text is null or substring(path from 1 for length($2)) = $2)
          and ($3::smallint is null or kind = $3)
          and (expires_at is null or expires_at > now())"
    };
}

statements! {
    // In the order of the primary key.
    EXPORT: "tokens::export" = concat!("select ", token_columns!(), filtered!(), "
        order by token_id");
    COUNT: "tokens::count_exported" = concat!("select count(*)", filtered!());
}

/// The tokens that an export contains.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExportFilter {
    /// Only this container and those below it.
    pub container: Option<Container>,
    pub kind: Option<TokenKind>,
}

/// Streams the rows of a filter.
pub(crate) async fn stream(
    connection: &Connection,
    tenant: TenantId,
    filter: &ExportFilter,
) -> Result<impl Stream<Item = Result<TokenRow, Error>> + use<>, Error> {
    let container = filter.container.as_ref().map(Container::as_str);
    let kind = filter.kind.map(|kind| kind as i16);
    let params: Params<'_> = &[&tenant.number, &container, &kind];
    let rows = connection.stream(&EXPORT, params).await?;
    Ok(rows.map_ok(|row| TokenRow::decode(&row)))
}

/// Counts the rows of a filter.
pub(crate) async fn count(
    connection: &Connection,
    tenant: TenantId,
    filter: &ExportFilter,
) -> Result<u64, Error> {
    let container = filter.container.as_ref().map(Container::as_str);
    let kind = filter.kind.map(|kind| kind as i16);
    let params: Params<'_> = &[&tenant.number, &container, &kind];
    let rows: Vec<Row> = connection
        .stream(&COUNT, params)
        .await?
        .try_collect()
        .await?;
    let count: i64 = rows.first().map_or(0, |row| row.get(0));
    Ok(count.unsigned_abs())
}
