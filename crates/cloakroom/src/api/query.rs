//! The query string of a request, read parameter by parameter, with all that is wrong in it.

use percent_encoding::percent_decode_str;

use super::Broken;

/// Decoded parameters. Unknown ones are ignored: nobody asks for them.
#[derive(Default)]
pub struct Query {
    named: Vec<(String, String)>,
    broken: Vec<Broken>,
}

impl Query {
    /// Decodes a query string. A failure is keyed by a name in `known`, never by one that the client
    /// made up.
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
                    decoded.refuse(path.unwrap_or(&"query"), "must be percent-encoded UTF-8");
                }
            }
        }
        decoded
    }

    pub fn has(&self, name: &str) -> bool {
        self.named.iter().any(|(given, _)| given == name)
    }

    /// Takes the parameters whose names fulfil a condition, as they came.
    pub fn take(&mut self, mut is_meant: impl FnMut(&str) -> bool) -> Vec<(String, String)> {
        let taken = self.named.extract_if(.., |(name, _)| is_meant(name));
        taken.collect()
    }

    /// Takes every value of a parameter.
    pub fn all(&mut self, name: &str) -> Vec<String> {
        let named = self.take(|given| given == name);
        named.into_iter().map(|(_, value)| value).collect()
    }

    /// Takes a parameter that may be given once.
    pub fn once(&mut self, name: &str) -> Option<String> {
        let mut values = self.all(name);
        if values.len() > 1 {
            self.refuse(name, "must be given at most once");
        }
        values.pop()
    }

    /// Takes a number. What is no number is as wrong as one that is out of every range.
    pub fn number(&mut self, name: &str) -> Option<i64> {
        self.once(name).map(|text| text.parse().unwrap_or(i64::MIN))
    }

    pub fn check<T>(&mut self, name: &str, result: Result<T, String>) -> Option<T> {
        result.map_err(|rule| self.refuse(name, rule)).ok()
    }

    /// Says each thing once, however often it is wrong.
    pub fn refuse(&mut self, name: &str, rule: impl Into<String>) {
        let broken = Broken::new(name, rule);
        if !self.broken.contains(&broken) {
            self.broken.push(broken);
        }
    }

    /// What was read, unless something was wrong.
    pub fn settle<F, P>(
        mut self,
        filter: F,
        page: Result<P, Vec<Broken>>,
    ) -> Result<(F, P), Vec<Broken>> {
        match page {
            Ok(page) if self.broken.is_empty() => return Ok((filter, page)),
            Ok(_) => {}
            Err(broken) => self.broken.extend(broken),
        }
        Err(self.broken)
    }
}

/// `+` and `%20` are both spaces.
fn decode(text: &str) -> Option<String> {
    let text = text.replace('+', " ");
    let decoded = percent_decode_str(&text).decode_utf8().ok()?;
    Some(decoded.into_owned())
}
