//! `tokenize`: creates a token from values of the request or the response.

use cloakroom_core::caller::Caller;
use cloakroom_core::idempotency::ResponseTemplate;
use cloakroom_crypto::Sensitive;
use cloakroom_platform::api::{FieldError, parse_json};
use cloakroom_platform::card_numbers::card_numbers_in;
use cloakroom_tokens::tokens::{self, NewToken, TokenBody, TokenVault};
use serde_json::{Map, Value};

use super::Reason;
use super::template::{Allowed, Template, Variables};

/// Attributes of a token whose expressions refer to its data. They are evaluated when the token is created.
const OWN_EXPRESSIONS: [&str; 4] = ["fingerprint_expression", "id", "mask", "search_indexes"];

#[derive(Debug)]
pub struct Tokenize {
    pub(super) identifier: Option<String>,
    /// The attributes with expressions of the transform.
    pub(super) filled: Template,
    /// The attributes in [`OWN_EXPRESSIONS`].
    literal: Map<String, Value>,
}

/// A created token.
pub(super) struct CreatedToken {
    /// The token as its creation returns it, without its data.
    pub(super) body: Value,
    /// The card numbers in its data.
    pub(super) card_numbers: Vec<Sensitive<String>>,
}

impl Tokenize {
    pub(super) fn compile(
        token: &Value,
        allowed: Allowed,
        identifiers: &[String],
        identifier: Option<String>,
    ) -> Result<Self, FieldError> {
        let Value::Object(attributes) = token else {
            return Err(FieldError::new("body", "must be an object"));
        };
        let (literal, filled): (Map<_, _>, Map<_, _>) = attributes
            .clone()
            .into_iter()
            .partition(|(name, _)| OWN_EXPRESSIONS.contains(&name.as_str()));
        // Each attribute by itself, so that an error names it.
        for (name, value) in &filled {
            Template::parse(value, allowed, identifiers).map_err(|error| error.within(name))?;
        }
        Ok(Self {
            identifier,
            filled: Template::parse(&Value::Object(filled), allowed, identifiers)?,
            literal,
        })
    }

    /// Creates the token with the permissions of `caller`.
    pub(super) async fn apply(
        &self,
        vault: &TokenVault,
        caller: &Caller,
        variables: &Variables<'_>,
    ) -> Result<CreatedToken, Reason> {
        let mut token = self.filled.fill(variables)?;
        if let Some(attributes) = token.as_object_mut() {
            attributes.extend(self.literal.clone());
        }
        let text = Sensitive::new(token.to_string());
        let new: NewToken<'_> = parse_json(text.expose())
            .map_err(|error| Reason::Token(tokens::Error::Invalid(vec![error])))?;
        let template = ResponseTemplate::none();
        let written = tokens::create(vault, caller, new, &template).await;
        let written = written.map_err(Reason::Token)?;
        // Through text: a `RawValue` cannot be converted into a `Value` directly.
        let body = serde_json::to_string(&TokenBody::for_write(caller, &written));
        let mut body: Value = body
            .and_then(|text| serde_json::from_str(&text))
            .map_err(|_| Reason::NotJson)?;
        if let Some(members) = body.as_object_mut() {
            // A rule of the application may reveal the data. The caller of the proxy does not have that rule.
            members.shift_remove("data");
        }
        let data = token.get("data").map(Value::to_string).unwrap_or_default();
        Ok(CreatedToken {
            body,
            card_numbers: card_numbers_in(&data),
        })
    }
}
