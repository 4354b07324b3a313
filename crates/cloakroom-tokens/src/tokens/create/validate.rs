//! Validates requests to create tokens, without touching the database except for an intent to convert.

use cloakroom_core::access::Container;
use cloakroom_core::caller::Caller;
use cloakroom_core::deprecations::DeprecatedFeature;
use cloakroom_platform::api::{FieldError, Object};
use uuid::Uuid;

use crate::attributes::{self as attributes, NewId, may_compare, ok_or_collect};
use crate::client_encryption::{RequestData, SentData, resolve_request_data};
use crate::intents;
use crate::tokens::attributes::TokenAttributes;
use crate::tokens::content::Content;
use crate::tokens::token::TokenData;
use crate::tokens::{Error, NewToken, TokenVault};
use crate::types::{SecurityCode, TokenKind, validate_data};

/// A token to create, validated.
pub struct ValidatedToken {
    /// Path of the token in the request; empty if it is the whole request.
    pub(in crate::tokens) path: String,
    pub(in crate::tokens) id: NewId,
    pub(in crate::tokens) content: Content,
    pub(in crate::tokens) code: SecurityCode,
    pub(in crate::tokens) was_encrypted: bool,
    pub(in crate::tokens) deduplicate: bool,
    /// The intent to convert; it is deleted when the token is written.
    pub(in crate::tokens) intent: Option<ConvertedIntent>,
}

/// An intent that is being converted into a token.
#[derive(Clone, Copy)]
pub(crate) struct ConvertedIntent {
    pub(in crate::tokens) id: Uuid,
    pub(in crate::tokens) created_by: Uuid,
}

impl ValidatedToken {
    pub(in crate::tokens) fn intent_id(&self) -> Option<Uuid> {
        self.intent.map(|intent| intent.id)
    }
}

/// Type and data of a new token, from the request or from an intent.
struct Source {
    kind: Option<TokenKind>,
    data: Option<TokenData>,
    code: SecurityCode,
    was_encrypted: bool,
    intent: Option<ConvertedIntent>,
}

impl Source {
    /// Reads type and data from the request.
    async fn from_request(
        vault: &TokenVault,
        caller: &Caller,
        new: &NewToken<'_>,
        broken: &mut Vec<FieldError>,
    ) -> Result<Self, Error> {
        let kind = ok_or_collect(attributes::kind(new.kind.as_deref()), broken);
        let destination = destination(new, kind).and_then(Result::ok);
        let sent = SentData {
            plain: new.data,
            encrypted: new.encrypted.as_deref(),
        };
        let given = resolve_request_data(vault, caller, sent, destination.as_ref()).await?;
        let given = ok_or_collect(given, broken);
        let validated = match (given.as_ref().map(RequestData::raw), kind) {
            (Some(None), _) => {
                ok_or_collect(Err(vec![FieldError::new("data", "is required")]), broken)
            }
            (Some(Some(raw)), Some(kind)) => {
                let validated = attributes::data_size(raw.get().as_bytes())
                    .and_then(|()| validate_data(kind, raw, caller.tenant_kind));
                ok_or_collect(validated, broken)
            }
            (None, _) | (_, None) => None,
        };
        let (data, code) = validated
            .map(|validated| (validated.data, validated.security_code))
            .unzip();
        Ok(Self {
            kind,
            data,
            code: code.unwrap_or(SecurityCode::Absent),
            was_encrypted: given.is_some_and(|given| given.is_encrypted()),
            intent: None,
        })
    }

    /// Takes type and data from an intent, without its security code.
    async fn from_intent(
        vault: &TokenVault,
        caller: &Caller,
        new: &NewToken<'_>,
        broken: &mut Vec<FieldError>,
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
            let rule = "must not be set together with token_intent_id";
            broken.push(FieldError::new(name, rule));
            return Ok(source);
        }
        let id = new.token_intent_id.as_deref().unwrap_or_default();
        match intents::open(vault, caller, id).await {
            Ok(opened) => {
                let kind = opened.intent.kind;
                if new.kind.as_ref().is_some_and(|name| name != kind.name()) {
                    let rule = format!("must be {}, the type of the token intent", kind.name());
                    broken.push(FieldError::new("type", rule));
                }
                source.kind = Some(kind);
                source.data = Some(opened.data);
                source.intent = Some(ConvertedIntent {
                    id: opened.intent.id,
                    created_by: opened.intent.created_by,
                });
            }
            Err(intents::Error::NotFound) => match intent_not_found() {
                Error::Invalid(rules) => broken.extend(rules),
                error => return Err(error),
            },
            Err(error) => return Err(error.into()),
        }
        Ok(source)
    }
}

impl NewToken<'_> {
    /// Validates every attribute and reports all violations at once. `path` is the token's position in the request.
    pub async fn validate(
        mut self,
        vault: &TokenVault,
        caller: &Caller,
        path: String,
    ) -> Result<ValidatedToken, Error> {
        let mut broken = Vec::new();
        let source = match self.token_intent_id {
            Some(_) => Source::from_intent(vault, caller, &self, &mut broken).await?,
            None => Source::from_request(vault, caller, &self, &mut broken).await?,
        };
        if self.privacy.is_some() {
            caller
                .deprecated_features
                .mark(DeprecatedFeature::TokenPrivacy);
        }
        let (kind, settings) = (source.kind, &caller.settings);
        let id = ok_or_collect(NewId::parse(self.id.as_deref()), &mut broken);
        let container =
            destination(&self, kind).and_then(|container| ok_or_collect(container, &mut broken));
        let attributes = TokenAttributes::validate(&mut self, kind, settings, &mut broken);
        match (kind, id, source.data, container) {
            (Some(kind), Some(id), Some(data), Some(container)) if broken.is_empty() => {
                let comparable = may_compare(caller, kind, attributes.has_own_fingerprint());
                Ok(ValidatedToken {
                    path,
                    id,
                    content: Content {
                        kind,
                        data,
                        container,
                        attributes,
                    },
                    code: source.code,
                    was_encrypted: source.was_encrypted,
                    deduplicate: comparable
                        && self
                            .deduplicate_token
                            .unwrap_or(settings.deduplicate_tokens),
                    intent: source.intent,
                })
            }
            _ => Err(Error::Invalid(broken).within(&path)),
        }
    }
}

/// The container of a new token; `None` if it depends on the type, which is invalid.
fn destination(
    new: &NewToken<'_>,
    kind: Option<TokenKind>,
) -> Option<Result<Container, Vec<FieldError>>> {
    match (&new.containers, &new.privacy, kind) {
        (Some(containers), ..) => Some(attributes::container(containers)),
        (None, Some(Object(privacy)), Some(kind)) => Some(attributes::privacy(privacy, kind)),
        (None, _, kind) => kind.map(|kind| Ok(kind.default_container())),
    }
}

/// Rejects requests that convert the same intent twice.
pub(in crate::tokens) fn reject_repeated_intents(tokens: &[ValidatedToken]) -> Result<(), Error> {
    for (position, token) in tokens.iter().enumerate() {
        let intent = token.intent_id();
        let is_same = |earlier: &ValidatedToken| earlier.intent_id() == intent;
        if intent.is_some() && tokens[..position].iter().any(is_same) {
            return Err(intent_not_found().within(&token.path));
        }
    }
    Ok(())
}

pub(in crate::tokens) fn intent_not_found() -> Error {
    let rule = "must be the id of a token intent that is not expired, deleted or converted";
    Error::Invalid(vec![FieldError::new("token_intent_id", rule)])
}
