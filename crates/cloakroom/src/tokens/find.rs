//! Finding a token and showing it as the caller may see it.

use super::token::parse_id;
use super::view::show;
use super::{Error, Token, TokenKind, TokenView, store};
use crate::access::Permission;
use crate::caller::Caller;
use crate::vault::Vault;
use crate::{containers, keys};

/// Finds a token by id; expired ones and those of other tenants do not exist.
pub async fn find(vault: &Vault, caller: &Caller, id: &str) -> Result<TokenView, Error> {
    caller.require_somewhere(Permission::TokenRead)?;
    let id = parse_id(id).ok_or(Error::NotFound)?;
    let row = store::find(&vault.db, caller.tenant, id)
        .await?
        .ok_or(Error::NotFound)?;
    let container = containers::container_of(vault, caller.tenant, row.container)
        .await?
        .ok_or(keys::Error::Integrity)?;
    let transform = caller.require(Permission::TokenRead, &container)?;

    let token = Token {
        id,
        kind: TokenKind::from_number(row.kind).ok_or(keys::Error::Integrity)?,
        container,
        row_version: row.row_version,
        expiry: row.expiry,
        mask: row.mask,
        metadata: row.metadata,
        created_by: row.created_by,
        created_at: row.created_at,
        modified_by: row.modified_by,
        modified_at: row.modified_at,
    };
    let data = vault
        .keys
        .open(caller.tenant, &token.record(), &row.sealed)
        .await?;
    let shown = show(token.kind, token.mask.as_deref(), &data, transform)?;
    Ok(TokenView { token, shown })
}
