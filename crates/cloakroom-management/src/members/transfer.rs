//! Transfers the ownership of a tenant.

use cloakroom_core::access::Permission;
use cloakroom_core::audit::{self, EntityKind, Entry, Operation};
use cloakroom_core::caller::Caller;
use cloakroom_core::idempotency::ResponseTemplate;
use cloakroom_core::vault::Vault;
use uuid::Uuid;

use super::{Error, Member, store};

/// Makes a member the owner; the previous owner becomes an admin.
///
/// The tenant's row is locked, so that transfers run one after another. Otherwise two transfers could deadlock, since
/// each releases one member's row and waits for another.
pub async fn transfer(
    vault: &Vault,
    caller: &Caller,
    to: Uuid,
    template: &ResponseTemplate<'_, Member>,
) -> Result<Member, Error> {
    caller.require_plain(Permission::TenantUpdate)?;
    let transaction = audit::begin(&vault.audit).await?;
    store::lock_tenant(&transaction, caller.tenant).await?;
    let before = store::demote_owner(&transaction, caller, to).await?;
    let promoted = match store::promote_to_owner(&transaction, caller, to).await {
        Ok(promoted) => promoted.ok_or(Error::NotAMember),
        // A member was added as the owner concurrently.
        Err(error) => Err(match Error::of_write(error) {
            Error::OwnerExists => Error::Contended,
            error => error,
        }),
    };
    match promoted {
        Ok(owner) => {
            let changed = before.into_iter().chain([to]);
            let entry = |id| Entry::new(caller, Operation::Update, EntityKind::Member, id);
            let entries: Vec<Entry> = changed.map(entry).collect();
            transaction
                .commit_with(&entries, template.render_pending(&owner)?)
                .await?;
            Ok(owner)
        }
        Err(error) => {
            transaction.roll_back().await;
            Err(error)
        }
    }
}
