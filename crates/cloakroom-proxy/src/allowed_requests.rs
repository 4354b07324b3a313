//! What callers of a pre-configured proxy may send. Whoever invokes a proxy chooses neither the operation nor the place of a
//! value, so that a card reaches the member that the destination expects it in and no member that it repeats.

use std::collections::BTreeMap;

use cloakroom_expressions::Insertion;
use cloakroom_platform::api::FieldError;
use http::Method;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

const ENTRIES_MAX: usize = 50;
const ENTRY_BYTES_MAX: usize = 400;
/// In place of a member: any expression.
const ANYTHING: &str = "*";
const SECRET_MEMBERS: [&str; 2] = ["number", "cvc"];

/// What callers may send. Anything is allowed in the place of a list that is absent.
#[derive(Clone, Default, Serialize, Deserialize, ToSchema)]
// A misspelled list would allow everything.
#[serde(deny_unknown_fields)]
#[schema(as = AllowedRequestsBody)]
pub struct AllowedRequests {
    /// For example `POST`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_items = 50, nullable = false)]
    pub methods: Option<Vec<String>>,
    /// Paths below `destination_url`, for example `/payments/*/captures`. `*` stands for one segment.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_items = 50, nullable = false)]
    pub paths: Option<Vec<String>>,
    /// Where expressions may be, and what they insert: for example `{"body.source.number": "number"}`. Places are
    /// `body.source.number`, `body.items[].card`, `form.NAME`, `query.NAME`, `headers.name`, and `body` in other text. The value is
    /// the member of the data, or `*` for anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub expressions: Option<BTreeMap<String, String>>,
}

impl AllowedRequests {
    pub(crate) fn is_unrestricted(&self) -> bool {
        self.methods.is_none() && self.paths.is_none() && self.expressions.is_none()
    }

    /// Whether callers can send only the operations that are listed.
    pub(crate) fn lists_operations(&self) -> bool {
        self.methods.is_some() && self.paths.is_some()
    }

    pub(crate) fn check(&self) -> Result<(), FieldError> {
        let is_place = |place: &str| {
            let mut starts = ["body", "form", "query", "headers"].iter();
            // Names of headers are in lower case.
            let is_header = place.starts_with("headers");
            starts.any(|part| {
                let rest = place.strip_prefix(part);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
            }) && !(is_header && place.contains(char::is_uppercase))
        };
        let is_method = |method: &str| method.bytes().all(|byte| byte.is_ascii_uppercase());
        let is_path = |path: &str| path.starts_with('/') && path.bytes().all(is_in_path);
        check_list("methods", &self.methods, is_method, "such as POST")?;
        check_list("paths", &self.paths, is_path, "such as /payments/*")?;
        let places = self.expressions.as_ref();
        let places = places.map(|it| it.keys().cloned().collect());
        check_list("expressions", &places, is_place, "such as body.card")
    }

    pub(crate) fn allows_method(&self, method: &Method) -> bool {
        let mut methods = self.methods.iter().flatten();
        self.methods.is_none() || methods.any(|it| it == method.as_str())
    }

    /// `path` is as the caller sent it. An encoded character is not decoded: it matches nothing.
    pub(crate) fn allows_path(&self, path: &str) -> bool {
        let path = if path.is_empty() { "/" } else { path };
        let mut paths = self.paths.iter().flatten();
        self.paths.is_none() || paths.any(|pattern| matches(pattern, path))
    }

    /// Whether an expression may be in its place. What inserts a member is the whole value of the place. The number of a card and
    /// its security code are inserted as they are: a destination returns the last four of what it takes for a number.
    pub(crate) fn allows_expression(&self, insertion: &Insertion) -> bool {
        let place = without_indexes(&insertion.path);
        let mut places = self.expressions.iter().flatten();
        let found = places.find(|(it, _)| without_indexes(it) == place);
        match (&self.expressions, found) {
            (None, _) => true,
            (_, None) => false,
            (_, Some((_, member))) if member == ANYTHING => true,
            (_, Some((_, member))) => {
                let is_secret = SECRET_MEMBERS.contains(&member.as_str());
                insertion.is_whole
                    && insertion.member.as_ref() == Some(member)
                    && (insertion.only_selects || !is_secret)
            }
        }
    }
}

fn check_list(
    name: &str,
    list: &Option<Vec<String>>,
    is_valid: impl Fn(&str) -> bool,
    example: &str,
) -> Result<(), FieldError> {
    let is_entry =
        |entry: &&String| (1..=ENTRY_BYTES_MAX).contains(&entry.len()) && is_valid(entry);
    match list {
        Some(list)
            if list.len() > ENTRIES_MAX || list.iter().filter(is_entry).count() < list.len() =>
        {
            let rule = format!("must have at most {ENTRIES_MAX} entries, each {example}");
            Err(FieldError::new(format!("allowed_requests.{name}"), rule))
        }
        _ => Ok(()),
    }
}

fn matches(pattern: &str, path: &str) -> bool {
    let (mut expected, mut found) = (pattern.split('/'), path.split('/'));
    let is_equal = expected
        .by_ref()
        .zip(found.by_ref())
        .all(|segments| match segments {
            ("*", segment) => {
                !matches!(segment, "" | "." | "..") && segment.bytes().all(is_in_path)
            }
            (expected, found) => expected == found,
        });
    // `zip` takes one more of the first if the second has ended.
    is_equal && pattern.split('/').count() == path.split('/').count()
}

/// Neither encoded characters nor parameters and operations, such as `;a=b` and `:refund`.
fn is_in_path(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~/*".contains(&byte)
}

/// The place with `[]` for `[0]`.
fn without_indexes(place: &str) -> String {
    let mut parts = place.split('[');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_index = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
        let rest = part.split_once(']').filter(|(digits, _)| is_index(digits));
        text.push('[');
        text.push_str(rest.map_or(part, |(digits, _)| &part[digits.len()..]));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(list: &[&str]) -> Option<Vec<String>> {
        Some(list.iter().map(|&it| it.to_owned()).collect())
    }

    #[test]
    fn paths_match_segment_by_segment() {
        let paths = allowed(&["/", "/payments", "/payments/*/captures"]);
        let allowed = AllowedRequests {
            paths,
            ..AllowedRequests::default()
        };
        for (path, expected) in [
            ("", true),
            ("/", true),
            ("/payments", true),
            ("/payments/pay_1.a~b/captures", true),
            ("/payments/", false),
            ("/payments/a", false),
            ("/payments//captures", false),
            ("/payments/a/b/captures", false),
            ("/payments/../captures", false),
            ("/payments/a%2F..%2Fb/captures", false),
            ("/payments/a;x=1/captures", false),
            ("/payments/a:refund/captures", false),
            ("/payments/a/captures/b", false),
            ("/Payments", false),
            ("/%70ayments", false),
            ("//payments", false),
        ] {
            assert_eq!(allowed.allows_path(path), expected, "{path}");
        }
    }

    fn places(list: &[(&str, &str)]) -> Option<BTreeMap<String, String>> {
        let entries = list.iter();
        let owned = |(place, member): &(&str, &str)| ((*place).to_owned(), (*member).to_owned());
        Some(entries.map(owned).collect())
    }

    fn insertion(path: &str, member: &str) -> Insertion {
        Insertion {
            path: path.to_owned(),
            is_whole: true,
            member: Some(member.to_owned()),
            only_selects: true,
            is_closed: true,
        }
    }

    #[test]
    fn a_place_takes_the_whole_value_of_its_member() {
        let (number, month) = ("body.number", "body.month");
        let expressions = places(&[
            (number, "number"),
            (month, "expiration_month"),
            ("body.any", "*"),
        ]);
        let allowed = AllowedRequests {
            expressions,
            ..AllowedRequests::default()
        };
        let allows = |insertion: Insertion| allowed.allows_expression(&insertion);
        assert!(allows(insertion(number, "number")));
        assert!(!allows(insertion(number, "cvc")));
        assert!(!allows(insertion(month, "number")));
        assert!(allows(insertion("body.any", "cvc")));
        let partial = |path: &str, member: &str| Insertion {
            is_whole: false,
            ..insertion(path, member)
        };
        assert!(!allows(partial(number, "number")));
        assert!(!allows(partial(month, "expiration_month")));
        assert!(allows(partial("body.any", "number")));
        let padded = |path: &str, member: &str| Insertion {
            only_selects: false,
            ..insertion(path, member)
        };
        assert!(!allows(padded(number, "number")));
        assert!(allows(padded(month, "expiration_month")));
        assert!(!allows(Insertion {
            member: None,
            ..insertion(number, "")
        }));
    }

    #[test]
    fn an_index_stands_for_every_index_and_nothing_else() {
        let expressions = places(&[
            ("body.items[].card", "*"),
            ("body.cards[0]", "*"),
            ("form.card[number]", "*"),
        ]);
        let allowed = AllowedRequests {
            expressions,
            ..AllowedRequests::default()
        };
        for (place, expected) in [
            ("body.items[3].card", true),
            ("body.cards[1]", true),
            ("form.card[number]", true),
            ("form.card[cvc]", false),
            ("body.card[number]", false),
            ("body.items.card", false),
            ("body.items[1].note", false),
            ("body", false),
        ] {
            let insertion = insertion(place, "number");
            assert_eq!(allowed.allows_expression(&insertion), expected, "{place}");
        }
    }

    #[test]
    fn an_empty_list_allows_nothing_and_an_absent_one_everything() {
        let none = AllowedRequests {
            methods: allowed(&[]),
            paths: allowed(&[]),
            expressions: places(&[]),
        };
        let body = insertion("body", "number");
        assert!(!none.allows_method(&Method::GET) && !none.allows_path(""));
        assert!(!none.allows_expression(&body));
        let all = AllowedRequests::default();
        assert!(all.allows_method(&Method::GET) && all.allows_path("/x%2F"));
        assert!(all.allows_expression(&body));
    }

    #[test]
    fn entries_that_could_never_match_are_rejected() {
        for (methods, paths, expressions) in [
            (allowed(&["post"]), None, None),
            (None, allowed(&["payments"]), None),
            (None, allowed(&["/a%20b"]), None),
            (None, None, places(&[("source.number", "number")])),
            (None, None, places(&[("bodyguard", "number")])),
            (None, None, places(&[("headers.X-A", "number")])),
            (None, None, places(&[("", "*")])),
        ] {
            let allowed = AllowedRequests {
                methods,
                paths,
                expressions,
            };
            assert!(allowed.check().is_err());
        }
    }
}
