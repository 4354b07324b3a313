//! A file of the catalog, read and checked: at build time, so that nothing can be wrong later.

use serde::Deserialize;

use crate::vocabulary::{Features, Format, Method};

/// Withdrawn in 2025 and still accepted by processors; the list of ISO 4217 that we use is newer.
const WITHDRAWN_CURRENCIES: [&str; 1] = ["ANG"];

/// A formula as its file has it.
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

/// A rule that a file breaks.
#[derive(Debug, thiserror::Error)]
#[error("formulas/{file}: {attribute}: {rule}")]
pub(crate) struct Broken {
    file: String,
    attribute: String,
    rule: String,
}

/// Reads the file of this name, or says all that is wrong with it.
pub(crate) fn read(file: &str, text: &str) -> Result<Document, Vec<Broken>> {
    let broken = |(attribute, rule): (String, String)| Broken {
        file: file.to_owned(),
        attribute,
        rule,
    };
    let mut parser = serde_json::Deserializer::from_str(text);
    let document: Document = serde_path_to_error::deserialize(&mut parser).map_err(|error| {
        vec![broken((
            error.path().to_string(),
            error.inner().to_string(),
        ))]
    })?;
    let end = parser.end().map_err(|error| error.to_string());
    end.map_err(|rule| vec![broken((".".to_owned(), rule))])?;

    let mut rules = Rules::default();
    document.check(file, &mut rules);
    match rules.0.is_empty() {
        true => Ok(document),
        false => Err(rules.0.into_iter().map(broken).collect()),
    }
}

/// Broken rules, each with the attribute that breaks it.
#[derive(Default)]
struct Rules(Vec<(String, String)>);

impl Rules {
    fn demand(&mut self, is_kept: bool, attribute: impl Into<String>, rule: &str) {
        if !is_kept {
            self.0.push((attribute.into(), rule.to_owned()));
        }
    }
}

impl Document {
    fn check(&self, file: &str, rules: &mut Rules) {
        let is_file = file.strip_suffix(".json") == Some(&self.id);
        rules.demand(is_file, "id", "must be the file's name without .json");
        let processor = match self.method {
            Method::Card => self.id.strip_suffix("-card"),
        };
        let rule = "must be lower-case letters and digits, then a dash and the method";
        rules.demand(processor.is_some_and(is_processor), "id", rule);
        demand_name(&self.display_name, "display_name", rules);
        for (index, field) in self.fields.iter().enumerate() {
            let key = format!("fields[{index}].key");
            rules.demand(is_key(&field.key), &key, "must match [a-z][a-z0-9_]*");
            let mut earlier = self.fields[..index].iter();
            let is_new = earlier.all(|earlier| earlier.key != field.key);
            rules.demand(is_new, &key, "must not be the key of another field");
            demand_name(
                &field.display_name,
                &format!("fields[{index}].display_name"),
                rules,
            );
        }
        let (currencies, countries) = (&self.supported_currencies, &self.supported_countries);
        demand_codes(currencies, "supported_currencies", is_currency, rules);
        demand_codes(countries, "supported_countries", is_country, rules);
    }
}

fn demand_name(name: &str, attribute: &str, rules: &mut Rules) {
    rules.demand(!name.trim().is_empty(), attribute, "must not be empty");
}

fn demand_codes(codes: &[String], attribute: &str, is_code: fn(&str) -> bool, rules: &mut Rules) {
    rules.demand(!codes.is_empty(), attribute, "must not be empty");
    for (index, code) in codes.iter().enumerate() {
        let place = format!("{attribute}[{index}]");
        rules.demand(is_code(code), &place, "must be a code of the ISO standard");
        let is_later = index == 0 || codes[index - 1] < *code;
        let rule = "must come after the code before it, and once";
        rules.demand(is_later, &place, rule);
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
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn whole() -> Value {
        json!({
            "id": "shop1-card",
            "display_name": "Shop",
            "method": "card",
            "fields": [
                {"key": "api_key", "display_name": "API key", "required": true, "format": "text",
                 "secret": true},
                {"key": "notes2", "display_name": "Notes", "required": false, "format": "multiline",
                 "secret": false}
            ],
            "supported_currencies": ["ANG", "EUR", "VES"],
            "supported_countries": ["AX", "DE"],
            "supported_features": {
                "three_d_secure_pass_through": true, "delayed_capture": true, "partial_capture": true,
                "partial_refunds": true, "refunds": true, "zero_auth": false, "void": true
            }
        })
    }

    fn said(file: &str, document: &Value) -> Vec<String> {
        let read = read(file, &document.to_string());
        let broken = read.err().unwrap_or_default();
        broken.iter().map(Broken::to_string).collect()
    }

    #[test]
    fn a_whole_document_is_read() {
        assert_eq!(said("shop1-card.json", &whole()), [""; 0]);
    }

    /// A member of the whole document, what it becomes, and what is said of it.
    const BROKEN: &[(&str, &str, &[&str])] = &[
        (
            "/id",
            r#""other-card""#,
            &["id: must be the file's name without .json"],
        ),
        (
            "/display_name",
            r#"" ""#,
            &["display_name: must not be empty"],
        ),
        (
            "/display_name",
            "7",
            &["display_name: invalid type: integer `7`, expected a string"],
        ),
        (
            "/method",
            r#""bank""#,
            &["method: unknown variant `bank`, expected `card`"],
        ),
        (
            "/fields/0/key",
            r#""Api""#,
            &["fields[0].key: must match [a-z][a-z0-9_]*"],
        ),
        (
            "/fields/0/key",
            r#""2nd""#,
            &["fields[0].key: must match [a-z][a-z0-9_]*"],
        ),
        (
            "/fields/0/key",
            r#""""#,
            &["fields[0].key: must match [a-z][a-z0-9_]*"],
        ),
        (
            "/fields/1/key",
            r#""api_key""#,
            &["fields[1].key: must not be the key of another field"],
        ),
        (
            "/fields/1/display_name",
            r#""""#,
            &["fields[1].display_name: must not be empty"],
        ),
        (
            "/fields/1/format",
            r#""html""#,
            &["fields[1].format: unknown variant `html`"],
        ),
        (
            "/fields/1/secret",
            r#""no""#,
            &["fields[1].secret: invalid type: string"],
        ),
        (
            "/fields/1/required",
            "null",
            &["fields[1].required: invalid type: null"],
        ),
        (
            "/fields/1/more",
            "1",
            &["fields[1].more: unknown field `more`"],
        ),
        ("/icon_url", "1", &["icon_url: unknown field `icon_url`"]),
        (
            "/supported_currencies",
            "[]",
            &["supported_currencies: must not be empty"],
        ),
        (
            "/supported_currencies/1",
            r#""EUX""#,
            &["supported_currencies[1]: must be a code of the ISO"],
        ),
        (
            "/supported_currencies/2",
            r#""eur""#,
            &["supported_currencies[2]: must be a code of the ISO"],
        ),
        (
            "/supported_currencies/1",
            r#""ANG""#,
            &["supported_currencies[1]: must come after"],
        ),
        (
            "/supported_currencies/0",
            r#""USD""#,
            &["supported_currencies[1]: must come after the code before it, and once"],
        ),
        (
            "/supported_countries",
            "[]",
            &["supported_countries: must not be empty"],
        ),
        (
            "/supported_countries/1",
            r#""XX""#,
            &["supported_countries[1]: must be a code of the ISO"],
        ),
        (
            "/supported_countries/1",
            r#""DEU""#,
            &["supported_countries[1]: must be a code of the ISO"],
        ),
        (
            "/supported_countries/1",
            r#""AX""#,
            &["supported_countries[1]: must come after"],
        ),
        (
            "/supported_features/voidAllowed",
            "true",
            &["supported_features.voidAllowed: unknown field `voidAllowed`"],
        ),
        (
            "/supported_features/void",
            "1",
            &["supported_features.void: invalid type: integer"],
        ),
        (
            "",
            r#"{"id": "shop1-card"}"#,
            &[".: missing field `display_name`"],
        ),
    ];

    #[test]
    fn each_broken_rule_is_told_with_file_and_attribute() {
        for (place, becomes, expected) in BROKEN {
            let mut document = whole();
            let (parent, name) = place.rsplit_once('/').unwrap_or_default();
            let value: Value = serde_json::from_str(becomes).unwrap();
            match (place.is_empty(), document.pointer_mut(parent).unwrap()) {
                (true, whole) => *whole = value,
                (_, Value::Array(items)) => items[name.parse::<usize>().unwrap()] = value,
                (_, parent) => parent[name] = value,
            }

            let said = said("shop1-card.json", &document);

            assert_eq!(said.len(), expected.len(), "{place} {becomes}: {said:?}");
            for (said, expected) in said.iter().zip(*expected) {
                let expected = format!("formulas/shop1-card.json: {expected}");
                assert!(said.starts_with(&expected), "{said}");
            }
        }
    }

    #[test]
    fn nothing_may_be_missing() {
        let whole = whole();
        for parent in ["", "/fields/0", "/supported_features"] {
            for name in whole.pointer(parent).unwrap().as_object().unwrap().keys() {
                let mut document = whole.clone();
                let members = document.pointer_mut(parent).unwrap().as_object_mut();
                members.unwrap().remove(name);

                let said = said("shop1-card.json", &document);

                assert_eq!(said.len(), 1, "{parent} {name}");
                assert!(
                    said[0].contains(&format!("missing field `{name}`")),
                    "{}",
                    said[0]
                );
            }
        }
    }

    #[test]
    fn an_id_is_a_processor_and_a_method() {
        for id in [
            "Shop-card",
            "-card",
            "shop_1-card",
            "shop-bank",
            "shop",
            "card",
            "shop-1-card",
        ] {
            let mut document = whole();
            document["id"] = json!(id);

            let said = said(&format!("{id}.json"), &document);

            let rule = "id: must be lower-case letters and digits, then a dash and the method";
            assert_eq!(said, [format!("formulas/{id}.json: {rule}")]);
        }
    }

    #[test]
    fn a_file_holds_one_document_with_each_attribute_once() {
        let text = whole().to_string();
        for (text, expected) in [
            (format!("{text}{text}"), ".: trailing characters"),
            (
                text.replacen('{', r#"{"id": "shop1-card","#, 1),
                "duplicate field `id`",
            ),
            (String::new(), ".: EOF while parsing"),
        ] {
            let broken = read("shop1-card.json", &text).unwrap_err();
            assert!(broken[0].to_string().contains(expected), "{}", broken[0]);
        }
    }
}
