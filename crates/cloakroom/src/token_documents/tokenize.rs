//! Turning every value of a JSON document into a token, all of them or none.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::Error;
use super::place::{element, member};
use crate::api::{Broken, parse_json};
use crate::caller::Caller;
use crate::tokens::{self, Draft, NewToken, NewTokenBody, Placed, TokenBody};
use crate::vault::Vault;

/// The document with tokens in the place of values.
pub struct Tokenized {
    shape: Shape,
    placed: Vec<Placed>,
}

/// What a document looks like; tokens are named by their position among all.
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
) -> Result<Tokenized, Error> {
    let mut finder = Finder {
        caller,
        limit: caller.quotas.tokenize_limit,
        found: 0,
        drafts: Vec::new(),
        broken: Vec::new(),
    };
    let shape = finder.shape(document, "")?;
    if finder.found == 0 {
        let rule = "must hold something to tokenize";
        finder.broken.push(Broken::new("body", rule));
    }
    if !finder.broken.is_empty() {
        return Err(Error::Invalid(finder.broken));
    }
    let placed = tokens::create_all(vault, caller, &finder.drafts).await?;
    Ok(Tokenized { shape, placed })
}

struct Finder<'a> {
    caller: &'a Caller,
    limit: usize,
    /// How many tokens the document holds so far, broken ones included.
    found: usize,
    drafts: Vec<Draft>,
    broken: Vec<Broken>,
}

impl Finder<'_> {
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
            Value::Object(members) if is_token(value) => {
                self.count()?;
                let text = Value::Object(members.clone()).to_string();
                let body = parse_json::<NewTokenBody<'_>>(&text).map_err(|broken| vec![broken]);
                match body.and_then(NewTokenBody::checked) {
                    Ok(new) => self.draft(new, place)?,
                    Err(broken) => {
                        let within = broken.into_iter().map(|rule| rule.within(place));
                        self.broken.extend(within);
                    }
                }
                Shape::Token(self.drafts.len().saturating_sub(1))
            }
            Value::Object(members) => {
                let shapes = members.iter().map(|(name, value)| {
                    let shape = self.shape(value, &member(place, name))?;
                    Ok::<_, Error>((name.clone(), shape))
                });
                Shape::Object(shapes.collect::<Result<_, _>>()?)
            }
            Value::String(_) | Value::Number(_) | Value::Bool(_) => {
                self.count()?;
                let text = value.to_string();
                let raw: &RawValue =
                    parse_json(&text).map_err(|rule| Error::Invalid(vec![rule]))?;
                let new = NewToken {
                    kind: Some("token".to_owned()),
                    data: Some(raw),
                    ..NewToken::default()
                };
                self.draft(new, place)?;
                Shape::Id(self.drafts.len().saturating_sub(1))
            }
        })
    }

    /// Stops at the limit, so that no document costs more than what it is allowed.
    fn count(&mut self) -> Result<(), Error> {
        if self.found == self.limit {
            let rule = format!("must hold at most {} values to tokenize", self.limit);
            return Err(Error::Invalid(vec![Broken::new("body", rule)]));
        }
        self.found += 1;
        Ok(())
    }

    fn draft(&mut self, new: NewToken<'_>, place: &str) -> Result<(), Error> {
        match tokens::draft(self.caller, new, place.to_owned()) {
            Ok(draft) => self.drafts.push(draft),
            Err(tokens::Error::Invalid(broken)) => self.broken.extend(broken),
            Err(error) => return Err(error.into()),
        }
        Ok(())
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
