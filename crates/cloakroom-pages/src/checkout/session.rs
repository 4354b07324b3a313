//! A checkout session: its columns, and its attributes, which are stored encrypted.

use std::fmt::Write as _;

use cloakroom_core::keys::Record;
use cloakroom_crypto::PolicyDigest;
use iso_currency::Currency;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::money::Money;

#[derive(Clone, Debug)]
pub struct Session {
    pub columns: SessionColumns,
    pub facts: Facts,
}

/// Unencrypted columns.
#[derive(Clone, Debug)]
pub struct SessionColumns {
    pub tenant_number: i32,
    pub id: Uuid,
    /// Incremented by each change, which is conditional on the previous version.
    pub(super) version: i32,
    pub(super) state: State,
    /// Keyed digest of the secret in the page's URL.
    pub(super) page_digest: Vec<u8>,
    pub created_by: Uuid,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    /// By the clock of the database, when the row was read.
    pub(super) is_past_expiry: bool,
}

/// Encrypted attributes. The serialized names are a storage format.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Facts {
    pub return_url: String,
    pub cancel_url: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locale: Option<String>,
    #[serde(default)]
    pub collects_name: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion: Option<Completion>,
}

/// An amount to show, in minor units, and an ISO 4217 code.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Price {
    pub amount: u64,
    pub currency: String,
}

/// What the cardholder submitted, except the card itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Completion {
    pub token_intent_id: Uuid,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cardholder_name: Option<String>,
    pub completed_at: Timestamp,
}

/// The stored state. A session expires without a change of its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Open = 1,
    Complete = 2,
}

impl State {
    pub(super) fn from_number(number: i16) -> Option<Self> {
        [Self::Open, Self::Complete]
            .into_iter()
            .find(|state| *state as i16 == number)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Complete => "complete",
        }
    }
}

/// The state as merchants and cardholders see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Open,
    Complete,
    Expired,
}

impl Status {
    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Complete => "complete",
            Self::Expired => "expired",
        }
    }
}

impl Session {
    pub fn status(&self) -> Status {
        match (self.columns.state, self.columns.is_past_expiry) {
            (State::Complete, _) => Status::Complete,
            (State::Open, true) => Status::Expired,
            (State::Open, false) => Status::Open,
        }
    }

    /// The session after its card was submitted.
    pub(super) fn complete(&self, completion: Completion) -> Self {
        let mut next = self.clone();
        next.columns.version = self.columns.version.wrapping_add(1);
        next.columns.state = State::Complete;
        next.facts.completion = Some(completion);
        next
    }

    pub(super) fn amount(&self) -> Option<Money> {
        let price = self.facts.price.as_ref()?;
        Some(Money::new(
            price.amount,
            Currency::from_code(&price.currency)?,
        ))
    }

    /// Where the cardholder returns to. `intent` is known only to the page that created it.
    pub(super) fn return_url(&self, intent: Option<Uuid>) -> String {
        let mut url = self.with_id(&self.facts.return_url);
        if let Some(intent) = intent {
            url = with_parameter(&url, "token_intent_id", &intent.to_string());
        }
        url
    }

    pub(super) fn cancel_url(&self) -> String {
        self.with_id(&self.facts.cancel_url)
    }

    fn with_id(&self, url: &str) -> String {
        with_parameter(url, "checkout_session_id", &self.columns.id.to_string())
    }
}

/// Adds a query parameter to a URL, whose fragment stays last. The value needs no escape.
fn with_parameter(url: &str, name: &str, value: &str) -> String {
    let (address, fragment) = url.split_once('#').unwrap_or((url, ""));
    let separator = if address.contains('?') { '&' } else { '?' };
    let mut extended = format!("{address}{separator}{name}={value}");
    if !fragment.is_empty() {
        let _ = write!(extended, "#{fragment}");
    }
    extended
}

impl SessionColumns {
    /// Associated data of the encrypted attributes: changing any of it by SQL makes them undecryptable.
    pub(super) fn record(&self) -> Record<'_> {
        let mut page = String::new();
        for byte in &self.page_digest {
            let _ = write!(page, "{byte:02x}");
        }
        let expires_at = Some(self.expires_at.as_microsecond());
        let policy = PolicyDigest::new::<&str>(self.state.name(), &[], expires_at)
            .with("created_by", &self.created_by.to_string())
            .with("page", &page);
        Record {
            kind: "checkout_session",
            id: self.id.as_bytes(),
            column: "facts",
            row_version: self.version.unsigned_abs(),
            policy,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_added_to_the_query() {
        let cases = [
            ("https://shop.example", "https://shop.example?a=1"),
            ("https://shop.example/x", "https://shop.example/x?a=1"),
            (
                "https://shop.example/x?b=2",
                "https://shop.example/x?b=2&a=1",
            ),
            (
                "https://shop.example/x#c?d",
                "https://shop.example/x?a=1#c?d",
            ),
            (
                "https://shop.example/x?b=2#c",
                "https://shop.example/x?b=2&a=1#c",
            ),
        ];
        for (url, expected) in cases {
            assert_eq!(with_parameter(url, "a", "1"), expected);
        }
    }
}
