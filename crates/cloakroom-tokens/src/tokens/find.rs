//! Reads tokens and transforms their data by the caller's access rules.

use cloakroom_core::access::{Permission, Purpose};
use cloakroom_core::audit::{Entry, Operation};
use cloakroom_core::caller::Caller;
use cloakroom_core::keys;
use cloakroom_crypto::Sensitive;
use jiff::Timestamp;
use serde_json::Value;
use uuid::Uuid;

use super::token::{entry, read_event};
use super::view::OpenedToken;
use super::{Error, TokenView, store, view};
use crate::attributes::TokenId;
use crate::tokens::TokenVault;
use crate::types::TokenKind;

/// Finds a token by id. Expired tokens and tokens of other tenants are not found.
pub async fn find(vault: &TokenVault, caller: &Caller, id: &str) -> Result<TokenView, Error> {
    caller.require_anywhere(Permission::TokenRead)?;
    let id = TokenId::of(caller.tenant, id);
    let opened = view::open_by_id(vault, caller, &id).await?;
    let view = view::view(vault, caller, opened, Permission::TokenRead).await?;
    record_reads(vault, caller, Operation::Read, std::slice::from_ref(&view)).await?;
    Ok(view)
}

/// Appends reads to the audit log. Revealed data must not be sent before this returns.
pub async fn record_reads(
    vault: &TokenVault,
    caller: &Caller,
    operation: Operation,
    views: &[TokenView],
) -> Result<(), Error> {
    let entries = read_entries(caller, operation, views);
    Ok(vault.audit.record_reads(entries).await?)
}

/// The audit log entries of reads or uses. Revealed data must not be sent before they are recorded.
pub fn read_entries(caller: &Caller, operation: Operation, views: &[TokenView]) -> Vec<Entry> {
    let entries = views.iter().map(|view| {
        let (token, shown) = (&view.token, view.shown.as_ref());
        let entry = entry(caller, operation, &token.id, token.kind, shown);
        entry.with_event(read_event(&token.id, token.kind))
    });
    entries.collect()
}

/// Decrypts a token's data for use on the caller's behalf; the data never leaves the vault.
///
/// Requires `token:use`. The use is in the audit log before this returns.
pub async fn use_data(
    vault: &TokenVault,
    caller: &Caller,
    id: &str,
) -> Result<(TokenKind, Value), Error> {
    caller.require_anywhere(Permission::TokenUse)?;
    let id = TokenId::of(caller.tenant, id);
    let OpenedToken { token, data, .. } = view::open_by_id(vault, caller, &id).await?;
    caller.require_on(Permission::TokenUse, token.subject(&token.id.text()))?;
    let entry = entry(caller, Operation::Use, &token.id, token.kind, None);
    vault.audit.record(vec![entry]).await?;
    view::remember(vault, caller, &token);
    let value = serde_json::from_slice(data.expose()).map_err(|_| keys::Error::Integrity)?;
    Ok((token.kind, value))
}

/// Decrypted token data for internal use.
pub struct InternalTokenData {
    pub kind: TokenKind,
    pub data: Sensitive<Vec<u8>>,
    pub expires_at: Option<Timestamp>,
    /// The application that created the token.
    pub created_by: Uuid,
    /// The audit log entry of the use. The caller must append it before using the data.
    pub entry: Entry,
}

/// Decrypts a token's data for another module, which must not disclose it.
///
/// Unlike `use_data`, this requires no permission on the token.
pub async fn read_data_internally(
    vault: &TokenVault,
    caller: &Caller,
    id: &str,
) -> Result<InternalTokenData, Error> {
    let id = TokenId::of(caller.tenant, id);
    let OpenedToken { token, data, .. } = view::open_by_id(vault, caller, &id).await?;
    view::remember(vault, caller, &token);
    Ok(InternalTokenData {
        kind: token.kind,
        data,
        expires_at: token.attributes.expiry.map(|expiry| expiry.at),
        created_by: token.created_by,
        entry: entry(caller, Operation::Use, &token.id, token.kind, None),
    })
}

/// The result of `find_all`: all tokens, unordered, or the ids that were not found.
pub enum Lookup {
    All(Vec<TokenView>),
    Missing(Vec<TokenId>),
}

/// Finds several tokens at once, with their data transformed for a purpose. Missing tokens are reported before denied
/// ones. Does not write to the audit log: see `read_entries`.
pub async fn find_all(
    vault: &TokenVault,
    caller: &Caller,
    ids: &[TokenId],
    purpose: Purpose,
) -> Result<Lookup, Error> {
    let mut found = Vec::with_capacity(ids.len());
    for row in find_rows(vault, caller, ids).await? {
        match view::open(vault, caller, row).await {
            Ok(opened) => found.push(opened),
            Err(Error::NotFound) => {}
            Err(error) => return Err(error),
        }
    }
    let is_found = |id: &&TokenId| found.iter().any(|opened| opened.token.id == **id);
    let missing: Vec<TokenId> = ids.iter().filter(|id| !is_found(id)).cloned().collect();
    if !missing.is_empty() {
        return Ok(Lookup::Missing(missing));
    }
    let mut views = Vec::with_capacity(found.len());
    for opened in found {
        views.push(view::view_for(vault, caller, opened, purpose).await?);
    }
    Ok(Lookup::All(views))
}

/// One statement for all tokens; a single token shares its statement with concurrent reads.
async fn find_rows(
    vault: &TokenVault,
    caller: &Caller,
    ids: &[TokenId],
) -> Result<Vec<store::TokenRow>, Error> {
    Ok(match ids {
        [] => Vec::new(),
        [id] => {
            let row = store::find(&vault.reads, caller.tenant, id).await?;
            row.into_iter().collect()
        }
        ids => store::find_all(&vault.db, caller.tenant, ids).await?,
    })
}

/// Finds those of several tokens that the caller may read, unordered. Does not write to the audit log: see
/// `record_reads`.
pub async fn find_readable(
    vault: &TokenVault,
    caller: &Caller,
    ids: &[TokenId],
    permission: Permission,
) -> Result<Vec<TokenView>, Error> {
    let rows = store::find_all(&vault.db, caller.tenant, ids).await?;
    let mut views = view::view_readable(vault, caller, rows, permission, None).await?;
    views.retain(|view| ids.contains(&view.token.id));
    Ok(views)
}
