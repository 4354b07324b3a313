//! Bank accounts: what their data must look like, and what of it may be shown.

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::digits::{BANK_ACCOUNT_NUMBER, Digits, US_BANK_ROUTING_NUMBER};
use super::members::Members;
use crate::access::TenantKind;
use crate::api::Broken;

/// Checks a bank account's data, which is kept as it came.
pub(super) fn check(data: &RawValue, tenant_kind: TenantKind) -> Result<(), Vec<Broken>> {
    const FIELDS: [(&str, Digits); 2] = [
        ("routing_number", US_BANK_ROUTING_NUMBER),
        ("account_number", BANK_ACCOUNT_NUMBER),
    ];
    let members = Members::parse(data).ok_or_else(|| {
        let rule = "must be an object with a routing number and an account number";
        vec![Broken::new("data", rule)]
    })?;
    let broken: Vec<Broken> = FIELDS
        .iter()
        .filter_map(|(name, digits)| members.check(name, digits, tenant_kind).err())
        .collect();
    match broken.is_empty() {
        true => Ok(()),
        false => Err(broken),
    }
}

/// What a bank account shows of itself to everyone who may see the token.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct BankDetails {
    pub routing_number: String,
    /// Absent when there is nothing before the last four digits: they would be the whole number.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub account_number_last4: Option<String>,
}

impl BankDetails {
    /// Reads the details off a bank account's data.
    pub fn of(data: &Value) -> Option<Self> {
        let account_number = data.get("account_number")?.as_str()?;
        let last4_start = account_number
            .len()
            .checked_sub(4)
            .filter(|start| *start > 0);
        Some(Self {
            routing_number: data.get("routing_number")?.as_str()?.to_owned(),
            account_number_last4: last4_start
                .and_then(|start| account_number.get(start..))
                .map(str::to_owned),
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
