//! One thing that was done: by whom, to what, and what came of it.

use std::net::IpAddr;
use std::sync::Arc;

use jiff::Timestamp;
use uuid::Uuid;

use crate::caller::Caller;

/// Lists every kind of thing once: variant, number in the table, name on the wire, and for people.
macro_rules! entity_kinds {
    ($($variant:ident $number:literal $value:literal $display:literal $noun:literal;)+) => {
        /// What something was done to.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum EntityKind { $($variant = $number),+ }

        impl EntityKind {
            /// In the order of their names for people.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// How filters name it.
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
    ClientKey 11 "key" "Client Encryption Key" "Client encryption key";
    Document 15 "document" "Document" "Document";
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

impl EntityKind {
    pub(super) fn from_number(number: i16) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|kind| *kind as i16 == number)
    }

    /// The kinds that a filter's word means: cards and banks are tokens, too.
    pub(super) fn meant_by(value: &str) -> Option<Vec<Self>> {
        let kind = Self::ALL.iter().copied().find(|kind| kind.value() == value);
        kind.map(|kind| match kind {
            Self::Token => vec![Self::Token, Self::Card, Self::Bank],
            kind => vec![kind],
        })
    }

    /// How an entry names it.
    pub(super) fn shown(self) -> &'static str {
        match self {
            Self::Card | Self::Bank => Self::Token.value(),
            kind => kind.value(),
        }
    }
}

/// Lists every operation once: variant, number in the table, verb, and what has then been done.
macro_rules! operations {
    ($($variant:ident $number:literal $verb:literal $done:literal;)+) => {
        /// What was done.
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
    Refuse 11 "refuse" "refused for too many card numbers";
    Authenticate 12 "authenticate" "authenticated";
    CompleteMethod 13 "complete_method" "seen by the issuer";
    CompleteChallenge 14 "complete_challenge" "back from its challenge";
    ReceiveResult 15 "receive_result" "decided by the issuer";
}

impl Operation {
    pub(super) fn from_number(number: i16) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|operation| *operation as i16 == number)
    }
}

/// What was seen of data, if any was asked for.
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

/// Who did something.
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

/// One thing that was done. It holds names and no data.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The number of its tenant.
    pub(super) tenant: i32,
    pub(super) actor_kind: ActorKind,
    pub(super) actor: Uuid,
    pub(super) key: Uuid,
    pub(super) entity: EntityKind,
    pub(super) entity_id: String,
    pub(super) operation: Operation,
    pub(super) outcome: Outcome,
    pub(super) origin: Option<IpAddr>,
    pub(super) trace_id: Arc<str>,
    /// When it was done, if it is not recorded at once.
    pub(super) at: Option<Timestamp>,
}

impl Entry {
    /// What a caller does to something.
    pub fn of(
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
            trace_id: caller.trace_id.clone(),
            at: None,
        }
    }

    /// What the vault, or whoever operates it, does to something of the tenant with this number.
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
            trace_id: "".into(),
            at: None,
        }
    }

    /// The same, with what was seen of data.
    pub fn with_outcome(mut self, outcome: Outcome) -> Self {
        self.outcome = outcome;
        self
    }

    pub fn is_revealed(&self) -> bool {
        self.outcome == Outcome::Revealed
    }
}

/// What is to be recorded when the answer that tells of these is given again.
pub(crate) fn told_again(entries: &[Entry]) -> Vec<u8> {
    let mut told = Vec::new();
    for entry in entries {
        let length = u16::try_from(entry.entity_id.len()).unwrap_or_default();
        for number in [entry.entity as i16, entry.outcome as i16] {
            told.extend(number.to_be_bytes());
        }
        told.extend(length.to_be_bytes());
        told.extend(entry.entity_id.bytes().take(length.into()));
    }
    told
}

/// The reads that giving an answer again amounts to; nothing if that was not told by [`told_again`].
pub(super) fn reads_again(caller: &Caller, mut told: &[u8]) -> Option<Vec<Entry>> {
    let mut entries = Vec::new();
    while !told.is_empty() {
        let mut number = || -> Option<[u8; 2]> {
            let (number, rest) = told.split_first_chunk::<2>()?;
            told = rest;
            Some(*number)
        };
        let entity = EntityKind::from_number(i16::from_be_bytes(number()?))?;
        let outcome = Outcome::from_number(i16::from_be_bytes(number()?))?;
        let length = u16::from_be_bytes(number()?);
        let (id, rest) = told.split_at_checked(length.into())?;
        told = rest;
        let id = String::from_utf8(id.to_vec()).ok()?;
        entries.push(Entry::of(caller, Operation::Read, entity, id).with_outcome(outcome));
    }
    Some(entries)
}

/// A sentence about what was done, made of constants.
pub(super) fn message(entity: EntityKind, operation: Operation) -> String {
    format!("{} {}", entity.noun(), operation.done())
}
