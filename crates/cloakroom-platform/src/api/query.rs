//! Query parameters, with their validation errors.

use percent_encoding::percent_decode_str;

use super::FieldError;

/// Decoded query parameters and the validation errors so far. Unknown parameters are ignored.
#[derive(Default)]
pub struct Query {
    named: Vec<(String, String)>,
    errors: Vec<FieldError>,
}

impl Query {
    /// Decodes a query string. The path of an error is a name in `known` or `query`, never text from the client.
    pub fn decode(query: Option<&str>, known: &[&'static str]) -> Self {
        let mut decoded = Self::default();
        let pairs = query.unwrap_or_default().split('&');
        for pair in pairs.filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let name = decode(name);
            match (name, decode(value)) {
                (Some(name), Some(value)) => decoded.named.push((name, value)),
                (name, _) => {
                    let name = name.unwrap_or_default();
                    let stem = name.split(['.', '[']).next();
                    let path = known.iter().find(|known| Some(**known) == stem);
                    decoded.reject(path.unwrap_or(&"query"), "must be percent-encoded UTF-8");
                }
            }
        }
        decoded
    }

    pub fn has(&self, name: &str) -> bool {
        self.named.iter().any(|(given, _)| given == name)
    }

    /// Removes and returns the parameters whose names match, in their order.
    pub fn take(&mut self, mut matches: impl FnMut(&str) -> bool) -> Vec<(String, String)> {
        let taken = self.named.extract_if(.., |(name, _)| matches(name));
        taken.collect()
    }

    /// Removes and returns all values of a parameter.
    pub fn all(&mut self, name: &str) -> Vec<String> {
        let named = self.take(|given| given == name);
        named.into_iter().map(|(_, value)| value).collect()
    }

    /// Removes and returns a parameter that must be given at most once.
    pub fn once(&mut self, name: &str) -> Option<String> {
        let mut values = self.all(name);
        if values.len() > 1 {
            self.reject(name, "must be given at most once");
        }
        values.pop()
    }

    /// Removes and returns an integer. Any other text becomes `i64::MIN`, which every range check rejects.
    pub fn number(&mut self, name: &str) -> Option<i64> {
        self.once(name).map(|text| text.parse().unwrap_or(i64::MIN))
    }

    pub fn check<T>(&mut self, name: &str, result: Result<T, String>) -> Option<T> {
        result.map_err(|rule| self.reject(name, rule)).ok()
    }

    /// Adds a validation error, unless it is already present.
    pub fn reject(&mut self, name: &str, rule: impl Into<String>) {
        let error = FieldError::new(name, rule);
        if !self.errors.contains(&error) {
            self.errors.push(error);
        }
    }

    /// Returns the parsed parameters, or all validation errors.
    pub fn finish<F, P>(
        mut self,
        filter: F,
        page: Result<P, Vec<FieldError>>,
    ) -> Result<(F, P), Vec<FieldError>> {
        match page {
            Ok(page) if self.errors.is_empty() => return Ok((filter, page)),
            Ok(_) => {}
            Err(errors) => self.errors.extend(errors),
        }
        Err(self.errors)
    }
}

/// `+` and `%20` are both spaces.
fn decode(text: &str) -> Option<String> {
    let text = text.replace('+', " ");
    let decoded = percent_decode_str(&text).decode_utf8().ok()?;
    Some(decoded.into_owned())
}
