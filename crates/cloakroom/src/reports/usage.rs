//! How many tokens a tenant has, and how many of them it works with.

use jiff::Timestamp;

use super::{Error, store};
use crate::access::Permission;
use crate::audit;
use crate::caller::Caller;
use crate::token_types::TokenKind;
use crate::vault::Vault;

/// What a tenant has and uses.
pub struct Usage {
    /// One for each type that it has tokens of.
    pub kinds: Vec<KindUsage>,
    /// Different tokens created, read, found or used this calendar month, in UTC.
    pub monthly_active: u64,
}

/// Tokens of one type.
pub struct KindUsage {
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
        monthly_active: audit::count_active_tokens(vault, caller.tenant).await?,
    })
}
