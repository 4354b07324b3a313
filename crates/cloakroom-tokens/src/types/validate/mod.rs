//! Validates token data by type and normalizes it into its stored form.

use cloakroom_core::access::TenantKind;
use cloakroom_crypto::Sensitive;
use cloakroom_platform::api::{FieldError, merge_patch};
use cloakroom_platform::card_numbers::{
    AuthenticationData, NO_AUTHENTICATION_DATA, contains_card_number, find_authentication_data,
    holds_track_data, named_authentication_data,
};
use serde_json::Value;
use serde_json::value::RawValue;

use super::digits::{
    CARD_NUMBER, DigitRule, NETWORK_TOKEN_NUMBER, TAXPAYER_NUMBER, US_BANK_ACCOUNT_NUMBER,
    US_BANK_ROUTING_NUMBER,
};
use super::members::text;
use super::security_code::SecurityCode;
use super::{TokenKind, bank, card};

/// Validated data in its stored form.
#[derive(Debug)]
pub struct ValidatedData {
    /// The JSON to encrypt. It never contains a security code.
    pub data: Sensitive<Vec<u8>>,
    pub security_code: SecurityCode,
}

/// Validates data by the rules of its type and normalizes it into its stored form.
///
/// Everything else is preserved, including member order and number text.
pub fn validate_data(
    kind: TokenKind,
    data: &RawValue,
    tenant_kind: TenantKind,
) -> Result<ValidatedData, Vec<FieldError>> {
    let check = |digits: &DigitRule| match text(data) {
        Some(text) if (digits.accepts)(text.expose(), tenant_kind) => Ok(()),
        Some(_) => Err(vec![digits.error("data")]),
        None => Err(vec![FieldError::new("data", digits.rule)]),
    };
    match kind {
        TokenKind::Card => return card::validate(data, &CARD_NUMBER, tenant_kind),
        TokenKind::NetworkToken => return card::validate(data, &NETWORK_TOKEN_NUMBER, tenant_kind),
        TokenKind::Token if data.get() == "null" => {
            return Err(vec![FieldError::new("data", "must not be null")]);
        }
        TokenKind::Token => check_free_data(data)?,
        TokenKind::Bank => {
            bank::validate(data, tenant_kind)?;
            check_free_data(data)?;
        }
        TokenKind::CardNumber => check(&CARD_NUMBER)?,
        TokenKind::UsBankAccountNumber => check(&US_BANK_ACCOUNT_NUMBER)?,
        TokenKind::UsBankRoutingNumber => check(&US_BANK_ROUTING_NUMBER)?,
        TokenKind::SocialSecurityNumber | TokenKind::EmployerIdNumber => check(&TAXPAYER_NUMBER)?,
    }
    Ok(ValidatedData {
        data: Sensitive::new(data.get().as_bytes().to_vec()),
        security_code: SecurityCode::Absent,
    })
}

/// Rejects sensitive authentication data that accompanies a card number; track data contains one.
///
/// A `pin` or `cvc` without a card number can be anything, and is accepted.
fn check_free_data(data: &RawValue) -> Result<(), Vec<FieldError>> {
    let value: Value = serde_json::from_str(data.get()).unwrap_or_default();
    let Some((_, path)) = find_authentication_data(&value, "data") else {
        return Ok(());
    };
    // Serialized again, so that no escape hides a digit.
    let text = Sensitive::new(value.to_string());
    match contains_card_number(text.expose()) || holds_track_data(text.expose()) {
        true => Err(vec![FieldError::new(
            path_without_number(path),
            NO_AUTHENTICATION_DATA,
        )]),
        false => Ok(()),
    }
}

/// Replaces a path that contains a card number, because errors must not repeat it. Clients choose member names.
pub(super) fn path_without_number(path: String) -> String {
    match contains_card_number(&path) || holds_track_data(&path) {
        true => "data".to_owned(),
        false => path,
    }
}

/// Applies a merge patch to stored data and validates the result.
///
/// A null in a patch removes the member, so the merged data does not show whether the patch removes the security code.
/// The patch itself is inspected for that.
pub fn validate_patched(
    kind: TokenKind,
    mut stored: Value,
    patch: Value,
    tenant_kind: TenantKind,
) -> Result<ValidatedData, Vec<FieldError>> {
    // A code belongs to one number. Whether the number changes is not asked: the answer would tell it to a caller that
    // does not see it.
    let replaces_number = patch.get("number").is_some();
    let removes_code = kind.has_security_code() && removes_security_code(&patch);
    merge_patch(&mut stored, patch);
    let merged = Sensitive::new(stored.to_string());
    let merged: &RawValue = serde_json::from_str(merged.expose())
        .map_err(|_| vec![FieldError::new("data", "must be expressible as JSON")])?;
    let mut validated = validate_data(kind, merged, tenant_kind)?;
    let is_absent = matches!(validated.security_code, SecurityCode::Absent);
    if removes_code || (replaces_number && kind.has_security_code() && is_absent) {
        validated.security_code = SecurityCode::Removed;
    }
    Ok(validated)
}

/// Whether a patch sets the security code to null, under any of its names.
fn removes_security_code(patch: &Value) -> bool {
    // A sample code, because ambiguous names are classified by their value.
    let code = Value::from("000");
    let is_code = |name: &str| {
        named_authentication_data(name, &code) == Some(AuthenticationData::SecurityCode)
    };
    let mut members = patch.as_object().into_iter().flatten();
    members.any(|(name, value)| value.is_null() && is_code(name))
}

#[cfg(test)]
mod tests;
