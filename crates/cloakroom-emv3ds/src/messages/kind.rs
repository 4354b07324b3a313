//! Message types, and a message of any type.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{AReq, ARes, CReq, CRes, Erro, PReq, PRes, RReq, RRes};
use crate::fault::TransactionIds;
use crate::version::Announced;

/// The value of `messageType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum MessageKind {
    PReq,
    PRes,
    AReq,
    ARes,
    CReq,
    CRes,
    RReq,
    RRes,
    Erro,
}

impl MessageKind {
    pub const ALL: [Self; 9] = [
        Self::PReq,
        Self::PRes,
        Self::AReq,
        Self::ARes,
        Self::CReq,
        Self::CRes,
        Self::RReq,
        Self::RRes,
        Self::Erro,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PReq => "PReq",
            Self::PRes => "PRes",
            Self::AReq => "AReq",
            Self::ARes => "ARes",
            Self::CReq => "CReq",
            Self::CRes => "CRes",
            Self::RReq => "RReq",
            Self::RRes => "RRes",
            Self::Erro => "Erro",
        }
    }
}

impl fmt::Display for MessageKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.as_str())
    }
}

impl FromStr for MessageKind {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let found = Self::ALL.into_iter().find(|known| known.as_str() == text);
        found.ok_or(())
    }
}

/// Any message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    PReq(PReq),
    PRes(PRes),
    AReq(Box<AReq>),
    ARes(Box<ARes>),
    CReq(CReq),
    CRes(CRes),
    RReq(Box<RReq>),
    RRes(RRes),
    Erro(Erro),
}

impl Message {
    pub fn kind(&self) -> MessageKind {
        match self {
            Self::PReq(_) => MessageKind::PReq,
            Self::PRes(_) => MessageKind::PRes,
            Self::AReq(_) => MessageKind::AReq,
            Self::ARes(_) => MessageKind::ARes,
            Self::CReq(_) => MessageKind::CReq,
            Self::CRes(_) => MessageKind::CRes,
            Self::RReq(_) => MessageKind::RReq,
            Self::RRes(_) => MessageKind::RRes,
            Self::Erro(_) => MessageKind::Erro,
        }
    }

    /// The announced version: an `Erro` may have one that is not supported here.
    pub fn version(&self) -> Announced {
        match self {
            Self::PReq(message) => message.message_version.into(),
            Self::PRes(message) => message.message_version.into(),
            Self::AReq(message) => message.message_version.into(),
            Self::ARes(message) => message.message_version.into(),
            Self::CReq(message) => message.message_version.into(),
            Self::CRes(message) => message.message_version.into(),
            Self::RReq(message) => message.message_version.into(),
            Self::RRes(message) => message.message_version.into(),
            Self::Erro(message) => message.message_version,
        }
    }

    pub fn ids(&self) -> TransactionIds {
        match self {
            Self::PReq(message) => message.ids(),
            Self::PRes(message) => message.ids(),
            Self::AReq(message) => message.ids(),
            Self::ARes(message) => message.ids(),
            Self::CReq(message) => message.ids(),
            Self::CRes(message) => message.ids(),
            Self::RReq(message) => message.ids(),
            Self::RRes(message) => message.ids(),
            Self::Erro(message) => message.ids(),
        }
    }
}
