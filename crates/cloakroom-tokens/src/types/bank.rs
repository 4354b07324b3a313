//! Validates the data of bank accounts and extracts the details that are displayed.

use cloakroom_core::access::TenantKind;
use cloakroom_platform::api::FieldError;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::digits::{BANK_ACCOUNT_NUMBER, DigitRule, US_BANK_ROUTING_NUMBER};
use super::members::Members;

/// Members that the data of a bank account must have. Further members are accepted and stored.
const REQUIRED_MEMBERS: [(&str, DigitRule); 2] = [
    ("routing_number", US_BANK_ROUTING_NUMBER),
    ("account_number", BANK_ACCOUNT_NUMBER),
];

/// Validates a bank account's data, which is stored unchanged.
pub(super) fn validate(data: &RawValue, tenant_kind: TenantKind) -> Result<(), Vec<FieldError>> {
    let members = Members::parse(data).ok_or_else(|| {
        let rule = "must be an object with a routing number and an account number";
        vec![FieldError::new("data", rule)]
    })?;
    let errors: Vec<FieldError> = REQUIRED_MEMBERS
        .iter()
        .filter_map(|(name, rule)| members.check(name, rule, tenant_kind).err())
        .collect();
    match errors.is_empty() {
        true => Ok(()),
        false => Err(errors),
    }
}

/// Details of a bank account that are visible to every caller that may see the token.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct BankDetails {
    pub routing_number: String,
    /// Absent if the account number has at most four digits, because the last four would be all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub account_number_last4: Option<String>,
}

impl BankDetails {
    /// Extracts the details from a bank account's data; `None` if it lacks one of the numbers.
    pub fn of(data: &Value) -> Option<Self> {
        let account_number = data.get("account_number")?.as_str()?;
        let hidden_digits = account_number.len().saturating_sub(4);
        let last4 = account_number
            .get(hidden_digits..)
            .filter(|_| hidden_digits > 0);
        Some(Self {
            routing_number: data.get("routing_number")?.as_str()?.to_owned(),
            account_number_last4: last4.map(str::to_owned),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn details_show_the_routing_number_and_never_the_whole_account_number() {
        let cases = [
            ("12345678901234567", Some("4567")),
            ("00001", Some("0001")),
            ("0001", None),
            ("1", None),
            ("", None),
        ];
        for (account_number, last4) in cases {
            let data = json!({"routing_number": "021000021", "account_number": account_number});
            let details = BankDetails::of(&data).unwrap();
            assert_eq!(details.routing_number, "021000021");
            assert_eq!(
                details.account_number_last4.as_deref(),
                last4,
                "{account_number}"
            );
        }
        assert!(BankDetails::of(&json!({"routing_number": "021000021"})).is_none());
        assert!(BankDetails::of(&json!("021000021")).is_none());
    }
}
