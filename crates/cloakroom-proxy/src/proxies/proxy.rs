//! Proxies, and the validation of requests for them.

use std::collections::BTreeMap;

use cloakroom_core::access::check_name;
use cloakroom_crypto::random_base58;
use cloakroom_platform::api::FieldError;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;
use zeroize::Zeroize;

use super::{Error, NewProxy, destination};
use crate::allowed_requests::AllowedRequests;
use crate::transforms::{self, Direction, Rejection, Transform, TransformBody};

/// Returned in place of a configuration value that is masked. Sent back, it stands for the stored value.
pub(super) const MASKED: &str = "********";

const CONFIGURATION_MAX: usize = 25;
const CONFIGURATION_NAME_CHARS_MAX: usize = 100;
const CONFIGURATION_VALUE_BYTES_MAX: usize = 10_000;
/// About 187 bits.
const KEY_CHARS: usize = 32;

/// A pre-configured proxy.
#[derive(Clone)]
pub struct Proxy {
    pub id: Uuid,
    pub name: String,
    pub destination_url: String,
    pub application: Option<Uuid>,
    pub(super) sealed: SealedPart,
    pub(super) row_version: i32,
    /// The MAC of the row that this was read from.
    pub(super) row_mac: Vec<u8>,
    pub created_by: Uuid,
    pub created_at: Timestamp,
    pub modified_by: Option<Uuid>,
    pub modified_at: Option<Timestamp>,
}

impl Proxy {
    /// Selects the proxy, in the header `BT-PROXY-KEY`.
    pub fn key(&self) -> &str {
        &self.sealed.key
    }
}

/// The part of a proxy that is stored encrypted.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct SealedPart {
    pub key: String,
    pub configuration: BTreeMap<String, String>,
    pub request: TransformList,
    pub response: TransformList,
    pub require_auth: bool,
    pub disable_detokenization: bool,
    #[serde(default)]
    pub allowed_requests: AllowedRequests,
}

impl Drop for SealedPart {
    fn drop(&mut self) {
        self.key.zeroize();
        self.configuration.values_mut().for_each(Zeroize::zeroize);
    }
}

/// Transforms, in the form in which they were sent.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(super) struct TransformList {
    pub is_single: bool,
    pub transforms: Vec<TransformBody>,
}

/// A validated [`NewProxy`].
pub(super) struct ValidatedProxy {
    pub name: String,
    pub destination_url: String,
    pub application: Option<Uuid>,
    pub configuration: BTreeMap<String, String>,
    pub request: TransformList,
    pub response: TransformList,
    pub require_auth: bool,
    pub disable_detokenization: bool,
    pub allowed_requests: AllowedRequests,
}

pub(super) fn new_key() -> String {
    random_base58(KEY_CHARS)
}

impl NewProxy {
    /// Validates everything that needs no I/O, so that one response reports all errors. `kept` are the stored
    /// configuration values that masked ones stand for.
    pub(super) fn validate(
        self,
        kept: Option<&BTreeMap<String, String>>,
    ) -> Result<ValidatedProxy, Error> {
        let mut broken = Vec::new();
        let name = self
            .name
            .ok_or_else(|| FieldError::new("name", "is required"));
        let name = name.and_then(|name| check_name(&name).map(|()| name));
        let name = collect(name, &mut broken);
        let url = collect(destination::check_text(self.destination_url), &mut broken);
        let application = self.application.map(|given| application_id(given.id));
        let application = collect(application.transpose(), &mut broken);
        let configuration = configuration(self.configuration, kept, &mut broken);
        let request = TransformLists {
            names: ["request_transform", "request_transforms"],
            single: self.request_transform,
            list: self.request_transforms,
        };
        let response = TransformLists {
            names: ["response_transform", "response_transforms"],
            single: self.response_transform,
            list: self.response_transforms,
        };
        let mut identifiers = Vec::new();
        let request = request.validate(Direction::Request, &mut identifiers, &mut broken)?;
        let response = response.validate(Direction::Response, &mut identifiers, &mut broken)?;
        if let Some(None) = application
            && (request.1 || response.1)
        {
            let rule = "is required by the tokenize transform, which has its permissions";
            broken.push(FieldError::new("application", rule));
        }
        let allowed_requests = self.allowed_requests.unwrap_or_default();
        collect(allowed_requests.check(), &mut broken);
        let require_auth = self.require_auth.unwrap_or(true);
        let mut transforms = request.0.transforms.iter();
        if !require_auth
            && !allowed_requests.lists_operations()
            && transforms.any(TransformBody::appends)
        {
            let rule = "must be true, or `allowed_requests` must have `methods` and `paths`: everybody could send what the \
                        transforms append, such as a credential, with any request below `destination_url`";
            broken.push(FieldError::new("require_auth", rule));
        }
        match (name, url, application) {
            (Some(name), Some(destination_url), Some(application)) if broken.is_empty() => {
                Ok(ValidatedProxy {
                    name,
                    destination_url,
                    application,
                    configuration,
                    request: request.0,
                    response: response.0,
                    require_auth,
                    disable_detokenization: self.disable_detokenization.unwrap_or(false),
                    allowed_requests,
                })
            }
            _ => Err(Error::Invalid(broken)),
        }
    }
}

/// Transforms of one direction in both of their forms.
struct TransformLists {
    names: [&'static str; 2],
    single: Option<TransformBody>,
    list: Option<Vec<TransformBody>>,
}

impl TransformLists {
    /// Also returns whether one of them tokenizes.
    fn validate(
        self,
        direction: Direction,
        identifiers: &mut Vec<String>,
        broken: &mut Vec<FieldError>,
    ) -> Result<(TransformList, bool), Error> {
        let list = self.list.filter(|list| !list.is_empty());
        let is_single = self.single.is_some();
        if is_single && list.is_some() {
            let rule = format!("must not be given together with {}", self.names[0]);
            broken.push(FieldError::new(self.names[1], rule));
        }
        let transforms: Vec<TransformBody> = match self.single {
            Some(single) => vec![single],
            None => list.unwrap_or_default(),
        };
        let tokenizes = match transforms::compile(direction, &transforms, identifiers) {
            Ok(compiled) => compiled
                .iter()
                .any(|transform| matches!(transform, Transform::Tokenize(_))),
            Err(Rejection::NotBuilt) => return Err(Error::NotBuilt),
            Err(Rejection::Invalid(errors)) => {
                broken.extend(errors.into_iter().map(|error| match is_single {
                    true => single_path(error).within(self.names[0]),
                    false => error.within(self.names[1]),
                }));
                false
            }
        };
        let list = TransformList {
            is_single,
            transforms,
        };
        Ok((list, tokenizes))
    }
}

/// The path of an error without its position in a list of one.
fn single_path(mut error: FieldError) -> FieldError {
    if let Some(path) = error.path.strip_prefix("[0].") {
        error.path = path.to_owned();
    }
    error
}

fn collect<T>(result: Result<T, FieldError>, broken: &mut Vec<FieldError>) -> Option<T> {
    result.map_err(|error| broken.push(error)).ok()
}

fn application_id(id: Option<String>) -> Result<Uuid, FieldError> {
    let id = id.as_deref().and_then(|id| id.parse().ok());
    id.ok_or_else(|| FieldError::new("application.id", "must be the id of an application"))
}

fn configuration(
    given: Option<BTreeMap<String, Value>>,
    kept: Option<&BTreeMap<String, String>>,
    broken: &mut Vec<FieldError>,
) -> BTreeMap<String, String> {
    let given = given.unwrap_or_default();
    let mut reject = |rule: String| broken.push(FieldError::new("configuration", rule));
    if given.len() > CONFIGURATION_MAX {
        reject(format!("must have at most {CONFIGURATION_MAX} entries"));
    }
    let is_plain = |c: char| !c.is_control() && !"{}|".contains(c);
    let is_name = |name: &str| {
        (1..=CONFIGURATION_NAME_CHARS_MAX).contains(&name.chars().count())
            && name.trim() == name
            && name.chars().all(is_plain)
    };
    let mut configuration = BTreeMap::new();
    for (name, value) in given {
        if !is_name(&name) {
            reject(format!(
                "must have names of 1 to {CONFIGURATION_NAME_CHARS_MAX} characters without braces and bars"
            ));
        }
        let value = match (value, kept) {
            (Value::String(value), Some(kept)) if value == MASKED => kept.get(&name).cloned(),
            (Value::String(value), _) => Some(value),
            _ => None,
        };
        match value {
            Some(value) if value.len() <= CONFIGURATION_VALUE_BYTES_MAX => {
                configuration.insert(name, value);
            }
            _ => reject(format!(
                "must have strings of at most {CONFIGURATION_VALUE_BYTES_MAX} bytes as values, and masked ones only \
                 for names that are stored, with the same destination_url and without new request transforms that \
                 refer to config"
            )),
        }
    }
    configuration
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn validated(
        body: Value,
        kept: Option<&BTreeMap<String, String>>,
    ) -> Result<ValidatedProxy, Error> {
        serde_json::from_value::<NewProxy>(body)
            .unwrap()
            .validate(kept)
    }

    #[test]
    fn configuration_values_that_are_masked_stand_for_stored_ones() {
        let stored = BTreeMap::from([("KEY".to_owned(), "secret".to_owned())]);
        let body = |configuration: Value| json!({"name": "a", "destination_url": "https://api.example.com", "configuration": configuration});

        let kept = validated(body(json!({"KEY": MASKED, "B": "2"})), Some(&stored)).unwrap();
        assert_eq!(kept.configuration["KEY"], "secret");
        assert_eq!(kept.configuration["B"], "2");
        assert!(validated(body(json!({"OTHER": MASKED})), Some(&stored)).is_err());
        let literal = validated(body(json!({"KEY": MASKED})), None).unwrap();
        assert_eq!(literal.configuration["KEY"], MASKED);
    }

    #[test]
    fn all_validation_errors_are_reported_with_their_paths() {
        let body = json!({
            "name": "a\nb",
            "destination_url": "http://api.example.com",
            "application": {"id": "x"},
            "configuration": {"a": 1, "{": "b"},
            "response_transform": {"type": "mask"},
            "request_transforms": [{"type": "append_text"}],
        });

        let Err(Error::Invalid(broken)) = validated(body, None) else {
            panic!("the request is valid");
        };

        let mut paths: Vec<String> = broken.into_iter().map(|error| error.path).collect();
        paths.sort();
        paths.dedup();
        assert_eq!(
            paths,
            [
                "application.id",
                "configuration",
                "destination_url",
                "name",
                "request_transforms[0].options.value",
                "response_transform.matcher",
            ]
        );
    }
}
