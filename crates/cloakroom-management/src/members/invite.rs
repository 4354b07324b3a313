//! Creates and resends invitations.
//!
//! No e-mail is sent: the CLI prints the link once, and the operator passes it on.

use cloakroom_core::access::Permission;
use cloakroom_core::audit::{self, EntityKind, Operation};
use cloakroom_core::caller::Caller;
use cloakroom_core::events::EventKind;
use cloakroom_core::idempotency::ResponseTemplate;
use cloakroom_core::vault::Vault;
use cloakroom_platform::ids::TenantId;
use uuid::Uuid;

use super::find::parse_id;
use super::{Error, Invitation, InvitationLink, NewInvitation, entry, store};

/// Creates an invitation to the caller's tenant.
pub async fn invite(
    vault: &Vault,
    caller: &Caller,
    new: &NewInvitation,
    template: &ResponseTemplate<'_, Invitation>,
) -> Result<Invitation, Error> {
    caller.require_plain(Permission::TenantInvitationCreate)?;
    let (invitation, _) = insert(vault, caller.into(), new, template).await?;
    Ok(invitation)
}

/// Creates an invitation and returns its link, for the operator.
pub async fn invite_as_operator(
    vault: &Vault,
    tenant: TenantId,
    new: &NewInvitation,
) -> Result<(Invitation, InvitationLink), Error> {
    insert(vault, tenant.into(), new, &ResponseTemplate::none()).await
}

/// Makes an invitation valid for another 72 hours; its previous link becomes invalid.
pub async fn resend(
    vault: &Vault,
    caller: &Caller,
    id: &str,
    template: &ResponseTemplate<'_, Invitation>,
) -> Result<Invitation, Error> {
    caller.require_plain(Permission::TenantInvitationCreate)?;
    caller.require_plain(Permission::TenantInvitationUpdate)?;
    let id = parse_id(id, "invitation")?;
    let (invitation, _) = renew(vault, caller.into(), id, template).await?;
    Ok(invitation)
}

/// The same for the operator, with the new link.
pub async fn resend_as_operator(
    vault: &Vault,
    tenant: TenantId,
    id: Uuid,
) -> Result<(Invitation, InvitationLink), Error> {
    renew(vault, tenant.into(), id, &ResponseTemplate::none()).await
}

/// The tenant of an invitation, and the caller that creates it; `None` for the operator.
#[derive(Clone, Copy)]
struct Inviter<'a> {
    tenant: TenantId,
    caller: Option<&'a Caller>,
}

impl<'a> From<&'a Caller> for Inviter<'a> {
    fn from(caller: &'a Caller) -> Self {
        Self {
            tenant: caller.tenant,
            caller: Some(caller),
        }
    }
}

impl From<TenantId> for Inviter<'_> {
    fn from(tenant: TenantId) -> Self {
        let caller = None;
        Self { tenant, caller }
    }
}

async fn insert(
    vault: &Vault,
    Inviter { tenant, caller }: Inviter<'_>,
    new: &NewInvitation,
    template: &ResponseTemplate<'_, Invitation>,
) -> Result<(Invitation, InvitationLink), Error> {
    let link = InvitationLink::generate();
    let digest = link.digest(tenant);
    let by = caller.map(|caller| caller.application);
    let transaction = audit::begin(&vault.audit).await?;
    let created = store::insert_invitation(&transaction, tenant, new, &digest, by).await?;
    let (operation, entity) = (Operation::Create, EntityKind::Invitation);
    let entry = entry(caller, tenant, operation, entity, created.id)
        .with_event(created.event(EventKind::InvitationCreated));
    transaction
        .commit_with(&[entry], template.render_pending(&created)?)
        .await?;
    Ok((created, link))
}

async fn renew(
    vault: &Vault,
    Inviter { tenant, caller }: Inviter<'_>,
    id: Uuid,
    template: &ResponseTemplate<'_, Invitation>,
) -> Result<(Invitation, InvitationLink), Error> {
    let link = InvitationLink::generate();
    let digest = link.digest(tenant);
    let by = caller.map(|caller| caller.application);
    let transaction = audit::begin(&vault.audit).await?;
    let renewed = store::renew_invitation(&transaction, tenant, id, &digest, by).await?;
    let Some(invitation) = renewed else {
        transaction.roll_back().await;
        return Err(Error::NotFound("invitation"));
    };
    let (operation, entity) = (Operation::Update, EntityKind::Invitation);
    let entry = entry(caller, tenant, operation, entity, id)
        .with_event(invitation.event(EventKind::InvitationResent));
    let response = template.render_pending(&invitation)?;
    transaction.commit_with(&[entry], response).await?;
    Ok((invitation, link))
}
