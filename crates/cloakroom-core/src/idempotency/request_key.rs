//! Reads the idempotency key of a request and derives what is stored about the request.
//!
//! Only MACs are stored, under a key of the tenant that is destroyed with it: of the scope that the key applies to, of
//! the request body and of the caller's grants.

use cloakroom_crypto::{Request, Sensitive};
use cloakroom_platform::api::ApiError;
use cloakroom_platform::card_numbers::named_authentication_data;
use cloakroom_platform::ids::TenantId;
use http::{HeaderMap, HeaderName, Method};
use serde_json::Value;

use crate::access::{Principal, PrincipalKind};
use crate::keys::DigestKey;

const HEADER: HeaderName = HeaderName::from_static("bt-idempotency-key");
const LENGTH_MAX: usize = 255;

// Domains of the MACs. Stored responses depend on them, so they keep their values.
const SCOPE_DOMAIN: &str = "reply.scope.v1";
const REQUEST_DOMAIN: &str = "reply.request.v1";
const GRANTS_DOMAIN: &str = "reply.grants.v1";

/// Paths whose requests ignore idempotency keys.
///
/// `/sessions` accepts public keys, which every visitor of a web page can read: a guessed
/// idempotency key would return the session of another browser. The other paths change nothing, and
/// some clients send one idempotency key for all pages of a list.
const PATHS_WITHOUT_KEYS: [&str; 6] = [
    "/sessions",
    "/tokens/search",
    "/v2/tokens/search",
    "/detokenize",
    "/orchestration/connection_formulas",
    "/orchestration/connection/formulas",
];

/// Primary key of a lease and of a stored response.
#[derive(Clone, Copy)]
pub(crate) struct RequestKey {
    pub tenant: TenantId,
    /// MAC of the principal, the method, the path and the idempotency key.
    pub scope: [u8; 32],
}

/// MAC of the permissions and access rules of a principal.
pub(crate) type GrantsDigest = [u8; 32];

/// Whether idempotency keys apply to `POST`, `PUT` and `PATCH` at this path.
pub fn applies_to_path(path: &str) -> bool {
    // The proxy cannot know whether a destination has processed a request.
    let is_proxied = path == "/proxy" || path.starts_with("/proxy/");
    !is_proxied && !PATHS_WITHOUT_KEYS.contains(&path)
}

/// Whether a client cannot repeat the operation at this path: an authentication of the cardholder is
/// sent to the issuer once. Such a request runs to completion even without an idempotency key.
pub(crate) fn is_single_use(path: &str) -> bool {
    path.starts_with("/3ds/") && path.ends_with("/authenticate")
}

/// Reads the idempotency key of a request. `None` if the header is absent or empty, or if keys do not
/// apply to the request.
pub(crate) fn idempotency_key<'a>(
    method: &Method,
    path: &str,
    headers: &'a HeaderMap,
) -> Result<Option<&'a str>, ApiError> {
    // DELETE is idempotent without a key.
    let accepts_key = [Method::POST, Method::PUT, Method::PATCH].contains(method);
    if !accepts_key || !applies_to_path(path) {
        return Ok(None);
    }
    let mut values = headers.get_all(HEADER).iter();
    let (Some(key), second_key) = (values.next(), values.next()) else {
        return Ok(None);
    };
    let is_valid = |key: &&str| {
        key.len() <= LENGTH_MAX
            && key
                .bytes()
                .all(|byte| byte == b' ' || byte.is_ascii_graphic())
    };
    let key = key.to_str().ok().filter(is_valid);
    match (key, second_key) {
        (Some(""), None) => Ok(None),
        (Some(key), None) => Ok(Some(key)),
        _ => Err(ApiError::invalid(
            HEADER.as_str(),
            "must be sent once, as 1 to 255 printable ASCII characters",
        )),
    }
}

/// Computes the scope of an idempotency key: one operation of one application or session.
///
/// All API keys of an application share their scopes, so a retry may use a rotated API key. The scope includes the
/// path because some clients send one idempotency key for different requests.
pub(crate) fn scope_of(
    request_key: &DigestKey<Request>,
    principal: &Principal,
    method: &Method,
    path: &str,
    key: &str,
) -> [u8; 32] {
    let actor = match principal.kind {
        PrincipalKind::Application => principal.application,
        PrincipalKind::Session | PrincipalKind::Unauthorized => principal.key,
    };
    let parts: [&[u8]; 5] = [
        principal.tenant.uuid.as_bytes(),
        actor.as_bytes(),
        method.as_str().as_bytes(),
        path.as_bytes(),
        key.as_bytes(),
    ];
    request_key.mac(SCOPE_DOMAIN, &parts)
}

/// Computes the MAC of the permissions and access rules of a principal. A response is replayed only
/// while they are unchanged.
pub(crate) fn grants_digest(
    request_key: &DigestKey<Request>,
    principal: &Principal,
) -> GrantsDigest {
    request_key.mac(GRANTS_DOMAIN, &[principal.grants.to_text().as_bytes()])
}

/// Computes the MAC of a request body, which detects a retry with a different body.
///
/// Excludes sensitive authentication data such as security codes: PCI DSS prohibits its storage, and
/// the MAC of three digits can be searched exhaustively by anyone who has the key. A body that is
/// not JSON counts as null.
pub(crate) fn request_mac(request_key: &DigestKey<Request>, scope: &[u8], body: &[u8]) -> [u8; 32] {
    let mut value: Value = serde_json::from_slice(body).unwrap_or_default();
    remove_authentication_data(&mut value);
    let text = Sensitive::new(value.to_string());
    request_key.mac(REQUEST_DOMAIN, &[scope, text.expose().as_bytes()])
}

fn remove_authentication_data(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|name, value| named_authentication_data(name, value).is_none());
            members.values_mut().for_each(remove_authentication_data);
        }
        Value::Array(elements) => elements.iter_mut().for_each(remove_authentication_data),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;
    use crate::access::test_principal;
    use crate::keys::TenantKeys;

    #[test]
    fn keys_apply_to_changes_only() {
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
        for (method, path, applies) in cases {
            let key = idempotency_key(&method, path, &headers).unwrap();
            assert_eq!(key.is_some(), applies, "{method} {path}");
        }
    }

    /// No path accepts two methods that change data, so an HTTP test cannot show this.
    #[test]
    fn keys_are_scoped_to_the_method() {
        let principal = test_principal();
        let keys = TenantKeys::generate(principal.tenant);
        let key = &keys.request_versions()[0];
        let scope = |method| scope_of(key, &principal, method, "/tokens", "k");

        assert_eq!(scope(&Method::POST), scope(&Method::POST));
        assert_ne!(scope(&Method::POST), scope(&Method::PUT));
    }

    #[test]
    fn keys_must_be_short_printable_and_unique() {
        let long = "k".repeat(256);
        let invalid = Err(());
        let cases = [
            (vec![], Ok(None)),
            (vec![""], Ok(None)),
            (vec!["a b"], Ok(Some("a b"))),
            (vec![&long[1..]], Ok(Some(&long[1..]))),
            (vec![&long], invalid),
            (vec!["\u{e9}"], invalid),
            (vec!["a", "a"], invalid),
        ];
        for (given, expected) in cases {
            let mut headers = HeaderMap::new();
            for text in &given {
                headers.append(HEADER, HeaderValue::from_str(text).unwrap());
            }
            let key = idempotency_key(&Method::POST, "/tokens", &headers);
            assert_eq!(key.map_err(drop), expected, "{given:?}");
        }
    }
}
