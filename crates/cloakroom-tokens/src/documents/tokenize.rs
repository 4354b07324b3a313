//! Replaces every value of a JSON document with a token, atomically.

use cloakroom_core::caller::Caller;
use cloakroom_core::idempotency::ResponseTemplate;
use cloakroom_core::velocity;
use cloakroom_crypto::Sensitive;
use cloakroom_platform::api::{FieldError, parse_json};
use cloakroom_platform::card_numbers::{
    NO_AUTHENTICATION_DATA, contains_card_number, named_authentication_data,
};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

use super::Error;
use super::path::{element, member};
use crate::tokens::{self, NewToken, TokenBody, TokenVault, ValidatedToken, WrittenToken};

/// The document with its values replaced by tokens.
pub struct TokenizedDocument {
    shape: Shape,
    tokens: Vec<WrittenToken>,
}

/// The structure of a document; tokens are referenced by index.
#[derive(Clone)]
enum Shape {
    Null,
    /// A value that is replaced by the id of its token.
    Id(usize),
    /// A token description that is replaced by the token.
    Token(usize),
    Array(Vec<Shape>),
    Object(Vec<(String, Shape)>),
}

/// Creates a token for every value and every token description in the document.
pub async fn tokenize(
    vault: &TokenVault,
    caller: &Caller,
    document: &Value,
    template: &ResponseTemplate<'_, TokenizedDocument>,
) -> Result<TokenizedDocument, Error> {
    let mut collector = Collector {
        limit: caller.quotas.tokenize_limit,
        requests: Vec::new(),
        authentication_data: None,
    };
    let shape = collector.shape(document, "")?;
    collector.check_authentication_data(document)?;
    if collector.requests.is_empty() {
        let rule = "must contain at least one value to tokenize";
        return Err(Error::Invalid(vec![FieldError::new("body", rule)]));
    }
    let validated = validate(vault, caller, &collector.requests).await?;
    let build_response = |tokens: &[WrittenToken]| {
        let (shape, tokens) = (shape.clone(), tokens.to_vec());
        template.render_pending(&TokenizedDocument { shape, tokens })
    };
    let tokens = tokens::create_all(vault, caller, &validated, &build_response).await?;
    Ok(TokenizedDocument { shape, tokens })
}

/// Validates every token in the document and reports all errors at once.
async fn validate(
    vault: &TokenVault,
    caller: &Caller,
    requests: &[TokenRequest],
) -> Result<Vec<ValidatedToken>, Error> {
    let mut validated = Vec::with_capacity(requests.len());
    let mut broken = Vec::new();
    for TokenRequest { text, path } in requests {
        match parse_json::<NewToken<'_>>(text) {
            Ok(new) => match new.validate(vault, caller, path.clone()).await {
                Ok(token) => validated.push(token),
                Err(tokens::Error::Invalid(rules)) => broken.extend(rules),
                Err(error) => return Err(error.into()),
            },
            Err(rule) => broken.push(rule.within(path)),
        }
    }
    match broken.is_empty() {
        true => Ok(validated),
        false => {
            velocity::count_invalid_numbers(&vault.velocity, caller, &broken)
                .await
                .map_err(tokens::Error::from)?;
            Err(Error::Invalid(broken))
        }
    }
}

/// A token to create: the body of its create request, and its path in the document.
struct TokenRequest {
    text: String,
    path: String,
}

/// Collects the tokens to create.
struct Collector {
    limit: usize,
    requests: Vec<TokenRequest>,
    /// Path of the first member whose name indicates sensitive authentication data.
    authentication_data: Option<String>,
}

impl Collector {
    fn shape(&mut self, value: &Value, path: &str) -> Result<Shape, Error> {
        Ok(match value {
            Value::Null => Shape::Null,
            Value::Array(elements) => {
                let shapes = elements
                    .iter()
                    .enumerate()
                    .map(|(index, value)| self.shape(value, &element(path, index)));
                Shape::Array(shapes.collect::<Result<_, _>>()?)
            }
            Value::Object(_) if is_token(value) => Shape::Token(self.add(value, path)?),
            Value::Object(members) => {
                let shapes = members.iter().map(|(name, value)| {
                    let path = member(path, name);
                    if named_authentication_data(name, value).is_some() {
                        self.authentication_data.get_or_insert(path.clone());
                    }
                    let shape = self.shape(value, &path)?;
                    Ok::<_, Error>((name.clone(), shape))
                });
                Shape::Object(shapes.collect::<Result<_, _>>()?)
            }
            Value::String(_) | Value::Number(_) | Value::Bool(_) => {
                let token = serde_json::json!({"type": "token", "data": value});
                Shape::Id(self.add(&token, path)?)
            }
        })
    }

    /// Rejects sensitive authentication data that accompanies a card number. Each value becomes a separate token, whose
    /// data no longer shows what it is, so the check must cover the document.
    fn check_authentication_data(&self, document: &Value) -> Result<(), Error> {
        let text = Sensitive::new(document.to_string());
        match &self.authentication_data {
            Some(path) if contains_card_number(text.expose()) => {
                let path = match contains_card_number(path) {
                    true => "body",
                    false => path,
                };
                Err(Error::Invalid(vec![FieldError::new(
                    path,
                    NO_AUTHENTICATION_DATA,
                )]))
            }
            _ => Ok(()),
        }
    }

    /// Fails at the limit, which bounds the cost of a document.
    fn add(&mut self, token: &Value, path: &str) -> Result<usize, Error> {
        if self.requests.len() == self.limit {
            let rule = format!("must contain at most {} values to tokenize", self.limit);
            return Err(Error::Invalid(vec![FieldError::new("body", rule)]));
        }
        self.requests.push(TokenRequest {
            text: token.to_string(),
            path: path.to_owned(),
        });
        Ok(self.requests.len() - 1)
    }
}

/// Whether an object describes a token, rather than being part of the document's structure.
fn is_token(value: &Value) -> bool {
    let has = |name: &str| value.get(name).is_some();
    let is_typed = value.get("type").is_some_and(Value::is_string);
    (is_typed && (has("data") || has("encrypted"))) || has("token_intent_id")
}

impl TokenizedDocument {
    /// The document as its caller may see it.
    pub(super) fn body<'a>(&'a self, caller: &'a Caller) -> impl Serialize + 'a {
        DocumentBody {
            shape: &self.shape,
            tokens: &self.tokens,
            caller,
        }
    }
}

#[derive(Clone, Copy)]
struct DocumentBody<'a> {
    shape: &'a Shape,
    tokens: &'a [WrittenToken],
    caller: &'a Caller,
}

impl Serialize for DocumentBody<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fill = |shape| DocumentBody { shape, ..*self };
        match self.shape {
            Shape::Null => serializer.serialize_none(),
            Shape::Id(index) => serializer.serialize_str(&self.tokens[*index].view.token.id.text()),
            Shape::Token(index) => {
                TokenBody::for_write(self.caller, &self.tokens[*index]).serialize(serializer)
            }
            Shape::Array(shapes) => serializer.collect_seq(shapes.iter().map(fill)),
            Shape::Object(members) => {
                let mut map = serializer.serialize_map(Some(members.len()))?;
                for (name, shape) in members {
                    map.serialize_entry(name, &fill(shape))?;
                }
                map.end()
            }
        }
    }
}
