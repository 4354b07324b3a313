//! Members: the people of a tenant, and those who are invited to become one.
//!
//! Nobody logs in to this system, so a member has no rights here: all rights are those of applications.
//! The rows are what the interface keeps for a portal, and carry no digest.

mod accept;
mod add;
mod api;
mod delete;
mod email;
mod find;
mod invitation;
mod invite;
mod list;
mod member;
mod store;
mod transfer;
mod update;

use uuid::Uuid;

pub use self::accept::accept;
pub use self::add::add;
pub use self::api::routes;
pub use self::delete::{delete, delete_invitation};
pub use self::email::Email;
pub use self::find::{find_invitation, find_owner, owner_of};
pub use self::invitation::{Invitation, InvitationLink, NewInvitation, Status};
pub use self::invite::{invite, invite_by_command, resend, resend_by_command};
pub use self::list::{Listed, all, all_invitations, list, list_invitations};
pub use self::member::{Member, NewMember, Role, User};
pub(crate) use self::store::STATEMENTS;
pub use self::transfer::transfer;
pub use self::update::update;
use crate::api::Broken;
use crate::audit::{EntityKind, Entry, Operation, Unrecorded};
use crate::caller::{Caller, Denied};
use crate::ids::TenantId;
use crate::storage;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Denied(#[from] Denied),
    #[error("{}", told(.0))]
    Invalid(Vec<Broken>),
    #[error("no such {0}")]
    NotFound(&'static str),
    #[error("the owner stays a member and the owner: transfer the ownership first")]
    OwnerStays,
    #[error("only a member of the tenant can become its owner")]
    NotAMember,
    #[error("the tenant has an owner: transfer the ownership instead")]
    OwnerExists,
    #[error("someone with this e-mail address is a member already")]
    AlreadyMember,
    #[error("the invitation is unknown, expired or was sent again since")]
    DeadLink,
    #[error("the owner was changed at the same moment; try again")]
    Contended,
    #[error(transparent)]
    Unrecorded(#[from] Unrecorded),
    #[error(transparent)]
    Storage(#[from] storage::Error),
}

impl Error {
    /// Which of the table's unique keys was hit, in words.
    fn of_write(error: storage::Error) -> Self {
        match error {
            hit if hit.is_conflict("member_email") => Self::AlreadyMember,
            hit if hit.is_conflict("member_one_owner") => Self::OwnerExists,
            other => Self::Storage(other),
        }
    }
}

/// What is recorded of something that a caller or, without one, the operator does.
fn entry(
    caller: Option<&Caller>,
    tenant: TenantId,
    operation: Operation,
    (entity, id): (EntityKind, Uuid),
) -> Entry {
    match caller {
        Some(caller) => Entry::of(caller, operation, entity, id),
        None => Entry::by_system(tenant.number, operation, entity, id),
    }
}

/// For commands, which tell all of it in one line.
fn told(broken: &[Broken]) -> String {
    let rules: Vec<String> = broken
        .iter()
        .map(|broken| format!("{} {}", broken.path, broken.rule))
        .collect();
    rules.join("; ")
}
