//! Invitations over HTTP.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{RawQuery, State};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::access::Permission;
use crate::api::{
    Answer, ApiError, BaseUrl, Broken, JsonBody, NumberedPage, NumberedPageBody, PathId, Problem,
    Query, format_utc,
};
use crate::caller::Caller;
use crate::idempotency::Reply;
use crate::members::{self, Email, Invitation, NewInvitation, Role, Status};
use crate::vault::Vault;

const PAGE_SIZE_MAX: usize = 100;

pub(super) fn routes() -> OpenApiRouter<Vault> {
    OpenApiRouter::new()
        .routes(routes!(create_invitation, list_invitations))
        .routes(routes!(find_invitation, delete_invitation))
        .routes(routes!(resend_invitation))
}

/// Invite somebody.
///
/// Needs `tenant:invitation:create`. No mail is sent: `cloakroom invitation resend` shows a link to hand
/// over. An invitation lives 72 hours.
#[utoipa::path(
    post,
    path = "/tenants/self/invitations",
    tag = "Members",
    request_body(content = NewInvitationBody, examples(
        ("admin" = (summary = "An admin", value = json!({"email": "ada@example.com"}))),
        ("reader" = (summary = "Somebody who only looks", value = json!({
            "email": "grace@example.com", "role": "READ_ONLY"
        }))),
    )),
    responses(
        (status = 201, description = "The invitation.", body = InvitationBody<'_>,
         headers(("Location" = String, description = "Where the invitation is."))),
        (status = 400, description = "An attribute breaks a rule.", body = Problem),
        (status = 401, description = "No valid key.", body = Problem),
        (status = 403, description = "The key lacks the permission.", body = Problem),
        (status = 408, description = "The body did not arrive in time.", body = Problem),
        (status = 413, description = "The body is too large.", body = Problem),
        (status = 415, description = "The body is not JSON.", body = Problem),
        (status = 503, description = "The database is away, or the outcome is unknown.",
         body = Problem),
    ),
)]
async fn create_invitation(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
    BaseUrl(base_url): BaseUrl,
    body: Result<JsonBody, ApiError>,
) -> Result<Answer, ApiError> {
    caller.require_plain(Permission::TenantInvitationCreate)?;
    let body = body?;
    let new: NewInvitationBody = body.read()?;
    let new = new.checked().map_err(ApiError::all_invalid)?;
    let reply = Reply::to(&caller, |invitation: &Invitation| {
        let location = format!("{base_url}/tenants/self/invitations/{}", invitation.id);
        Answer::created(location, &InvitationBody::new(&caller, invitation))
    });
    let invitation = members::invite(&vault, &caller, &new, &reply).await?;
    reply.answer(&invitation)
}

/// List invitations.
///
/// Needs `tenant:invitation:read`. Newest first.
#[utoipa::path(
    get,
    path = "/tenants/self/invitations",
    tag = "Members",
    params(
        ("status" = Option<StatusBody>, Query, description = "Invitations that stand so."),
        ("page" = Option<u32>, Query, description = "Counted from 1.", minimum = 1,
         maximum = 2147483647),
        ("size" = Option<u8>, Query, description = "Invitations on a page, 20 without it.",
         minimum = 0, maximum = 100),
    ),
    responses(
        (status = 200, description = "A page of invitations.", body = NumberedPageBody<InvitationBody<'_>>),
        (status = 400, description = "A parameter breaks a rule.", body = Problem),
        (status = 401, description = "No valid key.", body = Problem),
        (status = 403, description = "The key lacks the permission.", body = Problem),
        (status = 503, description = "The database is away.", body = Problem),
    ),
)]
async fn list_invitations(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
    RawQuery(query): RawQuery,
) -> Result<Answer, ApiError> {
    caller.require_plain(Permission::TenantInvitationRead)?;
    let (status, page) = read_query(query.as_deref()).map_err(ApiError::all_invalid)?;
    let listed = members::list_invitations(&vault, &caller, status, page).await?;
    let bodies = listed.items.iter();
    let bodies = bodies.map(|invitation| InvitationBody::new(&caller, invitation));
    Answer::ok(&NumberedPageBody::new(page, listed.total, bodies.collect()))
}

fn read_query(text: Option<&str>) -> Result<(Option<Status>, NumberedPage), Vec<Broken>> {
    let mut query = Query::decode(text, &["status", "page", "size"]);
    let status = query.once("status").map(|name| Status::parse(&name));
    let status = status.and_then(|status| query.check("status", status));
    let page = NumberedPage::new(query.number("page"), query.number("size"), PAGE_SIZE_MAX);
    query.settle(status, page)
}

/// Read an invitation.
///
/// Needs `tenant:invitation:read`.
#[utoipa::path(
    get,
    path = "/tenants/self/invitations/{id}",
    tag = "Members",
    params(("id" = String, Path, description = "The invitation's id.")),
    responses(
        (status = 200, description = "The invitation.", body = InvitationBody<'_>),
        (status = 401, description = "No valid key.", body = Problem),
        (status = 403, description = "The key lacks the permission.", body = Problem),
        (status = 404, description = "No such invitation.", body = Problem),
        (status = 503, description = "The database is away.", body = Problem),
    ),
)]
async fn find_invitation(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
    PathId(id): PathId,
) -> Result<Answer, ApiError> {
    let invitation = members::find_invitation(&vault, &caller, &id).await?;
    Answer::ok(&InvitationBody::new(&caller, &invitation))
}

/// Take an invitation back.
///
/// Needs `tenant:invitation:delete`. Its link is dead at once.
#[utoipa::path(
    delete,
    path = "/tenants/self/invitations/{id}",
    tag = "Members",
    params(("id" = String, Path, description = "The invitation's id.")),
    responses(
        (status = 204, description = "The invitation is gone."),
        (status = 401, description = "No valid key.", body = Problem),
        (status = 403, description = "The key lacks the permission.", body = Problem),
        (status = 404, description = "No such invitation.", body = Problem),
        (status = 503, description = "The database is away, or the outcome is unknown.",
         body = Problem),
    ),
)]
async fn delete_invitation(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
    PathId(id): PathId,
) -> Result<Answer, ApiError> {
    members::delete_invitation(&vault, &caller, &id).await?;
    Ok(Answer::no_content())
}

/// Send an invitation again.
///
/// Needs `tenant:invitation:create` and `tenant:invitation:update`. It lives 72 hours from now, expired
/// or not, and the link until now is dead. The request has no body.
#[utoipa::path(
    post,
    path = "/tenants/self/invitations/{id}/resend",
    tag = "Members",
    params(("id" = String, Path, description = "The invitation's id.")),
    responses(
        (status = 200, description = "The invitation.", body = InvitationBody<'_>),
        (status = 401, description = "No valid key.", body = Problem),
        (status = 403, description = "The key lacks a permission.", body = Problem),
        (status = 404, description = "No such invitation.", body = Problem),
        (status = 503, description = "The database is away, or the outcome is unknown.",
         body = Problem),
    ),
)]
async fn resend_invitation(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
    PathId(id): PathId,
) -> Result<Answer, ApiError> {
    let reply = Reply::to(&caller, |invitation: &Invitation| {
        Answer::ok(&InvitationBody::new(&caller, invitation))
    });
    let invitation = members::resend(&vault, &caller, &id, &reply).await?;
    reply.answer(&invitation)
}

/// An invitation to make.
#[derive(Deserialize, ToSchema)]
struct NewInvitationBody {
    #[schema(required, max_length = 330)]
    email: Option<String>,
    /// `ADMIN` or `READ_ONLY`; `ADMIN` without it.
    role: Option<String>,
}

impl NewInvitationBody {
    fn checked(self) -> Result<NewInvitation, Vec<Broken>> {
        let email = match &self.email {
            Some(text) => Email::parse(text),
            None => Err("is required".to_owned()),
        };
        let role = match &self.role {
            Some(name) => Role::parse_giveable(name),
            None => Ok(Role::Admin),
        };
        match (email, role) {
            (Ok(email), Ok(role)) => Ok(NewInvitation { email, role }),
            (email, role) => {
                let email = email.err().map(|rule| Broken::new("email", rule));
                let role = role.err().map(|rule| Broken::new("role", rule));
                Err(email.into_iter().chain(role).collect())
            }
        }
    }
}

/// How an invitation stands.
#[derive(ToSchema)]
#[schema(rename_all = "SCREAMING_SNAKE_CASE")]
#[expect(dead_code, reason = "describes what `Status` is called")]
enum StatusBody {
    Pending,
    Expired,
}

/// An invitation. Attributes without a value are left out.
#[derive(Serialize, ToSchema)]
struct InvitationBody<'a> {
    id: Uuid,
    tenant_id: Uuid,
    email: &'a str,
    /// `ADMIN` or `READ_ONLY`.
    role: &'static str,
    #[schema(value_type = StatusBody)]
    status: &'static str,
    expires_at: String,
    /// The application that made it; absent when it was made by command.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    created_by: Option<Uuid>,
    created_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    modified_by: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    modified_at: Option<String>,
}

impl<'a> InvitationBody<'a> {
    fn new(caller: &Caller, invitation: &'a Invitation) -> Self {
        Self {
            id: invitation.id,
            tenant_id: caller.tenant.uuid,
            email: invitation.email.as_str(),
            role: invitation.role.name(),
            status: invitation.status.name(),
            expires_at: format_utc(invitation.expires_at),
            created_by: invitation.created_by,
            created_at: format_utc(invitation.created_at),
            modified_by: invitation.modified_by,
            modified_at: invitation.modified_at.map(format_utc),
        }
    }
}
