//! Sessions over HTTP.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{CreatedSession, Error, NewAuthorization, require_kind};
use crate::access::{
    ApplicationKind, Attribute, Container, NewCondition, NewGrants, NewRule, Operator, Transform,
};
use crate::api::{Answer, ApiError, JsonBody, Object, Problem, format_utc};
use crate::caller::Caller;
use crate::deprecations::Deprecated;
use crate::idempotency::Reply;
use crate::sessions;
use crate::vault::Vault;

/// The routes of this room.
pub fn routes() -> OpenApiRouter<Vault> {
    OpenApiRouter::new()
        .routes(routes!(create_session))
        .routes(routes!(authorize_session))
}

/// Ask for a session.
///
/// Needs a key of a public application. The new key may do nothing until a private application
/// of the tenant authorizes the session by its nonce. It ends after three minutes unless that says
/// otherwise. A body is ignored.
#[utoipa::path(
    post,
    path = "/sessions",
    tag = "Sessions",
    responses(
        (status = 201, description = "The session; key and nonce are shown only now.",
         body = SessionBody<'_>),
        (status = 401, description = "No valid key.", body = Problem),
        (status = 403, description = "The key is not one of a public application.", body = Problem),
        (status = 503, description = "The database is away, or the outcome is unknown.",
         body = Problem),
    ),
)]
async fn create_session(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
) -> Result<Answer, ApiError> {
    let reply = Reply::to(&caller, |created: &CreatedSession| {
        Answer::made(&SessionBody::new(created))
    });
    let created = sessions::create(&vault, &caller, &reply).await?;
    reply.answer(&created)
}

/// Authorize a session.
///
/// Needs a key of a private application, of the same tenant. What is granted need not be held, unless
/// `sessions.require_subset` demands it. The grants replace those of the session's application.
#[utoipa::path(
    post,
    path = "/sessions/authorize",
    tag = "Sessions",
    request_body(content = AuthorizationBody, examples(
        ("read" = (summary = "Show one token", value = json!({
            "nonce": "5dr6jz4QN8OxzWYKW9J1dQ",
            "rules": [{
                "description": "The card of order 1001",
                "priority": 1,
                "conditions": [{"attribute": "id", "operator": "equals", "value": "card-1001"}],
                "transform": "reveal",
                "permissions": ["token:read"]
            }]
        }))),
    )),
    responses(
        (status = 200, description = "The session has these grants. There is no body."),
        (status = 400, description = "An attribute breaks a rule.", body = Problem),
        (status = 401, description = "No valid key.", body = Problem),
        (status = 403, description = "The key is not one of a private application.", body = Problem),
        (status = 404, description = "No session waits with this nonce.", body = Problem),
        (status = 408, description = "The body did not arrive in time.", body = Problem),
        (status = 409, description = "The session is authorized already.", body = Problem),
        (status = 413, description = "The body is too large.", body = Problem),
        (status = 415, description = "The body is not JSON.", body = Problem),
        (status = 503, description = "The database is away, or the outcome is unknown.",
         body = Problem),
    ),
)]
async fn authorize_session(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
    body: Result<JsonBody, ApiError>,
) -> Result<Answer, ApiError> {
    require_kind(&caller, ApplicationKind::Private)?;
    let body = body?;
    let new: NewAuthorization = body.read::<AuthorizationBody>()?.into();
    if new.grants.are_by_classification() {
        caller.uses.note(Deprecated::ClassificationPermissions);
    }
    let reply = Reply::to(&caller, |(): &()| Ok(Answer::empty()));
    sessions::authorize(&vault, &caller, new, &reply).await?;
    reply.answer(&())
}

/// A new session.
#[derive(Serialize, ToSchema)]
struct SessionBody<'a> {
    /// For the `BT-API-KEY` header.
    session_key: &'a str,
    /// For whoever authorizes the session.
    nonce: &'a str,
    #[schema(format = DateTime)]
    expires_at: String,
}

/// What a session is granted.
#[derive(Deserialize, ToSchema)]
struct AuthorizationBody {
    /// As it came with the session.
    #[schema(min_length = 1, max_length = 100, required, nullable = false)]
    nonce: Option<String>,
    /// When the session ends: at most 24 hours from now.
    expires_at: Option<String>,
    /// Permissions in all containers.
    #[schema(max_items = 50)]
    permissions: Option<Vec<String>>,
    /// Permissions about some tokens. There must be permissions or rules.
    #[schema(value_type = Option<Vec<SessionRuleBody>>, max_items = 100)]
    rules: Option<Vec<Object<SessionRuleBody>>>,
}

/// An access rule of a session: about a container, or about tokens that meet conditions.
#[derive(Deserialize, ToSchema)]
struct SessionRuleBody {
    #[schema(min_length = 1, max_length = 1000, required, nullable = false)]
    description: Option<String>,
    /// The lowest is asked first; no two rules have the same.
    #[schema(minimum = 1, maximum = 2147483647, required, nullable = false)]
    priority: Option<i64>,
    /// This container and those below it.
    #[schema(value_type = Option<Container>)]
    container: Option<String>,
    /// All of them have to hold. Not together with a container.
    #[schema(value_type = Option<Vec<ConditionBody>>, min_items = 1, max_items = 10)]
    conditions: Option<Vec<Object<ConditionBody>>>,
    #[schema(value_type = Transform, required)]
    transform: Option<String>,
    /// Permissions about tokens only.
    #[schema(min_items = 1, max_items = 50, required, nullable = false)]
    permissions: Option<Vec<String>>,
}

/// What an attribute of a token has to be.
#[derive(Deserialize, ToSchema)]
struct ConditionBody {
    #[schema(value_type = Attribute, required)]
    attribute: Option<String>,
    #[schema(value_type = Operator, required)]
    operator: Option<String>,
    #[schema(min_length = 1, max_length = 400, required, nullable = false)]
    value: Option<String>,
}

impl From<AuthorizationBody> for NewAuthorization {
    fn from(body: AuthorizationBody) -> Self {
        let rules = body.rules.into_iter().flatten();
        Self {
            nonce: body.nonce,
            expires_at: body.expires_at,
            grants: NewGrants {
                permissions: body.permissions.unwrap_or_default(),
                rules: rules.map(|Object(rule)| rule.into()).collect(),
            },
        }
    }
}

impl From<SessionRuleBody> for NewRule {
    fn from(body: SessionRuleBody) -> Self {
        let condition = |Object(condition): Object<ConditionBody>| NewCondition {
            attribute: condition.attribute,
            operator: condition.operator,
            value: condition.value,
        };
        Self {
            description: body.description,
            priority: body.priority,
            container: body.container,
            conditions: body
                .conditions
                .map(|conditions| conditions.into_iter().map(condition).collect()),
            transform: body.transform,
            permissions: body.permissions.unwrap_or_default(),
        }
    }
}

impl<'a> SessionBody<'a> {
    fn new(created: &'a CreatedSession) -> Self {
        Self {
            session_key: created.key.expose(),
            nonce: created.nonce.expose(),
            expires_at: format_utc(created.expires_at),
        }
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match error {
            Error::WrongKind(kind) => {
                Self::forbidden(format!("Only {kind} applications may do this."))
            }
            Error::Invalid(broken) => Self::all_invalid(broken),
            Error::NotFound => Self::not_found("No session waits with this nonce."),
            Error::Used => Self::conflict("The session is authorized already."),
            Error::Altered => Self::internal("altered_row"),
            Error::Storage(error) => error.into(),
        }
    }
}
