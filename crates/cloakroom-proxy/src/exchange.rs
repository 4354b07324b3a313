//! A proxied request and its response, as transforms see and change them.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use cloakroom_core::caller::Caller;
use cloakroom_crypto::Sensitive;
use http::{HeaderMap, Method, StatusCode};
use serde_json::Value;

/// A proxied request, between the replacement of its expressions and its response.
///
/// Transforms whose results return to the caller read `received`, which contains no revealed value.
pub struct Exchange {
    /// The request as the caller sent it: expressions are not replaced.
    pub received: ReceivedRequest,
    /// The request that is sent to the destination: expressions are replaced.
    pub request: OutgoingRequest,
    /// The decrypted content of `BT-ENCRYPTED`, for transforms that tokenize it.
    pub encrypted: Option<Value>,
    /// The authenticated caller; `None` if the proxy requires no authentication and no key was sent.
    pub caller: Option<Arc<Caller>>,
    /// Identifies the request in logs.
    pub trace_id: Arc<str>,
    /// IP address of the client, if known.
    pub origin: Option<IpAddr>,
    /// Tokens that `tokenize` transforms created, by their identifier.
    pub created: Vec<(String, Value)>,
}

pub struct ReceivedRequest {
    pub method: Method,
    /// The path after `/proxy`, verbatim.
    pub suffix: String,
    pub query: Option<String>,
    pub headers: HeaderMap,
    pub body: Bytes,
}

pub struct OutgoingRequest {
    pub method: Method,
    pub headers: HeaderMap,
    pub body: Sensitive<Vec<u8>>,
}

/// A complete response of the destination, for response transforms. Only successful responses are transformed.
pub struct BufferedResponse {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Sensitive<Vec<u8>>,
}
