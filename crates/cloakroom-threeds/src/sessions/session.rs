//! A session: its stored data and its state transitions.

use std::ops::Deref;

use cloakroom_core::access::TenantKind;
use cloakroom_core::caller::Caller;
use cloakroom_core::keys::Record;
use cloakroom_crypto::PolicyDigest;
use cloakroom_emv3ds::codes::TransStatus;
use cloakroom_emv3ds::{ARes, Confidential, RReq, Version};
use cloakroom_platform::ids::TenantId;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::state::{Event, IllegalTransition, State};
use crate::networks::{Network, NetworkRange};
use crate::requests::{DeviceInfo, SessionKind};

/// A session. It contains no card number.
#[derive(Clone)]
pub struct Session {
    pub columns: SessionColumns,
    pub facts: Facts,
}

impl Deref for Session {
    type Target = SessionColumns;

    fn deref(&self) -> &SessionColumns {
        &self.columns
    }
}

/// Unencrypted columns of a session.
#[derive(Clone)]
pub struct SessionColumns {
    pub tenant: TenantId,
    pub id: Uuid,
    /// Incremented by each transition, which is conditional on the previous version.
    pub(super) version: i32,
    pub(super) state: State,
    pub created_by: Uuid,
    pub created_at: Timestamp,
    pub modified_by: Option<Uuid>,
    pub modified_at: Option<Timestamp>,
    /// When the session expires. Sessions that older releases finished have none until they are swept.
    pub expires_at: Option<Timestamp>,
    /// When device data and authentication values are removed; `None` once they are.
    pub details_until: Option<Timestamp>,
    /// Deadline of the pending transition.
    pub due_at: Option<Timestamp>,
}

/// Encrypted attributes of a session. The serialized names are a storage format.
#[derive(Clone, Serialize, Deserialize)]
pub struct Facts {
    pub tenant_kind: TenantKindName,
    pub kind: SessionKind,
    pub card: CardReference,
    /// Card brand as shown to callers.
    pub brand: String,
    /// Networks that have a card range for the card, the primary one first.
    #[serde(rename = "offers")]
    pub network_ranges: Vec<NetworkRange>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<Device>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_info: Option<DeviceInfo>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub web_challenge_mode: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
    #[serde(default)]
    pub is_method_completed: bool,
    /// Whether the browser returned from the challenge. Does not affect the outcome.
    #[serde(default)]
    pub is_challenge_completed: bool,
    #[serde(rename = "asked", default, skip_serializing_if = "Option::is_none")]
    pub params: Option<AuthenticationParams>,
    #[serde(rename = "answer", default, skip_serializing_if = "Option::is_none")]
    pub ares: Option<Box<ARes>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Box<RReq>>,
    /// Whether decoupled authentication timed out, in which case there is no `result`.
    #[serde(rename = "ran_out", default)]
    pub decoupled_timed_out: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosted: Option<Box<Hosted>>,
    /// Card testing group that an issuer decline counts toward: a digest of public key and client address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal_group: Option<String>,
}

/// Serialized form of [`TenantKind`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TenantKindName {
    Production,
    Test,
}

impl From<TenantKind> for TenantKindName {
    fn from(kind: TenantKind) -> Self {
        match kind {
            TenantKind::Production => Self::Production,
            TenantKind::Test => Self::Test,
        }
    }
}

impl From<TenantKindName> for TenantKind {
    fn from(name: TenantKindName) -> Self {
        match name {
            TenantKindName::Production => Self::Production,
            TenantKindName::Test => Self::Test,
        }
    }
}

/// The token or token intent that contains the card number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CardReference {
    Token(String),
    TokenIntent(String),
}

/// The cardholder's device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Device {
    Browser,
    App,
}

/// Parameters of the AReq, needed to interpret the ARes and the RReq.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AuthenticationParams {
    pub network: Network,
    pub version: Version,
    pub is_payment: bool,
    /// Name of the challenge preference, as in the API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub challenge_preference: Option<String>,
    pub method_completion: MethodCompletion,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decoupled_minutes: Option<u32>,
}

/// 3DS Method completion indicator (threeDSCompInd).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MethodCompletion {
    Y,
    N,
    U,
}

impl MethodCompletion {
    pub fn code(self) -> &'static str {
        match self {
            Self::Y => "Y",
            Self::N => "N",
            Self::U => "U",
        }
    }
}

/// Data of a session with a hosted page.
#[derive(Clone, Serialize, Deserialize)]
pub struct Hosted {
    pub authentication_request: Map<String, Value>,
    pub success: String,
    pub failure: String,
    /// Secret of the page that was served last. Every call of the page must include it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nonce: Option<String>,
    /// Whether a page has sent its device data. From then on no further nonce is issued.
    #[serde(default)]
    pub has_begun: bool,
}

impl Session {
    pub fn state(&self) -> State {
        self.state
    }

    /// Makes a session that is not stored yet.
    pub(super) fn new(caller: &Caller, id: Uuid, created_at: Timestamp, facts: Facts) -> Self {
        let columns = SessionColumns {
            tenant: caller.tenant,
            id,
            version: 0,
            state: State::Created,
            created_by: caller.application,
            created_at,
            modified_by: None,
            modified_at: None,
            expires_at: None,
            details_until: None,
            due_at: None,
        };
        Self { columns, facts }
    }

    /// Returns the session after a transition. Nothing else changes the state.
    pub(super) fn apply(&self, event: Event) -> Result<Self, IllegalTransition> {
        let mut next = self.clone();
        next.columns.state = self.state.after(event)?;
        next.columns.version = self.version.wrapping_add(1);
        Ok(next)
    }

    /// The card range of a network, or of the primary network if none is named.
    pub fn network_range(&self, network: Option<Network>) -> Option<&NetworkRange> {
        match network {
            None => self.facts.network_ranges.first(),
            Some(network) => self
                .facts
                .network_ranges
                .iter()
                .find(|network_range| network_range.network == network),
        }
    }

    /// Whether the ARes required a challenge in the cardholder's browser or app.
    pub fn is_challenged(&self) -> bool {
        let ares = self.facts.ares.as_ref();
        ares.is_some_and(|ares| ares.trans_status == Some(TransStatus::Challenge))
    }
}

impl Session {
    /// The current transaction status: that of the RReq if there is one, else that of the ARes.
    pub fn status(&self) -> Option<TransStatus> {
        let facts = &self.facts;
        match (&facts.result, facts.decoupled_timed_out, &facts.ares) {
            (Some(result), _, _) => result.trans_status,
            (None, true, _) => Some(TransStatus::Failed),
            (None, false, ares) => ares.as_ref().and_then(|ares| ares.trans_status),
        }
    }

    /// The authentication value (CAVV), if there is one.
    pub fn authentication_value(&self) -> Option<&str> {
        let facts = &self.facts;
        let value = match (&facts.result, &facts.ares) {
            (Some(result), _) => result.authentication_value.as_ref(),
            (None, _) if facts.decoupled_timed_out => None,
            (None, ares) => ares
                .as_ref()
                .and_then(|one| one.authentication_value.as_ref()),
        };
        value.map(Confidential::expose)
    }
}

impl SessionColumns {
    /// Associated data of the encrypted facts: changing any of it by SQL makes them undecryptable.
    pub(super) fn record(&self) -> Record<'_> {
        let expires_at = self.expires_at.map(Timestamp::as_microsecond);
        let due_at = self.due_at.map_or(0, Timestamp::as_microsecond);
        let policy = PolicyDigest::new::<&str>(self.state.name(), &[], expires_at)
            .with("due_at", &due_at.to_string())
            .with("created_by", &self.created_by.to_string());
        Record {
            kind: "threeds_session",
            id: self.id.as_bytes(),
            column: "facts",
            row_version: self.version.unsigned_abs(),
            policy,
        }
    }
}
