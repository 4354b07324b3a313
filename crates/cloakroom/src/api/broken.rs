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
}
