//! A tenant's own view of itself over HTTP: wire shapes, handlers, and the status of each failure.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::{Changes, Error, Tenant};
use crate::access::{Permission, Quotas, TenantQuotas, TenantSettings};
use crate::api::{Answer, ApiError, JsonBody, Problem, format_utc};
use crate::caller::Caller;
use crate::idempotency::Reply;
use crate::members::{self, Email};
use crate::tenants;
use crate::vault::Vault;

/// The routes of this room.
pub fn routes() -> OpenApiRouter<Vault> {
    OpenApiRouter::new()
        .routes(routes!(find_tenant, update_tenant, delete_tenant))
        .routes(routes!(find_quotas, update_quotas))
        .routes(routes!(find_security_contact, update_security_contact))
        .routes(routes!(create_connection, delete_connection))
}

/// Read the tenant.
///
/// Needs `tenant:read`.
#[utoipa::path(
    get,
    path = "/tenants/self",
    tag = "Tenants",
    responses(
        (status = 200, description = "The key's own tenant.", body = TenantBody<'_>),
        (status = 401, description = "No valid key.", body = Problem),
        (status = 403, description = "The key lacks the permission.", body = Problem),
        (status = 503, description = "The database is away.", body = Problem),
    ),
)]
async fn find_tenant(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
) -> Result<Answer, ApiError> {
    let tenant = tenants::find_own(&vault, &caller).await?;
    tell(&vault, &tenant).await
}

/// Change the tenant.
///
/// Needs `tenant:update`. Settings that are given are merged into those that the tenant has. They hold
/// on every node within five seconds.
#[utoipa::path(
    put,
    path = "/tenants/self",
    tag = "Tenants",
    request_body(content = TenantChangeBody, examples(
        ("setting" = (summary = "Deduplicate all tokens", value = json!({
            "name": "Shop", "settings": {"deduplicate_tokens": "true"}
        }))),
    )),
    responses(
        (status = 200, description = "The change is durable.", body = TenantBody<'_>),
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
async fn update_tenant(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
    body: Result<JsonBody, ApiError>,
) -> Result<Answer, ApiError> {
    caller.require_plain(Permission::TenantUpdate)?;
    let body = body?;
    let change: TenantChangeBody = body.read()?;
    let changes = Changes {
        // Without a name, an empty one breaks the rule for names.
        name: Some(change.name.unwrap_or_default()),
        settings: change.settings.unwrap_or_default().into_iter().collect(),
        quotas: Vec::new(),
    };
    let owner = members::owner_of(&vault, caller.tenant).await?;
    let owner = owner.map(|owner| owner.user.id);
    let reply = Reply::to(&caller, |tenant: &Tenant| {
        Answer::ok(&TenantBody::new(tenant, owner))
    });
    let tenant = tenants::update(&vault, &caller, &changes, &reply).await?;
    reply.answer(&tenant)
}

/// Delete the tenant.
///
/// Needs `tenant:delete`. Everything of it is unusable at once and cannot be recovered: its keys are
/// refused on every node within five seconds, what it sealed cannot be opened any more, and its rows are
/// removed soon after.
#[utoipa::path(
    delete,
    path = "/tenants/self",
    tag = "Tenants",
    responses(
        (status = 204, description = "The tenant is gone."),
        (status = 401, description = "No valid key.", body = Problem),
        (status = 403, description = "The key lacks the permission.", body = Problem),
        (status = 503, description = "The database is away, or the outcome is unknown.",
         body = Problem),
    ),
)]
async fn delete_tenant(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
) -> Result<Answer, ApiError> {
    tenants::delete(&vault, &caller).await?;
    Ok(Answer::no_content())
}

/// Read the quotas.
///
/// Needs `tenant:read`. Where the tenant has none of its own, those of the deployment hold.
#[utoipa::path(
    get,
    path = "/tenants/self/quotas",
    tag = "Tenants",
    responses(
        (status = 200, description = "What holds for the tenant.", body = QuotasBody),
        (status = 401, description = "No valid key.", body = Problem),
        (status = 403, description = "The key lacks the permission.", body = Problem),
        (status = 503, description = "The database is away.", body = Problem),
    ),
)]
async fn find_quotas(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
) -> Result<Answer, ApiError> {
    let tenant = tenants::find_own(&vault, &caller).await?;
    Answer::ok(&QuotasBody::new(&tenant.quotas.or_default(&vault.config)))
}

/// Change the quotas.
///
/// Needs `tenant:update`. Quotas that are not given stay; null goes back to the deployment's. They hold
/// on every node within five seconds.
#[utoipa::path(
    put,
    path = "/tenants/self/quotas",
    tag = "Tenants",
    request_body(content = QuotaChangeBody, examples(
        ("larger" = (summary = "Larger documents, and codes kept for half an hour", value = json!({
            "tokenize_limit": 20, "detokenize_limit": 20, "cvc_retention": 1800
        }))),
        ("back" = (summary = "Back to the deployment's", value = json!({"cvc_retention": null}))),
    )),
    responses(
        (status = 200, description = "What now holds for the tenant.", body = QuotasBody),
        (status = 400, description = "A quota breaks a rule.", body = Problem),
        (status = 401, description = "No valid key.", body = Problem),
        (status = 403, description = "The key lacks the permission.", body = Problem),
        (status = 408, description = "The body did not arrive in time.", body = Problem),
        (status = 413, description = "The body is too large.", body = Problem),
        (status = 415, description = "The body is not JSON.", body = Problem),
        (status = 503, description = "The database is away, or the outcome is unknown.",
         body = Problem),
    ),
)]
async fn update_quotas(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
    body: Result<JsonBody, ApiError>,
) -> Result<Answer, ApiError> {
    caller.require_plain(Permission::TenantUpdate)?;
    let body = body?;
    let given: Map<String, Value> = body.read()?;
    let is_quota = |name: &String| TenantQuotas::NAMES.contains(&name.as_str());
    let changes = Changes {
        quotas: given
            .into_iter()
            .filter(|(name, _)| is_quota(name))
            .collect(),
        ..Changes::default()
    };
    let reply = Reply::to(&caller, |tenant: &Tenant| {
        Answer::ok(&QuotasBody::new(&tenant.quotas.or_default(&vault.config)))
    });
    let tenant = tenants::update(&vault, &caller, &changes, &reply).await?;
    reply.answer(&tenant)
}

/// Read the security contact.
///
/// Needs `tenant:read`. The answer is empty when there is none.
#[utoipa::path(
    get,
    path = "/tenants/self/security-contact",
    tag = "Tenants",
    responses(
        (status = 200, description = "The address.", body = SecurityContactBody<'_>),
        (status = 401, description = "No valid key.", body = Problem),
        (status = 403, description = "The key lacks the permission.", body = Problem),
        (status = 503, description = "The database is away.", body = Problem),
    ),
)]
async fn find_security_contact(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
) -> Result<Answer, ApiError> {
    let email = tenants::find_security_contact(&vault, &caller).await?;
    Answer::ok(&SecurityContactBody {
        email: email.as_deref(),
    })
}

/// Change the security contact.
///
/// Needs `tenant:update`.
#[utoipa::path(
    put,
    path = "/tenants/self/security-contact",
    tag = "Tenants",
    request_body(content = NewSecurityContactBody, examples(
        ("address" = (summary = "An address", value = json!({"email": "security@example.com"}))),
    )),
    responses(
        (status = 200, description = "The address.", body = SecurityContactBody<'_>),
        (status = 400, description = "`email` is missing or no address.", body = Problem),
        (status = 401, description = "No valid key.", body = Problem),
        (status = 403, description = "The key lacks the permission.", body = Problem),
        (status = 408, description = "The body did not arrive in time.", body = Problem),
        (status = 413, description = "The body is too large.", body = Problem),
        (status = 415, description = "The body is not JSON.", body = Problem),
        (status = 503, description = "The database is away, or the outcome is unknown.",
         body = Problem),
    ),
)]
async fn update_security_contact(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
    body: Result<JsonBody, ApiError>,
) -> Result<Answer, ApiError> {
    caller.require_plain(Permission::TenantUpdate)?;
    let body = body?;
    let new: NewSecurityContactBody = body.read()?;
    let email = new.email.ok_or_else(|| "is required".to_owned());
    let email = email.and_then(|text| Email::parse(&text));
    let email = email.map_err(|rule| ApiError::invalid("email", rule))?;
    let reply = Reply::to(&caller, |email: &Email| {
        let email = Some(email.as_str());
        Answer::ok(&SecurityContactBody { email })
    });
    tenants::set_security_contact(&vault, &caller, &email, &reply).await?;
    reply.answer(&email)
}

/// Connect an identity provider, which this system does not do.
#[utoipa::path(
    post,
    path = "/tenants/self/connections",
    tag = "Tenants",
    responses(
        (status = 401, description = "No valid key.", body = Problem),
        (status = 410, description = "Sign-on is not part of this system.", body = Problem),
        (status = 503, description = "The database is away.", body = Problem),
    ),
)]
async fn create_connection() -> ApiError {
    no_sign_on()
}

/// Disconnect an identity provider, which this system does not do.
#[utoipa::path(
    delete,
    path = "/tenants/self/connections",
    tag = "Tenants",
    responses(
        (status = 401, description = "No valid key.", body = Problem),
        (status = 410, description = "Sign-on is not part of this system.", body = Problem),
        (status = 503, description = "The database is away.", body = Problem),
    ),
)]
async fn delete_connection() -> ApiError {
    no_sign_on()
}

fn no_sign_on() -> ApiError {
    ApiError::gone("Sign-on is not part of this system: nobody logs in to it.")
}

async fn tell(vault: &Vault, tenant: &Tenant) -> Result<Answer, ApiError> {
    let owner = members::owner_of(vault, tenant.id).await?;
    Answer::ok(&TenantBody::new(tenant, owner.map(|owner| owner.user.id)))
}

/// Changes to the tenant.
#[derive(Deserialize, ToSchema)]
struct TenantChangeBody {
    #[schema(required, min_length = 1, max_length = 200)]
    name: Option<String>,
    /// `fingerprint_tokens`, `disable_ephemeral_proxy` and `deduplicate_tokens` are `true` or `false`,
    /// `token_deduplication_behavior` is `read_existing` or `update_existing`, all as text.
    #[schema(value_type = Option<BTreeMap<String, Option<String>>>)]
    settings: Option<Map<String, Value>>,
}

/// A tenant. Attributes without a value are left out.
#[derive(Serialize, ToSchema)]
struct TenantBody<'a> {
    id: Uuid,
    /// The user id of the member who is the owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    owner_id: Option<Uuid>,
    name: &'a str,
    /// `test` or `production`.
    #[serde(rename = "type")]
    kind: &'static str,
    #[schema(value_type = BTreeMap<String, String>)]
    settings: &'a TenantSettings,
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

impl<'a> TenantBody<'a> {
    fn new(tenant: &'a Tenant, owner: Option<Uuid>) -> Self {
        Self {
            id: tenant.id.uuid,
            owner_id: owner,
            name: &tenant.name,
            kind: tenant.kind.name(),
            settings: &tenant.settings,
            created_by: tenant.created_by,
            created_at: format_utc(tenant.created_at),
            modified_by: tenant.modified_by,
            modified_at: tenant.modified_at.map(format_utc),
        }
    }
}

/// Changes to the quotas. Times are in seconds.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes what is read by name")]
struct QuotaChangeBody {
    /// `default`, `unlimited`, or a factor from `1x` to `100x`.
    rate_limit: Option<String>,
    #[schema(minimum = 3600, maximum = 7948800)]
    log_retention: Option<u64>,
    #[schema(minimum = 1, maximum = 1000)]
    tokenize_limit: Option<usize>,
    #[schema(minimum = 1, maximum = 1000)]
    detokenize_limit: Option<usize>,
    #[schema(minimum = 1, maximum = 172800)]
    cvc_retention: Option<u64>,
    #[schema(minimum = 1, maximum = 172800)]
    token_intent_retention: Option<u64>,
    #[schema(minimum = 1, maximum = 1000)]
    card_velocity_limit: Option<usize>,
    threeds: Option<bool>,
}

/// What a tenant may use. Times are in seconds.
#[derive(Serialize, ToSchema)]
struct QuotasBody {
    /// How the table of rate limits holds: `default`, `unlimited`, or so many times as much, such as
    /// `5x`.
    rate_limit: String,
    /// How long the log shows what happened.
    log_retention: u64,
    /// Tokens that one request to tokenize may create.
    tokenize_limit: usize,
    /// Expressions that one request to detokenize may hold.
    detokenize_limit: usize,
    /// How long the security code of a card can be read.
    cvc_retention: u64,
    /// How long a token intent can be used.
    token_intent_retention: u64,
    /// Different card numbers with the same first six and last four digits that one application may
    /// send within an hour.
    card_velocity_limit: usize,
    /// Whether 3-D Secure may be used.
    threeds: bool,
}

impl QuotasBody {
    fn new(quotas: &Quotas) -> Self {
        Self {
            rate_limit: quotas.rate_limit.to_string(),
            log_retention: quotas.log_retention.as_secs(),
            tokenize_limit: quotas.tokenize_limit,
            detokenize_limit: quotas.detokenize_limit,
            cvc_retention: quotas.cvc_retention.as_secs(),
            token_intent_retention: quotas.token_intent_retention.as_secs(),
            card_velocity_limit: quotas.card_velocity_limit,
            threeds: quotas.threeds,
        }
    }
}

/// Whom to tell when something is wrong.
#[derive(Deserialize, ToSchema)]
struct NewSecurityContactBody {
    #[schema(required, max_length = 330)]
    email: Option<String>,
}

/// Whom to tell when something is wrong.
#[derive(Serialize, ToSchema)]
struct SecurityContactBody<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    email: Option<&'a str>,
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match error {
            Error::Denied(denied) => denied.into(),
            Error::Invalid(broken) => Self::all_invalid(broken),
            // It was there when the key was looked up, and has been deleted since.
            Error::NotFound => Self::unauthorized(),
            Error::Altered => Self::internal("altered_row"),
            Error::Busy | Error::ProductionTenantInTest => Self::conflict(format!("{error}.")),
            Error::Members(error) => error.into(),
            Error::Unrecorded(error) => error.into(),
            Error::Keys(error) => error.into(),
            Error::Storage(error) => error.into(),
        }
    }
}
