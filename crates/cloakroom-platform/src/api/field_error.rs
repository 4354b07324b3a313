//! Validation errors of request attributes.

/// A validation error: the path of the attribute and the rule it violates. Never contains the value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    pub path: String,
    pub rule: String,
    /// Whether the value was given as a card number. These errors count toward card-testing protection.
    pub is_card_number: bool,
}

impl FieldError {
    pub fn new(path: impl Into<String>, rule: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            rule: rule.into(),
            is_card_number: false,
        }
    }

    /// The error of a value that was given as a card number and is not valid.
    pub fn of_card_number(path: impl Into<String>, rule: impl Into<String>) -> Self {
        Self {
            is_card_number: true,
            ..Self::new(path, rule)
        }
    }

    /// Prefixes the path with `place`, the path of the enclosing attribute.
    pub fn within(mut self, place: &str) -> Self {
        self.path = match (place, self.path.as_str()) {
            ("", _) => self.path,
            (place, "body") => place.to_owned(),
            (place, path) if path.starts_with('[') => format!("{place}{path}"),
            (place, path) => format!("{place}.{path}"),
        };
        self
    }
}
