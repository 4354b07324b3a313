//! A request for a session, and its validation.

use cloakroom_core::access::TenantKind;
use cloakroom_core::caller::Caller;
use cloakroom_platform::api::{FieldError, optional_object};
use cloakroom_platform::card_numbers::{
    contains_card_number, holds_track_data, named_authentication_data,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::session::{CardReference, Device, Hosted};
use crate::requests::{self as requests, DeviceInfo, SessionKind};

const METADATA_MAX: usize = 50;

/// A session to create, not validated yet.
#[derive(Default)]
pub struct NewSession {
    pub token_id: Option<String>,
    pub token_intent_id: Option<String>,
    /// Deprecated name of `token_id`.
    pub pan: Option<String>,
    pub kind: Option<String>,
    pub device: Option<String>,
    pub device_info: Option<DeviceInfo>,
    pub web_challenge_mode: Option<String>,
    pub authentication_request: Option<Map<String, Value>>,
    pub callback_urls: Option<CallbackUrls>,
    pub metadata: Option<Map<String, Value>>,
}

/// Where the hosted page redirects the browser after authentication.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct CallbackUrls {
    #[schema(required)]
    pub success: Option<String>,
    #[schema(required)]
    pub failure: Option<String>,
    #[serde(deserialize_with = "optional_object")]
    pub branding: Option<Branding>,
}

/// Appearance of the hosted page. It shows no branding, so the option has no effect.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct Branding {
    pub hide_basis_theory_branding: Option<bool>,
}

/// Client address and headers of the request.
#[derive(Default)]
pub struct ClientInfo {
    pub address: Option<String>,
    pub accept: Option<String>,
    pub accept_language: Option<String>,
}

/// A session request, validated without a lookup.
pub(super) struct ValidatedSession {
    /// The field that references the card, and the reference.
    pub(super) reference: Option<(&'static str, CardReference)>,
    pub(super) kind: SessionKind,
    pub(super) device: Option<Device>,
    pub(super) device_info: Option<DeviceInfo>,
    pub(super) web_challenge_mode: Option<String>,
    pub(super) metadata: Option<Map<String, Value>>,
    pub(super) hosted: Option<Box<Hosted>>,
}

impl NewSession {
    /// Whether the hosted page authenticates the session.
    pub(super) fn is_hosted(&self) -> bool {
        self.authentication_request.is_some() || self.callback_urls.is_some()
    }

    /// Validates everything that needs no lookup. Returns all errors.
    pub(super) fn validate(
        self,
        caller: &Caller,
        client: ClientInfo,
    ) -> (ValidatedSession, Vec<FieldError>) {
        let is_hosted = self.is_hosted();
        let mut errors = Vec::new();
        let reference = reference(&self, &mut errors);
        let kind = match self.kind.as_deref() {
            None => SessionKind::Customer,
            Some(name) => SessionKind::parse(name).unwrap_or_else(|| {
                errors.push(FieldError::new("type", "must be customer or merchant"));
                SessionKind::Customer
            }),
        };
        if let Some(metadata) = &self.metadata {
            errors.extend(check_metadata(metadata));
        }
        let mut validated = ValidatedSession {
            reference,
            kind,
            device: None,
            device_info: None,
            web_challenge_mode: None,
            metadata: self.metadata,
            hosted: None,
        };
        if kind == SessionKind::Merchant {
            if is_hosted {
                let rule = "must be used only when type is customer";
                errors.push(FieldError::new("callback_urls", rule));
            }
            return (validated, errors);
        }
        validated.device = device(self.device.as_deref(), &mut errors);
        validated.web_challenge_mode = self.web_challenge_mode.filter(|mode| {
            let is_known = ["iframe", "redirect"].contains(&mode.as_str());
            if !is_known {
                errors.push(FieldError::new(
                    "web_challenge_mode",
                    "must be iframe or redirect",
                ));
            }
            is_known
        });
        let (request, urls) = (self.authentication_request, self.callback_urls);
        validated.hosted = hosted(caller, request, urls, &mut errors);
        if validated.hosted.is_some() && validated.device == Some(Device::App) {
            let rule = "must be browser when callback_urls are given";
            errors.push(FieldError::new("device", rule));
        }
        let mut info = self.device_info;
        if validated.device == Some(Device::Browser) && (info.is_some() || !is_hosted) {
            let mut browser = info.unwrap_or_default();
            browser.complete(client.address, client.accept.as_deref());
            browser.accept_language = client.accept_language;
            errors.extend(browser.check_browser());
            info = Some(browser);
        }
        validated.device_info = info;
        (validated, errors)
    }
}

fn reference(
    new: &NewSession,
    errors: &mut Vec<FieldError>,
) -> Option<(&'static str, CardReference)> {
    let given = [
        ("token_id", new.token_id.clone().map(CardReference::Token)),
        (
            "token_intent_id",
            new.token_intent_id.clone().map(CardReference::TokenIntent),
        ),
        ("pan", new.pan.clone().map(CardReference::Token)),
    ];
    let mut given = given
        .into_iter()
        .filter_map(|(field, reference)| Some((field, reference?)));
    match (given.next(), given.next()) {
        (Some(only), None) => Some(only),
        (None, _) => {
            let rule = "is required unless token_intent_id is given";
            errors.push(FieldError::new("token_id", rule));
            None
        }
        (Some(_), Some((field, _))) => {
            let rule = "must not be combined with another card reference";
            errors.push(FieldError::new(field, rule));
            None
        }
    }
}

fn device(name: Option<&str>, errors: &mut Vec<FieldError>) -> Option<Device> {
    match name {
        Some("browser") => Some(Device::Browser),
        Some("app" | "mobile") => Some(Device::App),
        Some(_) => {
            errors.push(FieldError::new("device", "must be browser or app"));
            None
        }
        None => {
            errors.push(FieldError::new(
                "device",
                "is required when type is customer",
            ));
            None
        }
    }
}

/// Validates the authentication request and the callback URLs, of which both or neither must be given.
fn hosted(
    caller: &Caller,
    request: Option<Map<String, Value>>,
    urls: Option<CallbackUrls>,
    errors: &mut Vec<FieldError>,
) -> Option<Box<Hosted>> {
    let (request, urls) = match (request, urls) {
        (None, None) => return None,
        (Some(request), Some(urls)) => (request, urls),
        (Some(_), None) => {
            let rule = "are required with authentication_request";
            errors.push(FieldError::new("callback_urls", rule));
            return None;
        }
        (None, Some(_)) => {
            let rule = "is required with callback_urls";
            errors.push(FieldError::new("authentication_request", rule));
            return None;
        }
    };
    let wrong = requests::check(SessionKind::Customer, &request).into_iter();
    errors.extend(wrong.map(|one| one.within("authentication_request")));
    let hosts = &caller.settings.threeds_callback_hosts;
    let is_test = caller.tenant_kind == TenantKind::Test;
    let mut address = |name: &str, url: Option<String>| {
        let url = url.unwrap_or_default();
        if let Err(rule) = hosts.check(&url, is_test) {
            errors.push(FieldError::new(format!("callback_urls.{name}"), rule));
        }
        url
    };
    Some(Box::new(Hosted {
        success: address("success", urls.success),
        failure: address("failure", urls.failure),
        authentication_request: request,
        nonce: None,
        has_begun: false,
    }))
}

pub(super) fn check_metadata(metadata: &Map<String, Value>) -> Option<FieldError> {
    let is_valid = metadata.len() <= METADATA_MAX
        && metadata.iter().all(|(name, value)| {
            let length = value.as_str().map(str::len);
            name.len() <= 500 && length.is_some_and(|length| length <= 500)
        });
    let is_clean = |text: &str| !contains_card_number(text) && !holds_track_data(text);
    let is_valid = is_valid
        && metadata.iter().all(|(name, value)| {
            named_authentication_data(name, value).is_none()
                && is_clean(name)
                && is_clean(value.as_str().unwrap_or_default())
        });
    let rule = "must be at most 50 strings of at most 500 characters, without card numbers, \
                security codes, track data or PINs";
    (!is_valid).then(|| FieldError::new("metadata", rule))
}
