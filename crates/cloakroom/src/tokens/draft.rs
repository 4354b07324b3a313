//! A token that is asked for, checked as far as that goes without looking into the vault.

use uuid::Uuid;

use super::content::Content;
use super::token::TokenData;
use super::{Error, NewToken};
use crate::api::Broken;
use crate::caller::Caller;
use crate::client_encryption::{GivenData, given_data};
use crate::token_attributes::{self as attributes, NewId, keep};
use crate::token_intents;
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
