//! Parses the query string of a list: filter and page.

use std::fmt;

use cloakroom_core::access::Container;
use cloakroom_platform::api::{FieldError, NumberedPage, Query};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

use super::page::SIZE_MAX;
use super::{Condition, Filter, FilterV1, Page};

const IDS_MAX: usize = 100;
/// No token has more entries, so a longer list could not match.
const METADATA_MAX: usize = 50;

/// Parses the query string of a v2 list.
///
/// Unknown parameters are ignored. A parameter without a value has an empty value, which only metadata and `start`
/// allow: an empty filter must not widen a list to all tokens.
pub fn parse(query: &str) -> Result<(Filter, Page), Vec<FieldError>> {
    let mut parameters = Parameters::decode(query);
    if parameters.has("id") {
        let rule = "is not supported here; use GET /tokens/{id} to read a token by id";
        parameters.query.reject("id", rule);
    }
    if parameters.has("page") {
        let rule = "is not supported here: a client that counts pages would receive the first one for ever; send the `next` of the \
                    previous page as `start`";
        parameters.query.reject("page", rule);
    }
    let container = parameters.query.once("container").and_then(|path| {
        let container = Container::parse(&path).map_err(|rule| rule.to_string());
        parameters.query.check("container", container)
    });
    let condition = parameters.condition();
    let size = parameters.query.number("size");
    let page = Page::new(size, parameters.query.once("start"));
    let filter = Filter {
        container,
        condition,
    };
    parameters.query.finish(filter, page)
}

/// Parses the query string of a v1 list. Unknown parameters and `start` are ignored.
pub fn parse_v1(query: &str) -> Result<(FilterV1, NumberedPage), Vec<FieldError>> {
    let mut parameters = Parameters::decode(query);
    let mut filter = FilterV1::default();
    for id in parameters.query.all("id") {
        let added = filter.add_id(id);
        parameters.query.check("id", added);
    }
    if filter.ids.as_ref().is_some_and(|ids| ids.len() > IDS_MAX) {
        parameters
            .query
            .reject("id", format!("must be given at most {IDS_MAX} times"));
    }
    for (key, value) in std::mem::take(&mut parameters.metadata) {
        let added = filter.add_metadata(&key, &value);
        parameters.query.check("metadata", added);
        if filter.metadata.len() > METADATA_MAX {
            parameters.query.reject(
                "metadata",
                format!("must have at most {METADATA_MAX} entries"),
            );
            break;
        }
    }
    let page = NumberedPage::new(
        parameters.query.number("page"),
        parameters.query.number("size"),
        SIZE_MAX,
    );
    parameters.query.finish(filter, page)
}

const KNOWN: [&str; 8] = [
    "container",
    "fingerprint",
    "id",
    "metadata",
    "page",
    "size",
    "start",
    "type",
];

/// The decoded parameters, with metadata separated, and their errors.
struct Parameters {
    query: Query,
    metadata: Vec<(String, String)>,
}

impl Parameters {
    /// Decodes parameters. Metadata is `metadata.key=value`, `metadata[key]=value` or `metadata={"key":"value"}`.
    fn decode(query: &str) -> Self {
        let mut query = Query::decode(Some(query), &KNOWN);
        let mut metadata = Vec::new();
        let is_metadata = |name: &str| {
            let key = name.strip_prefix("metadata");
            key.is_some_and(|key| key.is_empty() || key.starts_with(['.', '[']))
        };
        for (name, value) in query.take(is_metadata) {
            let key = name.strip_prefix("metadata").unwrap_or_default();
            if key.is_empty() {
                match serde_json::from_str::<Entries>(&value) {
                    Ok(Entries(entries)) => metadata.extend(entries),
                    Err(_) => query.reject("metadata", "must be a JSON object of strings"),
                }
            } else if let Some(key) = key.strip_prefix('.') {
                metadata.push((key.to_owned(), value));
            } else {
                match key.strip_prefix('[').and_then(|key| key.strip_suffix(']')) {
                    Some(key) => metadata.push((key.to_owned(), value)),
                    None => query.reject("metadata", "must have its key in brackets"),
                }
            }
        }
        Self { query, metadata }
    }

    /// Parses the condition. Conditions are mutually exclusive.
    fn condition(&mut self) -> Option<Condition> {
        let conditions = ["type", "fingerprint", "metadata"];
        let present: Vec<_> = conditions.into_iter().filter(|n| self.has(n)).collect();
        if present.len() > 1 {
            for name in present {
                self.query.reject(
                    name,
                    "must be the only one of type, fingerprint and metadata",
                );
            }
        }
        if self.metadata.len() > 1 {
            self.query
                .reject("metadata", "must be given at most once, with one key");
        }
        let kind = self.query.once("type").map(|name| Condition::kind(&name));
        let kind = kind.and_then(|kind| self.query.check("type", kind));
        let fingerprint = self.query.once("fingerprint");
        let fingerprint = fingerprint.map(|text| Condition::fingerprint(&text));
        let fingerprint = fingerprint.and_then(|text| self.query.check("fingerprint", text));
        let metadata = self.metadata.pop();
        let metadata = metadata.map(|(key, value)| Condition::metadata(key, value));
        let metadata = metadata.and_then(|entry| self.query.check("metadata", entry));
        kind.or(fingerprint).or(metadata)
    }

    fn has(&self, name: &str) -> bool {
        let is_metadata = name == "metadata" && !self.metadata.is_empty();
        is_metadata || self.query.has(name)
    }
}

/// The entries of a JSON object, including duplicate keys, without null entries.
struct Entries(Vec<(String, String)>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;

        impl<'de> Visitor<'de> for Collect {
            type Value = Entries;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of strings")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
                let mut entries = Vec::new();
                while let Some((key, value)) = map.next_entry::<String, Option<String>>()? {
                    entries.extend(value.map(|value| (key, value)));
                }
                Ok(Entries(entries))
            }
        }

        deserializer.deserialize_map(Collect)
    }
}

#[cfg(test)]
mod tests;
