//! Bodies of requests and responses about members.

use cloakroom_core::caller::Caller;
use cloakroom_platform::api::format_utc;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::members::Member;

/// Changes to a member.
#[derive(Deserialize, ToSchema)]
pub(super) struct MemberChangeBody {
    /// `ADMIN` or `READ_ONLY`.
    #[schema(required)]
    pub(super) role: Option<String>,
}

/// The new owner.
#[derive(Deserialize, ToSchema)]
pub(super) struct TransferBody {
    /// The id of a member of the tenant.
    #[schema(value_type = Uuid, required)]
    pub(super) member_id: Option<String>,
}

/// A member. Attributes without a value are omitted.
#[derive(Serialize, ToSchema)]
pub(super) struct MemberBody<'a> {
    id: Uuid,
    tenant_id: Uuid,
    /// `OWNER`, `ADMIN` or `READ_ONLY`.
    role: &'static str,
    user: UserBody<'a>,
    /// The application that invited the member.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    created_by: Option<Uuid>,
    created_at: String,
    /// The same as `created_at`; the official clients read this attribute.
    created_date: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    modified_by: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    modified_at: Option<String>,
}

/// The user behind a member.
#[derive(Serialize, ToSchema)]
struct UserBody<'a> {
    id: Uuid,
    email: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    first_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    last_name: Option<&'a str>,
    /// Always false: there is no login.
    mfa_enrolled: bool,
}

/// A role.
#[derive(Serialize, ToSchema)]
pub(super) struct RoleBody {
    pub(super) name: &'static str,
}

impl<'a> MemberBody<'a> {
    pub(super) fn new(caller: &Caller, member: &'a Member) -> Self {
        let user = &member.user;
        Self {
            id: member.id,
            tenant_id: caller.tenant.uuid,
            role: member.role.name(),
            user: UserBody {
                id: user.id,
                email: user.email.as_str(),
                first_name: user.first_name.as_deref(),
                last_name: user.last_name.as_deref(),
                mfa_enrolled: false,
            },
            created_by: member.created_by,
            created_at: format_utc(member.created_at),
            created_date: format_utc(member.created_at),
            modified_by: member.modified_by,
            modified_at: member.modified_at.map(format_utc),
        }
    }
}
