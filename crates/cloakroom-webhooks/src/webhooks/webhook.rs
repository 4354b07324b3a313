//! A webhook: validation of requests, and the row with its MAC.

use cloakroom_core::access::{AuthenticatedRow, TenantSettings, check_name, optional_part};
use cloakroom_core::events::EventKind;
use cloakroom_egress::{DestinationUrl, Egress};
use cloakroom_platform::api::FieldError;
use cloakroom_platform::card_numbers::contains_card_number;
use jiff::Timestamp;
use uuid::Uuid;

const EMAIL_CHARS_MAX: usize = 330;
const URL_CHARS_MAX: usize = 2_000;

/// A requested webhook, not yet validated.
#[derive(Clone, Debug, Default)]
pub struct NewWebhook {
    pub name: Option<String>,
    pub url: Option<String>,
    pub notify_email: Option<String>,
    pub events: Option<Vec<String>>,
    /// `enabled` or `disabled`. A change without it enables the webhook.
    pub status: Option<String>,
}

/// A validated [`NewWebhook`].
#[derive(Clone, Debug)]
pub(super) struct ValidatedWebhook {
    pub name: String,
    pub url: String,
    pub notify_email: Option<String>,
    pub events: Vec<String>,
    pub is_enabled: bool,
}

/// A webhook, without its secret.
#[derive(Clone, Debug)]
pub struct Webhook {
    pub id: Uuid,
    pub name: String,
    pub url: String,
    pub notify_email: Option<String>,
    pub events: Vec<String>,
    pub is_enabled: bool,
    pub created_by: Option<Uuid>,
    pub created_at: Timestamp,
    pub modified_by: Option<Uuid>,
    pub modified_at: Option<Timestamp>,
}

/// The columns that the MAC covers: a row that SQL inserted or changed receives nothing.
#[derive(Clone, Debug)]
pub(crate) struct WebhookRow {
    pub tenant_number: i32,
    pub id: Uuid,
    pub name: String,
    pub url: String,
    pub notify_email: Option<String>,
    pub events: Vec<String>,
    pub is_enabled: bool,
    /// Encrypted.
    pub secret: Vec<u8>,
}

impl AuthenticatedRow for WebhookRow {
    const DOMAIN: &'static str = "row.webhook.v1";

    fn parts(&self) -> Vec<Vec<u8>> {
        let mut parts = vec![
            self.tenant_number.to_be_bytes().to_vec(),
            self.id.into_bytes().to_vec(),
            self.name.clone().into_bytes(),
            self.url.clone().into_bytes(),
            optional_part(self.notify_email.as_deref().map(str::as_bytes)),
            vec![u8::from(self.is_enabled)],
            self.secret.clone(),
        ];
        parts.extend(self.events.iter().map(|event| event.clone().into_bytes()));
        parts
    }
}

impl NewWebhook {
    /// Validates everything, so that one response reports all errors.
    pub(super) fn validate(
        self,
        egress: &Egress,
        settings: &TenantSettings,
    ) -> Result<ValidatedWebhook, Vec<FieldError>> {
        let mut broken = Vec::new();
        let is_enabled = match self.status.as_deref() {
            None | Some("enabled") => true,
            Some("disabled") => false,
            Some(_) => {
                let rule = "must be `enabled` or `disabled`";
                broken.push(FieldError::new("status", rule));
                true
            }
        };
        let name = collect(name(self.name), &mut broken);
        let url = collect(url(self.url, egress, settings), &mut broken);
        let email = collect(email(self.notify_email), &mut broken);
        let events = collect(events(self.events), &mut broken);
        match (name, url, email, events) {
            (Some(name), Some(url), Some(notify_email), Some(events)) if broken.is_empty() => {
                Ok(ValidatedWebhook {
                    name,
                    url,
                    notify_email,
                    events,
                    is_enabled,
                })
            }
            _ => Err(broken),
        }
    }
}

fn collect<T>(result: Result<T, FieldError>, broken: &mut Vec<FieldError>) -> Option<T> {
    result.map_err(|error| broken.push(error)).ok()
}

fn name(given: Option<String>) -> Result<String, FieldError> {
    let name = given.ok_or_else(|| FieldError::new("name", "is required"))?;
    check_name(&name)?;
    Ok(name)
}

/// The URL is stored as it was sent, because clients compare it. It is checked again when an event is sent.
fn url(
    given: Option<String>,
    egress: &Egress,
    settings: &TenantSettings,
) -> Result<String, FieldError> {
    let broken = |rule: String| FieldError::new("url", rule);
    let text = given.ok_or_else(|| broken("is required".to_owned()))?;
    if text.chars().count() > URL_CHARS_MAX {
        return Err(broken(format!(
            "must be at most {URL_CHARS_MAX} characters"
        )));
    }
    let url = DestinationUrl::parse(&text).map_err(|error| broken(error.to_string()))?;
    if contains_card_number(&text) {
        return Err(broken("must not contain a card number".to_owned()));
    }
    let allowed = egress.check(&url, settings.egress_hosts.as_ref());
    allowed.map_err(|denied| broken(format!("is not allowed: {denied}")))?;
    Ok(text)
}

/// Clients send an empty address for none.
fn email(given: Option<String>) -> Result<Option<String>, FieldError> {
    let Some(text) = given.filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let is_plain = !text.contains(|c: char| c.is_whitespace() || c.is_control());
    let is_shaped = text.split_once('@').is_some_and(|(local, domain)| {
        !local.is_empty() && !domain.is_empty() && !domain.contains('@')
    });
    if !is_plain || !is_shaped || text.chars().count() > EMAIL_CHARS_MAX {
        let rule = format!("must be an e-mail address of at most {EMAIL_CHARS_MAX} characters");
        return Err(FieldError::new("notify_email", rule));
    }
    if contains_card_number(&text) {
        let rule = "must not contain a card number";
        return Err(FieldError::new("notify_email", rule));
    }
    Ok(Some(text))
}

/// The events, each once, in the given order.
fn events(given: Option<Vec<String>>) -> Result<Vec<String>, FieldError> {
    let broken = |path: String, rule: &str| FieldError::new(path, rule);
    let given = given.filter(|given| !given.is_empty()).ok_or_else(|| {
        let rule = "must have at least one event type of GET /webhooks/event-types";
        broken("events".to_owned(), rule)
    })?;
    let mut events: Vec<String> = Vec::new();
    for (index, name) in given.into_iter().enumerate() {
        if EventKind::parse(&name).is_none() {
            let rule = "must be one of GET /webhooks/event-types, such as `token.created`";
            return Err(broken(format!("events[{index}]"), rule));
        }
        if !events.contains(&name) {
            events.push(name);
        }
    }
    Ok(events)
}
