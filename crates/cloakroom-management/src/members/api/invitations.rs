//! HTTP routes of invitations.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{RawQuery, State};
use cloakroom_core::access::Permission;
use cloakroom_core::caller::Caller;
use cloakroom_core::vault::Vault;
use cloakroom_platform::api::{
    Answer, ApiError, BaseUrl, BodyErrors, FieldError, JsonBody, NumberedPage, NumberedPageBody,
    PathId, Problem, Query, QueryErrors, ReadErrors, WriteErrors, format_utc,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::members::{self, Email, Invitation, NewInvitation, Role, Status};

const PAGE_SIZE_MAX: usize = 100;

pub(super) fn routes() -> OpenApiRouter<Vault> {
    OpenApiRouter::new()
        .routes(routes!(create_invitation, list_invitations))
        .routes(routes!(find_invitation, delete_invitation))
        .routes(routes!(resend_invitation))
}

/// Create an invitation.
///
/// Requires `tenant:invitation:create`. No e-mail is sent: `cloakroom invitation resend` prints a link to pass on. An
/// invitation expires after 72 hours.
#[utoipa::path(
    post, path = "/tenants/self/invitations", tag = "Members",
    request_body = NewInvitationBody,
    responses(
        WriteErrors, BodyErrors,
        (status = 201, description = "The invitation.", body = InvitationBody<'_>,
         headers(("Location" = String, description = "URL of the invitation."))),
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
    let new = new.validate().map_err(ApiError::all_invalid)?;
    let template = caller.response_template(|invitation: &Invitation| {
        let location = format!("{base_url}/tenants/self/invitations/{}", invitation.id);
        Answer::created(location, &InvitationBody::new(&caller, invitation))
    });
    let invitation = members::invite(&vault, &caller, &new, &template).await?;
    template.render(&invitation)
}

/// List invitations.
///
/// Requires `tenant:invitation:read`. Newest first.
#[utoipa::path(
    get, path = "/tenants/self/invitations", tag = "Members",
    params(
        ("status" = Option<StatusBody>, Query, description = "Invitations with this status."),
        ("page" = Option<u32>, Query, description = "Counted from 1.", minimum = 1, maximum = 2147483647),
        ("size" = Option<u8>, Query, description = "Invitations per page; 20 by default.", minimum = 0, maximum = 100),
    ),
    responses(
        ReadErrors, QueryErrors,
        (status = 200, description = "A page of invitations.", body = NumberedPageBody<InvitationBody<'_>>),
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

fn read_query(text: Option<&str>) -> Result<(Option<Status>, NumberedPage), Vec<FieldError>> {
    let mut query = Query::decode(text, &["status", "page", "size"]);
    let status = query.once("status").map(|name| Status::parse(&name));
    let status = status.and_then(|status| query.check("status", status));
    let page = NumberedPage::new(query.number("page"), query.number("size"), PAGE_SIZE_MAX);
    query.finish(status, page)
}

/// Read an invitation.
///
/// Requires `tenant:invitation:read`.
#[utoipa::path(
    get, path = "/tenants/self/invitations/{id}", tag = "Members",
    params(("id" = String, Path, description = "The invitation's id.")),
    responses(
        ReadErrors,
        (status = 200, description = "The invitation.", body = InvitationBody<'_>),
        (status = 404, description = "No such invitation.", body = Problem),
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

/// Delete an invitation.
///
/// Requires `tenant:invitation:delete`. The link becomes invalid at once.
#[utoipa::path(
    delete, path = "/tenants/self/invitations/{id}", tag = "Members",
    params(("id" = String, Path, description = "The invitation's id.")),
    responses(
        WriteErrors,
        (status = 204, description = "The invitation is deleted."),
        (status = 404, description = "No such invitation.", body = Problem),
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

/// Resend an invitation.
///
/// Requires `tenant:invitation:create` and `tenant:invitation:update`. The invitation, expired or not, is valid for
/// another 72 hours, and its previous link becomes invalid. The request has no body.
#[utoipa::path(
    post, path = "/tenants/self/invitations/{id}/resend", tag = "Members",
    params(("id" = String, Path, description = "The invitation's id.")),
    responses(
        WriteErrors,
        (status = 200, description = "The invitation.", body = InvitationBody<'_>),
        (status = 403, description = "The key lacks a permission.", body = Problem),
        (status = 404, description = "No such invitation.", body = Problem),
    ),
)]
async fn resend_invitation(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
    PathId(id): PathId,
) -> Result<Answer, ApiError> {
    let template = caller.response_template(|invitation: &Invitation| {
        Answer::ok(&InvitationBody::new(&caller, invitation))
    });
    let invitation = members::resend(&vault, &caller, &id, &template).await?;
    template.render(&invitation)
}

/// An invitation to create.
#[derive(Deserialize, ToSchema)]
struct NewInvitationBody {
    #[schema(required, max_length = 330)]
    email: Option<String>,
    /// `ADMIN` or `READ_ONLY`; `ADMIN` by default.
    role: Option<String>,
}

impl NewInvitationBody {
    fn validate(self) -> Result<NewInvitation, Vec<FieldError>> {
        let email = match &self.email {
            Some(text) => Email::parse(text),
            None => Err("is required".to_owned()),
        };
        let role = match &self.role {
            Some(name) => Role::parse_assignable(name),
            None => Ok(Role::Admin),
        };
        match (email, role) {
            (Ok(email), Ok(role)) => Ok(NewInvitation { email, role }),
            (email, role) => {
                let email = email.err().map(|rule| FieldError::new("email", rule));
                let role = role.err().map(|rule| FieldError::new("role", rule));
                Err(email.into_iter().chain(role).collect())
            }
        }
    }
}

/// Status of an invitation.
#[derive(ToSchema)]
#[schema(rename_all = "SCREAMING_SNAKE_CASE")]
#[expect(dead_code, reason = "documents the names of `Status`")]
enum StatusBody {
    Pending,
    Expired,
}

/// An invitation. Attributes without a value are omitted.
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
    /// The application that created it; absent if it was created with the CLI.
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
