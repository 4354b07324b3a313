//! The ARes: what the access control server decides, in the words of the message.

use std::sync::Arc;
use std::time::Duration;

use cloakroom_emv3ds::MessageKind;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::Reply;
use crate::behaviour::{self, Answer, Challenge, Decoupled, Ending, Extra};
use crate::networks;
use crate::results::{NOT_STARTED, Outcome, conclude, put_challenge_type, put_trust, rendering};
use crate::transaction::{Channel, Stage, Transaction, preferences};
use crate::wire::{Fields, put, put_some, refusal, text};
use crate::world::World;

const INFORMATION: &str = "Simulated issuer: call the number on your card.";
const APPROVE_INFORMATION: &str = "Simulated issuer: approve the payment in your bank's app.";
/// Looks like a signed JSON object; nobody can use it.
const SIGNED_CONTENT: &str = "eyJhbGciOiJQUzI1NiJ9.eyJzaW11bGF0ZWQiOnRydWV9.c2ltdWxhdGVk";

pub(super) fn answer(
    world: &Arc<World>,
    network: &'static str,
    request: &Fields,
    extra: Extra,
) -> Reply {
    let number = text(request, "acctNumber").unwrap_or_default();
    let answer = possible(behaviour::answer(number), request);
    match answer {
        Answer::Silence => return Reply::Silence,
        Answer::Erro(code) => return Reply::Refused(refusal(code, "as the card asks for")),
        _ => {}
    }
    let transaction = Arc::new(Transaction::new(network, request, answer));
    let fields = compose(world, &transaction, request, extra);
    {
        let mut memory = world.memory();
        memory
            .transactions
            .put(&transaction.acs_id, Arc::clone(&transaction));
        if let Some(seen) = memory.requests.get_mut(&transaction.server_id) {
            seen.answer = Some(fields.clone());
            seen.transaction = Some(Arc::clone(&transaction));
        }
    }
    follow_up(world, transaction);
    Reply::Message(MessageKind::ARes, fields)
}

/// What the card asks for, as far as channel, version and request allow it.
fn possible(answer: Answer, request: &Fields) -> Answer {
    let is_first_version = text(request, "messageVersion") == Some("2.1.0");
    let wants_decoupled = wants_decoupled(request);
    let unavailable = |reason, in_first_version| {
        let reason = if is_first_version {
            in_first_version
        } else {
            reason
        };
        Answer::Final(Ending {
            status: "U",
            reason: Some(reason),
        })
    };
    match answer {
        Answer::Challenge(challenge) if Channel::of(request) == Channel::Merchant => {
            match wants_decoupled {
                true => Answer::Decoupled(Decoupled::After(challenge.ending)),
                false => unavailable("23", "21"),
            }
        }
        Answer::Decoupled(_) if !wants_decoupled => unavailable("23", "12"),
        Answer::Decoupled(Decoupled::TooLittleTime) => Answer::Final(Ending {
            status: "N",
            reason: Some("25"),
        }),
        Answer::Final(Ending { status: "I", .. }) if is_first_version => unavailable("12", "12"),
        Answer::Final(Ending {
            status,
            reason: Some(reason),
        }) if is_first_version && reason > "21" => Answer::Final(Ending {
            status,
            reason: Some("14"),
        }),
        other => other,
    }
}

/// Later versions ask with more than a yes: as a fallback, or as one of both.
fn wants_decoupled(request: &Fields) -> bool {
    let asked = text(request, "threeDSRequestorDecReqInd");
    text(request, "messageVersion") != Some("2.1.0") && matches!(asked, Some("Y" | "F" | "B"))
}

fn compose(world: &World, transaction: &Transaction, request: &Fields, extra: Extra) -> Fields {
    let mut fields = Fields::new();
    put(&mut fields, "messageType", "ARes");
    put(&mut fields, "messageVersion", transaction.version.as_str());
    put(
        &mut fields,
        "threeDSServerTransID",
        transaction.server_id.as_str(),
    );
    put(&mut fields, "acsTransID", transaction.acs_id.as_str());
    put(&mut fields, "dsTransID", transaction.directory_id.as_str());
    put(&mut fields, "acsReferenceNumber", "sim-acs");
    put(
        &mut fields,
        "dsReferenceNumber",
        format!("sim-ds-{}", transaction.network),
    );
    put(&mut fields, "acsOperatorID", "sim-operator");
    put_some(&mut fields, "sdkTransID", transaction.sdk_id.as_deref());
    match &transaction.answer {
        Answer::Challenge(challenge) => put_challenge(&mut fields, world, transaction, challenge),
        Answer::Decoupled(_) => put_decoupled(&mut fields, transaction),
        Answer::Final(ending) => put_final(&mut fields, transaction, ending, request),
        Answer::Silence | Answer::Erro(_) => {}
    }
    if extra.has_cardholder_info {
        put_information(&mut fields, &transaction.version, INFORMATION);
    }
    put_trust_list(&mut fields, transaction, request);
    put_extensions(&mut fields, transaction, extra);
    fields
}

fn put_final(fields: &mut Fields, transaction: &Transaction, ending: &Ending, request: &Fields) {
    put(fields, "transStatus", ending.status);
    put_some(fields, "transStatusReason", ending.reason);
    put_some(
        fields,
        "eci",
        networks::eci(transaction.network, ending.status),
    );
    if matches!(ending.status, "Y" | "A") {
        put(
            fields,
            "authenticationValue",
            transaction.authentication_value(),
        );
    }
    if wants_decoupled(request) {
        put(fields, "acsDecConInd", "N");
    }
}

fn put_challenge(
    fields: &mut Fields,
    world: &World,
    transaction: &Transaction,
    challenge: &Challenge,
) {
    put(fields, "transStatus", "C");
    let mandated = if challenge.is_mandated { "Y" } else { "N" };
    put(fields, "acsChallengeMandated", mandated);
    put_challenge_type(fields, transaction);
    if transaction.channel == Channel::App {
        put(fields, "acsRenderingType", rendering(&transaction.version));
        put(fields, "acsSignedContent", SIGNED_CONTENT);
    } else {
        put(fields, "acsURL", format!("{}/acs/challenge", world.acs_url));
    }
}

fn put_decoupled(fields: &mut Fields, transaction: &Transaction) {
    put(fields, "transStatus", "D");
    put(fields, "acsChallengeMandated", "N");
    put(fields, "acsDecConInd", "Y");
    put_challenge_type(fields, transaction);
    put_information(fields, &transaction.version, APPROVE_INFORMATION);
}

fn put_information(fields: &mut Fields, version: &str, information: &str) {
    match version {
        "2.3.1" => put(fields, "cardholderInfo", json!({"text": information})),
        _ => put(fields, "cardholderInfo", information),
    }
}

/// Preference 08 relies on the list, 09 asks to be put on it, and 3RI 10 asks what it says.
fn put_trust_list(fields: &mut Fields, transaction: &Transaction, request: &Fields) {
    if transaction.version == "2.1.0" {
        return;
    }
    let relies = preferences(request).any(|code| code == "08");
    if relies || text(request, "threeRIInd") == Some("10") {
        put_trust(fields, &transaction.version, "Y");
    } else if transaction.wants_trust {
        put_trust(fields, &transaction.version, "P");
    }
}

fn put_extensions(fields: &mut Fields, transaction: &Transaction, extra: Extra) {
    let mut extensions: Vec<Value> = Vec::new();
    let unknown = |critical: bool| {
        json!({
            "name": "Simulated extension",
            "id": "A000000999_SIM-UNKNOWN",
            "criticalityIndicator": critical,
            "data": {"note": "nobody knows this extension"},
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
    if extra.has_plain_extension {
        extensions.push(unknown(false));
    }
    if extra.has_critical_extension {
        extensions.push(unknown(true));
    }
    if !extensions.is_empty() {
        put(fields, "messageExtension", extensions);
    }
}

/// What happens after the ARes without anybody doing anything.
fn follow_up(world: &Arc<World>, transaction: Arc<Transaction>) {
    let delay = world.decoupled_delay;
    match (&transaction.answer, transaction.channel) {
        // The cardholder's app talks to the issuer without us: its challenge ends by itself.
        (Answer::Challenge(challenge), Channel::App) => {
            let outcome = Outcome::unattended(challenge);
            end_after(world, transaction, delay, outcome);
        }
        (Answer::Challenge(_), _) => await_first_request(world, transaction),
        (Answer::Decoupled(Decoupled::After(ending)), _) => {
            let outcome = Outcome::of(*ending);
            end_after(world, transaction, delay, outcome);
        }
        _ => {}
    }
}

fn end_after(world: &Arc<World>, transaction: Arc<Transaction>, delay: Duration, outcome: Outcome) {
    let shared = Arc::clone(world);
    world.later(async move {
        sleep(delay).await;
        let stage = Stage::Ended(outcome.browser_status());
        conclude(&shared, &transaction, outcome, stage).await;
    });
}

/// Without a CReq in time the challenge has failed: nobody is going to see it.
fn await_first_request(world: &Arc<World>, transaction: Arc<Transaction>) {
    let shared = Arc::clone(world);
    world.later(async move {
        sleep(shared.creq_timeout).await;
        let outcome = Outcome::failed("14", Some(NOT_STARTED));
        conclude(&shared, &transaction, outcome, Stage::TimedOut).await;
    });
}
