//! What tokens and intents of some types show of their data whoever looks.

use serde_json::Value;

use crate::access::TenantKind;
use crate::bins::CardDetails;
use crate::token_types::{BankDetails, TokenKind};
use crate::vault::Vault;

/// What data of some types shows of itself whatever the transform.
#[derive(Clone)]
pub enum Details {
    None,
    Card(Option<CardDetails>),
    NetworkToken(Option<CardDetails>),
    Bank(Option<BankDetails>),
}

impl Details {
    /// Whether data of a type shows anything of itself; if not, it need not be looked at.
    pub(crate) fn exist_for(kind: TokenKind) -> bool {
        !matches!(
            kind,
            TokenKind::Token
                | TokenKind::UsBankAccountNumber
                | TokenKind::UsBankRoutingNumber
                | TokenKind::SocialSecurityNumber
                | TokenKind::EmployerIdNumber
        )
    }

    pub(crate) fn of(vault: &Vault, tenant: TenantKind, kind: TokenKind, data: &Value) -> Self {
        let card = |number: Option<&str>| {
            let details = CardDetails::of(&vault.bins, tenant, number?)?;
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
