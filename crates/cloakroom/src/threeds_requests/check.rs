//! Checking a request against the table, before a network sees it.

use cloakroom_emv3ds::{Format, MessageKind, field as emv_field};
use iso_currency::Currency;
use serde_json::{Map, Value};

use super::field::{Case, Field, Names, Needed, Takes, at};
use super::{FIELDS, SessionKind};
use crate::api::Broken;

const MINUTES: std::ops::RangeInclusive<u64> = 1..=10_080;
const FREE_MAX: usize = 2_048;
const EXTENSIONS_MAX: usize = 10;

/// Everything that a request breaks, each by the path of its field.
pub(crate) fn check(kind: SessionKind, body: &Map<String, Value>) -> Vec<Broken> {
    let case = Case::of(kind, body);
    let mut broken = Vec::new();
    for field in FIELDS {
        let is_in_object = match field.place() {
            (None, _) => true,
            (Some(parent), _) => at(body, parent).is_some_and(Value::is_object),
        };
        if !is_in_object {
            continue;
        }
        match field.find(body) {
            None => broken.extend(missing(field, &case)),
            Some(value) => broken.extend(refused(field, value)),
        }
    }
    if let Some(purpose) = case.purpose {
        let is_allowed = match kind {
            SessionKind::Customer => purpose.is_for_customer(),
            SessionKind::Merchant => purpose.is_for_merchant(),
        };
        if !is_allowed {
            let rule = format!("is not for sessions of a {}", kind.name());
            broken.push(Broken::new("authentication_type", rule));
        }
    }
    broken
}

fn missing(field: &Field, case: &Case) -> Option<Broken> {
    if !field.needed.holds(case) {
        return None;
    }
    let rule = match field.needed {
        Needed::When(condition) => format!("is required {}", condition.words()),
        Needed::Always | Needed::Never => "is required".to_owned(),
    };
    Some(Broken::new(field.path, rule))
}

fn refused(field: &Field, value: &Value) -> Vec<Broken> {
    if let Takes::Extensions = field.takes {
        return refused_extensions(field.path, value);
    }
    match field.rule_broken_by(value) {
        None => Vec::new(),
        Some(rule) => vec![Broken::new(field.path, rule)],
    }
}

impl Field {
    /// The format of the field that it goes to.
    pub(super) fn format(&self) -> Option<&'static Format> {
        emv_field(MessageKind::AReq, self.to).map(|field| &field.format)
    }

    /// What it must be.
    pub(super) fn rule(&self) -> String {
        let format = || self.format().map_or("text".to_owned(), Format::to_string);
        match self.takes {
            Takes::Text | Takes::Words | Takes::Subdivision => format!("must be {}", format()),
            Takes::Free => format!("must be text of 1 to {FREE_MAX} characters"),
            Takes::Flag(_) => "must be true or false".to_owned(),
            Takes::Named(names) => format!("must be one of {}", (names.all)().join(", ")),
            Takes::OneOf(texts) => format!("must be one of {}", texts.join(", ")),
            Takes::Minutes => "must be a whole number from 1 to 10080".to_owned(),
            Takes::Currency => "must be an ISO 4217 currency, such as 978 or EUR".to_owned(),
            Takes::Object | Takes::Opaque => "must be an object".to_owned(),
            Takes::Extensions => format!("must be a list of at most {EXTENSIONS_MAX} extensions"),
        }
    }

    fn rule_broken_by(&self, value: &Value) -> Option<String> {
        let is_met = match self.takes {
            Takes::Object => value.is_object(),
            Takes::Opaque => value.is_object() && self.fits(value),
            Takes::Flag(_) => value.is_boolean(),
            Takes::Minutes => minutes(value).is_some(),
            Takes::Free => value
                .as_str()
                .is_some_and(|text| (1..=FREE_MAX).contains(&text.len())),
            Takes::Named(names) => value.as_str().is_some_and(|name| names.have(name)),
            Takes::OneOf(texts) => value.as_str().is_some_and(|text| texts.contains(&text)),
            Takes::Text => self.fits(value),
            Takes::Currency => currency(value).is_some_and(|number| self.fits(&number.into())),
            Takes::Subdivision => value
                .as_str()
                .is_some_and(|text| self.fits(&subdivision(text).into())),
            // What is left of a name that cannot be told in the network's letters is not sent.
            Takes::Words => value.as_str().is_some_and(|text| {
                let told = latin(text);
                !text.trim().is_empty() && (told.len() < 2 || self.fits(&told.into()))
            }),
            Takes::Extensions => true,
        };
        (!is_met).then(|| self.rule())
    }

    fn fits(&self, value: &Value) -> bool {
        self.format().is_none_or(|format| format.accepts(value))
    }
}

impl Names {
    fn have(&self, name: &str) -> bool {
        (self.all)().contains(&name) || (self.code)(name).is_some() || self.unsent.contains(&name)
    }
}

pub(super) fn minutes(value: &Value) -> Option<u64> {
    value.as_u64().filter(|minutes| MINUTES.contains(minutes))
}

/// The number of a currency that is given by number or letters.
pub(super) fn currency(value: &Value) -> Option<String> {
    let text = value.as_str()?;
    if text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(text.to_owned());
    }
    let currency = Currency::from_code(text)?;
    Some(format!("{:03}", currency.numeric()))
}

/// `CA` of `US-CA`.
pub(super) fn subdivision(text: &str) -> &str {
    match text.split_once('-') {
        Some((country, part)) if country.len() == 2 => part,
        _ => text,
    }
}

/// Text in plain Latin letters: accents go, and what has no counterpart does.
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

fn refused_extensions(path: &str, value: &Value) -> Vec<Broken> {
    let rule = format!("must be a list of at most {EXTENSIONS_MAX} extensions");
    let Some(extensions) = value.as_array().filter(|all| all.len() <= EXTENSIONS_MAX) else {
        return vec![Broken::new(path, rule)];
    };
    let mut broken = Vec::new();
    for (place, extension) in extensions.iter().enumerate() {
        let path = |name: &str| format!("{path}[{place}].{name}");
        let is_short = |name: &str| {
            let text = extension.get(name).and_then(Value::as_str);
            text.is_some_and(|text| (1..=64).contains(&text.len()))
        };
        for name in ["id", "name"] {
            if !is_short(name) {
                broken.push(Broken::new(
                    path(name),
                    "must be text of 1 to 64 characters",
                ));
            }
        }
        if !extension.get("critical").is_some_and(Value::is_boolean) {
            broken.push(Broken::new(path("critical"), "must be true or false"));
        }
        if extension.get("data").is_none_or(Value::is_null) {
            broken.push(Broken::new(path("data"), "is required"));
        }
    }
    broken
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_field_leads_to_one_that_the_protocol_knows() {
        for field in FIELDS.iter().filter(|field| !field.to.is_empty()) {
            assert!(field.format().is_some(), "{} -> {}", field.path, field.to);
        }
    }

    #[test]
    fn each_field_stands_after_the_object_that_holds_it() {
        for (place, field) in FIELDS.iter().enumerate() {
            if let (Some(parent), _) = field.place() {
                let before = FIELDS[..place].iter();
                let is_object = |one: &Field| matches!(one.takes, Takes::Object);
                assert!(
                    before
                        .clone()
                        .any(|one| one.path == parent && is_object(one))
                );
            }
        }
    }

    #[test]
    fn values_are_told_as_networks_read_them() {
        assert_eq!(currency(&json!("EUR")).as_deref(), Some("978"));
        assert_eq!(currency(&json!("826")).as_deref(), Some("826"));
        assert_eq!(currency(&json!("ALL")).as_deref(), Some("008"));
        assert_eq!(currency(&json!("XQQ")), None);
        assert_eq!(currency(&json!(978)), None);
        assert_eq!(subdivision("US-CA"), "CA");
        assert_eq!(subdivision("CA"), "CA");
        assert_eq!(latin("José Muñoz"), "Jose Munoz");
        assert_eq!(latin("Łukasz Jørgensen"), "Lukasz Jorgensen");
        assert_eq!(latin("王小明"), "");
        assert_eq!(minutes(&json!(0)), None);
        assert_eq!(minutes(&json!(10_080)), Some(10_080));
        assert_eq!(minutes(&json!("5")), None);
    }
}
