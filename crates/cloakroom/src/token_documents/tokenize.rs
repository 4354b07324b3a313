//! Turning every value of a JSON document into a token, all of them or none.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

use super::Error;
use super::place::{element, member};
use crate::api::{Broken, parse_json};
use crate::caller::Caller;
use crate::idempotency::Reply;
use crate::tokens::{self, Draft, NewTokenBody, Placed, TokenBody};
use crate::vault::Vault;
use crate::velocity;

/// The document with tokens in the place of values.
pub struct Tokenized {
    shape: Shape,
    placed: Vec<Placed>,
}

/// What a document looks like; tokens are named by their position among all.
#[derive(Clone)]
enum Shape {
    Null,
    /// A value became a token, and its id takes the value's place.
    Id(usize),
    /// A description of a token became that token.
    Token(usize),
    Array(Vec<Shape>),
    Object(Vec<(String, Shape)>),
}

/// Creates a token for every value in the document, and for every description of a token.
pub async fn tokenize(
    vault: &Vault,
    caller: &Caller,
    document: &Value,
    reply: &Reply<'_, Tokenized>,
) -> Result<Tokenized, Error> {
    let mut finder = Finder {
        limit: caller.quotas.tokenize_limit,
        described: Vec::new(),
    };
    let shape = finder.shape(document, "")?;
    if finder.described.is_empty() {
        let rule = "must hold something to tokenize";
        return Err(Error::Invalid(vec![Broken::new("body", rule)]));
    }
    let drafts = drafts(vault, caller, &finder.described).await?;
    let keep = |placed: &[Placed]| {
        let (shape, placed) = (shape.clone(), placed.to_vec());
        reply.keep(&Tokenized { shape, placed })
    };
    let placed = tokens::create_all(vault, caller, &drafts, &keep).await?;
    Ok(Tokenized { shape, placed })
}

/// Checks every token that the document describes, so that all broken rules are told at once.
async fn drafts(
    vault: &Vault,
    caller: &Caller,
    described: &[Described],
) -> Result<Vec<Draft>, Error> {
    let mut drafts = Vec::with_capacity(described.len());
    let mut broken = Vec::new();
    for Described { text, place } in described {
        match parse_json::<NewTokenBody<'_>>(text) {
            Ok(body) => match tokens::draft(vault, caller, body.into(), place.clone()).await {
                Ok(draft) => drafts.push(draft),
                Err(tokens::Error::Invalid(rules)) => broken.extend(rules),
                Err(error) => return Err(error.into()),
            },
            Err(rule) => broken.push(rule.within(place)),
        }
    }
    match broken.is_empty() {
        true => Ok(drafts),
        false => {
            velocity::notice_refused(vault, caller, &broken)
                .await
                .map_err(tokens::Error::from)?;
            Err(Error::Invalid(broken))
        }
    }
}

/// A token that a document describes: the body of a request for it, and where it stands.
struct Described {
    text: String,
    place: String,
}

/// Finds what is to become a token.
struct Finder {
    limit: usize,
    described: Vec<Described>,
}

impl Finder {
    fn shape(&mut self, value: &Value, place: &str) -> Result<Shape, Error> {
        Ok(match value {
            Value::Null => Shape::Null,
            Value::Array(elements) => {
                let shapes = elements
                    .iter()
                    .enumerate()
                    .map(|(index, value)| self.shape(value, &element(place, index)));
                Shape::Array(shapes.collect::<Result<_, _>>()?)
            }
            Value::Object(_) if is_token(value) => Shape::Token(self.add(value, place)?),
            Value::Object(members) => {
                let shapes = members.iter().map(|(name, value)| {
                    let shape = self.shape(value, &member(place, name))?;
                    Ok::<_, Error>((name.clone(), shape))
                });
                Shape::Object(shapes.collect::<Result<_, _>>()?)
            }
            Value::String(_) | Value::Number(_) | Value::Bool(_) => {
                let token = serde_json::json!({"type": "token", "data": value});
                Shape::Id(self.add(&token, place)?)
            }
        })
    }

    /// Stops at the limit, so that no document costs more than what it is allowed.
    fn add(&mut self, token: &Value, place: &str) -> Result<usize, Error> {
        if self.described.len() == self.limit {
            let rule = format!("must hold at most {} values to tokenize", self.limit);
            return Err(Error::Invalid(vec![Broken::new("body", rule)]));
        }
        self.described.push(Described {
            text: token.to_string(),
            place: place.to_owned(),
        });
        Ok(self.described.len() - 1)
    }
}

/// Whether an object describes a token rather than being part of the document.
fn is_token(value: &Value) -> bool {
    let has = |name: &str| value.get(name).is_some();
    let is_typed = value.get("type").is_some_and(Value::is_string);
    (is_typed && (has("data") || has("encrypted"))) || has("token_intent_id")
}

impl Tokenized {
    /// The document as its caller may see it.
    pub(super) fn body<'a>(&'a self, caller: &'a Caller) -> impl Serialize + 'a {
        Filled {
            shape: &self.shape,
            placed: &self.placed,
            caller,
        }
    }
}

#[derive(Clone, Copy)]
struct Filled<'a> {
    shape: &'a Shape,
    placed: &'a [Placed],
    caller: &'a Caller,
}

impl Serialize for Filled<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fill = |shape| Filled { shape, ..*self };
        match self.shape {
            Shape::Null => serializer.serialize_none(),
            Shape::Id(index) => serializer.serialize_str(&self.placed[*index].view.token.id.text()),
            Shape::Token(index) => {
                TokenBody::placed(self.caller, &self.placed[*index]).serialize(serializer)
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
