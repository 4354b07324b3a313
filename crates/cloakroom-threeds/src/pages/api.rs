//! The two helper pages that the official browser SDK opens in a frame of a merchant's page.

use cloakroom_pages::asset::{Asset, CHALLENGE, FRAME, METHOD, RELAY};
use cloakroom_pages::{Message, Page, PageContext};
use cloakroom_platform::api::HasHttpConfig;
use serde_json::json;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

const METHOD_SCRIPTS: &[Asset] = &[FRAME, RELAY, METHOD];
const CHALLENGE_SCRIPTS: &[Asset] = &[FRAME, RELAY, CHALLENGE];

/// Public routes, because cardholders' browsers load the pages. They allow the vault's base URL to be the `sdkBaseUrl`
/// of the browser SDK.
pub fn routes<S: HasHttpConfig + Clone + Send + Sync + 'static>() -> OpenApiRouter<S> {
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
async fn show_method(context: PageContext) -> Page {
    let (title, text) = (Message::DeviceTitle, Message::VerifyingDevice);
    helper(&context, title, text).with_scripts(METHOD_SCRIPTS)
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
async fn show_challenge(context: PageContext) -> Page {
    let (title, text) = (Message::ChallengeTitle, Message::OpeningBank);
    helper(&context, title, text).with_scripts(CHALLENGE_SCRIPTS)
}

/// A page that shows `text` until the issuer's page replaces it.
fn helper(context: &PageContext, title: Message, text: Message) -> Page {
    let (title, text) = (context.text(title), context.text(text));
    let body = format!(
        "<main id=\"waiting\"><div class=\"spinner\" aria-hidden=\"true\"></div><p role=\"status\">{text}</p></main>"
    );
    Page::framed(context, title, &body)
        .with_data(json!({ "frame_title": context.text(Message::ChallengeFrame) }))
        .with_issuers()
}
