//! A token that is asked for, checked as far as that goes without looking into the vault, and what is to
//! happen for it.

use cloakroom_crypto::Fingerprint;
use jiff::Timestamp;
use uuid::Uuid;

use super::content::Content;
use super::create::converted;
use super::token::TokenData;
use super::view::Shown;
use super::{Error, NewToken, Placed, Token, TokenView};
use crate::access::{Container, DeduplicationBehavior};
use crate::api::Broken;
use crate::caller::Caller;
use crate::client_encryption::{GivenData, given_data};
use crate::deprecations::Deprecated;
use crate::token_attributes::{self as attributes, NewId, keep};
use crate::token_intents;
use crate::token_rows::Write;
use crate::token_types::{SecurityCode, TokenKind, settle};
use crate::vault::Vault;

/// A token that is to be created, checked as far as that goes without looking into the vault.
pub(crate) struct Draft {
    /// Where in the request it stands; empty when it is the request.
    pub(super) place: String,
    pub(super) id: NewId,
    pub(super) content: Content,
    pub(super) code: SecurityCode,
    pub(super) was_encrypted: bool,
    pub(super) deduplicate: bool,
    /// The intent that is converted, and gone when the token is kept.
    pub(super) intent: Option<Uuid>,
}

/// What a new token holds, and where that comes from.
struct Source {
    kind: Option<TokenKind>,
    data: Option<TokenData>,
    code: SecurityCode,
    was_encrypted: bool,
    intent: Option<Uuid>,
}

impl Source {
    /// Type and data as the request gives them.
    async fn given(
        vault: &Vault,
        caller: &Caller,
        new: &NewToken<'_>,
        broken: &mut Vec<Broken>,
    ) -> Result<Self, Error> {
        let kind = keep(attributes::kind(new.kind.as_deref()), broken);
        let encrypted = new.encrypted.as_deref();
        let given = given_data(vault, caller.tenant, new.data, encrypted).await?;
        let given = keep(given, broken);
        let settled = match (given.as_ref().map(GivenData::raw), kind) {
            (Some(None), _) => keep(Err(vec![Broken::new("data", "is required")]), broken),
            (Some(Some(raw)), Some(kind)) => {
                let settled = attributes::data_size(raw.get().as_bytes())
                    .and_then(|()| settle(kind, raw, caller.tenant_kind));
                keep(settled, broken)
            }
            (None, _) | (_, None) => None,
        };
        let (data, code) = settled
            .map(|settled| (settled.data, settled.security_code))
            .unzip();
        Ok(Self {
            kind,
            data,
            code: code.unwrap_or(SecurityCode::Absent),
            was_encrypted: given.is_some_and(|given| given.is_encrypted()),
            intent: None,
        })
    }

    /// Type and data of an intent. Its security code stays behind.
    async fn converted(
        vault: &Vault,
        caller: &Caller,
        new: &NewToken<'_>,
        broken: &mut Vec<Broken>,
    ) -> Result<Self, Error> {
        let mut source = Self {
            kind: None,
            data: None,
            code: SecurityCode::Absent,
            was_encrypted: false,
            intent: None,
        };
        let given = [
            ("data", new.data.is_some()),
            ("encrypted", new.encrypted.is_some()),
        ];
        if let Some((name, _)) = given.into_iter().find(|(_, is_given)| *is_given) {
            let rule = "must not be given together with token_intent_id";
            broken.push(Broken::new(name, rule));
            return Ok(source);
        }
        let id = new.token_intent_id.as_deref().unwrap_or_default();
        match token_intents::open(vault, caller, id).await {
            Ok(opened) => {
                let kind = opened.intent.kind;
                if new.kind.as_ref().is_some_and(|name| name != kind.name()) {
                    let rule = format!("must be {}, as the token intent is", kind.name());
                    broken.push(Broken::new("type", rule));
                }
                source.kind = Some(kind);
                source.data = Some(opened.data);
                source.intent = Some(opened.intent.id);
            }
            Err(token_intents::Error::NotFound) => match no_intent() {
                Error::Invalid(rules) => broken.extend(rules),
                error => return Err(error),
            },
            Err(error) => return Err(error.into()),
        }
        Ok(source)
    }
}

/// Checks every attribute, so that the client learns of all broken rules at once.
pub(crate) async fn draft(
    vault: &Vault,
    caller: &Caller,
    new: NewToken<'_>,
    place: String,
) -> Result<Draft, Error> {
    let mut broken = Vec::new();
    let source = match new.token_intent_id {
        Some(_) => Source::converted(vault, caller, &new, &mut broken).await?,
        None => Source::given(vault, caller, &new, &mut broken).await?,
    };
    if new.privacy.is_some() {
        caller.uses.note(Deprecated::TokenPrivacy);
    }
    let kind = source.kind;
    let id = keep(NewId::parse(new.id.as_deref()), &mut broken);
    let container = match (&new.containers, &new.privacy, kind) {
        (Some(containers), ..) => keep(attributes::container(containers), &mut broken),
        (None, Some(privacy), Some(kind)) => keep(attributes::privacy(privacy, kind), &mut broken),
        (None, _, kind) => kind.map(|kind| kind.default_container()),
    };
    let mask = new
        .mask
        .and_then(|mask| keep(attributes::mask(&mask), &mut broken));
    let metadata = keep(
        attributes::metadata(new.metadata.unwrap_or_default()),
        &mut broken,
    );
    let search_indexes = new
        .search_indexes
        .and_then(|list| keep(attributes::search_indexes(&list, kind), &mut broken));
    let fingerprint_expression = new
        .fingerprint_expression
        .and_then(|text| keep(attributes::fingerprint_expression(text, kind), &mut broken));
    let expiry = new
        .expires_at
        .and_then(|text| keep(attributes::expiry(&text), &mut broken));
    match (kind, id, source.data, container) {
        (Some(kind), Some(id), Some(data), Some(container)) if broken.is_empty() => Ok(Draft {
            place,
            id,
            content: Content {
                kind,
                data,
                container,
                mask,
                metadata: metadata.flatten(),
                expiry,
                fingerprint_expression,
                search_indexes,
            },
            code: source.code,
            was_encrypted: source.was_encrypted,
            deduplicate: new
                .deduplicate_token
                .unwrap_or(caller.settings.deduplicate_tokens),
            intent: source.intent,
        }),
        _ => Err(Error::Invalid(broken).within(&place)),
    }
}

/// An intent becomes one token, not two.
pub(super) fn refuse_intents_twice(drafts: &[Draft]) -> Result<(), Error> {
    for (position, draft) in drafts.iter().enumerate() {
        let is_same = |earlier: &Draft| earlier.intent == draft.intent;
        if draft.intent.is_some() && drafts[..position].iter().any(is_same) {
            return Err(no_intent().within(&draft.place));
        }
    }
    Ok(())
}

pub(super) fn no_intent() -> Error {
    let rule = "must name a token intent that is not expired, deleted or converted";
    Error::Invalid(vec![Broken::new("token_intent_id", rule)])
}

/// What is to happen for one draft.
pub(super) enum Planned {
    /// A token is written; the write is taken out when its turn comes.
    Written {
        write: Option<Box<Write>>,
        token: Box<Token>,
        shown: Option<Box<Shown>>,
        deduplication: Option<DeduplicationBehavior>,
        claim: Claim,
    },
    /// A token that was there is returned as it is.
    Met { view: Box<TokenView>, claim: Claim },
    /// An earlier draft of the same request is equal.
    Same { index: usize },
}

/// Fingerprint and container of a draft with deduplication.
pub(super) type Claim = Option<(Fingerprint, Container)>;

/// What is to be written, and which of the plans each of it belongs to.
pub(super) fn take_writes(planned: &mut [Planned]) -> (Vec<usize>, Vec<Write>) {
    let plans = planned.iter_mut().enumerate();
    plans
        .filter_map(|(position, plan)| match plan {
            Planned::Written { write, .. } => Some((position, *write.take()?)),
            Planned::Met { .. } | Planned::Same { .. } => None,
        })
        .unzip()
}

impl Planned {
    /// The token that is to be written, if one is.
    pub(super) fn token(&self) -> Option<&Token> {
        match self {
            Self::Written { token, .. } => Some(token),
            Self::Met { .. } | Self::Same { .. } => None,
        }
    }

    /// The same, as far as an answer tells of it.
    pub(super) fn told(&self) -> Self {
        match self {
            Self::Written {
                token,
                shown,
                deduplication,
                ..
            } => Self::Written {
                write: None,
                token: token.clone(),
                shown: shown.clone(),
                deduplication: *deduplication,
                claim: None,
            },
            Self::Met { view, .. } => Self::Met {
                view: view.clone(),
                claim: None,
            },
            Self::Same { index } => Self::Same { index: *index },
        }
    }

    /// Has an intent of an equal draft consumed with this one; false when nothing is written here.
    pub(super) fn takes(&mut self, intent: Option<Uuid>, caller: &Caller) -> bool {
        match (self, intent) {
            (_, None) => true,
            (
                Self::Written {
                    write: Some(write), ..
                },
                Some(intent),
            ) => {
                write.consume(intent, converted(caller, intent));
                true
            }
            (Self::Written { .. } | Self::Met { .. } | Self::Same { .. }, Some(_)) => false,
        }
    }

    pub(super) fn claim(&self) -> &Claim {
        match self {
            Self::Written { claim, .. } | Self::Met { claim, .. } => claim,
            Self::Same { .. } => &None,
        }
    }
}

/// What is answered, once the times are known.
pub(super) fn finish(
    drafts: &[Draft],
    planned: Vec<Planned>,
    times: Vec<Timestamp>,
) -> Vec<Placed> {
    let mut times = times.into_iter();
    let mut placed: Vec<Placed> = Vec::with_capacity(planned.len());
    for plan in planned {
        placed.push(match plan {
            Planned::Written {
                mut token,
                shown,
                deduplication,
                ..
            } => {
                let time = times.next();
                match (token.modified_by, time) {
                    (None, Some(time)) => token.created_at = time,
                    (_, time) => token.modified_at = time,
                }
                Placed {
                    view: TokenView {
                        token: *token,
                        shown: shown.map(|shown| *shown),
                    },
                    deduplication,
                    was_encrypted: false,
                }
            }
            Planned::Met { view, .. } => Placed {
                view: *view,
                deduplication: Some(DeduplicationBehavior::ReadExisting),
                was_encrypted: false,
            },
            Planned::Same { index } => {
                let mut same = placed[index].clone();
                same.deduplication
                    .get_or_insert(DeduplicationBehavior::ReadExisting);
                same
            }
        });
    }
    for (placed, draft) in placed.iter_mut().zip(drafts) {
        placed.was_encrypted = draft.was_encrypted;
    }
    placed
}
