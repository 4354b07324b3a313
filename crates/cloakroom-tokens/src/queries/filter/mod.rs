//! Filters of lists and searches, independent of their syntax.

use cloakroom_core::access::Container;
use cloakroom_crypto::Sensitive;

use crate::attributes::fold_case;
use crate::types::TokenKind;

const FINGERPRINT_CHARS_MAX: usize = 100;
const KEY_CHARS_MAX: usize = 200;
const VALUE_CHARS_MAX: usize = 1_000;
const ID_CHARS_MAX: usize = 400;

/// The filter of a v2 list or search; an empty filter matches all tokens.
#[derive(Debug, Default)]
pub struct Filter {
    /// This container and those below it.
    pub container: Option<Container>,
    pub condition: Option<Condition>,
}

/// A condition on tokens, besides the container.
#[derive(Debug)]
pub enum Condition {
    Kind(TokenKind),
    Fingerprint(String),
    /// Both are compared case-sensitively.
    Metadata {
        key: String,
        value: String,
    },
    /// The value of a search index, which is sensitive because it is derived from token data.
    Data(Sensitive<String>),
}

/// The filter of a v1 list or search; an empty filter matches all tokens.
#[derive(Debug, Default)]
pub struct FilterV1 {
    /// Tokens with one of these ids; not empty.
    pub ids: Option<Vec<String>>,
    /// Tokens with all of these entries. Keys are unique; keys and values are case-folded.
    pub metadata: Vec<(String, String)>,
    /// The value of a search index, compared case-sensitively.
    pub data: Option<Sensitive<String>>,
}

impl Filter {
    /// An unambiguous encoding of the filter: every part is prefixed with its length.
    ///
    /// It contains the search values, so it must only be used as input of digests.
    pub fn canonical(&self) -> Sensitive<String> {
        let mut parts = Vec::new();
        if let Some(container) = &self.container {
            parts.extend(["container", container.as_str()]);
        }
        match &self.condition {
            None => {}
            Some(Condition::Kind(kind)) => parts.extend(["type", kind.name()]),
            Some(Condition::Fingerprint(text)) => parts.extend(["fingerprint", text]),
            Some(Condition::Metadata { key, value }) => parts.extend(["metadata", key, value]),
            Some(Condition::Data(value)) => parts.extend(["data", value.expose()]),
        }
        // Full capacity up front: a reallocation would leave an unzeroized copy in memory.
        let length = parts.iter().map(|part| part.len() + 21).sum();
        let mut text = Sensitive::new(String::with_capacity(length));
        for part in parts {
            text.expose_mut().push_str(&part.len().to_string());
            text.expose_mut().push(':');
            text.expose_mut().push_str(part);
        }
        text
    }
}

/// Errors are the violated rule, as text for the client.
impl Condition {
    pub(super) fn kind(name: &str) -> Result<Self, String> {
        TokenKind::parse(name)
            .map(Self::Kind)
            .ok_or_else(|| "must name a token type".to_owned())
    }

    pub(super) fn fingerprint(text: &str) -> Result<Self, String> {
        let is_alphanumeric = text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if text.is_empty() || text.len() > FINGERPRINT_CHARS_MAX || !is_alphanumeric {
            return Err(format!(
                "must be a fingerprint: 1 to {FINGERPRINT_CHARS_MAX} letters and digits"
            ));
        }
        Ok(Self::Fingerprint(text.to_owned()))
    }

    pub(super) fn metadata(key: String, value: String) -> Result<Self, String> {
        check_metadata(&key, &value)?;
        Ok(Self::Metadata { key, value })
    }
}

impl FilterV1 {
    /// Adds an id, which need not exist.
    pub(super) fn add_id(&mut self, id: String) -> Result<(), String> {
        if id.is_empty() || id.chars().count() > ID_CHARS_MAX || id.contains(char::is_control) {
            return Err(format!(
                "must be a token id of at most {ID_CHARS_MAX} characters"
            ));
        }
        self.ids.get_or_insert_default().push(id);
        Ok(())
    }

    /// Adds an entry; false if its key was added before.
    pub(super) fn add_metadata(&mut self, key: &str, value: &str) -> Result<bool, String> {
        check_metadata(key, value)?;
        let key = fold_case(key);
        let is_new = self.metadata.iter().all(|(known, _)| *known != key);
        if is_new {
            self.metadata.push((key, fold_case(value)));
        }
        Ok(is_new)
    }
}

/// Checks the limits of metadata. NUL is rejected because PostgreSQL text cannot contain it.
fn check_metadata(key: &str, value: &str) -> Result<(), String> {
    let fits = (1..=KEY_CHARS_MAX).contains(&key.chars().count())
        && value.chars().count() <= VALUE_CHARS_MAX
        && !key.contains('\0')
        && !value.contains('\0');
    fits.then_some(()).ok_or_else(|| {
        format!(
            "must have a key of 1 to {KEY_CHARS_MAX} characters and a value of at most \
             {VALUE_CHARS_MAX}, without NUL"
        )
    })
}

#[cfg(test)]
pub(super) mod tests;
