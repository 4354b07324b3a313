//! The attributes that clients give beside the data, each checked into the form that is kept.

use cloakroom_expressions::{Context, Mask};
use serde_json::Value;

use super::expression::parse_template;
use crate::access::Container;
use crate::api::{Broken, EXPIRY_RULE, Expiry};
use crate::card_numbers::{NO_CARD_NUMBER, holds_card_number};
use crate::token_types::{TokenKind, refers_to_security_code};

/// The older way to say where a token goes; it only counts when no container is named.
pub struct Privacy {
    pub classification: Option<String>,
    pub impact_level: Option<String>,
}

const NO_SECURITY_CODE: &str = "must not refer to the security code: nothing may be kept of it";

const DATA_BYTES_MAX: usize = 1024 * 1024;
const MASK_BYTES_MAX: usize = 16 * 1024;
const SEARCH_INDEXES_MAX: usize = 10;

/// The mask of a token that has none, not even its type's.
pub(crate) const NO_MASK: &str = "null";

/// Refuses data that is too large to be sealed at once.
pub(crate) fn data_size(data: &[u8]) -> Result<(), Vec<Broken>> {
    if data.len() > DATA_BYTES_MAX {
        let rule = format!("must be at most {DATA_BYTES_MAX} bytes of JSON");
        return Err(vec![Broken::new("data", rule)]);
    }
    Ok(())
}

pub(crate) fn kind(name: Option<&str>) -> Result<TokenKind, Vec<Broken>> {
    let name = name.ok_or_else(|| one("type", "is required"))?;
    TokenKind::parse(name).ok_or_else(|| {
        let names: Vec<&str> = TokenKind::ALL.into_iter().map(TokenKind::name).collect();
        one("type", format!("must be one of {}", names.join(", ")))
    })
}

pub(crate) fn container(containers: &[String]) -> Result<Container, Vec<Broken>> {
    match containers {
        [path] if holds_card_number(path) => Err(one("containers[0]", NO_CARD_NUMBER)),
        [path] => Container::parse(path).map_err(|rule| one("containers[0]", rule.to_string())),
        _ => Err(one("containers", "must hold exactly one path")),
    }
}

/// Builds a container from classification and impact level, each with the type's own as default.
pub(crate) fn privacy(privacy: &Privacy, kind: TokenKind) -> Result<Container, Vec<Broken>> {
    const CLASSIFICATIONS: [&str; 4] = ["general", "bank", "pci", "pii"];
    const IMPACT_LEVELS: [&str; 3] = ["low", "moderate", "high"];
    let mut broken = Vec::new();
    let mut check = |given: Option<&str>, name: &str, known: &[&str]| {
        if given.is_some_and(|word| !known.contains(&word)) {
            let rule = format!("must be one of {}", known.join(", "));
            broken.push(Broken::new(format!("privacy.{name}"), rule));
        }
    };
    let classification = privacy.classification.as_deref();
    let impact_level = privacy.impact_level.as_deref();
    check(classification, "classification", &CLASSIFICATIONS);
    check(impact_level, "impact_level", &IMPACT_LEVELS);
    if !broken.is_empty() {
        return Err(broken);
    }
    let default = kind.default_container();
    let mut defaults = default.as_str().trim_matches('/').split('/');
    let (class, level) = (
        defaults.next().unwrap_or_default(),
        defaults.next().unwrap_or_default(),
    );
    let path = format!(
        "/{}/{}/",
        classification.unwrap_or(class),
        impact_level.unwrap_or(level)
    );
    Ok(Container::known(&path))
}

/// A mask as JSON text.
pub(crate) fn mask(mask: &Value) -> Result<String, Vec<Broken>> {
    let text = mask.to_string();
    if text.len() > MASK_BYTES_MAX {
        let rule = format!("must be at most {MASK_BYTES_MAX} bytes of JSON");
        return Err(one("mask", rule));
    }
    if holds_card_number(&text) {
        return Err(one("mask", NO_CARD_NUMBER));
    }
    Mask::parse(mask).map_err(|error| {
        let path = match error.path.as_str() {
            "" => "mask".to_owned(),
            inner if inner.starts_with('[') => format!("mask{inner}"),
            inner => format!("mask.{inner}"),
        };
        one(path, error.to_string())
    })?;
    Ok(text)
}

pub(crate) fn expiry(text: &str) -> Result<Expiry, Vec<Broken>> {
    Expiry::parse(text).ok_or_else(|| one("expires_at", EXPIRY_RULE))
}

pub(crate) fn fingerprint_expression(
    text: String,
    kind: Option<TokenKind>,
) -> Result<String, Vec<Broken>> {
    match check_expression(Context::Fingerprint, &text, kind) {
        Ok(()) => Ok(text),
        Err(rule) => Err(one("fingerprint_expression", rule)),
    }
}

/// Search indexes as a JSON array of text.
pub(crate) fn search_indexes(
    expressions: &[String],
    kind: Option<TokenKind>,
) -> Result<String, Vec<Broken>> {
    if expressions.len() > SEARCH_INDEXES_MAX {
        let rule = format!("must have at most {SEARCH_INDEXES_MAX} entries");
        return Err(one("search_indexes", rule));
    }
    let broken: Vec<Broken> = expressions
        .iter()
        .enumerate()
        .filter_map(|(index, text)| {
            let rule = check_expression(Context::SearchIndex, text, kind).err()?;
            Some(Broken::new(format!("search_indexes[{index}]"), rule))
        })
        .collect();
    if !broken.is_empty() {
        return Err(broken);
    }
    Ok(Value::from(expressions).to_string())
}

fn check_expression(context: Context, text: &str, kind: Option<TokenKind>) -> Result<(), String> {
    if text.contains('\0') {
        return Err("must not hold a NUL character".to_owned());
    }
    if holds_card_number(text) {
        return Err(NO_CARD_NUMBER.to_owned());
    }
    let has_code = kind.is_some_and(TokenKind::has_security_code);
    if has_code && refers_to_security_code(text) {
        return Err(NO_SECURITY_CODE.to_owned());
    }
    parse_template(context, text).map(drop)
}

/// Keeps what is right and collects what is not, so that clients learn of all broken rules at once.
pub(crate) fn keep<T>(result: Result<T, Vec<Broken>>, broken: &mut Vec<Broken>) -> Option<T> {
    result.map_err(|rules| broken.extend(rules)).ok()
}

fn one(path: impl Into<String>, rule: impl Into<String>) -> Vec<Broken> {
    vec![Broken::new(path, rule)]
}
