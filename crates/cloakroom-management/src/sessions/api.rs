//! HTTP routes for sessions.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use cloakroom_core::access::{
    ApplicationKind, Attribute, Container, NewCondition, NewGrants, NewRule, Operator, Transform,
};
use cloakroom_core::caller::Caller;
use cloakroom_core::deprecations::DeprecatedFeature;
use cloakroom_core::vault::Vault;
use cloakroom_platform::api::{
    Answer, ApiError, BodyErrors, JsonBody, Object, Problem, WriteErrors, format_utc,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{CreatedSession, Error, NewAuthorization, require_kind};
use crate::sessions;

/// The routes of this module.
pub fn routes() -> OpenApiRouter<Vault> {
    OpenApiRouter::new()
        .routes(routes!(create_session))
        .routes(routes!(authorize_session))
}

/// Create a session.
///
/// Requires a key of a public application. The session key has no permissions until a private application of the
/// tenant authorizes the session with its nonce. The session expires after three minutes unless the authorization sets
/// another time. The request body is ignored.
#[utoipa::path(
    post, path = "/sessions", tag = "Sessions",
    responses(
        WriteErrors,
        (status = 201, description = "The session; key and nonce are returned in this response only.",
         body = SessionBody<'_>),
        (status = 403, description = "The key does not belong to a public application.", body = Problem),
    ),
)]
async fn create_session(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
) -> Result<Answer, ApiError> {
    let template = caller
        .response_template(|created: &CreatedSession| Answer::made(&SessionBody::new(created)));
    let created = sessions::create(&vault, &caller, &template).await?;
    template.render(&created)
}

/// Authorize a session.
///
/// Requires a key of a private application, of the same tenant. It can grant only what its application holds, with at
/// most the same transform, unless `sessions.require_subset` is off. The grants replace those of the session's
/// application.
#[utoipa::path(
    post, path = "/sessions/authorize", tag = "Sessions",
    request_body = AuthorizationBody,
    responses(
        WriteErrors, BodyErrors,
        (status = 200, description = "The session is authorized. The response has no body."),
        (status = 403, description = "The key does not belong to a private application.", body = Problem),
        (status = 404, description = "No pending session has this nonce.", body = Problem),
        (status = 409, description = "The session is already authorized.", body = Problem),
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
        caller
            .deprecated_features
            .mark(DeprecatedFeature::ClassificationPermissions);
    }
    let template = caller.response_template(|(): &()| Ok(Answer::empty()));
    sessions::authorize(&vault, &caller, new, &template).await?;
    template.render(&())
}

/// A new session.
#[derive(Serialize, ToSchema)]
struct SessionBody<'a> {
    /// For the `BT-API-KEY` header.
    session_key: &'a str,
    /// Sent to the server that authorizes the session.
    nonce: &'a str,
    #[schema(format = DateTime)]
    expires_at: String,
}

/// Grants for a session.
#[derive(Deserialize, ToSchema)]
struct AuthorizationBody {
    /// The nonce of the session.
    #[schema(min_length = 1, max_length = 100, required, nullable = false)]
    nonce: Option<String>,
    /// When the session expires: at most 24 hours from now.
    expires_at: Option<String>,
    /// Permissions in all containers.
    #[schema(max_items = 50)]
    permissions: Option<Vec<String>>,
    /// Permissions on some tokens. Permissions or rules are required.
    #[schema(value_type = Option<Vec<SessionRuleBody>>, max_items = 100)]
    rules: Option<Vec<Object<SessionRuleBody>>>,
}

/// An access rule of a session, scoped by a container or by conditions.
#[derive(Deserialize, ToSchema)]
struct SessionRuleBody {
    #[schema(min_length = 1, max_length = 1000, required, nullable = false)]
    description: Option<String>,
    /// Rules are evaluated from the lowest priority number up. Priorities are distinct.
    #[schema(minimum = 1, maximum = 2147483647, required, nullable = false)]
    priority: Option<i64>,
    /// This container and those below it.
    #[schema(value_type = Option<Container>)]
    container: Option<String>,
    /// Conditions that must all hold. Not together with `container`.
    #[schema(value_type = Option<Vec<ConditionBody>>, min_items = 1, max_items = 10)]
    conditions: Option<Vec<Object<ConditionBody>>>,
    #[schema(value_type = Transform, required)]
    transform: Option<String>,
    /// Token permissions only.
    #[schema(min_items = 1, max_items = 50, required, nullable = false)]
    permissions: Option<Vec<String>>,
}

/// A predicate on one attribute of a token.
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
                Self::forbidden(format!("Only {kind} applications can do this."))
            }
            Error::Invalid(broken) => Self::all_invalid(broken),
            Error::NotFound => Self::not_found("No pending session has this nonce."),
            Error::AlreadyAuthorized => Self::conflict("The session is already authorized."),
            Error::Altered => Self::internal("altered_row"),
            Error::Storage(error) => error.into(),
        }
    }
}
