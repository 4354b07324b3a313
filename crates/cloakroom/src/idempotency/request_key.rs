//! The key that a client sends, and the request that it stands for.

use cloakroom_crypto::Sensitive;
use http::{HeaderMap, HeaderName, Method};
use serde_json::Value;

use crate::api::ApiError;
use crate::caller::{Caller, Standing};
use crate::keys::ControlKey;

const HEADER: HeaderName = HeaderName::from_static("bt-idempotency-key");
const LENGTH_MAX: usize = 255;

const SCOPE: &str = "reply.scope.v1";
const REQUEST: &str = "reply.request.v1";

/// Requests that change nothing and that clients repeat with one key to get the next page.
const READS: [&str; 5] = [
    "/tokens/search",
    "/v2/tokens/search",
    "/detokenize",
    "/orchestration/connection_formulas",
    "/orchestration/connection/formulas",
];

/// Whether keys count where something is changed at this path.
pub fn counts_at(path: &str) -> bool {
    !READS.contains(&path)
}

/// Whether what a request at this path does cannot be done again.
pub(super) fn is_asked_once(path: &str) -> bool {
    path.starts_with("/3ds/") && path.ends_with("/authenticate")
}

/// The key of a request that may be answered once only; `None` where keys do not count.
pub(super) fn key_of<'a>(
    method: &Method,
    path: &str,
    headers: &'a HeaderMap,
) -> Result<Option<&'a str>, ApiError> {
    let changes = [Method::POST, Method::PUT, Method::PATCH].contains(method);
    if !changes || !counts_at(path) {
        return Ok(None);
    }
    let mut given = headers.get_all(HEADER).iter();
    let (Some(key), another) = (given.next(), given.next()) else {
        return Ok(None);
    };
    let is_key = |key: &&str| {
        key.len() <= LENGTH_MAX
            && key
                .bytes()
                .all(|byte| byte == b' ' || byte.is_ascii_graphic())
    };
    let key = key.to_str().ok().filter(is_key);
    match (key, another) {
        (Some(""), None) => Ok(None),
        (Some(key), None) => Ok(Some(key)),
        _ => Err(ApiError::invalid(
            HEADER.as_str(),
            "must be given once, as 1 to 255 printable ASCII characters",
        )),
    }
}

/// What a key stands for: one request of one application, or of one session.
///
/// The path belongs to it because some clients go on sending a key that they were given once.
pub(super) fn scope_of(
    control: &ControlKey,
    caller: &Caller,
    method: &Method,
    path: &str,
    key: &str,
) -> [u8; 32] {
    let actor = match caller.standing {
        Standing::Application => caller.application,
        Standing::Session | Standing::Unauthorized => caller.key,
    };
    let parts: [&[u8]; 5] = [
        caller.tenant.uuid.as_bytes(),
        actor.as_bytes(),
        method.as_str().as_bytes(),
        path.as_bytes(),
        key.as_bytes(),
    ];
    control.authenticate(SCOPE, &parts)
}

/// Tells whether a body is the one that was answered, without keeping it.
///
/// Security codes do not count: no digest that is kept depends on one.
pub(super) fn request_mac(control: &ControlKey, scope: &[u8], body: &[u8]) -> [u8; 32] {
    let mut value: Value = serde_json::from_slice(body).unwrap_or_default();
    forget_codes(&mut value);
    let text = Sensitive::new(value.to_string());
    control.authenticate(REQUEST, &[scope, text.expose().as_bytes()])
}

fn forget_codes(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.remove("cvc");
            members.values_mut().for_each(forget_codes);
        }
        Value::Array(elements) => elements.iter_mut().for_each(forget_codes),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use cloakroom_crypto::Key;
    use http::HeaderValue;

    use super::*;
    use crate::caller::tests::someone;

    #[test]
    fn keys_count_where_something_is_changed() {
        let headers = HeaderMap::from_iter([(HEADER, HeaderValue::from_static("k"))]);
        let cases = [
            (Method::POST, "/tokens", true),
            (Method::PUT, "/applications/1", true),
            (Method::PATCH, "/tokens/1", true),
            (Method::GET, "/tokens", false),
            (Method::DELETE, "/tokens/1", false),
            (Method::POST, "/tokens/search", false),
            (Method::POST, "/v2/tokens/search", false),
            (Method::POST, "/detokenize", false),
            (Method::POST, "/orchestration/connection_formulas", false),
            (Method::POST, "/orchestration/connection/formulas", false),
            (Method::POST, "/tokenize", true),
        ];
        for (method, path, counts) in cases {
            let key = key_of(&method, path, &headers).unwrap();
            assert_eq!(key.is_some(), counts, "{method} {path}");
        }
    }

    /// No path takes two methods that change something, so requests cannot show it.
    #[test]
    fn a_key_stands_for_one_method() {
        let (control, caller) = (ControlKey::new(vec![Key::generate()]), someone());
        let scope = |method| scope_of(&control, &caller, method, "/tokens", "k");

        assert_eq!(scope(&Method::POST), scope(&Method::POST));
        assert_ne!(scope(&Method::POST), scope(&Method::PUT));
    }

    #[test]
    fn keys_are_short_printable_and_given_once() {
        let long = "k".repeat(256);
        let refused = Err(());
        let cases = [
            (vec![], Ok(None)),
            (vec![""], Ok(None)),
            (vec!["a b"], Ok(Some("a b"))),
            (vec![&long[1..]], Ok(Some(&long[1..]))),
            (vec![&long], refused),
            (vec!["\u{e9}"], refused),
            (vec!["a", "a"], refused),
        ];
        for (given, expected) in cases {
            let mut headers = HeaderMap::new();
            for text in &given {
                headers.append(HEADER, HeaderValue::from_str(text).unwrap());
            }
            let key = key_of(&Method::POST, "/tokens", &headers);
            assert_eq!(key.map_err(drop), expected, "{given:?}");
        }
    }
}
