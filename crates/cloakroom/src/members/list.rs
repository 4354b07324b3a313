//! Lists of members and of invitations, newest first.

use uuid::Uuid;

use super::{Error, Invitation, Member, Status, store};
use crate::access::Permission;
use crate::api::NumberedPage;
use crate::caller::Caller;
use crate::ids::TenantId;
use crate::vault::Vault;

/// More than this is not told by a command.
const TOLD_MAX: usize = 1_000;

/// One page, and how many there are on all pages.
pub struct Listed<T> {
    pub items: Vec<T>,
    pub total: u64,
}

/// Members of the caller's tenant: all, or those with one of these user ids.
pub async fn list(
    vault: &Vault,
    caller: &Caller,
    users: Option<&[Uuid]>,
    page: NumberedPage,
) -> Result<Listed<Member>, Error> {
    caller.require_plain(Permission::TenantMemberRead)?;
    let total = store::count_members(&vault.db, caller.tenant, users).await?;
    let items = if is_past(page, total) {
        Vec::new()
    } else {
        store::list_members(&vault.db, caller.tenant, users, page).await?
    };
    Ok(Listed {
        items,
        total: total.unsigned_abs(),
    })
}

/// Invitations of the caller's tenant: all, or those that stand so.
pub async fn list_invitations(
    vault: &Vault,
    caller: &Caller,
    status: Option<Status>,
    page: NumberedPage,
) -> Result<Listed<Invitation>, Error> {
    caller.require_plain(Permission::TenantInvitationRead)?;
    let total = store::count_invitations(&vault.db, caller.tenant, status).await?;
    let items = if is_past(page, total) {
        Vec::new()
    } else {
        store::list_invitations(&vault.db, caller.tenant, status, page).await?
    };
    Ok(Listed {
        items,
        total: total.unsigned_abs(),
    })
}

/// Whether nothing can be on a page. Reading what lies far behind the end would cost the most.
fn is_past(page: NumberedPage, total: i64) -> bool {
    page.size == 0 || page.offset() >= total
}

/// The newest members of a tenant, for the operator.
pub async fn all(vault: &Vault, tenant: TenantId) -> Result<Vec<Member>, Error> {
    Ok(store::list_members(&vault.db, tenant, None, FIRST).await?)
}

/// The newest invitations of a tenant, for the operator.
pub async fn all_invitations(vault: &Vault, tenant: TenantId) -> Result<Vec<Invitation>, Error> {
    Ok(store::list_invitations(&vault.db, tenant, None, FIRST).await?)
}

const FIRST: NumberedPage = NumberedPage {
    page: 1,
    size: TOLD_MAX,
};
