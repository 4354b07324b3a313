//! Routes as the table of limits names them: `POST /tokens`, `GET /tokens/{id}`, `ANY /account-updater/*`.

use std::fmt;
use std::str::FromStr;

use super::asked::Asked;

const METHODS: [&str; 6] = ["ANY", "GET", "POST", "PUT", "PATCH", "DELETE"];

/// A method, or any, and the template of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Route {
    method: String,
    path: String,
}

impl Route {
    /// Whether a request takes this route. A segment in braces stands for any one segment, and a star
    /// at the end for all that follow.
    pub(super) fn leads(&self, asked: &Asked<'_>) -> bool {
        if self.method != "ANY" && self.method != asked.method {
            return false;
        }
        let (mut theirs, mut ours) = (asked.route.split('/'), self.path.split('/'));
        loop {
            match (ours.next(), theirs.next()) {
                (None, None) => return true,
                (Some("*"), Some(_)) => return true,
                (Some(our), Some(their)) if our == their || our.starts_with('{') => {}
                _ => return false,
            }
        }
    }
}

impl FromStr for Route {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refusal = || {
            format!(
                "routes holds `{text}`; a route is written like `POST /tokens`, `GET /tokens/{{id}}` or `ANY /account-updater/*`"
            )
        };
        let (method, path) = text.split_once(' ').ok_or_else(refusal)?;
        let inner = path.strip_prefix('/').ok_or_else(refusal)?;
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
            return Err(refusal());
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
mod tests {
    use super::*;

    #[test]
    fn a_route_leads_where_its_template_says() {
        let cases = [
            ("POST /tokens", "POST", "/tokens", true),
            ("POST /tokens", "GET", "/tokens", false),
            ("POST /tokens", "POST", "/tokens/search", false),
            ("GET /tokens/{id}", "GET", "/tokens/{id}", true),
            ("GET /tokens/{id}", "GET", "/tokens/{token_id}", true),
            ("GET /tokens/{id}", "GET", "/tokens/abc", true),
            ("GET /tokens/{id}", "GET", "/tokens", false),
            ("GET /tokens/{id}", "GET", "/tokens/abc/def", false),
            ("GET /documents/{id}/data", "GET", "/documents/1/data", true),
            (
                "GET /documents/{id}/data",
                "GET",
                "/documents/1/other",
                false,
            ),
            (
                "ANY /account-updater/*",
                "PUT",
                "/account-updater/jobs/{id}",
                true,
            ),
            ("ANY /account-updater/*", "GET", "/account-updater", false),
        ];
        for (route, method, path, leads) in cases {
            let asked = Asked {
                method,
                route: path,
                address: [192, 0, 2, 1].into(),
                key: None,
                proxy: None,
            };
            let route: Route = route.parse().unwrap();
            assert_eq!(route.leads(&asked), leads, "{route} {method} {path}");
        }
    }

    #[test]
    fn what_is_no_route_is_refused() {
        for text in [
            "/tokens",
            "POST",
            "POST tokens",
            "post /tokens",
            "POST /",
            "POST /a//b",
            "POST /a/*/b",
            "POST /{}",
            "POST /{id",
            "GET /a b",
        ] {
            assert!(text.parse::<Route>().is_err(), "{text}");
        }
    }
}
