//! Finding a token and showing it as the caller may see it.

use super::{Error, TokenView, store, view};
use crate::access::Permission;
use crate::caller::Caller;
use crate::token_attributes::TokenId;
use crate::vault::Vault;

/// Finds a token by id; expired ones and those of other tenants do not exist.
pub async fn find(vault: &Vault, caller: &Caller, id: &str) -> Result<TokenView, Error> {
    caller.require_somewhere(Permission::TokenRead)?;
    let id = TokenId::of(caller.tenant, id);
    let row = store::find(&vault.db, caller.tenant, &id)
        .await?
        .ok_or(Error::NotFound)?;
    view::view(vault, caller, row, Permission::TokenRead).await
}

/// What became of a look for several tokens.
pub(crate) enum FoundAll {
    All(Vec<TokenView>),
    /// Some do not exist; nothing is shown of the others.
    Without(Vec<TokenId>),
}

/// Finds several tokens at once, in no order. One that the caller may not read denies them all.
pub(crate) async fn find_all(
    vault: &Vault,
    caller: &Caller,
    ids: &[TokenId],
) -> Result<FoundAll, Error> {
    let rows = store::find_all(&vault.db, caller.tenant, ids).await?;
    let exists = |id: &TokenId| rows.iter().any(|row| row.id == *id);
    let unknown: Vec<TokenId> = ids.iter().filter(|id| !exists(id)).cloned().collect();
    if !unknown.is_empty() {
        return Ok(FoundAll::Without(unknown));
    }
    let mut views = Vec::with_capacity(rows.len());
    for row in rows {
        views.push(view::view(vault, caller, row, Permission::TokenRead).await?);
    }
    Ok(FoundAll::All(views))
}

/// Finds those of several tokens that the caller may see, in no order.
pub(crate) async fn find_readable(
    vault: &Vault,
    caller: &Caller,
    ids: &[TokenId],
    permission: Permission,
) -> Result<Vec<TokenView>, Error> {
    let rows = store::find_all(&vault.db, caller.tenant, ids).await?;
    view::view_readable(vault, caller, rows, permission).await
}
