//! A session: what is kept of it, and how it moves from one state to the next.

use std::ops::Deref;

use cloakroom_crypto::PolicyDigest;
use cloakroom_emv3ds::codes::TransStatus;
use cloakroom_emv3ds::{ARes, Confidential, RReq, Version};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::state::{Event, Illegal, State};
use crate::access::TenantKind;
use crate::card_networks::{Network, Offer};
use crate::ids::TenantId;
use crate::keys::Record;
use crate::threeds_requests::{DeviceInfo, SessionKind};

/// A session with everything that is known of it. It holds no card number.
#[derive(Clone)]
pub struct Session {
    pub standing: Standing,
    pub facts: Facts,
}

impl Deref for Session {
    type Target = Standing;

    fn deref(&self) -> &Standing {
        &self.standing
    }
}

/// What stands in columns, in clear.
#[derive(Clone)]
pub struct Standing {
    pub tenant: TenantId,
    pub id: Uuid,
    /// Counts the steps; each one starts from the version before it.
    pub(super) version: i32,
    pub(super) state: State,
    pub created_by: Uuid,
    pub created_at: Timestamp,
    pub modified_by: Option<Uuid>,
    pub modified_at: Option<Timestamp>,
    /// When it ends if nothing is authenticated before.
    pub expires_at: Option<Timestamp>,
    /// When the step that is awaited is late.
    pub due_at: Option<Timestamp>,
}

/// What is sealed.
#[derive(Clone, Serialize, Deserialize)]
pub struct Facts {
    pub tenant_kind: TenantKindName,
    pub kind: SessionKind,
    pub card: CardReference,
    /// As it is shown; one of `networks`.
    pub brand: String,
    /// Every network that knows the card, the primary one first.
    pub offers: Vec<Offer>,
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
    /// What the browser said of the challenge. It decides nothing.
    #[serde(default)]
    pub is_challenge_completed: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Asked>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Box<ARes>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Box<RReq>>,
    /// A decoupled authentication whose time ran out has no result of its own.
    #[serde(default)]
    pub ran_out: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosted: Option<Box<Hosted>>,
}

/// The kind of a tenant by its name.
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

/// Where the card number is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CardReference {
    Token(String),
    TokenIntent(String),
}

/// What the cardholder uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Device {
    Browser,
    App,
}

/// What an authentication was asked with; kept to understand the answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Asked {
    pub network: Network,
    pub version: Version,
    pub is_payment: bool,
    /// The name of the preference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub challenge_preference: Option<String>,
    pub method_completion: MethodCompletion,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decoupled_minutes: Option<u32>,
}

/// Whether the issuer has seen the browser before the authentication.
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

/// What the hosted page needs.
#[derive(Clone, Serialize, Deserialize)]
pub struct Hosted {
    pub authentication_request: Map<String, Value>,
    pub success: String,
    pub failure: String,
    /// What the page that was served last proves itself with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nonce: Option<String>,
}

impl Session {
    pub fn state(&self) -> State {
        self.state
    }

    /// A session that is not kept yet.
    pub(super) fn new(place: (TenantId, Uuid), made: (Uuid, Timestamp), facts: Facts) -> Self {
        let standing = Standing {
            tenant: place.0,
            id: place.1,
            version: 0,
            state: State::Created,
            created_by: made.0,
            created_at: made.1,
            modified_by: None,
            modified_at: None,
            expires_at: None,
            due_at: None,
        };
        Self { standing, facts }
    }

    /// The same session one step further. Nothing else changes a state.
    pub(super) fn step(&self, event: Event) -> Result<Self, Illegal> {
        let mut next = self.clone();
        next.standing.state = self.state.after(event)?;
        next.standing.version = self.version.wrapping_add(1);
        Ok(next)
    }

    /// What the network that is meant offers; the primary one if none is named.
    pub fn offer(&self, network: Option<Network>) -> Option<&Offer> {
        match network {
            None => self.facts.offers.first(),
            Some(network) => self
                .facts
                .offers
                .iter()
                .find(|offer| offer.network == network),
        }
    }

    /// Whether the challenge has happened or happens in the cardholder's browser or app.
    pub fn is_challenged(&self) -> bool {
        let answer = self.facts.answer.as_ref();
        answer.is_some_and(|answer| answer.trans_status == Some(TransStatus::Challenge))
    }
}

impl Session {
    /// The outcome as it stands: the result of a challenge over the first answer.
    pub fn status(&self) -> Option<TransStatus> {
        let facts = &self.facts;
        match (&facts.result, facts.ran_out, &facts.answer) {
            (Some(result), _, _) => result.trans_status,
            (None, true, _) => Some(TransStatus::Failed),
            (None, false, answer) => answer.as_ref().and_then(|answer| answer.trans_status),
        }
    }

    /// What proves the authentication, if there is such a thing.
    pub fn authentication_value(&self) -> Option<&str> {
        let facts = &self.facts;
        let value = match (&facts.result, &facts.answer) {
            (Some(result), _) => result.authentication_value.as_ref(),
            (None, _) if facts.ran_out => None,
            (None, answer) => answer
                .as_ref()
                .and_then(|one| one.authentication_value.as_ref()),
        };
        value.map(Confidential::expose)
    }
}

impl Standing {
    /// What the sealed facts are bound to: changing any of it by SQL makes them unreadable.
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
