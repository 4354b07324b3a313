//! Validates a request against the field table, before it is sent to a network.

use cloakroom_emv3ds::{Format, MessageKind, field as emv_field};
use cloakroom_platform::api::FieldError;
use iso_currency::Currency;
use serde_json::{Map, Value};

use super::field::{Case, Field, FieldType, Names, Needed, value_at};
use super::{FIELDS, SessionKind, date};

const MINUTES: std::ops::RangeInclusive<u64> = 1..=10_080;
const FREE_MAX: usize = 2_048;
const EXTENSIONS_MAX: usize = 10;

/// Returns all errors of a request, by field path.
pub fn check(kind: SessionKind, body: &Map<String, Value>) -> Vec<FieldError> {
    let case = Case::of(kind, body);
    let mut errors = Vec::new();
    for field in FIELDS {
        let is_in_object = match field.split_path() {
            (None, _) => true,
            (Some(parent), _) => value_at(body, parent).is_some_and(Value::is_object),
        };
        if !is_in_object {
            continue;
        }
        match field.find(body) {
            None => errors.extend(missing(field, &case)),
            Some(value) => errors.extend(invalid_value(field, value)),
        }
    }
    if let Some(purpose) = case.purpose {
        let is_allowed = match kind {
            SessionKind::Customer => purpose.is_for_customer(),
            SessionKind::Merchant => purpose.is_for_merchant(),
        };
        if !is_allowed {
            let rule = format!("is not allowed for {} sessions", kind.name());
            errors.push(FieldError::new("authentication_type", rule));
        }
    }
    errors
}

fn missing(field: &Field, case: &Case) -> Option<FieldError> {
    if !field.needed.holds(case) {
        return None;
    }
    let rule = match field.needed {
        Needed::When(condition) => format!("is required {}", condition.words()),
        Needed::Always | Needed::Never => "is required".to_owned(),
    };
    Some(FieldError::new(field.path, rule))
}

fn invalid_value(field: &Field, value: &Value) -> Vec<FieldError> {
    if let FieldType::Extensions = field.takes {
        return invalid_extensions(field.path, value);
    }
    match field.violated_rule(value) {
        None => Vec::new(),
        Some(rule) => vec![FieldError::new(field.path, rule)],
    }
}

impl Field {
    /// Format of the AReq field.
    pub(super) fn format(&self) -> Option<&'static Format> {
        emv_field(MessageKind::AReq, self.to).map(|field| &field.format)
    }

    /// The validation rule as text.
    pub(super) fn rule(&self) -> String {
        let format = || {
            self.format()
                .map_or("a string".to_owned(), Format::to_string)
        };
        match self.takes {
            FieldType::Text | FieldType::Words | FieldType::Subdivision => {
                format!("must be {}", format())
            }
            FieldType::Date => format!("must be {}, or in ISO 8601", format()),
            FieldType::Count => format!("must be 1 to {} digits", self.digits()),
            FieldType::Free => format!("must be a string of 1 to {FREE_MAX} characters"),
            FieldType::Flag(_) => "must be true or false".to_owned(),
            FieldType::Named(names) => format!("must be one of {}", (names.all)().join(", ")),
            FieldType::OneOf(texts) => format!("must be one of {}", texts.join(", ")),
            FieldType::Minutes => "must be an integer from 1 to 10080".to_owned(),
            FieldType::Currency => "must be an ISO 4217 currency, such as 978 or EUR".to_owned(),
            FieldType::Object | FieldType::Opaque => "must be an object".to_owned(),
            FieldType::Extensions => {
                format!("must be an array of at most {EXTENSIONS_MAX} extensions")
            }
        }
    }

    fn violated_rule(&self, value: &Value) -> Option<String> {
        let is_valid = match self.takes {
            FieldType::Object => value.is_object(),
            FieldType::Opaque => value.is_object() && self.matches_format(value),
            FieldType::Flag(_) => value.is_boolean(),
            FieldType::Minutes => minutes(value).is_some(),
            FieldType::Free => value
                .as_str()
                .is_some_and(|text| (1..=FREE_MAX).contains(&text.len())),
            FieldType::Named(names) => value.as_str().is_some_and(|name| names.contains(name)),
            FieldType::OneOf(texts) => value.as_str().is_some_and(|text| texts.contains(&text)),
            FieldType::Text => self.matches_format(value),
            FieldType::Date => self.date(value).is_some(),
            FieldType::Count => self.count(value).is_some(),
            FieldType::Currency => {
                currency(value).is_some_and(|number| self.matches_format(&number.into()))
            }
            FieldType::Subdivision => value
                .as_str()
                .is_some_and(|text| self.matches_format(&subdivision(text).into())),
            // A name with fewer than two Latin letters after transliteration is accepted, but not sent.
            FieldType::Words => value.as_str().is_some_and(|text| {
                let converted = latin(text);
                !text.trim().is_empty()
                    && (converted.len() < 2 || self.matches_format(&converted.into()))
            }),
            FieldType::Extensions => true,
        };
        (!is_valid).then(|| self.rule())
    }

    /// Converts a date or time to the format of the AReq field.
    pub(super) fn date(&self, value: &Value) -> Option<String> {
        let text = value.as_str()?;
        match self.matches_format(value) {
            true => Some(text.to_owned()),
            false => date::from_iso(text, self.format()?),
        }
    }

    /// Pads digits with zeros to the length of the AReq field.
    pub(super) fn count(&self, value: &Value) -> Option<String> {
        let text = value.as_str().filter(|text| !text.is_empty())?;
        let padded = format!("{text:0>width$}", width = self.digits());
        self.matches_format(&padded.as_str().into())
            .then_some(padded)
    }

    /// Number of digits of the AReq field.
    fn digits(&self) -> usize {
        match self.format() {
            Some(Format::Digits { max, .. }) => *max,
            _ => 0,
        }
    }

    fn matches_format(&self, value: &Value) -> bool {
        self.format().is_none_or(|format| format.accepts(value))
    }
}

impl Names {
    fn contains(&self, name: &str) -> bool {
        (self.all)().contains(&name) || (self.code)(name).is_some() || self.unsent.contains(&name)
    }
}

pub(super) fn minutes(value: &Value) -> Option<u64> {
    value.as_u64().filter(|minutes| MINUTES.contains(minutes))
}

/// The ISO 4217 numeric code of a currency that is given by numeric or alphabetic code.
pub(super) fn currency(value: &Value) -> Option<String> {
    let text = value.as_str()?;
    let is_number = text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_digit());
    let currency = match is_number {
        true => Currency::from_numeric(text.parse().ok()?)?,
        false => Currency::from_code(text)?,
    };
    Some(format!("{:03}", currency.numeric()))
}

/// Removes the country from an ISO 3166-2 code: `CA` for `US-CA`.
pub(super) fn subdivision(text: &str) -> &str {
    match text.split_once('-') {
        Some((country, part)) if country.len() == 2 => part,
        _ => text,
    }
}

/// Transliterates text to ASCII: removes accents, and drops characters without an equivalent.
pub(super) fn latin(text: &str) -> String {
    use unicode_normalization::UnicodeNormalization as _;
    let mut letters = String::new();
    for letter in text.nfkd() {
        match letter {
            'ł' => letters.push('l'),
            'Ł' => letters.push('L'),
            'ø' => letters.push('o'),
            'Ø' => letters.push('O'),
            'đ' | 'ð' => letters.push('d'),
            'Đ' | 'Ð' => letters.push('D'),
            'ı' => letters.push('i'),
            'ß' => letters.push_str("ss"),
            'æ' => letters.push_str("ae"),
            'Æ' => letters.push_str("AE"),
            'œ' => letters.push_str("oe"),
            'Œ' => letters.push_str("OE"),
            'þ' => letters.push_str("th"),
            'Þ' => letters.push_str("Th"),
            other if other.is_ascii() && !other.is_ascii_control() => letters.push(other),
            _ => {}
        }
    }
    letters.trim().to_owned()
}

fn invalid_extensions(path: &str, value: &Value) -> Vec<FieldError> {
    let rule = format!("must be an array of at most {EXTENSIONS_MAX} extensions");
    let Some(extensions) = value.as_array().filter(|all| all.len() <= EXTENSIONS_MAX) else {
        return vec![FieldError::new(path, rule)];
    };
    let mut errors = Vec::new();
    for (place, extension) in extensions.iter().enumerate() {
        let path = |name: &str| format!("{path}[{place}].{name}");
        let is_short = |name: &str| {
            let text = extension.get(name).and_then(Value::as_str);
            text.is_some_and(|text| (1..=64).contains(&text.len()))
        };
        for name in ["id", "name"] {
            if !is_short(name) {
                errors.push(FieldError::new(
                    path(name),
                    "must be a string of 1 to 64 characters",
                ));
            }
        }
        if !extension.get("critical").is_some_and(Value::is_boolean) {
            errors.push(FieldError::new(path("critical"), "must be true or false"));
        }
        if extension.get("data").is_none_or(Value::is_null) {
            errors.push(FieldError::new(path("data"), "is required"));
        }
    }
    errors
}

#[cfg(test)]
mod tests;
