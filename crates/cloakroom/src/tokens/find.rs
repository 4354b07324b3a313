//! Finding a token and showing it as the caller may see it.

use cloakroom_crypto::Sensitive;
use jiff::Timestamp;
use serde_json::Value;

use super::token::entry;
use super::view::Opened;
use super::{Error, TokenView, view};
use crate::access::Permission;
use crate::audit::{Entry, Operation};
use crate::caller::Caller;
use crate::keys;
use crate::token_attributes::TokenId;
use crate::token_rows;
use crate::token_types::TokenKind;
use crate::vault::Vault;

/// Finds a token by id; expired ones and those of other tenants do not exist.
pub async fn find(vault: &Vault, caller: &Caller, id: &str) -> Result<TokenView, Error> {
    caller.require_somewhere(Permission::TokenRead)?;
    let id = TokenId::of(caller.tenant, id);
    let opened = view::open_named(vault, caller, &id).await?;
    let view = view::view(vault, caller, opened, Permission::TokenRead).await?;
    record_reads(vault, caller, Operation::Read, std::slice::from_ref(&view)).await?;
    Ok(view)
}

/// Records that the caller gets to see these. What is revealed must not be answered before.
pub(crate) async fn record_reads(
    vault: &Vault,
    caller: &Caller,
    operation: Operation,
    views: &[TokenView],
) -> Result<(), Error> {
    let entries = views.iter().map(|view| {
        let token = (&view.token.id, view.token.kind);
        entry(caller, operation, token, view.shown.as_ref())
    });
    Ok(vault.audit.read(entries.collect()).await?)
}

/// The data of a token for use on the caller's behalf, which never leaves the vault.
///
/// Recorded before it is used.
pub(crate) async fn use_data(
    vault: &Vault,
    caller: &Caller,
    id: &str,
) -> Result<(TokenKind, Value), Error> {
    caller.require_somewhere(Permission::TokenUse)?;
    let id = TokenId::of(caller.tenant, id);
    let Opened { token, data, .. } = view::open_named(vault, caller, &id).await?;
    caller.require_on(Permission::TokenUse, token.subject(&token.id.text()))?;
    let entry = entry(caller, Operation::Use, (&token.id, token.kind), None);
    vault.audit.record(vec![entry]).await?;
    let value = serde_json::from_slice(data.expose()).map_err(|_| keys::Error::Integrity)?;
    Ok((token.kind, value))
}

/// The data of a token, for the vault itself.
pub(crate) struct Lent {
    pub kind: TokenKind,
    pub data: Sensitive<Vec<u8>>,
    pub expires_at: Option<Timestamp>,
    /// Says that it was used. Whoever uses it records this first.
    pub entry: Entry,
}

/// Lends the data of a token to a room that has a use for it and shows it to nobody.
///
/// No permission on the token is asked for: that is what makes it different from `use_data`.
pub(crate) async fn lend_data(vault: &Vault, caller: &Caller, id: &str) -> Result<Lent, Error> {
    let id = TokenId::of(caller.tenant, id);
    let Opened { token, data, .. } = view::open_named(vault, caller, &id).await?;
    Ok(Lent {
        kind: token.kind,
        data,
        expires_at: token.expiry.map(|expiry| expiry.at),
        entry: entry(caller, Operation::Use, (&token.id, token.kind), None),
    })
}

/// All of several tokens, in no order, or the ids among them that name none.
pub(crate) enum FoundAll {
    All(Vec<TokenView>),
    Missing(Vec<TokenId>),
}

/// Finds several tokens at once. All of them are looked for before any of them is refused.
pub(crate) async fn find_all(
    vault: &Vault,
    caller: &Caller,
    ids: &[TokenId],
) -> Result<FoundAll, Error> {
    let mut found = Vec::with_capacity(ids.len());
    for row in token_rows::find_all(&vault.db, caller.tenant, ids).await? {
        found.push(view::open(vault, caller, row).await?);
    }
    let is_found = |id: &&TokenId| found.iter().any(|opened| opened.token.id == **id);
    let missing: Vec<TokenId> = ids.iter().filter(|id| !is_found(id)).cloned().collect();
    if !missing.is_empty() {
        return Ok(FoundAll::Missing(missing));
    }
    let mut views = Vec::with_capacity(found.len());
    for opened in found {
        views.push(view::view(vault, caller, opened, Permission::TokenRead).await?);
    }
    record_reads(vault, caller, Operation::Read, &views).await?;
    Ok(FoundAll::All(views))
}

/// Finds those of several tokens that the caller may see, in no order. Whoever shows them records it.
pub(crate) async fn find_readable(
    vault: &Vault,
    caller: &Caller,
    ids: &[TokenId],
    permission: Permission,
) -> Result<Vec<TokenView>, Error> {
    let rows = token_rows::find_all(&vault.db, caller.tenant, ids).await?;
    let mut views = view::view_readable(vault, caller, rows, permission).await?;
    views.retain(|view| ids.contains(&view.token.id));
    Ok(views)
}
