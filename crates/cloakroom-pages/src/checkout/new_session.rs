//! A session to create, and its validation.

use std::time::Duration;

use cloakroom_core::access::TenantKind;
use cloakroom_core::caller::Caller;
use cloakroom_platform::api::{Expiry, FieldError};
use cloakroom_platform::one_line::one_line;
use iso_currency::Currency;
use jiff::Timestamp;

use super::Error;
use super::session::{Facts, Price};
use crate::language::Language;

const LIFETIME: Duration = Duration::from_secs(30 * 60);
const LIFETIME_MAX: Duration = Duration::from_secs(24 * 60 * 60);
const REFERENCE_LENGTH_MAX: usize = 50;
/// Exactly representable in JSON for every client.
const AMOUNT_MAX: i64 = 999_999_999_999;

/// A session to create, not yet validated.
#[derive(Clone, Default)]
pub struct NewSession {
    pub return_url: Option<String>,
    pub cancel_url: Option<String>,
    pub amount: Option<i64>,
    pub currency: Option<String>,
    pub reference: Option<String>,
    pub locale: Option<String>,
    pub collects_name: bool,
    pub expires_at: Option<String>,
}

impl NewSession {
    /// Validates all attributes, so that one response reports all errors.
    pub(super) fn validate(
        self,
        caller: &Caller,
        now: Timestamp,
    ) -> Result<(Facts, Timestamp), Error> {
        let mut errors = Vec::new();
        let mut url = |name: &str, url: Option<String>| {
            let url = url.unwrap_or_default();
            if let Err(rule) = check_url(caller, &url) {
                errors.push(FieldError::new(name, rule));
            }
            url
        };
        let (return_url, cancel_url) = (
            url("return_url", self.return_url),
            url("cancel_url", self.cancel_url),
        );
        let price = price(self.amount, self.currency, &mut errors);
        let reference = self.reference.as_deref().and_then(|reference| {
            one_line(reference, REFERENCE_LENGTH_MAX)
                .map_err(|rule| errors.push(FieldError::new("reference", rule)))
                .ok()
        });
        if let Some(locale) = &self.locale
            && Language::of_tag(locale).is_none()
        {
            let rule = "must be en, de, fr, es or pt, with or without a region";
            errors.push(FieldError::new("locale", rule));
        }
        let expires_at = expiry(self.expires_at.as_deref(), now);
        let expires_at =
            expires_at.map_err(|rule| errors.push(FieldError::new("expires_at", rule)));
        match expires_at {
            Ok(expires_at) if errors.is_empty() => Ok((
                Facts {
                    return_url,
                    cancel_url,
                    price,
                    reference: reference.map(str::to_owned),
                    locale: self
                        .locale
                        .and_then(|tag| Language::of_tag(&tag))
                        .map(|it| it.tag().to_owned()),
                    collects_name: self.collects_name,
                    completion: None,
                },
                expires_at,
            )),
            _ => Err(Error::Invalid(errors)),
        }
    }
}

/// Redirects lead only to hosts that the tenant lists.
pub(super) fn check_url(caller: &Caller, url: &str) -> Result<(), &'static str> {
    let is_test = caller.tenant_kind == TenantKind::Test;
    caller.settings.threeds_callback_hosts.check(url, is_test)
}

fn price(
    amount: Option<i64>,
    currency: Option<String>,
    errors: &mut Vec<FieldError>,
) -> Option<Price> {
    let (amount, currency) = match (amount, currency) {
        (None, None) => return None,
        (Some(amount), Some(currency)) => (amount, currency),
        (Some(_), None) => {
            errors.push(FieldError::new("currency", "is required with amount"));
            return None;
        }
        (None, Some(_)) => {
            errors.push(FieldError::new("amount", "is required with currency"));
            return None;
        }
    };
    if !(0..=AMOUNT_MAX).contains(&amount) {
        let rule = "must be an integer from 0 to 999999999999, in minor units of the currency";
        errors.push(FieldError::new("amount", rule));
    }
    let known = Currency::from_code(&currency);
    if known.is_none() {
        errors.push(FieldError::new(
            "currency",
            "must be an ISO 4217 currency such as EUR",
        ));
    }
    Some(Price {
        amount: amount.unsigned_abs(),
        currency,
    })
}

fn expiry(text: Option<&str>, now: Timestamp) -> Result<Timestamp, &'static str> {
    let after = |lifetime| now.checked_add(lifetime).unwrap_or(now);
    let Some(text) = text else {
        return Ok(after(LIFETIME));
    };
    let rule = "must be a time in the next 24 hours";
    let at = Expiry::parse(text).ok_or(rule)?.at;
    match now < at && at <= after(LIFETIME_MAX) {
        true => Ok(at),
        false => Err(rule),
    }
}
