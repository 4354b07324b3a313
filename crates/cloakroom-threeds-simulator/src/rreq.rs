//! Builds the RReq.

use serde_json::{Value, json};

use crate::behavior::{Challenge, Decision, FinalStatus, Page};
use crate::networks;
use crate::transaction::{Channel, Transaction};
use crate::wire::{Fields, put, put_some};

/// `challengeCancel` of a challenge without a CReq.
pub(crate) const CANCEL_NOT_STARTED: &str = "05";

/// The result of an authentication, and `challengeCancel` if it was not completed.
#[derive(Clone, Copy)]
pub(crate) struct Outcome {
    pub(crate) final_status: FinalStatus,
    pub(crate) cancel: Option<&'static str>,
}

impl Outcome {
    pub(crate) const fn of(final_status: FinalStatus) -> Self {
        Self {
            final_status,
            cancel: None,
        }
    }

    pub(crate) const fn failed(reason: &'static str, cancel: Option<&'static str>) -> Self {
        let final_status = FinalStatus {
            status: "N",
            reason: Some(reason),
        };
        Self {
            final_status,
            cancel,
        }
    }

    /// The outcome of a challenge without cardholder input.
    pub(crate) fn without_interaction(challenge: &Challenge) -> Self {
        match challenge.page {
            Page::Canceled => Self::failed("01", Some("01")),
            _ => Self::of(challenge.final_status),
        }
    }

    /// `transStatus` of the CRes, which is Y or N only.
    pub(crate) fn browser_status(&self) -> &'static str {
        match self.final_status.status {
            "Y" | "A" => "Y",
            _ => "N",
        }
    }
}

/// The RReq of a completed transaction.
pub(crate) fn build_rreq(transaction: &Transaction, outcome: Outcome, attempts: u8) -> Fields {
    let status = outcome.final_status.status;
    let is_decoupled = matches!(transaction.decision, Decision::Decoupled(_));
    let mut fields = Fields::new();
    put(&mut fields, "messageType", "RReq");
    put(&mut fields, "messageVersion", transaction.version.as_str());
    put(
        &mut fields,
        "messageCategory",
        transaction.category.as_str(),
    );
    put(
        &mut fields,
        "threeDSServerTransID",
        transaction.server_id.as_str(),
    );
    put(&mut fields, "acsTransID", transaction.acs_id.as_str());
    put(&mut fields, "dsTransID", transaction.ds_id.as_str());
    put_some(&mut fields, "sdkTransID", transaction.sdk_id.as_deref());
    put(&mut fields, "transStatus", status);
    put_some(
        &mut fields,
        "transStatusReason",
        outcome.final_status.reason,
    );
    if matches!(status, "Y" | "A") {
        put(
            &mut fields,
            "authenticationValue",
            transaction.authentication_value(),
        );
        put_some(
            &mut fields,
            "eci",
            networks::eci(transaction.network, status),
        );
    }
    if matches!(status, "Y" | "N") {
        put_challenge_type(&mut fields, transaction);
    }
    if !is_decoupled {
        put(&mut fields, "interactionCounter", format!("{attempts:02}"));
    }
    put_some(&mut fields, "challengeCancel", outcome.cancel);
    if transaction.channel == Channel::App {
        put(
            &mut fields,
            "acsRenderingType",
            rendering_type(&transaction.version),
        );
    }
    if transaction.requests_trust_listing && transaction.version != "2.1.0" {
        let trust = if status == "Y" { "Y" } else { "N" };
        put_trust(&mut fields, &transaction.version, trust);
    }
    fields
}

/// `authenticationType`, which 2.3.1 replaced with a list of more specific codes.
pub(crate) fn put_challenge_type(fields: &mut Fields, transaction: &Transaction) {
    let kind = match &transaction.decision {
        Decision::Challenge(challenge) => challenge.kind,
        _ => "04",
    };
    if transaction.version != "2.3.1" {
        return put(fields, "authenticationType", kind);
    }
    let method = match kind {
        "03" => "09",
        "04" => "12",
        same => same,
    };
    put(fields, "authenticationMethod", json!([method]));
}

pub(crate) fn put_trust(fields: &mut Fields, version: &str, status: &str) {
    let list = if version == "2.3.1" { "trust" } else { "white" };
    put(fields, &format!("{list}ListStatus"), status);
    put(fields, &format!("{list}ListStatusSource"), "03");
}

/// `acsRenderingType` of an app challenge.
pub(crate) fn rendering_type(version: &str) -> Value {
    match version {
        "2.3.1" => {
            json!({"acsInterface": "01", "acsUiTemplate": "01", "deviceUserInterfaceMode": "01"})
        }
        _ => json!({"acsInterface": "01", "acsUiTemplate": "01"}),
    }
}
