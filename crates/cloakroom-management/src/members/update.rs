//! Updates the role of a member.

use cloakroom_core::access::Permission;
use cloakroom_core::audit::{self, EntityKind, Entry, Operation};
use cloakroom_core::caller::Caller;
use cloakroom_core::idempotency::ResponseTemplate;
use cloakroom_core::vault::Vault;

use super::find::parse_id;
use super::{Error, Member, Role, store};

/// Updates a member's role. The owner's role changes only by a transfer of ownership.
pub async fn update(
    vault: &Vault,
    caller: &Caller,
    id: &str,
    role: Role,
    template: &ResponseTemplate<'_, Member>,
) -> Result<Member, Error> {
    caller.require_plain(Permission::TenantMemberUpdate)?;
    let id = parse_id(id, "member")?;
    let transaction = audit::begin(&vault.audit).await?;
    let Some(member) = store::update_role(&transaction, caller, id, role).await? else {
        let is_owner = store::is_member(&transaction, caller.tenant, id).await?;
        transaction.roll_back().await;
        return Err(match is_owner {
            true => Error::OwnerStays,
            false => Error::NotFound("member"),
        });
    };
    let entry = Entry::new(caller, Operation::Update, EntityKind::Member, id);
    transaction
        .commit_with(&[entry], template.render_pending(&member)?)
        .await?;
    Ok(member)
}
