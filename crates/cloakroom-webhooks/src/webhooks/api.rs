//! HTTP routes of webhooks.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{RawQuery, State};
use cloakroom_core::access::Permission;
use cloakroom_core::caller::Caller;
use cloakroom_core::events::EventKind;
use cloakroom_platform::api::{
    AccessErrors, Answer, ApiError, BaseUrl, BodyErrors, JsonBody, PathId, Problem, QueryErrors,
    ReadErrors, WriteErrors, format_utc,
};
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::telemetry::catalog;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::{CreatedWebhook, Error, NewWebhook, Webhook};
use crate::server::WebhookServer;
use crate::webhooks;

/// The routes of this module.
pub fn routes() -> OpenApiRouter<WebhookServer> {
    OpenApiRouter::new()
        .routes(routes!(list_webhooks, create_webhook))
        .routes(routes!(list_event_types))
        .routes(routes!(find_webhook, update_webhook, delete_webhook))
}

/// Create a webhook.
///
/// Requires `webhook:create`. The endpoint receives the events of every change from now on. The response contains the
/// secret that signs the header `webhook-signature`; it is not returned again. A tenant has at most five webhooks.
#[utoipa::path(
    post, path = "/webhooks", tag = "Webhooks",
    request_body = NewWebhookBody,
    responses(
        WriteErrors, BodyErrors,
        (status = 201, description = "The webhook exists.", body = CreatedWebhookBody<'_>,
         headers(("Location" = String, description = "URL of the webhook."))),
        (status = 422, description = "The tenant already has five webhooks.", body = Problem),
    ),
)]
async fn create_webhook(
    State(server): State<WebhookServer>,
    Extension(caller): Extension<Arc<Caller>>,
    BaseUrl(base_url): BaseUrl,
    body: Result<JsonBody, ApiError>,
) -> Result<Answer, ApiError> {
    caller.require_plain(Permission::WebhookCreate)?;
    let new: NewWebhook = body?.read::<NewWebhookBody>()?.into();
    let template = caller.response_template(|created: &CreatedWebhook| {
        let location = format!("{base_url}/webhooks/{}", created.webhook.id);
        Answer::created(location, &CreatedWebhookBody::new(caller.tenant, created))
    });
    let template = template.without_secrets(&["secret"]);
    let created = webhooks::create(&server, &caller, new, &template).await?;
    template.render(&created)
}

/// List webhooks.
///
/// Requires `webhook:read`. Returns all webhooks of the tenant, newest first, on one page.
#[utoipa::path(
    get, path = "/webhooks", tag = "Webhooks",
    params(
        ("size" = Option<u8>, Query, description = "Accepted for compatibility; the page always has all webhooks."),
        ("start" = Option<String>, Query, description = "Accepted for compatibility."),
    ),
    responses(
        ReadErrors, QueryErrors,
        (status = 200, description = "The webhooks.", body = WebhookPageBody<'_>),
    ),
)]
async fn list_webhooks(
    State(server): State<WebhookServer>,
    Extension(caller): Extension<Arc<Caller>>,
    RawQuery(_): RawQuery,
) -> Result<Answer, ApiError> {
    let listed = webhooks::list(&server, &caller).await?;
    let bodies = listed
        .iter()
        .map(|webhook| WebhookBody::new(caller.tenant, webhook));
    Answer::ok(&WebhookPageBody {
        pagination: WebhookPaginationBody {
            page_size: listed.len(),
        },
        data: bodies.collect(),
    })
}

/// List the event types that a webhook can subscribe to.
///
/// Requires `webhook:read`.
#[utoipa::path(
    get, path = "/webhooks/event-types", tag = "Webhooks",
    responses(AccessErrors, (status = 200, description = "All event types.", body = Vec<String>)),
)]
async fn list_event_types(Extension(caller): Extension<Arc<Caller>>) -> Result<Answer, ApiError> {
    caller.require_plain(Permission::WebhookRead)?;
    let names: Vec<&str> = EventKind::ALL.iter().map(|kind| kind.name()).collect();
    Answer::ok(&names)
}

/// Read a webhook.
///
/// Requires `webhook:read`.
#[utoipa::path(
    get, path = "/webhooks/{id}", tag = "Webhooks",
    params(("id" = Uuid, Path, description = "The webhook's id.")),
    responses(
        ReadErrors,
        (status = 200, description = "The webhook.", body = WebhookBody<'_>),
        (status = 404, description = "No such webhook.", body = Problem),
    ),
)]
async fn find_webhook(
    State(server): State<WebhookServer>,
    Extension(caller): Extension<Arc<Caller>>,
    PathId(id): PathId,
) -> Result<Answer, ApiError> {
    let webhook = webhooks::find(&server, &caller, &id).await?;
    Answer::ok(&WebhookBody::new(caller.tenant, &webhook))
}

/// Replace a webhook.
///
/// Requires `webhook:update`. Absent attributes are removed; the secret remains. Also enables a webhook that was
/// disabled, unless `status` is `disabled`.
#[utoipa::path(
    put, path = "/webhooks/{id}", tag = "Webhooks",
    params(("id" = Uuid, Path, description = "The webhook's id.")),
    request_body = WebhookChangeBody,
    responses(
        WriteErrors, BodyErrors,
        (status = 200, description = "The change is committed.", body = WebhookBody<'_>),
        (status = 404, description = "No such webhook.", body = Problem),
    ),
)]
async fn update_webhook(
    State(server): State<WebhookServer>,
    Extension(caller): Extension<Arc<Caller>>,
    PathId(id): PathId,
    body: Result<JsonBody, ApiError>,
) -> Result<Answer, ApiError> {
    caller.require_plain(Permission::WebhookUpdate)?;
    let new: NewWebhook = body?.read::<WebhookChangeBody>()?.into();
    let template = caller.response_template(|updated: &Webhook| {
        Answer::ok(&WebhookBody::new(caller.tenant, updated))
    });
    let updated = webhooks::update(&server, &caller, &id, new, &template).await?;
    template.render(&updated)
}

/// Delete a webhook.
///
/// Requires `webhook:delete`. Its pending events are not delivered any more.
#[utoipa::path(
    delete, path = "/webhooks/{id}", tag = "Webhooks",
    params(("id" = Uuid, Path, description = "The webhook's id.")),
    responses(
        WriteErrors,
        (status = 204, description = "The webhook is deleted."),
        (status = 404, description = "No such webhook.", body = Problem),
    ),
)]
async fn delete_webhook(
    State(server): State<WebhookServer>,
    Extension(caller): Extension<Arc<Caller>>,
    PathId(id): PathId,
) -> Result<Answer, ApiError> {
    webhooks::delete(&server, &caller, &id).await?;
    Ok(Answer::no_content())
}

/// A webhook to create.
#[derive(Deserialize, ToSchema)]
struct NewWebhookBody {
    /// Display name, one line.
    #[schema(min_length = 1, max_length = 200, required, nullable = false)]
    name: Option<String>,
    /// An https URL with a DNS name as its host, which the operator allows.
    #[schema(max_length = 2000, required, nullable = false)]
    url: Option<String>,
    /// Stored for your own use: Cloakroom sends no mail.
    #[schema(max_length = 330)]
    notify_email: Option<String>,
    /// Event types of `GET /webhooks/event-types`.
    #[schema(min_items = 1, max_items = 100, required, nullable = false)]
    events: Option<Vec<String>>,
}

/// The new state of a webhook.
#[derive(Deserialize, ToSchema)]
struct WebhookChangeBody {
    /// Display name, one line.
    #[schema(min_length = 1, max_length = 200, required, nullable = false)]
    name: Option<String>,
    /// An https URL with a DNS name as its host, which the operator allows.
    #[schema(max_length = 2000, required, nullable = false)]
    url: Option<String>,
    /// Stored for your own use: Cloakroom sends no mail.
    #[schema(max_length = 330)]
    notify_email: Option<String>,
    /// Event types of `GET /webhooks/event-types`.
    #[schema(min_items = 1, max_items = 100, required, nullable = false)]
    events: Option<Vec<String>>,
    /// `enabled` or `disabled`; `enabled` by default.
    #[schema(pattern = "^(enabled|disabled)$")]
    status: Option<String>,
}

impl From<NewWebhookBody> for NewWebhook {
    fn from(body: NewWebhookBody) -> Self {
        Self {
            name: body.name,
            url: body.url,
            notify_email: body.notify_email,
            events: body.events,
            status: None,
        }
    }
}

impl From<WebhookChangeBody> for NewWebhook {
    fn from(body: WebhookChangeBody) -> Self {
        Self {
            name: body.name,
            url: body.url,
            notify_email: body.notify_email,
            events: body.events,
            status: body.status,
        }
    }
}

/// The webhooks of a tenant.
#[derive(Serialize, ToSchema)]
struct WebhookPageBody<'a> {
    pagination: WebhookPaginationBody,
    data: Vec<WebhookBody<'a>>,
}

#[derive(Serialize, ToSchema)]
struct WebhookPaginationBody {
    page_size: usize,
}

/// A webhook. Attributes without a value are omitted.
#[derive(Serialize, ToSchema)]
struct WebhookBody<'a> {
    id: Uuid,
    tenant_id: Uuid,
    /// `disabled` after three days without a successful delivery, or by a change.
    #[schema(pattern = "^(enabled|disabled)$")]
    status: &'static str,
    name: &'a str,
    url: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    notify_email: Option<&'a str>,
    events: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    created_by: Option<Uuid>,
    #[schema(format = DateTime)]
    created_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    modified_by: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime, nullable = false)]
    modified_at: Option<String>,
}

/// A new webhook, with its secret.
#[derive(Serialize, ToSchema)]
struct CreatedWebhookBody<'a> {
    #[serde(flatten)]
    webhook: WebhookBody<'a>,
    /// Signs the header `webhook-signature`, as Standard Webhooks specifies; `whsec_` and 32 bytes in Base64.
    secret: &'a str,
}

impl<'a> WebhookBody<'a> {
    fn new(tenant: TenantId, webhook: &'a Webhook) -> Self {
        Self {
            id: webhook.id,
            tenant_id: tenant.uuid,
            status: match webhook.is_enabled {
                true => "enabled",
                false => "disabled",
            },
            name: &webhook.name,
            url: &webhook.url,
            notify_email: webhook.notify_email.as_deref(),
            events: &webhook.events,
            created_by: webhook.created_by,
            created_at: format_utc(webhook.created_at),
            modified_by: webhook.modified_by,
            modified_at: webhook.modified_at.map(format_utc),
        }
    }
}

impl<'a> CreatedWebhookBody<'a> {
    fn new(tenant: TenantId, created: &'a CreatedWebhook) -> Self {
        Self {
            webhook: WebhookBody::new(tenant, &created.webhook),
            secret: created.secret.expose(),
        }
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match error {
            Error::PermissionDenied(denied) => denied.into(),
            Error::Invalid(broken) => Self::all_invalid(broken),
            Error::NotFound => Self::not_found("There is no such webhook."),
            Error::NoEvent => Self::not_found("The log of the webhook has no such event."),
            Error::TooMany(most) => Self::unprocessable(format!(
                "A tenant can have at most {most} webhooks. Delete one first."
            )),
            Error::Disabled => {
                Self::conflict("The webhook is disabled. Enable it with PUT /webhooks/{id} first.")
            }
            Error::Altered => {
                catalog::ACCESS_ALTERED_ROWS.increment(1);
                tracing::error!(
                    error.kind = "altered_row",
                    "a webhook was changed outside the vault"
                );
                Self::internal("altered_row")
            }
            Error::Audit(error) => error.into(),
            Error::Keys(error) => error.into(),
            Error::Storage(error) => error.into(),
        }
    }
}
