//! Concludes transactions and delivers their RReq to the 3DS Server.

use std::sync::Arc;
use std::time::Duration;

use cloakroom_emv3ds::{ErrorCode, MessageKind};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::behavior::{Decision, ResultDelivery};
use crate::rreq::{CANCEL_NOT_STARTED, Outcome, build_rreq};
use crate::state::SharedState;
use crate::transaction::{Stage, Transaction, new_id};
use crate::vendor::is_vendor_results_url;
use crate::wire::{self, Fields, put};

/// Delivery attempts before the cardholder's browser continues.
const ATTEMPTS: usize = 2;
/// Further attempts in the background with exponential backoff, because the 3DS Server gets the result
/// of a challenge only from the RReq.
const LATER_ATTEMPTS: usize = 6;
const RETRY_DELAY: Duration = Duration::from_millis(300);
/// Delay of a late result after the CRes.
const LATE_RESULT_DELAY: Duration = Duration::from_secs(1);
const REPLIES_MAX: usize = 20;

/// Ends a transaction and delivers its result as its card defines. Returns false if it had already
/// ended.
pub(crate) async fn conclude(
    state: &Arc<SharedState>,
    transaction: &Arc<Transaction>,
    outcome: Outcome,
    stage: Stage,
) -> bool {
    let result = {
        let mut progress = transaction.progress();
        let is_over = match progress.stage {
            Stage::Completed(_) | Stage::TimedOut => true,
            // A presented challenge cannot fail because of a missing CReq.
            Stage::Presented => outcome.cancel == Some(CANCEL_NOT_STARTED),
            Stage::AwaitingCreq => false,
        };
        if is_over {
            return false;
        }
        progress.stage = stage;
        let result = build_rreq(transaction, outcome, progress.attempts);
        progress.result = Some(result.clone());
        result
    };
    let delivery = match &transaction.decision {
        Decision::Challenge(challenge) => challenge.delivery,
        _ => ResultDelivery::BeforeCres,
    };
    match delivery {
        ResultDelivery::BeforeCres | ResultDelivery::WithoutCres => {
            deliver(state, transaction, result).await;
        }
        ResultDelivery::WrongDsTransId => {
            let mut wrong = result;
            put(&mut wrong, "dsTransID", new_id());
            deliver(state, transaction, wrong).await;
        }
        ResultDelivery::AfterCres => {
            let (shared, transaction) = (Arc::clone(state), Arc::clone(transaction));
            state.spawn(async move {
                sleep(LATE_RESULT_DELAY).await;
                deliver(&shared, &transaction, result).await;
            });
        }
    }
    true
}

async fn deliver(state: &Arc<SharedState>, transaction: &Arc<Transaction>, result: Fields) {
    let text = match wire::serialize(MessageKind::RReq, &result) {
        Ok(text) => text,
        Err(fault) => {
            record_reply(transaction, json!({"failure": fault.to_string()}));
            return;
        }
    };
    if is_vendor_results_url(&transaction.results_url) {
        return;
    }
    for attempt in 1..=ATTEMPTS {
        if send_once(state, transaction, &text).await {
            return;
        }
        if attempt < ATTEMPTS {
            sleep(RETRY_DELAY).await;
        }
    }
    let (shared, transaction) = (Arc::clone(state), Arc::clone(transaction));
    state.spawn(async move {
        let mut delay = RETRY_DELAY;
        for _ in 0..LATER_ATTEMPTS {
            delay *= 2;
            sleep(delay).await;
            if send_once(&shared, &transaction, &text).await {
                return;
            }
        }
    });
}

/// Sends a result once. Returns whether no further attempt is needed.
async fn send_once(state: &SharedState, transaction: &Transaction, text: &str) -> bool {
    let reply = state.send_result(transaction, text, true).await;
    let is_conclusive = is_conclusive(&reply);
    record_reply(transaction, reply);
    is_conclusive
}

/// Whether the 3DS Server replied with anything but a transient failure.
fn is_conclusive(reply: &Value) -> bool {
    reply
        .get("message")
        .is_some_and(|message| message["errorCode"] != json!(ErrorCode::TransientFailure.code()))
}

/// Records a reply for the control endpoints.
fn record_reply(transaction: &Transaction, reply: Value) {
    let mut progress = transaction.progress();
    if progress.replies.len() < REPLIES_MAX {
        progress.replies.push(reply);
    }
}
