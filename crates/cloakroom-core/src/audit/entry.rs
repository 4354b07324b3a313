//! An audit log entry: who did what to which entity, with which outcome.

use std::net::IpAddr;
use std::sync::Arc;

use jiff::Timestamp;
use uuid::Uuid;

use super::operator::Operator;
use crate::caller::Caller;
use crate::events::{self, Event};
use crate::keys::ControlKey;

/// Defines every entity kind: variant, number in the table, wire name, display name and noun.
macro_rules! entity_kinds {
    ($($variant:ident $number:literal $value:literal $display:literal $noun:literal;)+) => {
        /// The kind of entity that was acted on.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum EntityKind { $($variant = $number),+ }

        impl EntityKind {
            /// In the order of their display names.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// Value of the filter `entity_type`.
            pub fn value(self) -> &'static str {
                match self { $(Self::$variant => $value),+ }
            }

            pub fn display_name(self) -> &'static str {
                match self { $(Self::$variant => $display),+ }
            }

            fn noun(self) -> &'static str {
                match self { $(Self::$variant => $noun),+ }
            }
        }
    };
}

entity_kinds! {
    Application 5 "application" "Application" "Application";
    ApplicationKey 6 "application_key" "Application Key" "Application key";
    Bank 3 "bank" "Bank" "Token";
    Card 2 "card" "Card" "Token";
    CheckoutSession 18 "checkout_session" "Checkout Session" "Checkout session";
    ClientKey 11 "key" "Client Encryption Key" "Client encryption key";
    Destination 17 "destination" "Destination" "Destination";
    Document 15 "document" "Document" "Document";
    EncryptionKey 19 "encryption_key" "Encryption Key" "Encryption key";
    Export 20 "export" "Export" "Export";
    Import 21 "import" "Import" "Import";
    Invitation 9 "invitation" "Invitation" "Invitation";
    Member 8 "member" "Member" "Member";
    Proxy 12 "proxy" "Proxy" "Proxy";
    Reactor 13 "reactor" "Reactor" "Reactor";
    Session 10 "session" "Session" "Session";
    Tenant 7 "tenant" "Tenant" "Tenant";
    ThreedsSession 16 "threeds_session" "Three DS Session" "3DS session";
    Token 1 "token" "Token" "Token";
    TokenIntent 4 "token_intent" "Token Intent" "Token intent";
    Webhook 14 "webhook" "Webhook" "Webhook";
}

/// Number of the vault itself in the audit log. Tenants are counted from one.
pub const VAULT: i32 = 0;

impl EntityKind {
    pub(super) fn from_number(number: i16) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|kind| *kind as i16 == number)
    }

    /// The kinds that a filter value covers: `token` includes cards and banks.
    pub fn from_filter(value: &str) -> Option<Vec<Self>> {
        let kind = Self::ALL.iter().copied().find(|kind| kind.value() == value);
        kind.map(|kind| match kind {
            Self::Token => vec![Self::Token, Self::Card, Self::Bank],
            kind => vec![kind],
        })
    }

    /// The `entity_type` of an entry.
    pub fn wire_name(self) -> &'static str {
        match self {
            Self::Card | Self::Bank => Self::Token.value(),
            kind => kind.value(),
        }
    }
}

/// Defines every operation: variant, number in the table, wire name and past tense.
macro_rules! operations {
    ($($variant:ident $number:literal $verb:literal $done:literal;)+) => {
        /// What was done to the entity.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Operation { $($variant = $number),+ }

        impl Operation {
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            pub fn verb(self) -> &'static str {
                match self { $(Self::$variant => $verb),+ }
            }

            fn done(self) -> &'static str {
                match self { $(Self::$variant => $done),+ }
            }
        }
    };
}

operations! {
    Create 1 "create" "created";
    Read 2 "read" "retrieved";
    Update 3 "update" "updated";
    Delete 4 "delete" "deleted";
    Use 5 "use" "used";
    Search 6 "search" "found by a search";
    Invoke 7 "invoke" "invoked";
    Authorize 8 "authorize" "authorized";
    Expire 9 "expire" "expired";
    Convert 10 "convert" "converted";
    Reject 11 "reject" "rejected for too many card numbers";
    Authenticate 12 "authenticate" "authenticated";
    CompleteMethod 13 "complete_method" "seen by the issuer";
    CompleteChallenge 14 "complete_challenge" "returned from its challenge";
    ReceiveResult 15 "receive_result" "decided by the issuer";
    Activate 16 "activate" "activated";
    Retire 17 "retire" "retired";
    Prove 18 "prove" "proved to be unused";
    Destroy 19 "destroy" "destroyed";
    RequestDeletion 20 "request_deletion" "deletion requested";
    ConfirmDeletion 21 "confirm_deletion" "deletion confirmed";
    CancelDeletion 22 "cancel_deletion" "deletion canceled";
}

impl Operation {
    pub(super) fn from_number(number: i16) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|operation| *operation as i16 == number)
    }
}

/// How sensitive data was returned, if it was requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    Done = 1,
    Redacted = 2,
    Masked = 3,
    Revealed = 4,
}

impl Outcome {
    const ALL: [Self; 4] = [Self::Done, Self::Redacted, Self::Masked, Self::Revealed];

    pub(super) fn from_number(number: i16) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|outcome| *outcome as i16 == number)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Redacted => "redacted",
            Self::Masked => "masked",
            Self::Revealed => "revealed",
        }
    }
}

/// The kind of actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ActorKind {
    Application = 1,
    User = 2,
    System = 3,
}

impl ActorKind {
    pub(super) fn from_number(number: i16) -> Option<Self> {
        let all = [Self::Application, Self::User, Self::System];
        all.into_iter().find(|kind| *kind as i16 == number)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Application => "application",
            Self::User => "user",
            Self::System => "system",
        }
    }
}

/// An audit log entry. It holds identifiers, never data.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The tenant's number.
    pub(super) tenant: i32,
    pub(super) actor_kind: ActorKind,
    pub(super) actor: Uuid,
    pub(super) key: Uuid,
    pub(super) entity: EntityKind,
    pub(super) entity_id: String,
    pub(super) operation: Operation,
    pub(super) outcome: Outcome,
    pub(super) origin: Option<IpAddr>,
    /// The person who acted, if it is not the operator of this process.
    pub(super) operator: Option<Box<Operator>>,
    pub(super) trace_id: Arc<str>,
    /// Time of the operation, if it is known before the commit.
    pub(super) at: Option<Timestamp>,
    /// The event of the operation, inserted together with the entry.
    event: Option<Box<Event>>,
}

impl Entry {
    /// An operation of a caller.
    pub fn new(
        caller: &Caller,
        operation: Operation,
        entity: EntityKind,
        id: impl Into<String>,
    ) -> Self {
        Self {
            tenant: caller.tenant.number,
            actor_kind: ActorKind::Application,
            actor: caller.application,
            key: caller.key,
            entity,
            entity_id: id.into(),
            operation,
            outcome: Outcome::Done,
            origin: caller.origin,
            operator: None,
            trace_id: caller.trace_id.clone(),
            at: None,
            event: None,
        }
    }

    /// An operation of the vault or its operator on the tenant with this number.
    pub fn by_system(
        tenant: i32,
        operation: Operation,
        entity: EntityKind,
        id: impl Into<String>,
    ) -> Self {
        Self {
            tenant,
            actor_kind: ActorKind::System,
            actor: Uuid::nil(),
            key: Uuid::nil(),
            entity,
            entity_id: id.into(),
            operation,
            outcome: Outcome::Done,
            origin: None,
            operator: None,
            trace_id: "".into(),
            at: None,
            event: None,
        }
    }

    /// Sets how sensitive data was returned.
    pub fn with_outcome(mut self, outcome: Outcome) -> Self {
        self.outcome = outcome;
        self
    }

    /// Names the person who acted, instead of the operator of this process.
    pub fn with_operator(mut self, operator: Operator) -> Self {
        self.operator = Some(Box::new(operator));
        self
    }

    /// Adds the event of the operation.
    pub fn with_event(mut self, event: Event) -> Self {
        self.event = Some(Box::new(event));
        self
    }

    /// Sets when the operation happened, for the entry and its event. Without it, this is the time of the commit.
    pub fn set_time(&mut self, at: Timestamp) {
        self.at = Some(at);
        if let Some(event) = &mut self.event {
            event.at = Some(at);
        }
    }

    /// Approximate size of its event's row.
    pub fn event_bytes(&self) -> usize {
        self.event.as_ref().map_or(0, |event| event.size_bytes())
    }

    pub fn is_revealed(&self) -> bool {
        self.outcome == Outcome::Revealed
    }
}

/// Signs the events of these entries and encodes them as rows.
pub(super) fn encode_events<'e>(
    key: &ControlKey,
    entries: impl IntoIterator<Item = &'e Entry>,
) -> Vec<String> {
    let events = entries.into_iter().filter_map(|entry| {
        let event = entry.event.as_deref()?;
        let origin = events::Origin {
            tenant: entry.tenant,
            actor_type: entry.actor_kind.name(),
            actor: Some(entry.actor).filter(|actor| !actor.is_nil()),
            trace_id: &entry.trace_id,
        };
        Some(events::encode(key, &origin, event))
    });
    events.collect()
}

/// Encodes the reads to record when the response about these entries is replayed.
pub fn encode_reads(entries: &[Entry]) -> Vec<u8> {
    let mut encoded = Vec::new();
    for entry in entries {
        let length = u16::try_from(entry.entity_id.len()).unwrap_or_default();
        for number in [entry.entity as i16, entry.outcome as i16] {
            encoded.extend(number.to_be_bytes());
        }
        encoded.extend(length.to_be_bytes());
        encoded.extend(entry.entity_id.bytes().take(length.into()));
    }
    encoded
}

/// Decodes the reads of a replayed response; `None` if the bytes are malformed.
pub(super) fn decode_reads(caller: &Caller, mut encoded: &[u8]) -> Option<Vec<Entry>> {
    let mut entries = Vec::new();
    while !encoded.is_empty() {
        let mut number = || -> Option<[u8; 2]> {
            let (number, rest) = encoded.split_first_chunk::<2>()?;
            encoded = rest;
            Some(*number)
        };
        let entity = EntityKind::from_number(i16::from_be_bytes(number()?))?;
        let outcome = Outcome::from_number(i16::from_be_bytes(number()?))?;
        let length = u16::from_be_bytes(number()?);
        let (id, rest) = encoded.split_at_checked(length.into())?;
        encoded = rest;
        let id = String::from_utf8(id.to_vec()).ok()?;
        entries.push(Entry::new(caller, Operation::Read, entity, id).with_outcome(outcome));
    }
    Some(entries)
}

/// A message composed of constants.
pub(super) fn message(entity: EntityKind, operation: Operation) -> String {
    format!("{} {}", entity.noun(), operation.done())
}
