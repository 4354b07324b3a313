//! The page of the 3DS Method, in a hidden frame of the merchant's page. It learns nothing.

use std::sync::Arc;

use axum::Form;
use axum::extract::State;
use axum::response::Response;
use cloakroom_emv3ds::base64url;
use http::Uri;
use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;

use super::pages;
use crate::wire;
use crate::world::World;

#[derive(Deserialize)]
pub(super) struct MethodForm {
    #[serde(rename = "threeDSMethodData")]
    data: String,
}

/// Tells the 3DS Server through the browser that the method is done.
pub(super) async fn answer(
    State(world): State<Arc<World>>,
    Form(form): Form<MethodForm>,
) -> Response {
    let Some((id, url)) = read(&form.data) else {
        return pages::refused("The data of the 3DS Method cannot be read.");
    };
    world.memory().methods.put(&id, ());
    let done = json!({"threeDSServerTransID": id}).to_string();
    let data = base64url::encode(done.as_bytes());
    pages::posting(&url, &[("threeDSMethodData", &data)])
}

/// For cards whose method never comes to its end.
pub(super) async fn stay_silent(Form(form): Form<MethodForm>) -> Response {
    match read(&form.data) {
        Some(_) => pages::silent(),
        None => pages::refused("The data of the 3DS Method cannot be read."),
    }
}

/// The transaction and where its notification goes.
fn read(data: &str) -> Option<(String, String)> {
    let decoded = wire::object(&base64url::decode(data).ok()?)?;
    let id = wire::text(&decoded, "threeDSServerTransID")?;
    let url = wire::text(&decoded, "threeDSMethodNotificationURL")?;
    let id: Uuid = id.parse().ok()?;
    is_web_address(url).then(|| (id.to_string(), url.to_owned()))
}

fn is_web_address(url: &str) -> bool {
    let uri = url.parse::<Uri>().ok();
    let scheme = uri.as_ref().and_then(Uri::scheme_str);
    matches!(scheme, Some("http" | "https"))
}
