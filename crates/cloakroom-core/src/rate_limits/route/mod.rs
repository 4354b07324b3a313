//! Routes in the limit table: `POST /tokens`, `GET /tokens/{id}`, `ANY /account-updater/*`.

use std::fmt;
use std::str::FromStr;

use super::request_info::RequestInfo;

const METHODS: [&str; 6] = ["ANY", "GET", "POST", "PUT", "PATCH", "DELETE"];

/// A method, or any, and a path template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Route {
    method: String,
    path: String,
}

impl Route {
    /// Whether a request matches. A segment in braces matches any one segment, and a star at the
    /// end matches all that follow.
    pub(super) fn matches(&self, info: &RequestInfo<'_>) -> bool {
        if self.method != "ANY" && self.method != info.method {
            return false;
        }
        let (mut segments, mut pattern) = (info.route.split('/'), self.path.split('/'));
        loop {
            match (pattern.next(), segments.next()) {
                (None, None) => return true,
                (Some("*"), Some(_)) => return true,
                (Some(expected), Some(segment))
                    if expected == segment || expected.starts_with('{') => {}
                _ => return false,
            }
        }
    }
}

impl FromStr for Route {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let invalid = || {
            format!(
                "routes holds `{text}`; a route is written like `POST /tokens`, `GET /tokens/{{id}}` or `ANY /account-updater/*`"
            )
        };
        let (method, path) = text.split_once(' ').ok_or_else(invalid)?;
        let inner = path.strip_prefix('/').ok_or_else(invalid)?;
        let is_segment = |segment: &str| {
            let name = segment
                .strip_prefix('{')
                .map_or(segment, |name| name.strip_suffix('}').unwrap_or(""));
            !name.is_empty()
                && name
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
        };
        let segments = inner.strip_suffix("/*").unwrap_or(inner);
        if !METHODS.contains(&method) || !segments.split('/').all(is_segment) {
            return Err(invalid());
        }
        Ok(Self {
            method: method.to_owned(),
            path: path.to_owned(),
        })
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.path)
    }
}

#[cfg(test)]
mod tests;
