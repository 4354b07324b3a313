//! Counts the tokens of a tenant, and its monthly active tokens.

use cloakroom_core::access::Permission;
use cloakroom_core::audit;
use cloakroom_core::caller::Caller;
use cloakroom_core::vault::Vault;
use jiff::Timestamp;

use super::{Error, store};
use crate::types::TokenKind;

/// Token usage of a tenant.
pub struct Usage {
    /// One entry for each type that the tenant has tokens of.
    pub kinds: Vec<TypeUsage>,
    /// Distinct tokens created, read, found or used this calendar month, in UTC.
    pub monthly_active: u64,
}

/// Tokens of one type.
pub struct TypeUsage {
    pub kind: TokenKind,
    pub count: u64,
    pub last_created_at: Timestamp,
}

impl Usage {
    pub fn total(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.count).sum()
    }
}

/// Counts the tokens of the caller's tenant.
pub async fn usage(vault: &Vault, caller: &Caller) -> Result<Usage, Error> {
    caller.require_plain(Permission::ReportRead)?;
    Ok(Usage {
        kinds: store::count_tokens(&vault.db, caller.tenant).await?,
        monthly_active: audit::count_active_tokens(&vault.audit, caller.tenant).await?,
    })
}
