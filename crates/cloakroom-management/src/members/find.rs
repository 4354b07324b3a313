//! Finds the owner and single invitations.

use cloakroom_core::access::Permission;
use cloakroom_core::audit::{EntityKind, Entry, Operation};
use cloakroom_core::caller::Caller;
use cloakroom_core::vault::Vault;
use cloakroom_platform::ids::TenantId;
use uuid::Uuid;

use super::{Error, Invitation, Member, store};

/// Finds the owner of the caller's tenant.
pub async fn find_owner(vault: &Vault, caller: &Caller) -> Result<Member, Error> {
    caller.require_plain(Permission::TenantRead)?;
    let owner = owner_of(vault, caller.tenant).await?;
    let owner = owner.ok_or(Error::NotFound("owner"))?;
    let entry = Entry::new(caller, Operation::Read, EntityKind::Member, owner.id);
    vault.audit.enqueue(vec![entry]).await?;
    Ok(owner)
}

/// Finds the owner of a tenant. A tenant is created without one.
pub async fn owner_of(vault: &Vault, tenant: TenantId) -> Result<Option<Member>, Error> {
    Ok(store::find_owner(&vault.db, tenant).await?)
}

/// Finds an invitation of the caller's tenant.
pub async fn find_invitation(
    vault: &Vault,
    caller: &Caller,
    id: &str,
) -> Result<Invitation, Error> {
    caller.require_plain(Permission::TenantInvitationRead)?;
    let id = parse_id(id, "invitation")?;
    let found = store::find_invitation(&vault.db, caller.tenant, id).await?;
    let found = found.ok_or(Error::NotFound("invitation"))?;
    let entry = Entry::new(caller, Operation::Read, EntityKind::Invitation, id);
    vault.audit.enqueue(vec![entry]).await?;
    Ok(found)
}

/// Parses an id; an id that is not a UUID is not found.
pub(super) fn parse_id(text: &str, what: &'static str) -> Result<Uuid, Error> {
    text.parse().map_err(|_| Error::NotFound(what))
}
