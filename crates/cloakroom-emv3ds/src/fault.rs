//! Protocol errors, and the `Erro` that reports them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::messages::{Erro, MessageKind};
use crate::version::Version;

macro_rules! error_codes {
    ($($name:ident = $code:literal $description:literal),* $(,)?) => {
        /// The error codes of the protocol.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ErrorCode {
            $(#[doc = $description] $name),*
        }

        impl ErrorCode {
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// Three digits, as on the wire.
            pub const fn code(self) -> &'static str {
                match self { $(Self::$name => $code),* }
            }

            pub const fn description(self) -> &'static str {
                match self { $(Self::$name => $description),* }
            }

            pub fn from_code(code: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|known| known.code() == code)
            }
        }
    };
}

error_codes! {
    MessageInvalid = "101" "Message received is invalid",
    VersionNotSupported = "102" "Message version is not supported",
    TooManyMessages = "103" "Sent messages limit exceeded",
    ElementMissing = "201" "Required data element is missing",
    ExtensionNotRecognized = "202" "Critical message extension is not recognised",
    FormatInvalid = "203" "Format of one or more data elements is invalid",
    ElementDuplicated = "204" "Duplicate data element",
    RangesOverlap = "205" "Card ranges overlap",
    ActionNotPossible = "206" "Card range action is not possible",
    ValueReserved = "207" "Reserved value is not recognised",
    TransactionUnknown = "301" "Transaction id is not recognised",
    DecryptionFailed = "302" "Data could not be decrypted",
    AccessDenied = "303" "Access denied, invalid endpoint",
    IsoCodeInvalid = "304" "ISO code is invalid",
    TransactionInvalid = "305" "Transaction data is not valid",
    CategoryCodeInvalid = "306" "Merchant category code is not valid for the payment system",
    SerialNumberInvalid = "307" "Serial number is not valid",
    TimedOut = "402" "Transaction timed out",
    TransientFailure = "403" "Transient system failure",
    PermanentFailure = "404" "Permanent system failure",
    ConnectionFailure = "405" "System connection failure",
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.code())
    }
}

/// The component that detected an error: C is the 3DS SDK, S the 3DS Server, D the DS, A the ACS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Component {
    C,
    S,
    D,
    A,
}

impl Component {
    pub const ALL: [Self; 4] = [Self::C, Self::S, Self::D, Self::A];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::C => "C",
            Self::S => "S",
            Self::D => "D",
            Self::A => "A",
        }
    }
}

impl fmt::Display for Component {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.as_str())
    }
}

impl FromStr for Component {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let found = Self::ALL.into_iter().find(|known| known.as_str() == text);
        found.ok_or(())
    }
}

/// The transaction ids that a message contains. Boxed to keep [`Fault`] small.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TransactionIds {
    pub threeds_server_trans_id: Option<Box<str>>,
    pub acs_trans_id: Option<Box<str>>,
    pub ds_trans_id: Option<Box<str>>,
    pub sdk_trans_id: Option<Box<str>>,
}

/// Why a message is rejected or cannot be sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} ({code}): {detail}", code.description())]
pub struct Fault {
    pub code: ErrorCode,
    /// The paths of the invalid fields, separated by commas, or a description. Never a value.
    pub detail: String,
    /// The type of the invalid message, if known.
    pub about: Option<MessageKind>,
    /// Only well-formed ids.
    pub ids: TransactionIds,
}

/// Maximum length of `errorDetail`.
const DETAIL_CHARACTERS_MAX: usize = 2048;

impl Fault {
    pub fn new(code: ErrorCode, detail: impl Into<String>) -> Self {
        Self {
            code,
            detail: detail.into(),
            about: None,
            ids: TransactionIds::default(),
        }
    }

    #[must_use]
    pub fn about(mut self, kind: MessageKind, ids: TransactionIds) -> Self {
        self.about = Some(kind);
        self.ids = ids;
        self
    }

    /// The `Erro` that reports this fault.
    pub fn erro(&self, component: Component, version: Version) -> Erro {
        let detail: String = self.detail.chars().take(DETAIL_CHARACTERS_MAX).collect();
        Erro {
            message_version: version.into(),
            error_code: self.code.code().to_owned(),
            error_component: component,
            error_description: self.code.description().to_owned(),
            error_detail: if detail.is_empty() {
                self.code.description().to_owned()
            } else {
                detail
            },
            error_message_type: self.about.map(|kind| kind.as_str().to_owned()),
            threeds_server_trans_id: self
                .ids
                .threeds_server_trans_id
                .as_deref()
                .map(str::to_owned),
            acs_trans_id: self.ids.acs_trans_id.as_deref().map(str::to_owned),
            ds_trans_id: self.ids.ds_trans_id.as_deref().map(str::to_owned),
            sdk_trans_id: self.ids.sdk_trans_id.as_deref().map(str::to_owned),
        }
    }
}
