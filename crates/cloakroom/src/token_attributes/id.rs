//! A token's id: a UUID, or a name that the client chose, and the rules for such names.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use cloakroom_crypto::named_uuid_bytes;
use cloakroom_expressions::{Context, Template};
use serde_json::Value;
use uuid::Uuid;

use super::expression::{evaluate_to_text, parse_template};
use crate::api::Broken;
use crate::card_numbers::holds_card_number;
use crate::ids::{self, TenantId};

const LENGTH_MIN: usize = 3;
const LENGTH_MAX: usize = 400;
const FORBIDDEN: &str = "#/\\+?[]|&=%<>{}^";
/// What stands where an id would, in `/tokens/search`: nobody could reach a token of that name.
const OPERATION: &str = "search";

/// What a token is called, and the key under which its row is kept.
///
/// UUIDs in their usual spelling are their own key. Any other name has a key derived from it, so
/// that names are unique and found the same way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TokenId {
    key: Uuid,
    alias: Option<String>,
}

impl TokenId {
    pub(crate) fn random() -> Self {
        Self {
            key: ids::new_uuid(),
            alias: None,
        }
    }

    /// The id that this text names; every text names at most one token.
    pub(crate) fn of(tenant: TenantId, text: &str) -> Self {
        if let Some(key) = parse_uuid(text) {
            return Self { key, alias: None };
        }
        let key = Uuid::from_bytes(named_uuid_bytes(tenant.uuid.as_bytes(), text));
        Self {
            key,
            alias: Some(text.to_owned()),
        }
    }

    /// What a row says of itself.
    pub(crate) fn kept(key: Uuid, alias: Option<String>) -> Self {
        Self { key, alias }
    }

    pub(crate) fn key(&self) -> &Uuid {
        &self.key
    }

    pub(crate) fn alias(&self) -> Option<&str> {
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

/// How the id of a new token comes about.
pub(crate) enum NewId {
    Random,
    Given(String),
    /// An expression; with chance in it, another attempt gives another name.
    Alias(Arc<Template>),
}

impl NewId {
    pub(crate) fn parse(text: Option<&str>) -> Result<Self, Vec<Broken>> {
        match text {
            None => Ok(Self::Random),
            Some(text) if text.contains("{{") => parse_template(Context::IdAlias, text)
                .map(Self::Alias)
                .map_err(|rule| vec![Broken::new("id", rule)]),
            Some(text) => {
                check(text).map_err(|rule| vec![Broken::new("id", rule)])?;
                Ok(Self::Given(text.to_owned()))
            }
        }
    }

    /// Whether trying again can give another id.
    pub(crate) fn is_chance(&self) -> bool {
        match self {
            Self::Random => true,
            Self::Given(_) => false,
            Self::Alias(template) => template.is_random(),
        }
    }

    /// Makes the id; only expressions look at the data.
    pub(crate) fn settle(&self, tenant: TenantId, data: &Value) -> Result<TokenId, Vec<Broken>> {
        match self {
            Self::Random => Ok(TokenId::random()),
            Self::Given(text) => Ok(TokenId::of(tenant, text)),
            Self::Alias(template) => {
                let text = evaluate_to_text(template, &[("data", data)])
                    .map_err(|rule| vec![Broken::new("id", rule)])?;
                check(&text).map_err(|rule| {
                    let rule = format!("must give text that follows the rules of ids: {rule}");
                    vec![Broken::new("id", rule)]
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
        return Err("must not hold any of # / \\ + ? [ ] | & = % < > { } ^");
    }
    if text.contains(char::is_control) || text.trim() != text {
        return Err("must not hold control characters, nor spaces at its ends");
    }
    if text == OPERATION {
        return Err("must not be `search`: that is an operation's address");
    }
    // Ids stand in addresses and logs.
    if holds_card_number(text) && !is_uuid(text) {
        return Err("must not hold a card number: ids are kept in clear");
    }
    Ok(())
}

/// Whether a generator made this; the digits of one UUID in 700 could be those of a card by chance.
fn is_uuid(text: &str) -> bool {
    let is_hyphenated = text.len() == uuid::fmt::Hyphenated::LENGTH;
    let made = |id: Uuid| {
        id.get_variant() == uuid::Variant::RFC4122 && matches!(id.get_version_num(), 1..=8)
    };
    is_hyphenated && Uuid::try_parse(text).is_ok_and(made)
}

/// Reads a UUID in the one spelling that answers use.
fn parse_uuid(text: &str) -> Option<Uuid> {
    let id = Uuid::try_parse(text).ok()?;
    let mut buffer = Uuid::encode_buffer();
    (id.hyphenated().encode_lower(&mut buffer) == text).then_some(id)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TENANT: TenantId = TenantId {
        number: 1,
        uuid: Uuid::from_u128(7),
    };

    #[test]
    fn names_follow_the_rules_of_ids() {
        let long = "x".repeat(400);
        let too_long = "x".repeat(401);
        let cases = [
            ("abc", true),
            ("order 17: käse@example.com", true),
            (long.as_str(), true),
            ("9EA0B7C7-FB9C-4D6A-8F7B-123456789ABC", true),
            ("ab", false),
            (too_long.as_str(), false),
            (" abc", false),
            ("abc\u{a0}", false),
            ("a\tb", false),
            ("4242424242424242", false),
            ("6cd558d1-bc55-4578-8995-90785f546b5d", true),
            ("42424242-4242-4242-0000-000000000000", false),
            ("search", false),
            ("Search", true),
            ("searches", true),
        ];
        for (text, expected) in cases {
            assert_eq!(check(text).is_ok(), expected, "{text}");
        }
        for forbidden in FORBIDDEN.chars() {
            assert!(check(&format!("ab{forbidden}cd")).is_err(), "{forbidden}");
        }
    }

    #[test]
    fn a_uuid_is_its_own_key_and_a_name_has_one_of_its_own() {
        let uuid = "9ea0b7c7-fb9c-4d6a-8f7b-123456789abc";
        let plain = TokenId::of(TENANT, uuid);
        let shouted = TokenId::of(TENANT, &uuid.to_uppercase());
        let named = TokenId::of(TENANT, "order-17");

        assert_eq!(
            (plain.key.to_string().as_str(), plain.alias()),
            (uuid, None)
        );
        assert_ne!(shouted.key, plain.key);
        assert_eq!(shouted.text(), uuid.to_uppercase());
        assert_eq!(named.text(), "order-17");
        assert_eq!(named, TokenId::of(TENANT, "order-17"));
        assert_ne!(named.key, TokenId::of(TENANT, "Order-17").key);
    }

    #[test]
    fn expressions_give_names() {
        let data = json!({"ssn": "111-22-3333", "email": "john.doe@gmail.com"});
        let settled = |text: &str| NewId::parse(Some(text)).unwrap().settle(TENANT, &data);

        let ssn = settled("{{ data.ssn | alias_preserve_format: 0, 4 }}").unwrap();
        let email = "{{ data.email | split: '@' | first | alias_preserve_length }}@{{ data.email | split: '@' | last }}";
        let email = settled(email).unwrap();

        assert!(
            ssn.text().ends_with("-3333") && ssn.text().len() == 11,
            "{ssn}"
        );
        assert!(
            email.text().ends_with("@gmail.com") && email.text().len() == 18,
            "{email}"
        );
        assert!(settled("{{ data.missing }}").is_err());
        assert!(settled("{{ data.email }}/x").is_err());
        assert!(NewId::parse(Some("{{ data | nofilter }}")).is_err());
        assert!(
            NewId::parse(Some("{{ data | alias_card }}"))
                .unwrap()
                .is_chance()
        );
        assert!(!NewId::parse(Some("{{ data.email }}")).unwrap().is_chance());
    }
}
