//! HTTP routes of members, the owner and roles.

mod body;
mod invitations;

use std::sync::Arc;

use axum::Extension;
use axum::extract::{RawQuery, State};
use cloakroom_core::access::Permission;
use cloakroom_core::caller::Caller;
use cloakroom_core::vault::Vault;
use cloakroom_platform::api::{
    Answer, ApiError, BodyErrors, FieldError, JsonBody, KeyErrors, NumberedPage, NumberedPageBody,
    PathId, Problem, Query, QueryErrors, ReadErrors, WriteErrors,
};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use self::body::{MemberBody, MemberChangeBody, RoleBody, TransferBody};
use super::{Error, Member, Role};
use crate::members;

const PAGE_SIZE_MAX: usize = 50;
const USERS_MAX: usize = 100;

/// The routes of this module.
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
/// Requires `tenant:member:read`. Newest first. Members have no permissions: there is no login.
#[utoipa::path(
    get, path = "/tenants/self/members", tag = "Members",
    params(
        ("user_id" = Option<Vec<Uuid>>, Query, description = "Members with one of these user ids.", max_items = 100),
        ("page" = Option<u32>, Query, description = "Counted from 1.", minimum = 1, maximum = 2147483647),
        ("size" = Option<u8>, Query, description = "Members per page; 20 by default.", minimum = 0, maximum = 50),
    ),
    responses(
        ReadErrors, QueryErrors,
        (status = 200, description = "A page of members.", body = NumberedPageBody<MemberBody<'_>>),
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

fn read_query(text: Option<&str>) -> Result<(Option<Vec<Uuid>>, NumberedPage), Vec<FieldError>> {
    let mut query = Query::decode(text, &["user_id", "page", "size"]);
    let given = query.all("user_id");
    if given.len() > USERS_MAX {
        query.reject(
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
    query.finish(users, page)
}

/// Update a member's role.
///
/// Requires `tenant:member:update`. The owner's role changes only by a transfer of ownership.
#[utoipa::path(
    put, path = "/tenants/self/members/{id}", tag = "Members",
    params(("id" = String, Path, description = "The member's id.")),
    request_body = MemberChangeBody,
    responses(
        WriteErrors, BodyErrors,
        (status = 200, description = "The member.", body = MemberBody<'_>),
        (status = 400, description = "The role is missing or cannot be assigned.", body = Problem),
        (status = 404, description = "No such member.", body = Problem),
        (status = 422, description = "The member is the owner.", body = Problem),
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
    let role = role.and_then(|name| Role::parse_assignable(&name));
    let role = role.map_err(|rule| ApiError::invalid("role", rule))?;
    let template =
        caller.response_template(|member: &Member| Answer::ok(&MemberBody::new(&caller, member)));
    let member = members::update(&vault, &caller, &id, role, &template).await?;
    template.render(&member)
}

/// Remove a member.
///
/// Requires `tenant:member:delete`. The owner cannot be removed.
#[utoipa::path(
    delete, path = "/tenants/self/members/{id}", tag = "Members",
    params(("id" = String, Path, description = "The member's id.")),
    responses(
        WriteErrors,
        (status = 204, description = "The member is removed."),
        (status = 404, description = "No such member.", body = Problem),
        (status = 422, description = "The member is the owner.", body = Problem),
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
/// Requires `tenant:read`. A tenant has at most one owner; it is created without one.
#[utoipa::path(
    get, path = "/tenants/self/owner", tag = "Members",
    responses(
        ReadErrors,
        (status = 200, description = "The owner.", body = MemberBody<'_>),
        (status = 404, description = "The tenant has no owner.", body = Problem),
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
/// Requires `tenant:update`. The previous owner becomes an `ADMIN`.
#[utoipa::path(
    put, path = "/tenants/self/owner", tag = "Members",
    request_body = TransferBody,
    responses(
        WriteErrors, BodyErrors,
        (status = 200, description = "The new owner.", body = MemberBody<'_>),
        (status = 400, description = "`member_id` is missing or not a UUID.", body = Problem),
        (status = 409, description = "The owner was changed concurrently; retry the request.", body = Problem),
        (status = 422, description = "There is no such member.", body = Problem),
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
    let template =
        caller.response_template(|owner: &Member| Answer::ok(&MemberBody::new(&caller, owner)));
    let owner = members::transfer(&vault, &caller, to, &template).await?;
    template.render(&owner)
}

/// List the roles of members.
///
/// Works with any valid key.
#[utoipa::path(
    get, path = "/roles", tag = "Members",
    responses(
        KeyErrors,
        (status = 200, description = "Every role.", body = Vec<RoleBody>),
        (status = 503, description = "The database is unavailable.", body = Problem),
    ),
)]
async fn list_roles() -> Result<Answer, ApiError> {
    Answer::ok(&Role::ALL.map(|role| RoleBody { name: role.name() }))
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match error {
            Error::PermissionDenied(denied) => denied.into(),
            Error::Invalid(broken) => Self::all_invalid(broken),
            Error::NotFound(what) => Self::not_found(format!("There is no such {what}.")),
            Error::OwnerStays => Self::unprocessable(
                "The owner cannot be removed or change roles. Transfer the ownership first.",
            ),
            Error::NotAMember => {
                Self::unprocessable("Only a member of the tenant can become its owner.")
            }
            Error::AlreadyMember | Error::DeadLink | Error::OwnerExists => {
                Self::unprocessable("The change conflicts with the tenant's existing members.")
            }
            Error::Contended => {
                Self::conflict("The owner was changed concurrently; retry the request.")
            }
            Error::AuditError(error) => error.into(),
            Error::Storage(error) => error.into(),
        }
    }
}
