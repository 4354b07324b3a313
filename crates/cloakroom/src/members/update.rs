//! Giving a member another role.

use super::find::parse_id;
use super::{Error, Member, Role, store};
use crate::access::Permission;
use crate::audit::{self, EntityKind, Entry, Operation};
use crate::caller::Caller;
use crate::idempotency::Reply;
use crate::vault::Vault;

/// Changes a member's role. The owner keeps theirs until the ownership is transferred.
pub async fn update(
    vault: &Vault,
    caller: &Caller,
    (id, role): (&str, Role),
    reply: &Reply<'_, Member>,
) -> Result<Member, Error> {
    caller.require_plain(Permission::TenantMemberUpdate)?;
    let id = parse_id(id, "member")?;
    let recorded = audit::begin(vault).await?;
    let Some(member) = store::update_role(&recorded, caller, id, role).await? else {
        let is_owner = store::is_member(&recorded, caller.tenant, id).await?;
        recorded.roll_back().await;
        return Err(match is_owner {
            true => Error::OwnerStays,
            false => Error::NotFound("member"),
        });
    };
    let entry = Entry::of(caller, Operation::Update, EntityKind::Member, id);
    recorded.commit_with(&[entry], reply.keep(&member)?).await?;
    Ok(member)
}
