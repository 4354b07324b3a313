//! Parses search queries: `field:value` terms joined by `AND`.
//!
//! ```text
//! query = term *( 1*SP "AND" 1*SP term )
//! term  = field ":" value
//! field = "container" / "type" / "fingerprint" / "data" / "id" / "metadata." key
//! key   = 1*( any character except ":" SP DQUOTE, or "\" and any character )
//! value = DQUOTE *( any character except DQUOTE and "\", or "\" and any character ) DQUOTE
//!       / 1*( any character except SP DQUOTE ( ) [ ] { } * ?, or "\" and any character )
//! ```

use cloakroom_core::access::Container;
use cloakroom_crypto::Sensitive;
use cloakroom_platform::api::FieldError;

use super::{Condition, Filter, FilterV1};

const CHARS_MAX: usize = 200;

const SUPPORTED: &str = "must be one term `field:value`, or one term `AND` one container term; the \
    fields are container, type, fingerprint, metadata.KEY and data; enclose a value with spaces \
    or special characters in double quotes; OR, NOT, parentheses, ranges and wildcards are not supported";
const SUPPORTED_OLD: &str = "must be one term `field:value`, or metadata terms with different keys \
    joined by `AND`; the fields are id, metadata.KEY and data; enclose a value with spaces \
    or special characters in double quotes; OR, NOT, parentheses, ranges and wildcards are not supported";

/// Parses a v2 query. An absent or blank one matches all tokens.
pub fn parse(query: Option<&str>) -> Result<Filter, FieldError> {
    let mut filter = Filter::default();
    for term in terms(query.unwrap_or_default(), SUPPORTED)? {
        add(&mut filter, term).map_err(broken)?;
    }
    Ok(filter)
}

/// Parses a v1 query. An absent or blank one matches all tokens.
pub fn parse_old(query: Option<&str>) -> Result<FilterV1, FieldError> {
    let mut filter = FilterV1::default();
    for term in terms(query.unwrap_or_default(), SUPPORTED_OLD)? {
        add_v1(&mut filter, term).map_err(broken)?;
    }
    Ok(filter)
}

/// Whether a v1 query was rejected because its syntax is not supported.
pub fn is_complex(broken: &FieldError) -> bool {
    broken.rule == SUPPORTED_OLD
}

fn add(filter: &mut Filter, term: Term) -> Result<(), String> {
    let Term { field, value } = term;
    let is_first = match field {
        Field::Container => {
            let container = Container::parse(value.expose()).map_err(|rule| rule.to_string())?;
            filter.container.replace(container).is_none()
        }
        Field::Kind => replace(filter, Condition::kind(value.expose())?),
        Field::Fingerprint => replace(filter, Condition::fingerprint(value.expose())?),
        Field::Metadata(key) => replace(filter, Condition::metadata(key, value.into_inner())?),
        Field::Data => replace(filter, Condition::Data(value)),
        Field::Id => false,
    };
    is_first.then_some(()).ok_or_else(|| SUPPORTED.to_owned())
}

/// Sets the condition; true if there was none before.
fn replace(filter: &mut Filter, condition: Condition) -> bool {
    filter.condition.replace(condition).is_none()
}

fn add_v1(filter: &mut FilterV1, term: Term) -> Result<(), String> {
    let Term { field, value } = term;
    let joins_metadata = filter.ids.is_none() && filter.data.is_none();
    let is_first = joins_metadata && filter.metadata.is_empty();
    let is_supported = match field {
        Field::Metadata(key) if joins_metadata => filter.add_metadata(&key, value.expose())?,
        Field::Id if is_first => filter.add_id(value.into_inner()).map(|()| true)?,
        Field::Data if is_first => filter.data.replace(value).is_none(),
        _ => false,
    };
    is_supported
        .then_some(())
        .ok_or_else(|| SUPPORTED_OLD.to_owned())
}

fn broken(rule: impl Into<String>) -> FieldError {
    FieldError::new("query", rule)
}

struct Term {
    field: Field,
    value: Sensitive<String>,
}

enum Field {
    Container,
    Kind,
    Fingerprint,
    Data,
    Id,
    Metadata(String),
}

fn terms(query: &str, supported: &str) -> Result<Vec<Term>, FieldError> {
    if query.chars().count() > CHARS_MAX {
        return Err(broken(format!("must be at most {CHARS_MAX} characters")));
    }
    if query.trim().is_empty() {
        return Ok(Vec::new());
    }
    read_terms(query).ok_or_else(|| broken(supported))
}

/// Parses the terms, ignoring spaces around the query.
fn read_terms(query: &str) -> Option<Vec<Term>> {
    let mut terms = Vec::new();
    let mut rest = query.trim_start_matches(' ');
    loop {
        let (term, after) = read_term(rest)?;
        terms.push(term);
        if after.is_empty() {
            return Some(terms);
        }
        let next = after.strip_prefix(' ')?.trim_start_matches(' ');
        if next.is_empty() {
            return Some(terms);
        }
        rest = next.strip_prefix("AND ")?.trim_start_matches(' ');
    }
}

fn read_term(text: &str) -> Option<(Term, &str)> {
    let (field, rest) = read_field(text)?;
    let (value, rest) = read_value(rest)?;
    Some((Term { field, value }, rest))
}

/// Parses a field name and the colon after it.
fn read_field(text: &str) -> Option<(Field, &str)> {
    if let Some(rest) = text.strip_prefix("metadata.") {
        let (key, rest) = read_until(rest, |c| matches!(c, ':' | ' ' | '"'))?;
        let is_key = !key.expose().is_empty();
        return is_key.then_some((Field::Metadata(key.into_inner()), rest.strip_prefix(':')?));
    }
    let (name, rest) = text.split_once(':')?;
    let field = match name {
        "container" => Field::Container,
        "type" => Field::Kind,
        "fingerprint" => Field::Fingerprint,
        "data" => Field::Data,
        "id" => Field::Id,
        _ => return None,
    };
    Some((field, rest))
}

fn read_value(text: &str) -> Option<(Sensitive<String>, &str)> {
    if let Some(quoted) = text.strip_prefix('"') {
        let (value, rest) = read_until(quoted, |c| c == '"')?;
        return Some((value, rest.strip_prefix('"')?));
    }
    let is_special = |c| " \"()[]{}*?".contains(c);
    read_until(text, is_special).filter(|(value, _)| !value.expose().is_empty())
}

/// Unescapes everything up to an unescaped end character or the end of the text.
fn read_until(text: &str, is_end: impl Fn(char) -> bool) -> Option<(Sensitive<String>, &str)> {
    let mut read = Sensitive::new(String::with_capacity(text.len()));
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => read.expose_mut().push(characters.next()?.1),
            end if is_end(end) => return Some((read, &text[at..])),
            other => read.expose_mut().push(other),
        }
    }
    Some((read, ""))
}

#[cfg(test)]
mod tests;
