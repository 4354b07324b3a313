//! HTTP routes of a tenant's branding.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use cloakroom_core::access::Permission;
use cloakroom_core::caller::Caller;
use cloakroom_core::vault::Vault;
use cloakroom_platform::api::{
    Answer, ApiError, BaseUrl, BodyErrors, JsonBody, Object, Problem, ReadErrors, WriteErrors,
    format_utc,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::{Branding, Colors, Error, NewBranding, NewColors};
use crate::branding;

/// The routes of this module.
pub fn routes() -> OpenApiRouter<Vault> {
    OpenApiRouter::new().routes(routes!(find_branding, set_branding, delete_branding))
}

/// Read the branding.
///
/// Requires `tenant:read`.
#[utoipa::path(
    get, path = "/tenants/self/branding", tag = "Tenants",
    responses(
        ReadErrors,
        (status = 200, description = "The branding.", body = BrandingBody<'_>),
        (status = 404, description = "The tenant has no branding.", body = Problem),
    ),
)]
async fn find_branding(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
    BaseUrl(base_url): BaseUrl,
) -> Result<Answer, ApiError> {
    let branding = branding::find(&vault, &caller).await?;
    Answer::ok(&BrandingBody::new(&branding, &base_url))
}

/// Set the branding of the hosted pages.
///
/// Requires `tenant:update`. Replaces the previous branding; attributes without a value have the defaults of the pages.
/// Colors must have the contrast that WCAG AA requires: 4.5:1 for `accent_text` on `accent`, and 3:1 for `accent` on the
/// background of the page, which is #ffffff for `colors` and #171b22 for `dark_colors`.
#[utoipa::path(
    put, path = "/tenants/self/branding", tag = "Tenants",
    request_body = NewBrandingBody,
    responses(WriteErrors, BodyErrors, (status = 200, description = "The branding.", body = BrandingBody<'_>)),
)]
async fn set_branding(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
    BaseUrl(base_url): BaseUrl,
    body: Result<JsonBody, ApiError>,
) -> Result<Answer, ApiError> {
    caller.require_plain(Permission::TenantUpdate)?;
    let body = body?;
    let new: NewBrandingBody = body.read()?;
    let template =
        caller.response_template(|set: &Branding| Answer::ok(&BrandingBody::new(set, &base_url)));
    let set = branding::set(&vault, &caller, new.into(), &template).await?;
    template.render(&set)
}

/// Delete the branding.
///
/// Requires `tenant:update`. The hosted pages have their default design again.
#[utoipa::path(
    delete, path = "/tenants/self/branding", tag = "Tenants",
    responses(
        WriteErrors,
        (status = 204, description = "The branding was deleted."),
        (status = 404, description = "The tenant has no branding.", body = Problem),
    ),
)]
async fn delete_branding(
    State(vault): State<Vault>,
    Extension(caller): Extension<Arc<Caller>>,
) -> Result<Answer, ApiError> {
    branding::delete(&vault, &caller).await?;
    Ok(Answer::no_content())
}

/// A branding to set.
#[derive(Deserialize, ToSchema)]
struct NewBrandingBody {
    /// The name that cardholders know the merchant by.
    #[schema(min_length = 1, max_length = 50)]
    name: Option<String>,
    /// Colors in the light color scheme.
    #[schema(value_type = Option<NewColorsBody>)]
    colors: Option<Object<NewColorsBody>>,
    /// Colors in the dark color scheme.
    #[schema(value_type = Option<NewColorsBody>)]
    dark_colors: Option<Object<NewColorsBody>>,
    /// A PNG, JPEG or WebP image in Base64, of at most 64 KiB and 1024 by 1024 pixels.
    #[schema(max_length = 87384)]
    logo: Option<String>,
}

#[derive(Deserialize, ToSchema)]
struct NewColorsBody {
    /// Background of buttons.
    #[schema(pattern = "^#[0-9A-Fa-f]{6}$", required, nullable = false)]
    accent: Option<String>,
    /// Text on buttons.
    #[schema(pattern = "^#[0-9A-Fa-f]{6}$", required, nullable = false)]
    accent_text: Option<String>,
}

/// The branding of a tenant. Attributes without a value are omitted.
#[derive(Serialize, ToSchema)]
struct BrandingBody<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    colors: Option<ColorsBody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    dark_colors: Option<ColorsBody>,
    /// The URL of the logo. It changes with every change of the branding.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    logo_url: Option<String>,
    created_by: Uuid,
    #[schema(format = DateTime)]
    created_at: String,
}

#[derive(Serialize, ToSchema)]
struct ColorsBody {
    accent: String,
    accent_text: String,
}

impl<'a> BrandingBody<'a> {
    fn new(branding: &'a Branding, base_url: &str) -> Self {
        let logo_url = || format!("{base_url}/pages/branding/{}/logo", branding.id);
        Self {
            name: branding.name.as_deref(),
            colors: branding.colors.map(ColorsBody::from),
            dark_colors: branding.dark_colors.map(ColorsBody::from),
            logo_url: branding.logo.as_ref().map(|_| logo_url()),
            created_by: branding.created_by,
            created_at: format_utc(branding.created_at),
        }
    }
}

impl From<Colors> for ColorsBody {
    fn from(colors: Colors) -> Self {
        Self {
            accent: colors.accent.to_string(),
            accent_text: colors.accent_text.to_string(),
        }
    }
}

impl From<NewBrandingBody> for NewBranding {
    fn from(body: NewBrandingBody) -> Self {
        let colors = |Object(colors): Object<NewColorsBody>| NewColors {
            accent: colors.accent,
            accent_text: colors.accent_text,
        };
        Self {
            name: body.name,
            colors: body.colors.map(colors),
            dark_colors: body.dark_colors.map(colors),
            logo: body.logo,
        }
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match error {
            Error::PermissionDenied(denied) => denied.into(),
            Error::Invalid(errors) => Self::all_invalid(errors),
            Error::NotFound => Self::not_found("The tenant has no branding."),
            Error::Altered => Self::internal("altered_row"),
            Error::AuditError(error) => error.into(),
            Error::Storage(error) => error.into(),
        }
    }
}
