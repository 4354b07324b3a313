//! Becoming a member by an invitation.

use super::invitation::link_mac;
use super::{Error, Member, NewMember, entry, store};
use crate::audit::{self, EntityKind, Operation};
use crate::ids::TenantId;
use crate::vault::Vault;

/// Makes the invited person a member; the invitation is used up.
pub async fn accept(vault: &Vault, tenant: TenantId, link: &str) -> Result<Member, Error> {
    let mac = link_mac(vault.keys.control(), tenant, link);
    let recorded = audit::begin(vault).await?;
    let Some(taken) = store::take_invitation(&recorded, tenant, &mac).await? else {
        recorded.roll_back().await;
        return Err(Error::DeadLink);
    };
    let new = NewMember {
        email: taken.email,
        role: taken.role,
        first_name: None,
        last_name: None,
    };
    match store::insert_member(&recorded, tenant, &new, taken.created_by).await {
        Ok(member) => {
            let used = (EntityKind::Invitation, taken.id);
            let made = (EntityKind::Member, member.id);
            let used = entry(None, tenant, Operation::Use, used);
            let made = entry(None, tenant, Operation::Create, made);
            recorded.commit(&[used, made]).await?;
            Ok(member)
        }
        Err(error) => {
            recorded.roll_back().await;
            Err(Error::of_write(error))
        }
    }
}
