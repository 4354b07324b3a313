//! Why a request was not sent, or has no response.

use std::error::Error as _;

use rustls::AlertDescription;

use crate::AddressClass;

/// The settings of outbound requests cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{setting}: {reason}")]
pub struct Error {
    setting: &'static str,
    reason: String,
}

impl Error {
    pub(crate) fn new(setting: &'static str, reason: String) -> Self {
        Self { setting, reason }
    }
}

/// Why a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    #[error(transparent)]
    Denied(#[from] Denied),
    /// No connection was established.
    #[error(transparent)]
    NotSent(#[from] NotSent),
    /// The TLS handshake failed: the certificate is not valid for the host, or there is no common version.
    #[error("the TLS handshake with the destination failed")]
    Tls,
    /// No response head arrived in time.
    #[error("the destination did not respond in time")]
    Timeout,
    /// The response is not valid HTTP/1.1, its head is too large, or it switches protocols.
    #[error("the destination returned an invalid response")]
    BadResponse,
    /// The connection was closed before the response head.
    #[error("the connection to the destination was closed before it responded")]
    Interrupted,
    /// The body of the request, which the caller streams, ended with an error.
    #[error("the body of the request could not be read")]
    RequestBody,
    /// The node, the destination or the tenant's share of either has too many requests in flight.
    #[error("too many requests to the destination are in flight")]
    Overloaded,
    /// Connections of this tenant to this destination failed repeatedly. The next attempt is made in a few seconds.
    #[error("connections to the destination failed repeatedly")]
    CircuitOpen,
}

impl SendError {
    /// The failure behind an error of the HTTP connection.
    pub(crate) fn from_http(error: &hyper::Error) -> Self {
        match error {
            error if error.is_parse() => Self::BadResponse,
            error if is_handshake_alert(error) => Self::Tls,
            _ => Self::Interrupted,
        }
    }

    /// Name for logs and metrics.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Denied(denied) => denied.kind(),
            Self::NotSent(not_sent) => not_sent.kind(),
            Self::Tls => "tls",
            Self::Timeout => "timeout",
            Self::BadResponse => "bad_response",
            Self::Interrupted => "interrupted",
            Self::RequestBody => "request_body",
            Self::Overloaded => "overloaded",
            Self::CircuitOpen => "circuit_open",
        }
    }

    /// Whether the destination may have received the request, or a part of it.
    pub fn was_sent(self) -> bool {
        match self {
            Self::Timeout | Self::BadResponse | Self::Interrupted | Self::RequestBody => true,
            Self::Denied(_)
            | Self::NotSent(_)
            | Self::Tls
            | Self::Overloaded
            | Self::CircuitOpen => false,
        }
    }
}

/// Whether the destination rejected the client certificate. With TLS 1.3 it does so after the handshake, when the
/// request may be on its way; the destination does not read it.
fn is_handshake_alert(error: &hyper::Error) -> bool {
    let io = error
        .source()
        .and_then(|source| source.downcast_ref::<std::io::Error>());
    let tls = io.and_then(|error| error.get_ref()?.downcast_ref::<rustls::Error>());
    matches!(
        tls,
        Some(rustls::Error::AlertReceived(
            AlertDescription::CertificateRequired
                | AlertDescription::BadCertificate
                | AlertDescription::UnsupportedCertificate
                | AlertDescription::CertificateRevoked
                | AlertDescription::CertificateExpired
                | AlertDescription::CertificateUnknown
                | AlertDescription::UnknownCA
                | AlertDescription::AccessDenied
                | AlertDescription::HandshakeFailure
                | AlertDescription::DecryptError
        ))
    )
}

/// Why a destination is not allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    #[error("the host is not in the operator's list of allowed hosts (egress.allowed_hosts)")]
    Host,
    #[error("the host is not in the tenant setting egress_hosts")]
    TenantHost,
    #[error("the host is this vault itself")]
    OwnHost,
    #[error("the port is not allowed (egress.ports)")]
    Port,
    #[error("the host has an address that is not public")]
    Address(AddressClass),
    /// `CONNECT` would turn the destination into a tunnel.
    #[error("the method is not allowed")]
    Method,
}

impl Denied {
    /// Name for logs and metrics.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Host => "host_not_allowed",
            Self::TenantHost => "host_not_allowed_by_tenant",
            Self::OwnHost => "own_host",
            Self::Port => "port_not_allowed",
            Self::Address(_) => "address_not_allowed",
            Self::Method => "http_method_not_allowed",
        }
    }
}

/// Why no connection was established.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotSent {
    #[error("the host of the destination could not be resolved")]
    Dns,
    #[error("the destination refused the connection or is unreachable")]
    Connect,
    #[error("the connection to the destination timed out")]
    ConnectTimeout,
    /// The upstream proxy is unreachable or rejected the CONNECT request.
    #[error("the upstream proxy did not open a connection to the destination")]
    ConnectProxy,
}

impl NotSent {
    /// Name for logs and metrics.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Dns => "dns",
            Self::Connect => "connect",
            Self::ConnectTimeout => "connect_timeout",
            Self::ConnectProxy => "connect_proxy",
        }
    }
}
