//! The 3DS Method page, loaded in a hidden iframe. It collects no data.

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
use crate::state::SharedState;
use crate::wire;

#[derive(Deserialize)]
pub(super) struct MethodForm {
    #[serde(rename = "threeDSMethodData")]
    data: String,
}

/// Notifies the 3DS Server through the browser that the 3DS Method completed.
pub(super) async fn complete(
    State(state): State<Arc<SharedState>>,
    Form(form): Form<MethodForm>,
) -> Response {
    let Some((id, url)) = parse(&form.data) else {
        return pages::error("threeDSMethodData is invalid.");
    };
    state.store().completed_methods.put(&id, ());
    let done = json!({"threeDSServerTransID": id}).to_string();
    let data = base64url::encode(done.as_bytes());
    pages::auto_submit_form(&url, &[("threeDSMethodData", &data)])
}

/// For cards whose 3DS Method never completes.
pub(super) async fn never_complete(Form(form): Form<MethodForm>) -> Response {
    match parse(&form.data) {
        Some(_) => pages::method_without_notification(),
        None => pages::error("threeDSMethodData is invalid."),
    }
}

/// The transaction id and the notification URL.
fn parse(data: &str) -> Option<(String, String)> {
    let decoded = wire::parse_object(&base64url::decode(data).ok()?)?;
    let id = wire::text(&decoded, "threeDSServerTransID")?;
    let url = wire::text(&decoded, "threeDSMethodNotificationURL")?;
    let id: Uuid = id.parse().ok()?;
    is_http_url(url).then(|| (id.to_string(), url.to_owned()))
}

fn is_http_url(url: &str) -> bool {
    let uri = url.parse::<Uri>().ok();
    let scheme = uri.as_ref().and_then(Uri::scheme_str);
    matches!(scheme, Some("http" | "https"))
}
