//! Failures of the 3DS Server, the directory server or the ACS, as reported to API callers.

use cloakroom_emv3ds::{Component, Erro, ErrorCode, Fault};

/// The component that reported the failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorSource {
    ThreedsServer,
    DirectoryServer,
    AccessControlServer,
}

impl ErrorSource {
    pub fn name(self) -> &'static str {
        match self {
            Self::ThreedsServer => "3DS Server",
            Self::DirectoryServer => "Directory Server",
            Self::AccessControlServer => "Access Control Server",
        }
    }

    fn of(component: Component) -> Self {
        match component {
            Component::D => Self::DirectoryServer,
            Component::A => Self::AccessControlServer,
            Component::S | Component::C => Self::ThreedsServer,
        }
    }
}

/// Why a request to a network failed. Contains field names, never their values.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}: {message}", error_source.name())]
pub struct NetworkFailure {
    /// The failure as an HTTP status.
    pub service_status: u16,
    pub error_source: ErrorSource,
    pub message: &'static str,
    pub detail: String,
    /// Whether no response was received.
    pub is_unanswered: bool,
}

impl NetworkFailure {
    pub fn new(service_status: u16, error_source: ErrorSource, message: &'static str) -> Self {
        Self {
            service_status,
            error_source,
            message,
            detail: String::new(),
            is_unanswered: false,
        }
    }

    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = detail.into();
        self
    }

    fn unanswered(mut self) -> Self {
        self.is_unanswered = true;
        self
    }

    /// No network has a range for the number.
    pub fn not_supported() -> Self {
        let message = "The card was not supported by any card schemes";
        Self::new(404, ErrorSource::ThreedsServer, message)
    }

    /// The card ranges of a network are not loaded yet.
    pub fn ranges_not_loaded() -> Self {
        let message = "The card ranges of a network are not loaded yet. Retry later.";
        Self::new(500, ErrorSource::ThreedsServer, message)
    }

    /// No connection was established, so nothing was sent.
    pub fn unreachable() -> Self {
        let message = "The directory server could not be reached.";
        Self::new(502, ErrorSource::DirectoryServer, message).unanswered()
    }

    /// The request was sent, but no valid response was received.
    pub fn connection_lost() -> Self {
        let message = "The connection to the directory server was lost.";
        Self::new(502, ErrorSource::DirectoryServer, message).unanswered()
    }

    pub fn timed_out() -> Self {
        let message = "The directory server did not respond in time.";
        Self::new(504, ErrorSource::DirectoryServer, message).unanswered()
    }

    /// The response violates the protocol; the request may have been processed.
    pub fn invalid_response(fault: &Fault) -> Self {
        let message = "The response of the directory server violates the protocol.";
        let detail = format!("{}: {}", fault.code.code(), fault.detail);
        Self::new(502, ErrorSource::DirectoryServer, message).with_detail(detail)
    }

    /// Our own message would violate the protocol.
    pub fn invalid_request(fault: &Fault) -> Self {
        let message = "The request cannot be expressed in the network's protocol.";
        let detail = format!("{}: {}", fault.code.code(), fault.detail);
        Self::new(400, ErrorSource::ThreedsServer, message).with_detail(detail)
    }

    /// Converts an Erro message.
    pub fn from_erro(erro: &Erro) -> Self {
        let code = ErrorCode::from_code(&erro.error_code);
        let status = match erro.error_code.as_str() {
            "303" => 403,
            "402" => 504,
            "403" | "404" | "405" => 502,
            code if code.starts_with(['1', '2', '3']) => 400,
            _ => 500,
        };
        let message = code.map_or("Unknown protocol error.", |code| code.description());
        // Error descriptions are untrusted free text: only the error code and field names are passed on.
        let names: Vec<&str> = erro
            .error_detail
            .split(',')
            .map(str::trim)
            .filter(|name| is_field_name(name))
            .collect();
        let detail = match names.as_slice() {
            [] => format!("Error {}", erro.error_code),
            names => format!("Error {}: {}", erro.error_code, names.join(", ")),
        };
        Self::new(status, ErrorSource::of(erro.error_component), message).with_detail(detail)
    }

    /// Whether the outcome at the network is unknown, so that the session cannot be used again.
    pub fn is_outcome_unknown(&self) -> bool {
        matches!(self.service_status, 502 | 504)
    }
}

fn is_field_name(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b".[]".contains(&byte);
    let begins = text.starts_with(|first: char| first.is_ascii_alphabetic());
    begins && text.len() <= 80 && text.bytes().all(is_part)
}
