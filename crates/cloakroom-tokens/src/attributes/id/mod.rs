//! Token ids: UUIDs and client-chosen aliases, and the rules for aliases.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use cloakroom_crypto::named_uuid_bytes;
use cloakroom_expressions::{Context, Template};
use cloakroom_platform::api::FieldError;
use cloakroom_platform::card_numbers::contains_card_number;
use cloakroom_platform::ids::{self, TenantId};
use serde_json::Value;
use uuid::Uuid;

use super::expression::{evaluate_to_text, parse_template};

const LENGTH_MIN: usize = 3;
const LENGTH_MAX: usize = 400;
const FORBIDDEN: &str = "#/\\+?[]|&=%<>{}^";
/// The last segment of `/tokens/search`: a token with this id would be unreachable.
const RESERVED: &str = "search";

/// The id of a token and the primary key of its row.
///
/// A UUID in canonical form is its own key. The key of any other id is a UUID derived from it, so that all ids are
/// unique and looked up the same way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TokenId {
    key: Uuid,
    alias: Option<String>,
}

impl TokenId {
    pub fn random() -> Self {
        Self {
            key: ids::new_uuid(),
            alias: None,
        }
    }

    /// Parses an id. Every text identifies at most one token.
    pub fn of(tenant: TenantId, text: &str) -> Self {
        if let Some(key) = parse_uuid(text) {
            return Self { key, alias: None };
        }
        let key = Uuid::from_bytes(named_uuid_bytes(tenant.uuid.as_bytes(), text));
        Self {
            key,
            alias: Some(text.to_owned()),
        }
    }

    /// The id that a row contains.
    pub fn from_row(key: Uuid, alias: Option<String>) -> Self {
        Self { key, alias }
    }

    pub fn key(&self) -> &Uuid {
        &self.key
    }

    pub fn alias(&self) -> Option<&str> {
        self.alias.as_deref()
    }

    pub fn text(&self) -> Cow<'_, str> {
        match &self.alias {
            Some(alias) => alias.into(),
            None => self.key.to_string().into(),
        }
    }
}

impl fmt::Display for TokenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

/// The source of a new token's id.
pub enum NewId {
    Random,
    Given(String),
    /// An expression; if it is random, each evaluation gives another alias.
    Alias(Arc<Template>),
}

impl NewId {
    pub fn parse(text: Option<&str>) -> Result<Self, Vec<FieldError>> {
        match text {
            None => Ok(Self::Random),
            Some(text) if text.contains("{{") => parse_template(Context::IdAlias, text)
                .map(Self::Alias)
                .map_err(|rule| vec![FieldError::new("id", rule)]),
            Some(text) => {
                check(text).map_err(|rule| vec![FieldError::new("id", rule)])?;
                Ok(Self::Given(text.to_owned()))
            }
        }
    }

    /// Whether an expression derives the id from the data.
    pub fn is_expression(&self) -> bool {
        matches!(self, Self::Alias(_))
    }

    /// Whether another attempt can give another id.
    pub fn is_random(&self) -> bool {
        match self {
            Self::Random => true,
            Self::Given(_) => false,
            Self::Alias(template) => template.is_random(),
        }
    }

    /// Resolves the id. Only expressions use `data`.
    pub fn resolve(&self, tenant: TenantId, data: &Value) -> Result<TokenId, Vec<FieldError>> {
        match self {
            Self::Random => Ok(TokenId::random()),
            Self::Given(text) => Ok(TokenId::of(tenant, text)),
            Self::Alias(template) => {
                let text = evaluate_to_text(template, &[("data", data)])
                    .map_err(|rule| vec![FieldError::new("id", rule)])?;
                check(&text).map_err(|rule| {
                    let rule = format!("must evaluate to a valid id: {rule}");
                    vec![FieldError::new("id", rule)]
                })?;
                Ok(TokenId::of(tenant, &text))
            }
        }
    }
}

fn check(text: &str) -> Result<(), &'static str> {
    if !(LENGTH_MIN..=LENGTH_MAX).contains(&text.chars().count()) {
        return Err("must have 3 to 400 characters");
    }
    if text.contains(|c: char| FORBIDDEN.contains(c)) {
        return Err("must not contain any of # / \\ + ? [ ] | & = % < > { } ^");
    }
    if text.contains(char::is_control) || text.trim() != text {
        return Err("must not contain control characters or leading or trailing whitespace");
    }
    if text == RESERVED {
        return Err("must not be `search`, which is reserved for the search endpoint");
    }
    // Ids appear in URLs and logs.
    if contains_card_number(text) && !is_uuid(text) {
        return Err("must not contain a card number: ids are stored in plaintext");
    }
    Ok(())
}

/// Whether text is a generated UUID. The digits of one UUID in 700 pass for a card number by chance.
fn is_uuid(text: &str) -> bool {
    let is_hyphenated = text.len() == uuid::fmt::Hyphenated::LENGTH;
    let made = |id: Uuid| {
        id.get_variant() == uuid::Variant::RFC4122 && matches!(id.get_version_num(), 1..=8)
    };
    is_hyphenated && Uuid::try_parse(text).is_ok_and(made)
}

/// Parses a UUID in the canonical form that responses use.
fn parse_uuid(text: &str) -> Option<Uuid> {
    let id = Uuid::try_parse(text).ok()?;
    let mut buffer = Uuid::encode_buffer();
    (id.hyphenated().encode_lower(&mut buffer) == text).then_some(id)
}

#[cfg(test)]
mod tests;
