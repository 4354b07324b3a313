//! Accepts invitations.

use cloakroom_core::audit::{self, EntityKind, Operation};
use cloakroom_core::events::EventKind;
use cloakroom_core::vault::Vault;
use cloakroom_platform::ids::TenantId;

use super::invitation::link_digest;
use super::{Error, Member, NewMember, entry, store};

/// Makes the invited user a member and deletes the invitation.
pub async fn accept(vault: &Vault, tenant: TenantId, link: &str) -> Result<Member, Error> {
    let digest = link_digest(tenant, link);
    let transaction = audit::begin(&vault.audit).await?;
    let Some(taken) = store::accept_invitation(&transaction, tenant, &digest).await? else {
        transaction.roll_back().await;
        return Err(Error::DeadLink);
    };
    let accepted = taken.event(EventKind::InvitationAccepted);
    let new = NewMember {
        email: taken.email,
        role: taken.role,
        first_name: None,
        last_name: None,
    };
    match store::insert_member(&transaction, tenant, &new, taken.created_by).await {
        Ok(member) => {
            let (invitation, new_member) = (EntityKind::Invitation, EntityKind::Member);
            let used =
                entry(None, tenant, Operation::Use, invitation, taken.id).with_event(accepted);
            let made = entry(None, tenant, Operation::Create, new_member, member.id)
                .with_event(member.created_event());
            transaction.commit(&[used, made]).await?;
            Ok(member)
        }
        Err(error) => {
            transaction.roll_back().await;
            Err(Error::of_write(error))
        }
    }
}
