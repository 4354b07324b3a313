//! Members, the owner and roles over HTTP: wire shapes, handlers, and the status of each failure.

mod invitations;

use std::sync::Arc;

use axum::Extension;
use axum::extract::{RawQuery, State};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::{Error, Member, Role};
use crate::access::Permission;
use crate::api::{
    Answer, ApiError, Broken, JsonBody, NumberedPage, NumberedPageBody, PathId, Problem, Query,
    format_utc,
};
use crate::caller::Caller;
use crate::idempotency::Reply;
use crate::members;
use crate::vault::Vault;

const PAGE_SIZE_MAX: usize = 50;
const USERS_MAX: usize = 100;

/// The routes of this room.
pub fn routes() -> OpenApiRouter<Vault> {
    OpenApiRouter::new()
        .routes(routes!(list_members))
        .routes(routes!(update_member, delete_member))
        .routes(routes!(find_owner, transfer_ownership))
        .routes(routes!(list_roles))
        .merge(invitations::routes())
}

/// List members.
///
/// Needs `tenant:member:read`. Newest first. Members have no rights here: nobody logs in to this
/// system.
#[utoipa::path(
    get,
    path = "/tenants/self/members",
    tag = "Members",
    params(
        ("user_id" = Option<Vec<Uuid>>, Query, description = "Members with one of these user ids.",
         max_items = 100),
        ("page" = Option<u32>, Query, description = "Counted from 1.", minimum = 1,
         maximum = 2147483647),
        ("size" = Option<u8>, Query, description = "Members on a page, 20 without it.",
         minimum = 0, maximum = 50),
    ),
    responses(
        (status = 200, description = "A page of members.", body = NumberedPageBody<MemberBody<'_>>),
        (status = 400, description = "A parameter breaks a rule.", body = Problem),
        (status = 401, description = "No valid key.", body = Problem),
        (status = 403, description = "The key lacks the permission.", body = Problem),
        (status = 503, description = "The database is away.", body = Problem),
    ),
)]
async fn list_members(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
    RawQuery(query): RawQuery,
) -> Result<Answer, ApiError> {
    caller.require_plain(Permission::TenantMemberRead)?;
    let (users, page) = read_query(query.as_deref()).map_err(ApiError::all_invalid)?;
    let listed = members::list(&vault, &caller, users.as_deref(), page).await?;
    let bodies = listed.items.iter();
    let bodies = bodies.map(|member| MemberBody::new(&caller, member));
    Answer::ok(&NumberedPageBody::new(page, listed.total, bodies.collect()))
}

fn read_query(text: Option<&str>) -> Result<(Option<Vec<Uuid>>, NumberedPage), Vec<Broken>> {
    let mut query = Query::decode(text, &["user_id", "page", "size"]);
    let given = query.all("user_id");
    if given.len() > USERS_MAX {
        query.refuse(
            "user_id",
            format!("must be given at most {USERS_MAX} times"),
        );
    }
    let mut users = Vec::new();
    for text in &given {
        let user = text
            .parse::<Uuid>()
            .map_err(|_| "must be a UUID".to_owned());
        users.extend(query.check("user_id", user));
    }
    let users = (!given.is_empty()).then_some(users);
    let page = NumberedPage::new(query.number("page"), query.number("size"), PAGE_SIZE_MAX);
    query.settle(users, page)
}

/// Change a member's role.
///
/// Needs `tenant:member:update`. The owner's role changes only when the ownership is transferred.
#[utoipa::path(
    put,
    path = "/tenants/self/members/{id}",
    tag = "Members",
    params(("id" = String, Path, description = "The member's id.")),
    request_body(content = MemberChangeBody, examples(
        ("role" = (summary = "Let somebody only look", value = json!({"role": "READ_ONLY"}))),
    )),
    responses(
        (status = 200, description = "The member.", body = MemberBody<'_>),
        (status = 400, description = "The role is missing or cannot be given.", body = Problem),
        (status = 401, description = "No valid key.", body = Problem),
        (status = 403, description = "The key lacks the permission.", body = Problem),
        (status = 404, description = "No such member.", body = Problem),
        (status = 408, description = "The body did not arrive in time.", body = Problem),
        (status = 413, description = "The body is too large.", body = Problem),
        (status = 415, description = "The body is not JSON.", body = Problem),
        (status = 422, description = "The member is the owner.", body = Problem),
        (status = 503, description = "The database is away, or the outcome is unknown.",
         body = Problem),
    ),
)]
async fn update_member(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
    PathId(id): PathId,
    body: Result<JsonBody, ApiError>,
) -> Result<Answer, ApiError> {
    caller.require_plain(Permission::TenantMemberUpdate)?;
    let body = body?;
    let change: MemberChangeBody = body.read()?;
    let role = change.role.ok_or_else(|| "is required".to_owned());
    let role = role.and_then(|name| Role::parse_giveable(&name));
    let role = role.map_err(|rule| ApiError::invalid("role", rule))?;
    let reply = Reply::to(&caller, |member: &Member| {
        Answer::ok(&MemberBody::new(&caller, member))
    });
    let member = members::update(&vault, &caller, (&id, role), &reply).await?;
    reply.answer(&member)
}

/// Remove a member.
///
/// Needs `tenant:member:delete`. The owner cannot be removed.
#[utoipa::path(
    delete,
    path = "/tenants/self/members/{id}",
    tag = "Members",
    params(("id" = String, Path, description = "The member's id.")),
    responses(
        (status = 204, description = "The member is gone."),
        (status = 401, description = "No valid key.", body = Problem),
        (status = 403, description = "The key lacks the permission.", body = Problem),
        (status = 404, description = "No such member.", body = Problem),
        (status = 422, description = "The member is the owner.", body = Problem),
        (status = 503, description = "The database is away, or the outcome is unknown.",
         body = Problem),
    ),
)]
async fn delete_member(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
    PathId(id): PathId,
) -> Result<Answer, ApiError> {
    members::delete(&vault, &caller, &id).await?;
    Ok(Answer::no_content())
}

/// Read the owner.
///
/// Needs `tenant:read`. A tenant has one owner at most; it is made without one.
#[utoipa::path(
    get,
    path = "/tenants/self/owner",
    tag = "Members",
    responses(
        (status = 200, description = "The member who is the owner.", body = MemberBody<'_>),
        (status = 401, description = "No valid key.", body = Problem),
        (status = 403, description = "The key lacks the permission.", body = Problem),
        (status = 404, description = "The tenant has no owner.", body = Problem),
        (status = 503, description = "The database is away.", body = Problem),
    ),
)]
async fn find_owner(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
) -> Result<Answer, ApiError> {
    let owner = members::find_owner(&vault, &caller).await?;
    Answer::ok(&MemberBody::new(&caller, &owner))
}

/// Transfer the ownership.
///
/// Needs `tenant:update`. The owner until now stays as an `ADMIN`.
#[utoipa::path(
    put,
    path = "/tenants/self/owner",
    tag = "Members",
    request_body = TransferBody,
    responses(
        (status = 200, description = "The new owner.", body = MemberBody<'_>),
        (status = 400, description = "`member_id` is missing or no UUID.", body = Problem),
        (status = 401, description = "No valid key.", body = Problem),
        (status = 403, description = "The key lacks the permission.", body = Problem),
        (status = 408, description = "The body did not arrive in time.", body = Problem),
        (status = 409, description = "Others transfer the ownership all the time.",
         body = Problem),
        (status = 413, description = "The body is too large.", body = Problem),
        (status = 415, description = "The body is not JSON.", body = Problem),
        (status = 422, description = "There is no such member.", body = Problem),
        (status = 503, description = "The database is away, or the outcome is unknown.",
         body = Problem),
    ),
)]
async fn transfer_ownership(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
    body: Result<JsonBody, ApiError>,
) -> Result<Answer, ApiError> {
    caller.require_plain(Permission::TenantUpdate)?;
    let body = body?;
    let transfer: TransferBody = body.read()?;
    let to = transfer.member_id.ok_or("is required");
    let to = to.and_then(|text| text.parse::<Uuid>().map_err(|_| "must be a UUID"));
    let to = to.map_err(|rule| ApiError::invalid("member_id", rule))?;
    let reply = Reply::to(&caller, |owner: &Member| {
        Answer::ok(&MemberBody::new(&caller, owner))
    });
    let owner = members::transfer(&vault, &caller, to, &reply).await?;
    reply.answer(&owner)
}

/// List the roles that members can have.
///
/// Any valid key will do.
#[utoipa::path(
    get,
    path = "/roles",
    tag = "Members",
    responses(
        (status = 200, description = "Every role.", body = Vec<RoleBody>),
        (status = 401, description = "No valid key.", body = Problem),
        (status = 503, description = "The database is away.", body = Problem),
    ),
)]
async fn list_roles() -> Result<Answer, ApiError> {
    Answer::ok(&Role::ALL.map(|role| RoleBody { name: role.name() }))
}

/// Changes to a member.
#[derive(Deserialize, ToSchema)]
struct MemberChangeBody {
    /// `ADMIN` or `READ_ONLY`.
    #[schema(required)]
    role: Option<String>,
}

/// Who becomes the owner.
#[derive(Deserialize, ToSchema)]
struct TransferBody {
    /// The id of a member of the tenant.
    #[schema(value_type = Uuid, required)]
    member_id: Option<String>,
}

/// A member. Attributes without a value are left out.
#[derive(Serialize, ToSchema)]
struct MemberBody<'a> {
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
    /// The same as `created_at`: official clients read this one.
    created_date: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    modified_by: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    modified_at: Option<String>,
}

/// The person behind a member.
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
    /// Always false: nobody logs in here.
    mfa_enrolled: bool,
}

/// A role.
#[derive(Serialize, ToSchema)]
struct RoleBody {
    name: &'static str,
}

impl<'a> MemberBody<'a> {
    fn new(caller: &Caller, member: &'a Member) -> Self {
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

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match error {
            Error::Denied(denied) => denied.into(),
            Error::Invalid(broken) => Self::all_invalid(broken),
            Error::NotFound(what) => Self::not_found(format!("There is no such {what}.")),
            Error::OwnerStays => Self::unprocessable(
                "The owner stays a member and the owner: transfer the ownership first.",
            ),
            Error::NotAMember => {
                Self::unprocessable("Only a member of the tenant can become its owner.")
            }
            Error::AlreadyMember | Error::DeadLink | Error::OwnerExists => {
                Self::unprocessable("The tenant's members do not allow that.")
            }
            Error::Contended => Self::conflict("The owner was changed at the same moment."),
            Error::Unrecorded(error) => error.into(),
            Error::Storage(error) => error.into(),
        }
    }
}
