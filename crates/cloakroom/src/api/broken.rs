//! A rule that a request broke.

/// Which attribute broke a rule, and what it must be. Never what it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    pub path: String,
    pub rule: String,
    /// Whether what was refused was meant to be a card number: guessers are known by these.
    pub is_card_number: bool,
}

impl Broken {
    pub fn new(path: impl Into<String>, rule: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            rule: rule.into(),
            is_card_number: false,
        }
    }

    /// The rule of card numbers, broken by something that was given as one.
    pub fn of_card_number(path: impl Into<String>, rule: impl Into<String>) -> Self {
        Self {
            is_card_number: true,
            ..Self::new(path, rule)
        }
    }

    /// The same rule, broken inside of a larger request.
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
