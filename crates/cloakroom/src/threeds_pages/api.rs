//! The two helper pages that the official browser package opens in a frame of a merchant's page.

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::page::Page;
use crate::vault::Vault;

const FRAME: &str = include_str!("frame.js");
const RELAY: &str = include_str!("relay.js");

const METHOD: Page = Page::new("Browser check", "<p>Checking the browser.</p>").with_scripts(&[
    FRAME,
    RELAY,
    include_str!("method.js"),
]);

const CHALLENGE: Page = Page::new("Confirmation by the issuer", "").with_scripts(&[
    FRAME,
    RELAY,
    include_str!("challenge.js"),
]);

/// Open to anyone, because browsers of cardholders ask for them. With them the vault's own base URL
/// can be the `sdkBaseUrl` of the browser package.
pub fn routes() -> OpenApiRouter<Vault> {
    OpenApiRouter::new()
        .routes(routes!(show_method))
        .routes(routes!(show_challenge))
}

/// Show the page that runs an issuer's 3DS Method in a hidden frame.
#[utoipa::path(
    get,
    path = "/pages/method.html",
    tag = "3-D Secure pages",
    responses((
        status = 200,
        description = "A page for the frame that the browser package makes. It waits for a message of \
            the page around it.",
        content_type = "text/html",
    )),
)]
async fn show_method() -> Page {
    METHOD
}

/// Show the page that has an issuer's challenge in a frame.
#[utoipa::path(
    get,
    path = "/pages/challenge.html",
    tag = "3-D Secure pages",
    responses((
        status = 200,
        description = "A page for the frame that the browser package makes. It waits for a message of \
            the page around it.",
        content_type = "text/html",
    )),
)]
async fn show_challenge() -> Page {
    CHALLENGE
}
