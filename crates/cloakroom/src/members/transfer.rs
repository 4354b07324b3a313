//! Handing a tenant over to another of its members.

use uuid::Uuid;

use super::{Error, Member, store};
use crate::access::Permission;
use crate::audit::{self, EntityKind, Entry, Operation};
use crate::caller::Caller;
use crate::idempotency::Reply;
use crate::vault::Vault;

/// How many times to try when the owner changes meanwhile.
const ATTEMPTS: usize = 3;

/// Makes a member the owner; the owner until now stays as an admin.
///
/// Two transfers at one moment cannot leave two owners: the table allows one.
pub async fn transfer(
    vault: &Vault,
    caller: &Caller,
    to: Uuid,
    reply: &Reply<'_, Member>,
) -> Result<Member, Error> {
    caller.require_plain(Permission::TenantUpdate)?;
    for _ in 0..ATTEMPTS {
        match transfer_once(vault, caller, to, reply).await {
            Err(Error::OwnerExists) => {}
            settled => return settled,
        }
    }
    Err(Error::Contended)
}

async fn transfer_once(
    vault: &Vault,
    caller: &Caller,
    to: Uuid,
    reply: &Reply<'_, Member>,
) -> Result<Member, Error> {
    let recorded = audit::begin(vault).await?;
    let before = store::step_down(&recorded, caller, to).await?;
    let raised = match store::raise_to_owner(&recorded, caller, to).await {
        Ok(raised) => raised.ok_or(Error::NotAMember),
        Err(error) => Err(Error::of_write(error)),
    };
    match raised {
        Ok(owner) => {
            let changed = before.into_iter().chain([to]);
            let entry = |id| Entry::of(caller, Operation::Update, EntityKind::Member, id);
            let entries: Vec<Entry> = changed.map(entry).collect();
            recorded.commit_with(&entries, reply.keep(&owner)?).await?;
            Ok(owner)
        }
        Err(error) => {
            recorded.roll_back().await;
            Err(error)
        }
    }
}
