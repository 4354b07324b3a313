//! Filters for listing formulas.

use std::str::FromStr;

use crate::{FORMULAS, Feature, Formula, Method};

/// Conditions on formulas; all of them must match. An empty filter matches all formulas.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Matches any of these ids. Unknown ids match no formula.
    pub ids: Vec<String>,
    /// Matches any of these methods.
    pub methods: Vec<Method>,
    /// Must support all of these.
    pub currencies: Vec<Currency>,
    /// Must support all of these.
    pub countries: Vec<Country>,
    /// Must support all of these.
    pub features: Vec<Feature>,
}

impl Filter {
    /// The matching formulas, by id.
    pub fn formulas(&self) -> impl Iterator<Item = &'static Formula> {
        FORMULAS.iter().filter(|formula| self.matches(formula))
    }

    fn matches(&self, formula: &Formula) -> bool {
        let supports = |currency: &Currency| formula.supported_currencies.contains(&&*currency.0);
        let serves = |country: &Country| formula.supported_countries.contains(&&*country.0);
        let has = |feature: &Feature| formula.supported_features.has(*feature);
        (self.ids.is_empty() || self.ids.iter().any(|id| id == formula.id))
            && (self.methods.is_empty() || self.methods.contains(&formula.method))
            && self.currencies.iter().all(supports)
            && self.countries.iter().all(serves)
            && self.features.iter().all(has)
    }
}

/// A string in the format of an ISO 4217 currency code. Parsing ignores case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Currency(String);

/// A string in the format of an ISO 3166-1 alpha-2 country code. Parsing ignores case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Country(String);

/// A string that does not have the format of a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be {0} letters")]
pub struct InvalidCode(&'static str);

impl FromStr for Currency {
    type Err = InvalidCode;

    fn from_str(text: &str) -> Result<Self, InvalidCode> {
        letters(text, 3).map(Self).ok_or(InvalidCode("three"))
    }
}

impl FromStr for Country {
    type Err = InvalidCode;

    fn from_str(text: &str) -> Result<Self, InvalidCode> {
        letters(text, 2).map(Self).ok_or(InvalidCode("two"))
    }
}

fn letters(text: &str, count: usize) -> Option<String> {
    let is_code = text.len() == count && text.bytes().all(|byte| byte.is_ascii_alphabetic());
    is_code.then(|| text.to_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_parsed_in_any_case() {
        for text in ["EUR", "eur", "eUr"] {
            assert_eq!(text.parse(), Ok(Currency("EUR".to_owned())));
        }
        for text in ["", "EU", "EURO", "E R", "EÜ", "12A"] {
            assert_eq!(
                text.parse::<Currency>(),
                Err(InvalidCode("three")),
                "{text}"
            );
        }
        assert_eq!("de".parse(), Ok(Country("DE".to_owned())));
        for text in ["", "D", "DEU", "D1", "é"] {
            assert_eq!(text.parse::<Country>(), Err(InvalidCode("two")), "{text}");
        }
    }

    #[test]
    fn errors_list_the_known_names() {
        assert_eq!("void".parse(), Ok(Feature::Void));
        let unknown = "Void".parse::<Feature>().unwrap_err().to_string();
        assert!(
            unknown.starts_with("must be three_d_secure_pass_through or "),
            "{unknown}"
        );
        let unknown = "bank".parse::<Method>().unwrap_err().to_string();
        assert_eq!(unknown, "must be card");
    }

    #[test]
    fn all_conditions_must_match() {
        let ids = |filter: &Filter| {
            let found = filter.formulas().map(|formula| formula.id);
            found.collect::<Vec<_>>()
        };
        let mut filter = Filter::default();
        assert_eq!(ids(&filter).len(), FORMULAS.len());
        filter.countries = vec!["us".parse().unwrap(), "ca".parse().unwrap()];
        filter.currencies = vec!["usd".parse().unwrap()];
        filter.features = vec![Feature::PartialCapture, Feature::ZeroAuth];
        assert!(ids(&filter).contains(&"worldpayvap-card"));
        assert!(
            !ids(&filter).contains(&"usaepay-card"),
            "it serves one country"
        );
        filter.ids = vec![
            "worldpayvap-card".to_owned(),
            "usaepay-card".to_owned(),
            "x".to_owned(),
        ];
        assert_eq!(ids(&filter), ["worldpayvap-card"]);
    }
}
