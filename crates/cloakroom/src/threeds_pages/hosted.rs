//! The page that does all of 3-D Secure by itself, for merchants who send the cardholder to it.
//!
//! It makes three calls below `{api}/3ds/redirect/{session}`, each a `POST` of JSON that is answered with
//! JSON, with the query that the page itself was opened with: the public key. `nonce` is the one that the page
//! was made with: it is good for one run through the page, and nothing else proves that the run is the one
//! that the merchant began.
//!
//! | call | sent | answered |
//! | --- | --- | --- |
//! | `device` | `nonce`, `device_info` (the eight fields that the browser package sends) | `method_url` and `method_data` (the value of the form's field), or neither |
//! | `authenticate` | `nonce` | `status` (as the API spells it); with `challenge` also `acs_url` and `creq` (the value of the form's field) |
//! | `finish` | `nonce` | `location`: the merchant's page for what the vault knows by now |
//!
//! When a call fails the page goes on to `finish`, and when that fails it says so.

use serde::Serialize;
use serde_json::json;
use uuid::Uuid;

use super::page::Page;

const SCRIPTS: &[&str] = &[include_str!("frame.js"), include_str!("hosted.js")];
const BODY: &str = "<p id=\"progress\" role=\"status\">One moment, please. Your bank is asked.</p>";

/// What the page has to know.
#[derive(Debug, Serialize)]
pub struct Hosted {
    pub session: Uuid,
    pub nonce: String,
    /// The base URL of the API, without a slash at its end. The page has to be served from there too.
    pub api: String,
}

pub fn hosted(settings: &Hosted) -> Page {
    Page::new("Confirm your payment", BODY)
        .with_scripts(SCRIPTS)
        .with_data(json!(settings))
        .calling_the_vault()
}
