//! Validates a message against the preceding message of its transaction.

use crate::codec::{ensure_valid, field_fault, to_object};
use crate::codes::{DeviceChannel, TransStatus};
use crate::fault::{ErrorCode, Fault};
use crate::fields::{Context, UnknownFields, validate};
use crate::messages::{AReq, ARes, MessageKind, RReq};

/// See [`ARes::answers`].
pub(crate) fn validate_ares(ares: &ARes, areq: &AReq) -> Result<(), Fault> {
    let about = |fault: Fault| fault.about(MessageKind::ARes, ares.ids());
    let mut mismatched = Vec::new();
    if !ids_match(&ares.threeds_server_trans_id, &areq.threeds_server_trans_id) {
        mismatched.push("threeDSServerTransID".to_owned());
    }
    if !ids_match_if_present(ares.sdk_trans_id.as_deref(), areq.sdk_trans_id.as_deref()) {
        mismatched.push("sdkTransID".to_owned());
    }
    if !mismatched.is_empty() {
        return Err(about(field_fault(
            ErrorCode::TransactionUnknown,
            mismatched,
        )));
    }
    let fields = to_object(ares).map_err(about)?;
    let context = Context {
        channel: areq.channel(),
        category: areq.category(),
        ..Context::of(&fields, ares.message_version)
    };
    let (_, mut errors) = validate(MessageKind::ARes, &context, UnknownFields::Ignore);
    if ares.message_version != areq.message_version {
        errors.malformed.push("messageVersion".to_owned());
    }
    let decoupled_requested = areq.threeds_requestor_dec_req_ind.as_deref().unwrap_or("N") != "N";
    let is_unexpected = match ares.trans_status {
        Some(TransStatus::DecoupledChallenge) => !decoupled_requested,
        Some(TransStatus::Challenge) => areq.channel() == Some(DeviceChannel::ThreeRi),
        _ => false,
    };
    if is_unexpected {
        errors.malformed.push("transStatus".to_owned());
    }
    ensure_valid(errors).map_err(about)
}

/// See [`RReq::concludes`].
pub(crate) fn validate_rreq(rreq: &RReq, ares: &ARes, channel: DeviceChannel) -> Result<(), Fault> {
    let about = |fault: Fault| fault.about(MessageKind::RReq, rreq.ids());
    let pairs = [
        (
            "threeDSServerTransID",
            &rreq.threeds_server_trans_id,
            &ares.threeds_server_trans_id,
        ),
        ("acsTransID", &rreq.acs_trans_id, &ares.acs_trans_id),
        ("dsTransID", &rreq.ds_trans_id, &ares.ds_trans_id),
    ];
    let differ = pairs
        .into_iter()
        .filter(|(_, of_rreq, of_ares)| !ids_match(of_rreq, of_ares));
    let mut mismatched: Vec<_> = differ.map(|(name, _, _)| name.to_owned()).collect();
    if !ids_match_if_present(rreq.sdk_trans_id.as_deref(), ares.sdk_trans_id.as_deref()) {
        mismatched.push("sdkTransID".to_owned());
    }
    if !mismatched.is_empty() {
        return Err(about(field_fault(
            ErrorCode::TransactionUnknown,
            mismatched,
        )));
    }
    let fields = to_object(rreq).map_err(about)?;
    let context = Context {
        channel: Some(channel),
        ares_status: ares.trans_status,
        ..Context::of(&fields, rreq.message_version)
    };
    let (_, mut errors) = validate(MessageKind::RReq, &context, UnknownFields::Ignore);
    if rreq.message_version != ares.message_version {
        errors.malformed.push("messageVersion".to_owned());
    }
    ensure_valid(errors).map_err(about)
}

/// Compares ids ignoring case: they are hexadecimal, and some servers change the case.
fn ids_match(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other)
}

/// Compares optional ids. The field tables define whether an id must be present.
fn ids_match_if_present(one: Option<&str>, other: Option<&str>) -> bool {
    one.zip(other)
        .is_none_or(|(one, other)| ids_match(one, other))
}
