//! Taking a member out of the tenant, and an invitation back.

use super::find::parse_id;
use super::{Error, store};
use crate::access::Permission;
use crate::audit::{self, EntityKind, Entry, Operation};
use crate::caller::Caller;
use crate::vault::Vault;

/// Removes a member, who must not be the owner.
pub async fn delete(vault: &Vault, caller: &Caller, id: &str) -> Result<(), Error> {
    caller.require_plain(Permission::TenantMemberDelete)?;
    let id = parse_id(id, "member")?;
    let recorded = audit::begin(vault).await?;
    if !store::delete_member(&recorded, caller.tenant, id).await? {
        let is_owner = store::is_member(&recorded, caller.tenant, id).await?;
        recorded.roll_back().await;
        return Err(match is_owner {
            true => Error::OwnerStays,
            false => Error::NotFound("member"),
        });
    }
    let entry = Entry::of(caller, Operation::Delete, EntityKind::Member, id);
    Ok(recorded.commit(&[entry]).await?)
}

/// Takes an invitation back: its link is dead.
pub async fn delete_invitation(vault: &Vault, caller: &Caller, id: &str) -> Result<(), Error> {
    caller.require_plain(Permission::TenantInvitationDelete)?;
    let id = parse_id(id, "invitation")?;
    let recorded = audit::begin(vault).await?;
    if !store::delete_invitation(&recorded, caller.tenant, id).await? {
        recorded.roll_back().await;
        return Err(Error::NotFound("invitation"));
    }
    let entry = Entry::of(caller, Operation::Delete, EntityKind::Invitation, id);
    Ok(recorded.commit(&[entry]).await?)
}
