//! The two helper pages that the official browser SDK opens in a frame of a merchant's page.

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::page::Page;

const FRAME: &str = include_str!("frame.js");
const RELAY: &str = include_str!("relay.js");

const METHOD: Page = Page::new("Device verification", "<p>Verifying your device...</p>")
    .with_scripts(&[FRAME, RELAY, include_str!("method.js")]);

const CHALLENGE: Page = Page::new("Payment authentication", "").with_scripts(&[
    FRAME,
    RELAY,
    include_str!("challenge.js"),
]);

/// Public routes, because cardholders' browsers load the pages. They allow the vault's base URL to be the `sdkBaseUrl`
/// of the browser SDK.
pub fn routes<S: Clone + Send + Sync + 'static>() -> OpenApiRouter<S> {
    OpenApiRouter::new()
        .routes(routes!(show_method))
        .routes(routes!(show_challenge))
}

/// Show the page that runs an issuer's 3DS Method in a hidden frame.
#[utoipa::path(
    get, path = "/pages/method.html", tag = "3-D Secure pages",
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

/// Show the page that displays an issuer's challenge in a frame.
#[utoipa::path(
    get, path = "/pages/challenge.html", tag = "3-D Secure pages",
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
