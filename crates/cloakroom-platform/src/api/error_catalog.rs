//! The catalog of error codes: what each one means, and what to do about it.
//!
//! `docs/api/errors.md` and the page to which the `type` of an error leads are made of it.

use std::fmt::Write as _;

/// The path of the catalog on every node.
pub const CATALOG_PATH: &str = "/errors";

/// An error code that clients can decide by.
#[derive(Clone, Copy, Debug)]
pub struct ErrorType {
    pub code: &'static str,
    pub status: u16,
    /// A sentence about what happened.
    pub meaning: &'static str,
    /// A sentence about what the client or the operator does.
    pub remedy: &'static str,
}

/// Entries of the catalog: status and code, what happened, and what to do.
macro_rules! error_types {
    ($($status:literal $code:literal: $meaning:expr, $remedy:expr;)*) => {
        &[$(ErrorType {
            code: $code,
            status: $status,
            meaning: $meaning,
            remedy: $remedy,
        }),*]
    };
}

const RETRY: &str = "Wait for `Retry-After`, then retry.";
const REPORT: &str = "Report the `trace_id` to your operator.";
const RUN_DOCTOR: &str =
    "The operator runs `cloakroom doctor` and `cloakroom audit verify`, which name the row.";
const CHECK_KEYS: &str = "The operator runs `cloakroom doctor`, which names the key.";
const ALLOW_DESTINATION: &str =
    "The operator allows the destination in `egress`, or the tenant in its settings.";

/// All codes, by status.
pub const ERROR_TYPES: &[ErrorType] = error_types! {
    400 "invalid":
        "An attribute, a parameter or the JSON is invalid.",
        "Correct what `errors` names.";
    400 "invalid_url":
        "The URL of the destination is invalid.",
        "Correct the URL as `detail` says.";
    400 "not_evaluated":
        "An expression or a request transform of the proxied request cannot be evaluated.",
        "Correct the expression or the transform.";
    400 "incomplete_body":
        "The body ended before its declared length.",
        "Send the request again.";
    400 "expression_in_large_body":
        "The body of a proxied request is too large to contain expressions.",
        "Send a smaller body.";
    400 "proxy_loop":
        "The destination of a proxied request is the vault itself.",
        "Use another destination.";
    401 "unauthorized":
        "The API key is missing, unknown or deleted, or its session expired.",
        "Send a valid key in the header `BT-API-KEY`.";
    403 "forbidden":
        "The application lacks the permission, or has it for other containers only; or the session is not authorized yet.",
        "Change the rules of the application, or use another key.";
    403 "host_not_allowed":
        "The operator does not allow this destination.",
        ALLOW_DESTINATION;
    403 "host_not_allowed_by_tenant":
        "The tenant does not allow this destination.",
        ALLOW_DESTINATION;
    403 "own_host":
        "The destination is the vault itself.",
        "Use another destination.";
    403 "port_not_allowed":
        "The operator does not allow this port of the destination.",
        ALLOW_DESTINATION;
    403 "address_not_allowed":
        "The destination resolves to an address that is not public.",
        ALLOW_DESTINATION;
    403 "http_method_not_allowed":
        "Requests with this method are not sent to destinations.",
        "Use another method.";
    404 "not_found":
        "It does not exist in this tenant, or has expired.",
        "Check the path and the id, and that the key belongs to the tenant.";
    405 "method_not_allowed":
        "The path does not support the method.",
        "Use a method that `Allow` lists.";
    408 "body_too_slow":
        "The body did not arrive in time.",
        "Send the request again.";
    408 "destination_timeout":
        "The destination of a proxied request did not respond in time.",
        "It may have processed the request: check there before you retry.";
    409 "conflict":
        "The id exists, the resource was changed concurrently, or the idempotency key is in use.",
        "With `Retry-After`: retry. Otherwise read the resource.";
    410 "gone":
        "The endpoint was removed.",
        "Use the replacement that `detail` names.";
    413 "body_too_large":
        "The body exceeds the limit.",
        "Send less at once.";
    415 "unsupported_media_type":
        "The body has another media type than the operation requires.",
        "Correct `Content-Type`.";
    422 "unprocessable":
        "The request is valid, but not possible in the current state, such as a fourth API key.",
        "Change the state first.";
    424 "failed_dependency":
        "A card network or a vendor failed.",
        "`error` describes its failure.";
    429 "rate_limited":
        "A rate limit is exceeded.",
        "Wait for `Retry-After`. `detail` names the settings with which the operator can change the limit.";
    429 "velocity_exceeded":
        "Too many card numbers with the same visible digits, or too many invalid ones, were sent.",
        RETRY;
    429 "threeds_refusal_limit":
        "Issuers declined too many cards of a public key at one address.",
        RETRY;
    500 "altered_row":
        "A stored row does not verify: it was changed outside of the vault.",
        RUN_DOCTOR;
    500 "integrity_error":
        "A stored value does not decrypt: it was changed outside of the vault.",
        RUN_DOCTOR;
    500 "altered_keyset":
        "The keys of the tenant were changed outside of the vault.",
        RUN_DOCTOR;
    500 "wrong_key":
        "A key cannot be unwrapped with the configured root key.",
        CHECK_KEYS;
    500 "missing_key":
        "The tenant has no active key of a purpose.",
        CHECK_KEYS;
    500 "key_error":
        "A key cannot be used.",
        CHECK_KEYS;
    500 "database_refused":
        "The database rejected a statement.",
        REPORT;
    500 "database_misconfigured":
        "The address of the database, or its schema, is wrong.",
        "The operator runs `cloakroom doctor`.";
    500 "internal_error":
        "An internal error occurred.",
        REPORT;
    501 "not_built":
        "A feature of the API that Cloakroom does not have.",
        "Use the alternative that `detail` names.";
    502 "destination_unreachable":
        "The destination of a proxied request could not be reached. Nothing was sent.",
        "Retry, or check the destination.";
    502 "destination_tls":
        "The TLS connection to the destination failed. Nothing was sent.",
        "Check the certificate of the destination.";
    502 "destination_interrupted":
        "The destination closed the connection before its response.",
        "It may have processed the request: check there before you retry.";
    502 "destination_bad_response":
        "The destination sent a response that is not valid HTTP, or too large.",
        "It may have processed the request: check there before you retry.";
    502 "response_not_transformed":
        "The destination processed the request, but its response could not be transformed and is withheld.",
        "Check the result at the destination, then correct the response transforms of the proxy.";
    502 "response_withheld":
        "The destination processed the request, but its response contains a value that the application may use but not read.",
        "Check the result at the destination.";
    503 "busy":
        "The node has too many requests of the tenant.",
        RETRY;
    503 "unread_responses":
        "The client does not read its responses.",
        "Read responses before you send more requests on the connection.";
    503 "destination_overloaded":
        "Too many requests to the destination are waiting. Nothing was sent.",
        RETRY;
    503 "destination_circuit_open":
        "The destination failed repeatedly, so that nothing is sent to it for a while.",
        RETRY;
    503 "database_unavailable":
        "The database is unavailable, or fails over.",
        RETRY;
    503 "keys_replaced":
        "Encryption keys were replaced during the request. Nothing was changed.",
        RETRY;
    503 "key_provider_unavailable":
        "The provider of the root key is unavailable.",
        RETRY;
    503 "audit_unavailable":
        "The request cannot be written to the audit log, so it is not executed.",
        RETRY;
    503 "outcome_unknown":
        "The write may or may not have been applied.",
        "With `retry_safe: true`: retry with the same idempotency key. Otherwise read the resource first.";
};

/// Finds a code of the catalog.
pub fn find_error_type(code: &str) -> Option<&'static ErrorType> {
    ERROR_TYPES.iter().find(|known| known.code == code)
}

/// The catalog as Markdown, with one heading for each code.
pub fn error_reference() -> String {
    let mut text = INTRODUCTION.to_owned();
    for known in ERROR_TYPES {
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "\n## {}\n\n**{}.** {} {}\n",
            known.code, known.status, known.meaning, known.remedy
        );
    }
    text
}

const INTRODUCTION: &str = include_str!("error_catalog.md");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_code_is_listed_once_and_by_status() {
        let codes: Vec<&str> = ERROR_TYPES.iter().map(|known| known.code).collect();
        let mut unique = codes.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), codes.len());
        assert!(ERROR_TYPES.is_sorted_by_key(|known| known.status));
    }

    #[test]
    fn entries_are_sentences() {
        for known in ERROR_TYPES {
            for text in [known.meaning, known.remedy] {
                assert!(text.ends_with('.'), "{}: {text}", known.code);
            }
        }
    }
}
