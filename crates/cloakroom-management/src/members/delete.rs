//! Removes members and deletes invitations.

use cloakroom_core::access::Permission;
use cloakroom_core::audit::{self, EntityKind, Entry, Operation};
use cloakroom_core::caller::Caller;
use cloakroom_core::events::{Event, EventKind};
use cloakroom_core::vault::Vault;

use super::find::parse_id;
use super::{Error, store};

/// Removes a member that is not the owner.
pub async fn delete(vault: &Vault, caller: &Caller, id: &str) -> Result<(), Error> {
    caller.require_plain(Permission::TenantMemberDelete)?;
    let id = parse_id(id, "member")?;
    let transaction = audit::begin(&vault.audit).await?;
    if !store::delete_member(&transaction, caller.tenant, id).await? {
        let is_owner = store::is_member(&transaction, caller.tenant, id).await?;
        transaction.roll_back().await;
        return Err(match is_owner {
            true => Error::OwnerStays,
            false => Error::NotFound("member"),
        });
    }
    let entry = Entry::new(caller, Operation::Delete, EntityKind::Member, id)
        .with_event(Event::of_id(EventKind::MemberDeleted, "member", id));
    Ok(transaction.commit(&[entry]).await?)
}

/// Deletes an invitation; its link becomes invalid.
pub async fn delete_invitation(vault: &Vault, caller: &Caller, id: &str) -> Result<(), Error> {
    caller.require_plain(Permission::TenantInvitationDelete)?;
    let id = parse_id(id, "invitation")?;
    let transaction = audit::begin(&vault.audit).await?;
    if !store::delete_invitation(&transaction, caller.tenant, id).await? {
        transaction.roll_back().await;
        return Err(Error::NotFound("invitation"));
    }
    let entry = Entry::new(caller, Operation::Delete, EntityKind::Invitation, id)
        .with_event(Event::of_id(EventKind::InvitationDeleted, "invitation", id));
    Ok(transaction.commit(&[entry]).await?)
}
