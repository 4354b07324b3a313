//! Members of a tenant, and invitations to become one.
//!
//! There is no login, so members have no permissions: only applications do. The rows are stored for a portal that uses
//! the API, and are not protected by a MAC.

mod accept;
mod add;
mod api;
mod delete;
mod email;
mod event;
mod find;
mod invitation;
mod invite;
mod list;
mod member;
mod store;
mod transfer;
mod update;

use cloakroom_core::access::PermissionDenied;
use cloakroom_core::audit::{AuditError, EntityKind, Entry, Operation};
use cloakroom_core::caller::Caller;
use cloakroom_platform::api::FieldError;
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage;
use uuid::Uuid;

pub use self::accept::accept;
pub use self::add::add;
pub use self::api::routes;
pub use self::delete::{delete, delete_invitation};
pub use self::email::Email;
pub use self::find::{find_invitation, find_owner, owner_of};
pub use self::invitation::{Invitation, InvitationLink, NewInvitation, Status};
pub use self::invite::{invite, invite_as_operator, resend, resend_as_operator};
pub use self::list::{Page, all, list, list_invitations, list_invitations_as_operator};
pub use self::member::{Member, NewMember, Role, User};
pub(crate) use self::store::{INVITATION_STATEMENTS, STATEMENTS};
pub use self::transfer::transfer;
pub use self::update::update;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    PermissionDenied(#[from] PermissionDenied),
    #[error("{}", describe(.0))]
    Invalid(Vec<FieldError>),
    #[error("no such {0}")]
    NotFound(&'static str),
    #[error("the owner cannot be removed or change roles; transfer the ownership first")]
    OwnerStays,
    #[error("only a member of the tenant can become its owner")]
    NotAMember,
    #[error("the tenant has an owner: transfer the ownership instead")]
    OwnerExists,
    #[error("a user with this e-mail address is a member already")]
    AlreadyMember,
    #[error("the invitation is unknown, expired or was sent again since")]
    DeadLink,
    #[error("the owner was changed concurrently; retry")]
    Contended,
    #[error(transparent)]
    AuditError(#[from] AuditError),
    #[error(transparent)]
    Storage(#[from] storage::Error),
}

impl Error {
    /// Maps a violated unique constraint to its error.
    fn of_write(error: storage::Error) -> Self {
        match error {
            hit if hit.is_conflict("member_email") => Self::AlreadyMember,
            hit if hit.is_conflict("member_one_owner") => Self::OwnerExists,
            other => Self::Storage(other),
        }
    }
}

/// Builds the audit log entry of an operation by a caller or, without one, by the operator.
fn entry(
    caller: Option<&Caller>,
    tenant: TenantId,
    operation: Operation,
    entity: EntityKind,
    id: Uuid,
) -> Entry {
    match caller {
        Some(caller) => Entry::new(caller, operation, entity, id),
        None => Entry::by_system(tenant.number, operation, entity, id),
    }
}

/// All validation errors in one line, for the CLI.
fn describe(broken: &[FieldError]) -> String {
    let rules: Vec<String> = broken
        .iter()
        .map(|broken| format!("{} {}", broken.path, broken.rule))
        .collect();
    rules.join("; ")
}
