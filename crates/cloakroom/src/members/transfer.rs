//! Handing a tenant over to another of its members.

use uuid::Uuid;

use super::{Error, Member, store};
use crate::access::Permission;
use crate::audit::{self, EntityKind, Entry, Operation};
use crate::caller::Caller;
use crate::idempotency::Reply;
use crate::vault::Vault;

/// Makes a member the owner; the owner until now stays as an admin.
///
/// Transfers of one tenant happen one after the other: the row of the tenant is held meanwhile.
/// Without it two of them can wait for each other, since each gives up one row and wants another.
pub async fn transfer(
    vault: &Vault,
    caller: &Caller,
    to: Uuid,
    reply: &Reply<'_, Member>,
) -> Result<Member, Error> {
    caller.require_plain(Permission::TenantUpdate)?;
    let recorded = audit::begin(vault).await?;
    store::hold_tenant(&recorded, caller.tenant).await?;
    let before = store::step_down(&recorded, caller, to).await?;
    let raised = match store::raise_to_owner(&recorded, caller, to).await {
        Ok(raised) => raised.ok_or(Error::NotAMember),
        // Somebody was added as the owner meanwhile.
        Err(error) => Err(match Error::of_write(error) {
            Error::OwnerExists => Error::Contended,
            error => error,
        }),
    };
    match raised {
        Ok(owner) => {
            let changed = before.into_iter().chain([to]);
            let entry = |id| Entry::of(caller, Operation::Update, EntityKind::Member, id);
            let entries: Vec<Entry> = changed.map(entry).collect();
            recorded.commit_with(&entries, reply.keep(&owner)?).await?;
            Ok(owner)
        }
        Err(error) => {
            recorded.roll_back().await;
            Err(error)
        }
    }
}
