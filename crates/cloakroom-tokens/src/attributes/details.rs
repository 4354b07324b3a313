//! Details of tokens and intents that are visible regardless of the transform.

use cloakroom_core::access::TenantKind;
use serde_json::Value;

use crate::bins::{Bins, CardDetails};
use crate::types::{BankDetails, TokenKind};

/// The part of the data that is visible regardless of the transform.
#[derive(Clone)]
pub enum Details {
    None,
    Card(Option<CardDetails>),
    NetworkToken(Option<CardDetails>),
    Bank(Option<BankDetails>),
}

impl Details {
    /// Whether a type has details. If not, its data need not be parsed.
    pub fn exist_for(kind: TokenKind) -> bool {
        !matches!(
            kind,
            TokenKind::Token
                | TokenKind::UsBankAccountNumber
                | TokenKind::UsBankRoutingNumber
                | TokenKind::SocialSecurityNumber
                | TokenKind::EmployerIdNumber
        )
    }

    pub fn of(bins: &Bins, tenant: TenantKind, kind: TokenKind, data: &Value) -> Self {
        let card = |number: Option<&str>| {
            let details = CardDetails::of(bins, tenant, number?)?;
            let member = |name: &str| data.get(name).and_then(Value::as_u64);
            Some(details.with_expiry(member("expiration_month"), member("expiration_year")))
        };
        let number = || data.get("number").and_then(Value::as_str);
        match kind {
            TokenKind::Card => Self::Card(card(number())),
            TokenKind::CardNumber => Self::Card(card(data.as_str())),
            TokenKind::NetworkToken => Self::NetworkToken(card(number())),
            TokenKind::Bank => Self::Bank(BankDetails::of(data)),
            _ => Self::None,
        }
    }

    pub fn card(&self) -> Option<&CardDetails> {
        match self {
            Self::Card(card) => card.as_ref(),
            Self::None | Self::NetworkToken(_) | Self::Bank(_) => None,
        }
    }

    pub fn network_token(&self) -> Option<&CardDetails> {
        match self {
            Self::NetworkToken(card) => card.as_ref(),
            Self::None | Self::Card(_) | Self::Bank(_) => None,
        }
    }

    pub fn bank(&self) -> Option<&BankDetails> {
        match self {
            Self::Bank(bank) => bank.as_ref(),
            Self::None | Self::Card(_) | Self::NetworkToken(_) => None,
        }
    }
}
