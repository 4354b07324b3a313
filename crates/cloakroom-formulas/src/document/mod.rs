//! Parses and validates a catalog file at build time.

use serde::Deserialize;

use crate::vocabulary::{Features, Format, Method};

/// Withdrawn in 2025 and still accepted by processors, but missing in the newer ISO 4217 list that we use.
const WITHDRAWN_CURRENCIES: [&str; 1] = ["ANG"];

/// A formula as written in its file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Document {
    pub(crate) id: String,
    pub(crate) display_name: String,
    pub(crate) method: Method,
    pub(crate) fields: Vec<FieldDocument>,
    pub(crate) supported_currencies: Vec<String>,
    pub(crate) supported_countries: Vec<String>,
    pub(crate) supported_features: Features,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FieldDocument {
    pub(crate) key: String,
    pub(crate) display_name: String,
    pub(crate) required: bool,
    pub(crate) format: Format,
    pub(crate) secret: bool,
}

/// A rule that a file violates.
#[derive(Debug, thiserror::Error)]
#[error("formulas/{file}: {attribute}: {rule}")]
pub(crate) struct Violation {
    file: String,
    attribute: String,
    rule: String,
}

/// Parses and validates a file; returns all violations.
pub(crate) fn read(file: &str, text: &str) -> Result<Document, Vec<Violation>> {
    let violation = |attribute: String, rule: String| Violation {
        file: file.to_owned(),
        attribute,
        rule,
    };
    let mut parser = serde_json::Deserializer::from_str(text);
    let document: Document = serde_path_to_error::deserialize(&mut parser).map_err(|error| {
        vec![violation(
            error.path().to_string(),
            error.inner().to_string(),
        )]
    })?;
    let end = parser.end().map_err(|error| error.to_string());
    end.map_err(|rule| vec![violation(".".to_owned(), rule)])?;

    let mut validation = Validation {
        file,
        violations: Vec::new(),
    };
    document.validate(&mut validation);
    match validation.violations.is_empty() {
        true => Ok(document),
        false => Err(validation.violations),
    }
}

/// Collects the violations of one file.
struct Validation<'a> {
    file: &'a str,
    violations: Vec<Violation>,
}

impl Validation<'_> {
    fn require(&mut self, is_valid: bool, attribute: impl Into<String>, rule: &str) {
        if !is_valid {
            self.violations.push(Violation {
                file: self.file.to_owned(),
                attribute: attribute.into(),
                rule: rule.to_owned(),
            });
        }
    }
}

impl Document {
    fn validate(&self, validation: &mut Validation<'_>) {
        let is_file = validation.file.strip_suffix(".json") == Some(&self.id);
        validation.require(is_file, "id", "must be the file's name without .json");
        let processor = match self.method {
            Method::Card => self.id.strip_suffix("-card"),
        };
        let rule = "must be lower-case letters and digits, then a dash and the method";
        validation.require(processor.is_some_and(is_processor), "id", rule);
        require_name(&self.display_name, "display_name", validation);
        for (index, field) in self.fields.iter().enumerate() {
            let key = format!("fields[{index}].key");
            validation.require(is_key(&field.key), &key, "must match [a-z][a-z0-9_]*");
            let mut earlier = self.fields[..index].iter();
            let is_new = earlier.all(|earlier| earlier.key != field.key);
            validation.require(is_new, &key, "must not be the key of another field");
            require_name(
                &field.display_name,
                &format!("fields[{index}].display_name"),
                validation,
            );
        }
        let (currencies, countries) = (&self.supported_currencies, &self.supported_countries);
        require_codes(currencies, "supported_currencies", is_currency, validation);
        require_codes(countries, "supported_countries", is_country, validation);
    }
}

fn require_name(name: &str, attribute: &str, validation: &mut Validation<'_>) {
    validation.require(!name.trim().is_empty(), attribute, "must not be empty");
}

fn require_codes(
    codes: &[String],
    attribute: &str,
    is_code: fn(&str) -> bool,
    validation: &mut Validation<'_>,
) {
    validation.require(!codes.is_empty(), attribute, "must not be empty");
    for (index, code) in codes.iter().enumerate() {
        let element = format!("{attribute}[{index}]");
        validation.require(
            is_code(code),
            &element,
            "must be a code of the ISO standard",
        );
        let is_later = index == 0 || codes[index - 1] < *code;
        let rule = "must be sorted, without duplicates";
        validation.require(is_later, &element, rule);
    }
}

fn is_processor(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    !text.is_empty() && text.bytes().all(is_letter)
}

fn is_key(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    text.starts_with(|first: char| first.is_ascii_lowercase()) && text.bytes().all(is_letter)
}

/// ISO 4217, alphabetic.
fn is_currency(code: &str) -> bool {
    iso_currency::Currency::from_code(code).is_some() || WITHDRAWN_CURRENCIES.contains(&code)
}

/// ISO 3166-1 alpha-2.
fn is_country(code: &str) -> bool {
    rust_iso3166::ALPHA2_MAP.get(code).is_some()
}

#[cfg(test)]
mod tests;
