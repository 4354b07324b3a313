//! A rule that a request broke.

/// Which attribute broke a rule, and what it must be. Never what it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    pub path: String,
    pub rule: String,
}

impl Broken {
    pub fn new(path: impl Into<String>, rule: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            rule: rule.into(),
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
