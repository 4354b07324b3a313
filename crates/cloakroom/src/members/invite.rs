//! Inviting somebody, and sending an invitation again.
//!
//! No mail leaves this system: whoever runs it hands the link over, which commands show once.

use uuid::Uuid;

use super::find::parse_id;
use super::{Error, Invitation, InvitationLink, NewInvitation, entry, store};
use crate::access::Permission;
use crate::audit::{self, EntityKind, Operation};
use crate::caller::Caller;
use crate::idempotency::Reply;
use crate::ids::{self, TenantId};
use crate::vault::Vault;

/// Invites somebody into the caller's tenant.
pub async fn invite(
    vault: &Vault,
    caller: &Caller,
    new: &NewInvitation,
    reply: &Reply<'_, Invitation>,
) -> Result<Invitation, Error> {
    caller.require_plain(Permission::TenantInvitationCreate)?;
    let (invitation, _) = keep(vault, caller.into(), new, reply).await?;
    Ok(invitation)
}

/// Invites somebody, and gives the operator the link.
pub async fn invite_by_command(
    vault: &Vault,
    tenant: TenantId,
    new: &NewInvitation,
) -> Result<(Invitation, InvitationLink), Error> {
    keep(vault, tenant.into(), new, &Reply::none()).await
}

/// Lets an invitation live 72 hours from now; the link until now is dead.
pub async fn resend(
    vault: &Vault,
    caller: &Caller,
    id: &str,
    reply: &Reply<'_, Invitation>,
) -> Result<Invitation, Error> {
    caller.require_plain(Permission::TenantInvitationCreate)?;
    caller.require_plain(Permission::TenantInvitationUpdate)?;
    let id = parse_id(id, "invitation")?;
    let (invitation, _) = renew(vault, caller.into(), id, reply).await?;
    Ok(invitation)
}

/// The same for the operator, who gets the new link.
pub async fn resend_by_command(
    vault: &Vault,
    tenant: TenantId,
    id: Uuid,
) -> Result<(Invitation, InvitationLink), Error> {
    renew(vault, tenant.into(), id, &Reply::none()).await
}

/// Where an invitation leads to, and the application that makes it; commands make them without one.
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

async fn keep(
    vault: &Vault,
    Inviter { tenant, caller }: Inviter<'_>,
    new: &NewInvitation,
    reply: &Reply<'_, Invitation>,
) -> Result<(Invitation, InvitationLink), Error> {
    let link = InvitationLink::generate();
    let mac = link.mac(vault.keys.control(), tenant);
    let id = ids::new_uuid();
    let by = caller.map(|caller| caller.application);
    let recorded = audit::begin(vault).await?;
    let kept = store::insert_invitation(&recorded, tenant, (id, new), &mac, by).await?;
    let made = (EntityKind::Invitation, id);
    let entry = entry(caller, tenant, Operation::Create, made);
    recorded.commit_with(&[entry], reply.keep(&kept)?).await?;
    Ok((kept, link))
}

async fn renew(
    vault: &Vault,
    Inviter { tenant, caller }: Inviter<'_>,
    id: Uuid,
    reply: &Reply<'_, Invitation>,
) -> Result<(Invitation, InvitationLink), Error> {
    let link = InvitationLink::generate();
    let mac = link.mac(vault.keys.control(), tenant);
    let by = caller.map(|caller| caller.application);
    let recorded = audit::begin(vault).await?;
    let renewed = store::renew_invitation(&recorded, tenant, id, &mac, by).await?;
    let Some(invitation) = renewed else {
        recorded.roll_back().await;
        return Err(Error::NotFound("invitation"));
    };
    let changed = (EntityKind::Invitation, id);
    let entry = entry(caller, tenant, Operation::Update, changed);
    let kept = reply.keep(&invitation)?;
    recorded.commit_with(&[entry], kept).await?;
    Ok((invitation, link))
}
