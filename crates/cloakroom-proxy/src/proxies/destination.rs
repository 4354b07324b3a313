//! The destination of a proxy.

use cloakroom_core::caller::Caller;
use cloakroom_egress::DestinationUrl;
use cloakroom_platform::api::FieldError;
use cloakroom_platform::card_numbers::{NO_CARD_NUMBER, contains_card_number};

use super::Error;
use crate::server::ProxyServer;

const URL_CHARS_MAX: usize = 400;

/// Validates the text of a destination URL, which is stored in clear.
pub(super) fn check_text(url: Option<String>) -> Result<String, FieldError> {
    let url = url.ok_or_else(|| reject("is required"))?;
    if url.chars().count() > URL_CHARS_MAX {
        return Err(reject(format!(
            "must have at most {URL_CHARS_MAX} characters"
        )));
    }
    if contains_card_number(&url) {
        return Err(reject(NO_CARD_NUMBER));
    }
    DestinationUrl::parse(&url).map_err(|error| reject(error.to_string()))?;
    // A request to another name of this vault would invoke a proxy again.
    if url.to_ascii_lowercase().contains("bt-proxy-key") {
        return Err(reject("must not contain the key of a proxy"));
    }
    Ok(url)
}

/// Requires that the operator and the tenant allow the destination. Invocations check it again.
pub(super) fn require_allowed(
    server: &ProxyServer,
    caller: &Caller,
    url: &str,
) -> Result<(), Error> {
    let invalid = |rule: String| Error::Invalid(vec![reject(rule)]);
    let url = DestinationUrl::parse(url).map_err(|error| invalid(error.to_string()))?;
    let hosts = caller.settings.egress_hosts.as_ref();
    let allowed = server.egress.check(&url, hosts);
    allowed.map_err(|denied| invalid(format!("must be an allowed destination: {denied}")))
}

fn reject(rule: impl Into<String>) -> FieldError {
    FieldError::new("destination_url", rule)
}
