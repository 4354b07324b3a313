//! What went wrong with another party, in the words that callers are told.

use cloakroom_emv3ds::{Component, Erro, ErrorCode, Fault};

/// Who reported it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Party {
    ThreedsServer,
    DirectoryServer,
    AccessControlServer,
}

impl Party {
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

/// Why another party did not do what it was asked for. Holds names of fields, never their values.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}: {message}", party.name())]
pub struct Trouble {
    /// As an HTTP status would say it.
    pub service_status: u16,
    pub party: Party,
    pub message: &'static str,
    pub detail: String,
    /// Whether nobody answered at all.
    pub is_silence: bool,
}

impl Trouble {
    pub fn new(service_status: u16, party: Party, message: &'static str) -> Self {
        Self {
            service_status,
            party,
            message,
            detail: String::new(),
            is_silence: false,
        }
    }

    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = detail.into();
        self
    }

    fn silent(mut self) -> Self {
        self.is_silence = true;
        self
    }

    /// No network has a range for the number.
    pub fn not_supported() -> Self {
        let message = "The card was not supported by any card schemes";
        Self::new(404, Party::ThreedsServer, message)
    }

    /// No network has told its card ranges yet.
    pub fn not_known_yet() -> Self {
        let message = "The card ranges of a network are not known yet.";
        Self::new(500, Party::ThreedsServer, message)
    }

    /// No connection came about, so nothing was sent.
    pub fn not_reached() -> Self {
        let message = "The directory server could not be reached.";
        Self::new(502, Party::DirectoryServer, message).silent()
    }

    /// Something was sent, and nothing that makes sense came back.
    pub fn cut_off() -> Self {
        let message = "The connection to the directory server broke.";
        Self::new(502, Party::DirectoryServer, message).silent()
    }

    pub fn timed_out() -> Self {
        let message = "The directory server did not answer in time.";
        Self::new(504, Party::DirectoryServer, message).silent()
    }

    /// An answer that breaks the protocol: what was asked for may have been done.
    pub fn bad_answer(fault: &Fault) -> Self {
        let message = "The directory server's answer breaks the protocol.";
        let detail = format!("{}: {}", fault.code.code(), fault.detail);
        Self::new(502, Party::DirectoryServer, message).with_detail(detail)
    }

    /// A message of our own that breaks the protocol.
    pub fn bad_question(fault: &Fault) -> Self {
        let message = "The request cannot be told to the network.";
        let detail = format!("{}: {}", fault.code.code(), fault.detail);
        Self::new(400, Party::ThreedsServer, message).with_detail(detail)
    }

    /// A protocol error that another party told.
    pub fn told(erro: &Erro) -> Self {
        let code = ErrorCode::from_code(&erro.error_code);
        let status = match erro.error_code.as_str() {
            "303" => 403,
            "402" => 504,
            "403" | "404" | "405" => 502,
            code if code.starts_with(['1', '2', '3']) => 400,
            _ => 500,
        };
        let message = code.map_or("An error that the protocol does not know.", |code| {
            code.description()
        });
        // Descriptions are free text of another party: only the code and names of fields are passed on.
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
        Self::new(status, Party::of(erro.error_component), message).with_detail(detail)
    }

    /// Whether the session is of no further use: nobody knows what the network made of it.
    pub fn is_final(&self) -> bool {
        matches!(self.service_status, 502 | 504)
    }
}

fn is_field_name(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b".[]".contains(&byte);
    let begins = text.starts_with(|first: char| first.is_ascii_alphabetic());
    begins && text.len() <= 80 && text.bytes().all(is_part)
}
