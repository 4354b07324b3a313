//! Transactions of the ACS.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cloakroom_crypto::{ClientHash, client_hmac, random_uuid_v4_bytes};
use serde_json::Value;
use uuid::Uuid;

use crate::behavior::Decision;
use crate::wire::{Fields, text};

/// A fixed test key; networks do not accept its authentication values.
const VALUE_KEY: &[u8] = b"cloakroom 3-D Secure simulator";
const VALUE_BYTES: usize = 20;

pub(crate) struct Transaction {
    pub(crate) network: &'static str,
    pub(crate) version: String,
    pub(crate) category: String,
    pub(crate) channel: Channel,
    pub(crate) server_id: String,
    pub(crate) acs_id: String,
    pub(crate) ds_id: String,
    pub(crate) sdk_id: Option<String>,
    pub(crate) last_four: String,
    pub(crate) merchant: String,
    pub(crate) amount: Option<Amount>,
    pub(crate) notification_url: Option<String>,
    pub(crate) results_url: String,
    pub(crate) requests_trust_listing: bool,
    pub(crate) decision: Decision,
    pub(crate) started_at: Instant,
    progress: Mutex<Progress>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Channel {
    App,
    Browser,
    ThreeRi,
}

pub(crate) struct Amount {
    pub(crate) minor_units: String,
    pub(crate) currency: String,
    pub(crate) exponent: usize,
}

/// The progress of a challenge or decoupled authentication.
#[derive(Default)]
pub(crate) struct Progress {
    pub(crate) stage: Stage,
    pub(crate) attempts: u8,
    pub(crate) session_data: Option<String>,
    /// The last RReq.
    pub(crate) result: Option<Fields>,
    pub(crate) replies: Vec<Value>,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Stage {
    #[default]
    AwaitingCreq,
    /// The first CReq arrived.
    Presented,
    /// With the `transStatus` of the CRes.
    Completed(&'static str),
    TimedOut,
}

impl Transaction {
    /// Copies the required fields of an AReq; drops the card number except its last four digits.
    pub(crate) fn new(network: &'static str, request: &Fields, decision: Decision) -> Self {
        let owned = |name| text(request, name).unwrap_or_default().to_owned();
        let number = text(request, "acctNumber").unwrap_or_default();
        Self {
            network,
            version: owned("messageVersion"),
            category: owned("messageCategory"),
            channel: Channel::of(request),
            server_id: owned("threeDSServerTransID"),
            acs_id: new_id(),
            ds_id: new_id(),
            sdk_id: text(request, "sdkTransID").map(str::to_owned),
            last_four: last_four(number).to_owned(),
            merchant: text(request, "merchantName")
                .or_else(|| text(request, "threeDSRequestorName"))
                .unwrap_or_default()
                .to_owned(),
            amount: Amount::of(request),
            notification_url: text(request, "notificationURL").map(str::to_owned),
            results_url: owned("threeDSServerURL"),
            requests_trust_listing: preferences(request).any(|code| code == "09"),
            decision,
            started_at: Instant::now(),
            progress: Mutex::default(),
        }
    }

    pub(crate) fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A deterministic authentication value (CAVV), so that tests can compare it.
    pub(crate) fn authentication_value(&self) -> String {
        let amount = self
            .amount
            .as_ref()
            .map(|amount| amount.minor_units.as_str());
        let message = format!("{}{}", self.acs_id, amount.unwrap_or_default());
        let mut value = client_hmac(ClientHash::Sha256, VALUE_KEY, message.as_bytes());
        value.truncate(VALUE_BYTES);
        STANDARD.encode(value)
    }
}

impl Channel {
    pub(crate) fn of(request: &Fields) -> Self {
        match text(request, "deviceChannel") {
            Some("01") => Self::App,
            Some("03") => Self::ThreeRi,
            _ => Self::Browser,
        }
    }
}

impl Amount {
    fn of(request: &Fields) -> Option<Self> {
        Some(Self {
            minor_units: text(request, "purchaseAmount")?.to_owned(),
            currency: text(request, "purchaseCurrency")?.to_owned(),
            exponent: text(request, "purchaseExponent")?.parse().ok()?,
        })
    }
}

/// The codes of `threeDSRequestorChallengeInd`: a string, or a list from 2.3.1.
pub(crate) fn preferences(request: &Fields) -> impl Iterator<Item = &str> {
    let value = request.get("threeDSRequestorChallengeInd");
    let one = value.and_then(Value::as_str);
    let many = value.and_then(Value::as_array).into_iter().flatten();
    one.into_iter().chain(many.filter_map(Value::as_str))
}

pub(crate) fn last_four(number: &str) -> &str {
    number
        .len()
        .checked_sub(4)
        .and_then(|at| number.get(at..))
        .unwrap_or_default()
}

pub(crate) fn new_id() -> String {
    Uuid::from_bytes(random_uuid_v4_bytes()).to_string()
}
