//! Builds the ARes, and schedules the result of a challenge or decoupled authentication.

use std::sync::Arc;
use std::time::Duration;

use cloakroom_emv3ds::MessageKind;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::Reply;
use crate::behavior::{self, AmountEffects, Challenge, Decision, Decoupled, FinalStatus};
use crate::networks;
use crate::results::conclude;
use crate::rreq::{CANCEL_NOT_STARTED, Outcome, put_challenge_type, put_trust, rendering_type};
use crate::state::SharedState;
use crate::transaction::{Channel, Stage, Transaction, preferences};
use crate::wire::{Fields, protocol_fault, put, put_some, text};

const CARDHOLDER_INFO: &str = "Simulated issuer: call the number on your card.";
const DECOUPLED_CARDHOLDER_INFO: &str = "Simulated issuer: approve the payment in your bank's app.";
/// A placeholder in the form of a JWS.
const SIGNED_CONTENT: &str = "eyJhbGciOiJQUzI1NiJ9.eyJzaW11bGF0ZWQiOnRydWV9.c2ltdWxhdGVk";

pub(super) fn respond(
    state: &Arc<SharedState>,
    network: &'static str,
    request: &Fields,
    effects: AmountEffects,
) -> Reply {
    let number = text(request, "acctNumber").unwrap_or_default();
    let decision = adapt_to_request(behavior::decide(number), request);
    match decision {
        Decision::NoResponse => return Reply::NoResponse,
        Decision::Erro(code) => {
            return Reply::Erro(protocol_fault(code, "requested by the test card"));
        }
        _ => {}
    }
    let transaction = Arc::new(Transaction::new(network, request, decision));
    let fields = build_ares(state, &transaction, request, effects);
    {
        let mut store = state.store();
        store
            .transactions
            .put(&transaction.acs_id, Arc::clone(&transaction));
        if let Some(received) = store.requests.get_mut(&transaction.server_id) {
            received.ares = Some(fields.clone());
            received.transaction = Some(Arc::clone(&transaction));
        }
    }
    schedule_result(state, transaction);
    Reply::Message(MessageKind::ARes, fields)
}

/// Replaces a decision that the channel, version or request does not allow.
fn adapt_to_request(decision: Decision, request: &Fields) -> Decision {
    let is_2_1_0 = text(request, "messageVersion") == Some("2.1.0");
    let requests_decoupled = requests_decoupled(request);
    let unavailable = |reason, reason_in_2_1_0| {
        let reason = if is_2_1_0 { reason_in_2_1_0 } else { reason };
        Decision::Final(FinalStatus {
            status: "U",
            reason: Some(reason),
        })
    };
    match decision {
        Decision::Challenge(challenge) if Channel::of(request) == Channel::ThreeRi => {
            match requests_decoupled {
                true => Decision::Decoupled(Decoupled::Completes(challenge.final_status)),
                false => unavailable("23", "21"),
            }
        }
        Decision::Decoupled(_) if !requests_decoupled => unavailable("23", "12"),
        Decision::Decoupled(Decoupled::InsufficientTime) => Decision::Final(FinalStatus {
            status: "N",
            reason: Some("25"),
        }),
        Decision::Final(FinalStatus { status: "I", .. }) if is_2_1_0 => unavailable("12", "12"),
        Decision::Final(FinalStatus {
            status,
            reason: Some(reason),
        }) if is_2_1_0 && reason > "21" => Decision::Final(FinalStatus {
            status,
            reason: Some("14"),
        }),
        other => other,
    }
}

/// 2.3.1 adds F (fallback) and B (both) to Y.
fn requests_decoupled(request: &Fields) -> bool {
    let indicator = text(request, "threeDSRequestorDecReqInd");
    text(request, "messageVersion") != Some("2.1.0") && matches!(indicator, Some("Y" | "F" | "B"))
}

fn build_ares(
    state: &SharedState,
    transaction: &Transaction,
    request: &Fields,
    effects: AmountEffects,
) -> Fields {
    let mut fields = Fields::new();
    put(&mut fields, "messageType", "ARes");
    put(&mut fields, "messageVersion", transaction.version.as_str());
    put(
        &mut fields,
        "threeDSServerTransID",
        transaction.server_id.as_str(),
    );
    put(&mut fields, "acsTransID", transaction.acs_id.as_str());
    put(&mut fields, "dsTransID", transaction.ds_id.as_str());
    put(&mut fields, "acsReferenceNumber", "sim-acs");
    put(
        &mut fields,
        "dsReferenceNumber",
        format!("sim-ds-{}", transaction.network),
    );
    put(&mut fields, "acsOperatorID", "sim-operator");
    put_some(&mut fields, "sdkTransID", transaction.sdk_id.as_deref());
    match &transaction.decision {
        Decision::Challenge(challenge) => put_challenge(&mut fields, state, transaction, challenge),
        Decision::Decoupled(_) => put_decoupled(&mut fields, transaction),
        Decision::Final(final_status) => put_final(&mut fields, transaction, final_status, request),
        Decision::NoResponse | Decision::Erro(_) => {}
    }
    if effects.has_cardholder_info {
        put_cardholder_info(&mut fields, &transaction.version, CARDHOLDER_INFO);
    }
    put_trust_list(&mut fields, transaction, request);
    put_extensions(&mut fields, transaction, effects);
    fields
}

fn put_final(
    fields: &mut Fields,
    transaction: &Transaction,
    final_status: &FinalStatus,
    request: &Fields,
) {
    put(fields, "transStatus", final_status.status);
    put_some(fields, "transStatusReason", final_status.reason);
    put_some(
        fields,
        "eci",
        networks::eci(transaction.network, final_status.status),
    );
    if matches!(final_status.status, "Y" | "A") {
        put(
            fields,
            "authenticationValue",
            transaction.authentication_value(),
        );
    }
    if requests_decoupled(request) {
        put(fields, "acsDecConInd", "N");
    }
}

fn put_challenge(
    fields: &mut Fields,
    state: &SharedState,
    transaction: &Transaction,
    challenge: &Challenge,
) {
    put(fields, "transStatus", "C");
    let mandated = if challenge.is_mandated { "Y" } else { "N" };
    put(fields, "acsChallengeMandated", mandated);
    put_challenge_type(fields, transaction);
    if transaction.channel == Channel::App {
        put(
            fields,
            "acsRenderingType",
            rendering_type(&transaction.version),
        );
        put(fields, "acsSignedContent", SIGNED_CONTENT);
    } else {
        put(fields, "acsURL", format!("{}/acs/challenge", state.acs_url));
    }
}

fn put_decoupled(fields: &mut Fields, transaction: &Transaction) {
    put(fields, "transStatus", "D");
    put(fields, "acsChallengeMandated", "N");
    put(fields, "acsDecConInd", "Y");
    put_challenge_type(fields, transaction);
    put_cardholder_info(fields, &transaction.version, DECOUPLED_CARDHOLDER_INFO);
}

fn put_cardholder_info(fields: &mut Fields, version: &str, information: &str) {
    match version {
        "2.3.1" => put(fields, "cardholderInfo", json!({"text": information})),
        _ => put(fields, "cardholderInfo", information),
    }
}

/// Preference 08 uses a trust list exemption, 09 requests a trust list prompt, and 3RI 10 queries the
/// trust list status.
fn put_trust_list(fields: &mut Fields, transaction: &Transaction, request: &Fields) {
    if transaction.version == "2.1.0" {
        return;
    }
    let uses_exemption = preferences(request).any(|code| code == "08");
    if uses_exemption || text(request, "threeRIInd") == Some("10") {
        put_trust(fields, &transaction.version, "Y");
    } else if transaction.requests_trust_listing {
        put_trust(fields, &transaction.version, "P");
    }
}

fn put_extensions(fields: &mut Fields, transaction: &Transaction, effects: AmountEffects) {
    let mut extensions: Vec<Value> = Vec::new();
    let unknown = |critical: bool| {
        json!({
            "name": "Simulated extension",
            "id": "A000000999_SIM-UNKNOWN",
            "criticalityIndicator": critical,
            "data": {"note": "an unknown extension"},
        })
    };
    if transaction.network == "cartes-bancaires" {
        extensions.push(json!({
            "name": "CB-SCORE",
            "id": "A000000042_CB-SCORE",
            "criticalityIndicator": false,
            "data": {"CB-SCORE": "87"},
        }));
    }
    if effects.has_plain_extension {
        extensions.push(unknown(false));
    }
    if effects.has_critical_extension {
        extensions.push(unknown(true));
    }
    if !extensions.is_empty() {
        put(fields, "messageExtension", extensions);
    }
}

/// Schedules the result or timeout of a transaction that is not final.
fn schedule_result(state: &Arc<SharedState>, transaction: Arc<Transaction>) {
    let delay = state.decoupled_delay;
    match (&transaction.decision, transaction.channel) {
        // The app challenge between SDK and ACS is not simulated; it completes after a delay.
        (Decision::Challenge(challenge), Channel::App) => {
            let outcome = Outcome::without_interaction(challenge);
            conclude_after(state, transaction, delay, outcome);
        }
        (Decision::Challenge(_), _) => time_out_without_creq(state, transaction),
        (Decision::Decoupled(Decoupled::Completes(final_status)), _) => {
            let outcome = Outcome::of(*final_status);
            conclude_after(state, transaction, delay, outcome);
        }
        _ => {}
    }
}

fn conclude_after(
    state: &Arc<SharedState>,
    transaction: Arc<Transaction>,
    delay: Duration,
    outcome: Outcome,
) {
    let shared = Arc::clone(state);
    state.spawn(async move {
        sleep(delay).await;
        let stage = Stage::Completed(outcome.browser_status());
        conclude(&shared, &transaction, outcome, stage).await;
    });
}

/// Fails the challenge if no CReq arrives in time.
fn time_out_without_creq(state: &Arc<SharedState>, transaction: Arc<Transaction>) {
    let shared = Arc::clone(state);
    state.spawn(async move {
        sleep(shared.creq_timeout).await;
        let outcome = Outcome::failed("14", Some(CANCEL_NOT_STARTED));
        conclude(&shared, &transaction, outcome, Stage::TimedOut).await;
    });
}
