//! Verifies whether a bank account accepts payments.
//!
//! That requires a verification provider, and none can be configured yet. Without one, the published test accounts have
//! their published results, and all others are inconclusive.

use cloakroom_core::access::Permission;
use cloakroom_core::caller::Caller;
use cloakroom_platform::api::FieldError;
use serde_json::Value;

use super::Error;
use crate::tokens;
use crate::tokens::TokenVault;
use crate::types::TokenKind;

const ROUTING_DIGITS: usize = 9;
const COUNTRY: &str = "US";

/// Verification status of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountStatus {
    Enabled,
    Disabled,
    Inconclusive,
}

impl AccountStatus {
    pub fn name(self) -> &'static str {
        match self {
            Self::Enabled => "enabled",
            Self::Disabled => "disabled",
            Self::Inconclusive => "inconclusive",
        }
    }

    /// The status of the published test accounts. The second routing number fails its checksum on purpose: no real
    /// account can have it.
    fn of(routing: &str, account: &str) -> Self {
        match (routing, account) {
            ("021000021", "00001") => Self::Enabled,
            ("021000020", "00000") => Self::Disabled,
            _ => Self::Inconclusive,
        }
    }
}

/// A requested verification, not yet validated.
#[derive(Default)]
pub struct NewVerification {
    pub token_id: Option<String>,
    pub country_code: Option<String>,
    pub routing_number: Option<String>,
}

/// Verifies the account that a token holds.
pub async fn verify_bank_account(
    vault: &TokenVault,
    caller: &Caller,
    new: &NewVerification,
) -> Result<AccountStatus, Error> {
    caller.require_anywhere(Permission::TokenUse)?;
    let id = new.check().map_err(Error::Invalid)?;
    let (kind, data) = match tokens::use_data(vault, caller, id).await {
        Err(tokens::Error::NotFound) => {
            return Err(invalid("token_id", "must be the id of a token"));
        }
        found => found?,
    };
    let member = |name: &str| data.get(name).and_then(Value::as_str).map(str::to_owned);
    let (routing, account) = match (kind, &new.routing_number) {
        (TokenKind::Bank, None) => (member("routing_number"), member("account_number")),
        (TokenKind::Bank, Some(_)) => {
            let rule = "must not be given: the token contains one";
            return Err(invalid("routing_number", rule));
        }
        (TokenKind::UsBankAccountNumber, Some(routing)) => {
            (Some(routing.clone()), data.as_str().map(str::to_owned))
        }
        (TokenKind::UsBankAccountNumber, None) => {
            return Err(invalid(
                "routing_number",
                "is required for an account number",
            ));
        }
        _ => {
            let rule = "must be a token of the type bank or us_bank_account_number";
            return Err(invalid("token_id", rule));
        }
    };
    let (routing, account) = (routing.unwrap_or_default(), account.unwrap_or_default());
    Ok(AccountStatus::of(&routing, &account))
}

impl NewVerification {
    fn check(&self) -> Result<&str, Vec<FieldError>> {
        let mut broken = Vec::new();
        let id = self.token_id.as_deref().filter(|id| !id.is_empty());
        if id.is_none() {
            broken.push(FieldError::new("token_id", "is required"));
        }
        if self.country_code.as_deref().unwrap_or(COUNTRY) != COUNTRY {
            broken.push(FieldError::new("country_code", "must be US"));
        }
        let is_routing = |text: &str| {
            text.len() == ROUTING_DIGITS && text.bytes().all(|byte| byte.is_ascii_digit())
        };
        if !self.routing_number.as_deref().is_none_or(is_routing) {
            broken.push(FieldError::new("routing_number", "must be 9 digits"));
        }
        match id {
            Some(id) if broken.is_empty() => Ok(id),
            _ => Err(broken),
        }
    }
}

fn invalid(path: &str, rule: &str) -> Error {
    Error::Invalid(vec![FieldError::new(path, rule)])
}
