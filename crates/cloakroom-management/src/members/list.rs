//! Lists members and invitations, newest first.

use cloakroom_core::access::Permission;
use cloakroom_core::caller::Caller;
use cloakroom_core::vault::Vault;
use cloakroom_platform::api::NumberedPage;
use cloakroom_platform::ids::TenantId;
use uuid::Uuid;

use super::{Error, Invitation, Member, Status, store};

/// Maximum number of rows in CLI output.
const OUTPUT_MAX: usize = 1_000;

/// One page, and the total count.
pub struct Page<T> {
    pub items: Vec<T>,
    pub total: u64,
}

/// Lists members of the caller's tenant: all, or those with one of these user ids.
pub async fn list(
    vault: &Vault,
    caller: &Caller,
    users: Option<&[Uuid]>,
    page: NumberedPage,
) -> Result<Page<Member>, Error> {
    caller.require_plain(Permission::TenantMemberRead)?;
    let total = store::count_members(&vault.db, caller.tenant, users).await?;
    let items = if is_past_end(page, total) {
        Vec::new()
    } else {
        store::list_members(&vault.db, caller.tenant, users, page).await?
    };
    Ok(Page {
        items,
        total: total.unsigned_abs(),
    })
}

/// Lists invitations of the caller's tenant: all, or those with this status.
pub async fn list_invitations(
    vault: &Vault,
    caller: &Caller,
    status: Option<Status>,
    page: NumberedPage,
) -> Result<Page<Invitation>, Error> {
    caller.require_plain(Permission::TenantInvitationRead)?;
    let total = store::count_invitations(&vault.db, caller.tenant, status).await?;
    let items = if is_past_end(page, total) {
        Vec::new()
    } else {
        store::list_invitations(&vault.db, caller.tenant, status, page).await?
    };
    Ok(Page {
        items,
        total: total.unsigned_abs(),
    })
}

/// Whether a page is after the last one. Such pages need no query: theirs would have the largest offset.
fn is_past_end(page: NumberedPage, total: i64) -> bool {
    page.size == 0 || page.offset() >= total
}

/// Lists the newest members of a tenant, for the operator.
pub async fn all(vault: &Vault, tenant: TenantId) -> Result<Vec<Member>, Error> {
    Ok(store::list_members(&vault.db, tenant, None, FIRST).await?)
}

/// Lists the newest invitations of a tenant, for the operator.
pub async fn list_invitations_as_operator(
    vault: &Vault,
    tenant: TenantId,
) -> Result<Vec<Invitation>, Error> {
    Ok(store::list_invitations(&vault.db, tenant, None, FIRST).await?)
}

const FIRST: NumberedPage = NumberedPage {
    page: 1,
    size: OUTPUT_MAX,
};
