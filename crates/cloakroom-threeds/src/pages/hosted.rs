//! The hosted page, which runs the whole 3-D Secure flow for merchants that redirect the cardholder to it.
//!
//! It makes three `POST` calls below `{api}/3ds/redirect/{session}`, with JSON bodies, JSON responses and the query of
//! the page itself, which contains the public key. `nonce` is the one that the page was served with. A page without
//! one, because another page has started, uses the nonce in the `sessionStorage` of its tab, or stops if there is none.
//!
//! | call | request | response |
//! | --- | --- | --- |
//! | `device` | `nonce`, `device_info` (the eight fields that the browser SDK sends) | `method_url` and `method_data` (value of the form field), or neither |
//! | `authenticate` | `nonce` | `status`: `done`, or `challenge` with `acs_url` and `creq` (value of the form field) |
//! | `finish` | `nonce` | `location`: the merchant's callback URL for the current outcome |
//!
//! If a call fails, the page continues with `finish`. If that fails, it shows an error.

use serde::Serialize;
use serde_json::json;
use uuid::Uuid;

use super::page::Page;

const SCRIPTS: &[&str] = &[include_str!("frame.js"), include_str!("hosted.js")];
const BODY: &str =
    "<p id=\"progress\" role=\"status\">Contacting your bank to confirm this payment...</p>";

/// Data of the page.
#[derive(Debug, Serialize)]
pub struct Hosted {
    pub session: Uuid,
    /// Authenticates the calls of the page; `None` if another page has started.
    pub nonce: Option<String>,
    /// Whether only `finish` is left to call.
    pub is_authenticated: bool,
    /// Base URL of the API, without a trailing slash. The page must be served from the same origin.
    pub api: String,
}

pub fn hosted(settings: &Hosted) -> Page {
    Page::new("Confirm your payment", BODY)
        .with_scripts(SCRIPTS)
        .with_data(json!(settings))
        .with_api_access()
}
