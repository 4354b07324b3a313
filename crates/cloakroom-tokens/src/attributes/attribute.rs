//! Validates the attributes that clients send and converts them into their stored form.

use cloakroom_core::access::Container;
use cloakroom_expressions::{Context, Mask};
use cloakroom_platform::api::{EXPIRY_RULE, Expiry, FieldError};
use cloakroom_platform::card_numbers::{NO_CARD_NUMBER, contains_card_number};
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::expression::parse_template;
use crate::types::{TokenKind, refers_to_security_code};

/// Deprecated: `/<classification>/<impact_level>/`, each with the type's value as default.
#[derive(Deserialize, ToSchema)]
#[schema(as = PrivacyBody)]
pub struct Privacy {
    /// `general`, `bank`, `pci` or `pii`.
    pub classification: Option<String>,
    /// `low`, `moderate` or `high`.
    pub impact_level: Option<String>,
}

const NO_SECURITY_CODE: &str =
    "must not refer to the security code, which must not be stored in any form";

const DATA_BYTES_MAX: usize = 1024 * 1024;
const MASK_BYTES_MAX: usize = 16 * 1024;
const SEARCH_INDEXES_MAX: usize = 10;

/// The stored mask of a token without any mask, not even the default of its type.
pub const NO_MASK: &str = "null";

/// Rejects data that is too large to encrypt.
pub fn data_size(data: &[u8]) -> Result<(), Vec<FieldError>> {
    if data.len() > DATA_BYTES_MAX {
        let rule = format!("must be at most {DATA_BYTES_MAX} bytes of JSON");
        return Err(vec![FieldError::new("data", rule)]);
    }
    Ok(())
}

pub fn kind(name: Option<&str>) -> Result<TokenKind, Vec<FieldError>> {
    let name = name.ok_or_else(|| one("type", "is required"))?;
    TokenKind::parse(name).ok_or_else(|| {
        let names: Vec<&str> = TokenKind::ALL.into_iter().map(TokenKind::name).collect();
        one("type", format!("must be one of {}", names.join(", ")))
    })
}

pub fn container(containers: &[String]) -> Result<Container, Vec<FieldError>> {
    match containers {
        [path] if contains_card_number(path) => Err(one("containers[0]", NO_CARD_NUMBER)),
        [path] => Container::parse(path).map_err(|rule| one("containers[0]", rule.to_string())),
        _ => Err(one("containers", "must contain exactly one path")),
    }
}

/// Builds a container from classification and impact level, each with the value of the type as default.
pub fn privacy(privacy: &Privacy, kind: TokenKind) -> Result<Container, Vec<FieldError>> {
    const CLASSIFICATIONS: [&str; 4] = ["general", "bank", "pci", "pii"];
    const IMPACT_LEVELS: [&str; 3] = ["low", "moderate", "high"];
    let mut broken = Vec::new();
    let mut check = |given: Option<&str>, name: &str, known: &[&str]| {
        if given.is_some_and(|word| !known.contains(&word)) {
            let rule = format!("must be one of {}", known.join(", "));
            broken.push(FieldError::new(format!("privacy.{name}"), rule));
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

/// Validates a mask and returns it as JSON.
pub fn mask(mask: &Value) -> Result<String, Vec<FieldError>> {
    let text = mask.to_string();
    if text.len() > MASK_BYTES_MAX {
        let rule = format!("must be at most {MASK_BYTES_MAX} bytes of JSON");
        return Err(one("mask", rule));
    }
    if contains_card_number(&text) {
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

pub fn expiry(text: &str) -> Result<Expiry, Vec<FieldError>> {
    Expiry::parse(text).ok_or_else(|| one("expires_at", EXPIRY_RULE))
}

pub fn fingerprint_expression(
    text: String,
    kind: Option<TokenKind>,
) -> Result<String, Vec<FieldError>> {
    match check_expression(Context::Fingerprint, &text, kind) {
        Ok(()) => Ok(text),
        Err(rule) => Err(one("fingerprint_expression", rule)),
    }
}

/// Validates search indexes and returns them as a JSON array of strings.
pub fn search_indexes(
    expressions: &[String],
    kind: Option<TokenKind>,
) -> Result<String, Vec<FieldError>> {
    if expressions.len() > SEARCH_INDEXES_MAX {
        let rule = format!("must have at most {SEARCH_INDEXES_MAX} entries");
        return Err(one("search_indexes", rule));
    }
    let broken: Vec<FieldError> = expressions
        .iter()
        .enumerate()
        .filter_map(|(index, text)| {
            let rule = check_expression(Context::SearchIndex, text, kind).err()?;
            Some(FieldError::new(format!("search_indexes[{index}]"), rule))
        })
        .collect();
    if !broken.is_empty() {
        return Err(broken);
    }
    Ok(Value::from(expressions).to_string())
}

fn check_expression(context: Context, text: &str, kind: Option<TokenKind>) -> Result<(), String> {
    if text.contains('\0') {
        return Err("must not contain a NUL character".to_owned());
    }
    if contains_card_number(text) {
        return Err(NO_CARD_NUMBER.to_owned());
    }
    let has_code = kind.is_some_and(TokenKind::has_security_code);
    if has_code && refers_to_security_code(text) {
        return Err(NO_SECURITY_CODE.to_owned());
    }
    parse_template(context, text).map(drop)
}

/// Returns the value, or collects the errors so that the response reports all of them.
pub fn ok_or_collect<T>(
    result: Result<T, Vec<FieldError>>,
    broken: &mut Vec<FieldError>,
) -> Option<T> {
    result.map_err(|rules| broken.extend(rules)).ok()
}

fn one(path: impl Into<String>, rule: impl Into<String>) -> Vec<FieldError> {
    vec![FieldError::new(path, rule)]
}
