//! Logo and colors of tenants, as browsers load them.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use cloakroom_core::vault::Vault;
use cloakroom_management::branding::{self, Branding, Colors};
use cloakroom_platform::api::{ApiError, PathId, Problem};
use cloakroom_tokens::TokenVault;
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::asset::IMMUTABLE;

/// Even if it is opened by itself, a logo runs and loads nothing.
const NOTHING: &str = "default-src 'none'; sandbox";

pub(crate) fn routes() -> OpenApiRouter<TokenVault> {
    OpenApiRouter::new()
        .routes(routes!(show_logo))
        .routes(routes!(show_colors))
}

/// Return the logo of a tenant.
#[utoipa::path(
    get, path = "/pages/branding/{id}/logo", tag = "Hosted pages",
    params(("id" = String, Path, description = "The id of the branding.")),
    responses(
        (status = 200, description = "The image.",
         content((Vec<u8> = "image/png"), (Vec<u8> = "image/jpeg"), (Vec<u8> = "image/webp"))),
        (status = 404, description = "The branding does not exist or has no logo.", body = Problem),
        (status = 503, description = "The database is unavailable.", body = Problem),
    ),
)]
async fn show_logo(
    State(vault): State<TokenVault>,
    PathId(id): PathId,
) -> Result<Response, ApiError> {
    let logo = find(&vault, &id).await?.logo.ok_or_else(not_found)?;
    Ok(respond(logo.kind.media_type(), logo.bytes))
}

/// Return the colors of a tenant as a stylesheet.
#[utoipa::path(
    get, path = "/pages/branding/{id}/colors.css", tag = "Hosted pages",
    params(("id" = String, Path, description = "The id of the branding.")),
    responses(
        (status = 200, description = "A stylesheet.", content_type = "text/css"),
        (status = 404, description = "The branding does not exist.", body = Problem),
        (status = 503, description = "The database is unavailable.", body = Problem),
    ),
)]
async fn show_colors(
    State(vault): State<TokenVault>,
    PathId(id): PathId,
) -> Result<Response, ApiError> {
    let branding = find(&vault, &id).await?;
    Ok(respond(
        "text/css; charset=utf-8",
        stylesheet(&branding).into(),
    ))
}

async fn find(vault: &Vault, id: &str) -> Result<Branding, ApiError> {
    branding::find_by_id(vault, id).await?.ok_or_else(not_found)
}

fn not_found() -> ApiError {
    ApiError::not_found("There is no such branding.")
}

fn respond(media_type: &'static str, bytes: Vec<u8>) -> Response {
    let headers = [
        (CONTENT_TYPE, media_type),
        (CACHE_CONTROL, IMMUTABLE),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (CONTENT_SECURITY_POLICY, NOTHING),
    ];
    (headers, bytes).into_response()
}

/// Sets the variables of the stylesheet. Values are colors that were parsed, never text of the tenant.
fn stylesheet(branding: &Branding) -> String {
    let variables = |colors: Option<Colors>| {
        colors.map_or_else(String::new, |colors| {
            let Colors {
                accent,
                accent_text,
            } = colors;
            format!(":root {{ --accent: {accent}; --accent-text: {accent_text}; }}")
        })
    };
    let (light, dark) = (variables(branding.colors), variables(branding.dark_colors));
    format!(
        "@media (prefers-color-scheme: light) {{ {light} }}\n@media (prefers-color-scheme: dark) {{ {dark} }}\n"
    )
}
