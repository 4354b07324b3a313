//! Bounds disclosure: neither a response nor a change discloses more to anyone than the caller's rights on the token
//! before the request allow.
//!
//! Every change of an existing token and every conversion of an intent is checked here. A caller *sees the data* if
//! `token:read`, `token:search` or `token:update` reveals it. Only such a caller may change the attributes that
//! determine what others can see or infer: mask, fingerprint expression, search indexes and container.

use cloakroom_core::access::{
    ApplicationKind, Container, Permission, PermissionDenied, Resource, Transform,
};
use cloakroom_core::caller::Caller;
use serde_json::Value;

use super::content::Content;
use super::create::validate::{ConvertedIntent, ValidatedToken};
use super::request::Change;
use super::view::OpenedToken;
use super::{Error, Token};
use crate::attributes::NO_MASK;
use crate::tokens::TokenVault;
use crate::types::{TokenKind, is_security_code_alone};

/// The rights of a caller that may update a token, in the token's container before the request.
pub(super) struct Rights {
    /// The transform of `token:update`.
    update: Transform,
    /// The least restrictive transform of `token:read`, `token:search` and `token:update`.
    sees: Option<Transform>,
}

impl Rights {
    /// Requires `token:update` on a token.
    pub(super) fn to_update(caller: &Caller, token: &Token) -> Result<Self, PermissionDenied> {
        let id = token.id.text();
        let subject = token.subject(&id);
        Ok(Self {
            update: caller.require_on(Permission::TokenUpdate, subject)?,
            sees: sees(caller, subject),
        })
    }

    /// Whether the caller sees the data.
    pub(super) fn reveal(&self) -> bool {
        self.sees == Some(Transform::Reveal)
    }

    /// Requires that the caller sees the data if a patch leaves a part of it unchanged. Fingerprint, indexes and mask are
    /// then evaluated on values that the caller chose together with that part, so their results could disclose it part
    /// by part. A security code is stored apart from the data and replaced as a whole.
    pub(super) fn to_patch(
        &self,
        vault: &TokenVault,
        caller: &Caller,
        opened: &OpenedToken,
        patch: &Change<Value>,
    ) -> Result<(), Error> {
        let Change::Set(patch) = patch else {
            return Ok(());
        };
        let is_code = is_security_code_alone(opened.token.kind, patch);
        if self.reveal() || is_code || hosted_rules(vault, caller) {
            return Ok(());
        }
        match leaves_part(&opened.data_value()?, patch) {
            true => Err(Error::NeedsReveal("data")),
            false => Ok(()),
        }
    }

    /// The mask for the changed data in the response: the mask before the change, unless the new one shows nothing or
    /// the caller sees the data.
    pub(super) fn mask<'a>(&self, token: &'a Token, content: &'a Content) -> Option<&'a str> {
        let new_mask = content.attributes.mask.as_deref();
        let shows_nothing = new_mask == Some(NO_MASK);
        match self.reveal() || shows_nothing {
            true => new_mask,
            false => token.attributes.mask.as_deref(),
        }
    }

    /// Requires the rights to change `token` into `content`. Returns the transform for the response: the more
    /// restrictive one of the source and the destination container.
    pub(super) fn to_change(
        &self,
        vault: &TokenVault,
        caller: &Caller,
        token: &Token,
        content: &Content,
    ) -> Result<Transform, Error> {
        let id = token.id.text();
        let destination = Resource {
            container: &content.container,
            id: Some(&id),
        };
        let update = caller.require_on(Permission::TokenUpdate, destination)?;
        let attribute = widened_attribute(token, content);
        if let Some(attribute) = attribute
            && !self.reveal()
        {
            let gains = attribute == "containers" && self.sees < sees(caller, destination);
            if gains || !hosted_rules(vault, caller) {
                return Err(Error::NeedsReveal(attribute));
            }
        }
        Ok(self.update.min(update))
    }
}

/// Requires the rights to create a token. Returns the transform for the response.
///
/// The caller may never have seen the data of an intent or data that was encrypted for the vault. A caller that cannot
/// see the data in the destination container must not set attributes that depend on it.
pub(super) fn creation_transform(
    vault: &TokenVault,
    caller: &Caller,
    new: &ValidatedToken,
) -> Result<Transform, Error> {
    let content = &new.content;
    let transform = caller.require(Permission::TokenCreate, &content.container)?;
    if let Some(intent) = &new.intent
        && !hosted_rules(vault, caller)
    {
        require_convertible(caller, content, intent)?;
    }
    if new.was_encrypted && !hosted_rules(vault, caller) {
        require_no_gain(caller, content)?;
    }
    if sees_data(caller, new) {
        return Ok(transform);
    }
    if let Some(attribute) = chosen_attribute(new) {
        return Err(Error::NeedsReveal(attribute));
    }
    Ok(transform.min(Transform::Mask))
}

/// Requires the rights to convert an intent, which is treated as a token in the default container of its type. The
/// caller must be the application that created it or have `token:update` there. Converting into another container must
/// not disclose more to the caller.
fn require_convertible(
    caller: &Caller,
    content: &Content,
    intent: &ConvertedIntent,
) -> Result<(), Error> {
    let origin = content.kind.default_container();
    if intent.created_by != caller.application {
        caller.require(Permission::TokenUpdate, &origin)?;
    }
    require_no_gain(caller, content)
}

/// Requires that the caller sees no more of the data in the destination container than in the default container of its type.
/// The caller chooses both for an encrypted value, but a card is a card under any type.
fn require_no_gain(caller: &Caller, content: &Content) -> Result<(), Error> {
    let sees_in = |container: &Container| {
        let id = None;
        sees(caller, Resource { container, id })
    };
    let is_card = content.kind == TokenKind::Token && !content.card_numbers()?.is_empty();
    let kinds = [Some(content.kind), is_card.then_some(TokenKind::Card)];
    let seen = sees_in(&content.container);
    let gains = |kind: TokenKind| sees_in(&kind.default_container()) < seen;
    match kinds.into_iter().flatten().any(gains) {
        true => Err(Error::NeedsReveal("containers")),
        false => Ok(()),
    }
}

/// Whether the caller sees the data of a new token: it sent the data in plaintext, or sees it in the destination container.
pub(super) fn sees_data(caller: &Caller, new: &ValidatedToken) -> bool {
    let destination = Resource {
        container: &new.content.container,
        id: None,
    };
    let sent_in_clear = new.intent.is_none() && !new.was_encrypted;
    sent_in_clear || sees(caller, destination) == Some(Transform::Reveal)
}

/// Whether a merge patch leaves a part of the data unchanged.
fn leaves_part(data: &Value, patch: &Value) -> bool {
    let (Value::Object(members), Value::Object(patch)) = (data, patch) else {
        return false;
    };
    members.iter().any(|(name, value)| match patch.get(name) {
        None => true,
        Some(patch) => leaves_part(value, patch),
    })
}

/// Whether the caller sees the data of a token.
pub fn reveals(caller: &Caller, token: &Token) -> bool {
    sees(caller, token.subject(&token.id.text())) == Some(Transform::Reveal)
}

/// Whether the caller sees the data of any token. Plain permissions reveal nothing.
pub fn reveals_anywhere(caller: &Caller) -> bool {
    let mut rules = caller.grants.rules.iter();
    rules.any(|rule| {
        let reveals = |permission: &Permission| rule.permissions.contains(*permission);
        rule.transform == Transform::Reveal && SEEING.iter().any(reveals)
    })
}

/// Whether the caller sees data that is treated as a token in a container.
pub fn reveals_in(caller: &Caller, container: &Container) -> bool {
    let id = None;
    sees(caller, Resource { container, id }) == Some(Transform::Reveal)
}

/// The permissions whose rules let a caller see data.
const SEEING: [Permission; 3] = [
    Permission::TokenRead,
    Permission::TokenSearch,
    Permission::TokenUpdate,
];

/// The least restrictive transform of `token:read`, `token:search` and `token:update`.
fn sees(caller: &Caller, subject: Resource<'_>) -> Option<Transform> {
    let shown = SEEING.map(|permission| caller.require_on(permission, subject).ok());
    shown.into_iter().flatten().max()
}

/// Whether the operator enabled the hosted service's rules, which allow this for private applications.
fn hosted_rules(vault: &TokenVault, caller: &Caller) -> bool {
    vault.config.access.hosted_rules && caller.application_kind == ApplicationKind::Private
}

/// The first attribute whose change could disclose more than before.
fn widened_attribute(token: &Token, content: &Content) -> Option<&'static str> {
    let attributes = &content.attributes;
    attributes
        .widened_disclosure(&token.attributes, token.kind)
        .or((content.container != token.container).then_some("containers"))
}

/// The first attribute of a new token that determines what is disclosed about the data.
fn chosen_attribute(new: &ValidatedToken) -> Option<&'static str> {
    let attributes = &new.content.attributes;
    attributes
        .chosen_disclosure()
        .or(new.id.is_expression().then_some("id"))
}
