//! The browser challenge: CReq, cardholder input and CRes.

use std::sync::Arc;
use std::time::Duration;

use axum::Form;
use axum::extract::State;
use axum::response::Response;
use cloakroom_emv3ds::{Component, MessageKind, Version, base64url};
use serde::Deserialize;
use serde_json::Value;
use tokio::time::sleep;

use super::pages;
use crate::behavior::{Challenge, Decision, Page, ResultDelivery};
use crate::results::conclude;
use crate::rreq::Outcome;
use crate::state::SharedState;
use crate::transaction::{Channel, Stage, Transaction};
use crate::wire::{self, Fields, protocol_fault, put, text};

const VALID_CODE: &str = "1234";
const ATTEMPTS_MAX: u8 = 3;
/// Maximum duration of a challenge.
const CHALLENGE_TIMEOUT: Duration = Duration::from_secs(600);
const SESSION_DATA_MAX: usize = 1024;

#[derive(Deserialize)]
pub(super) struct ChallengeForm {
    creq: String,
    #[serde(rename = "threeDSSessionData")]
    session_data: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct SubmitForm {
    transaction: String,
    action: String,
    #[serde(default)]
    code: String,
}

/// Handles the CReq: shows the card's challenge page, or completes the challenge without one.
pub(super) async fn begin(
    State(state): State<Arc<SharedState>>,
    Form(form): Form<ChallengeForm>,
) -> Response {
    state.count_received("CReq");
    let Ok(decoded) = base64url::decode(&form.creq) else {
        return pages::error("The challenge request is not base64url.");
    };
    let fields = wire::parse_object(&decoded).unwrap_or_default();
    let found = text(&fields, "acsTransID").and_then(|id| state.transaction(id));
    let Some((transaction, challenge)) = found.as_ref().and_then(browser_challenge) else {
        return pages::error("The challenge request does not match a challenge.");
    };
    let read = cloakroom_emv3ds::read(&decoded, &[MessageKind::CReq], &Version::ALL);
    let fault = match read {
        Err(fault) => Some(fault),
        Ok(_) => mismatch(transaction, &fields).map(|name| protocol_fault("305", name)),
    };
    if let Some(fault) = fault {
        return post_erro(
            transaction,
            wire::erro_fields(fault, Component::A, Some(&fields)),
        );
    }
    let session_data = form
        .session_data
        .filter(|data| data.len() <= SESSION_DATA_MAX);
    let is_first = transaction.progress().stage == Stage::AwaitingCreq;
    let is_late = transaction.started_at.elapsed() > state.creq_timeout;
    if let Some(response) = reject_unexpected(transaction, session_data, is_late, &fields) {
        return response;
    }
    if is_first {
        schedule_timeout(&state, transaction);
    }
    match challenge.page {
        Page::Automatic | Page::Canceled => {
            complete(
                &state,
                transaction,
                challenge,
                Outcome::without_interaction(challenge),
            )
            .await
        }
        page => pages::challenge(transaction, page, None),
    }
}

/// Handles the cardholder's input.
pub(super) async fn submit(
    State(state): State<Arc<SharedState>>,
    Form(form): Form<SubmitForm>,
) -> Response {
    let found = state.transaction(&form.transaction);
    let Some((transaction, challenge)) = found.as_ref().and_then(browser_challenge) else {
        return pages::error("The input does not match a challenge.");
    };
    let attempts = {
        let mut progress = transaction.progress();
        match progress.stage {
            Stage::Presented => {}
            Stage::Completed(status) => {
                return completion_page(transaction, challenge, status, &progress.session_data);
            }
            Stage::AwaitingCreq | Stage::TimedOut => {
                return pages::error("The challenge is not in progress.");
            }
        }
        progress.attempts = progress.attempts.saturating_add(1);
        progress.attempts
    };
    let outcome = match (form.action.as_str(), challenge.page) {
        ("cancel", _) => Outcome::failed("01", Some("01")),
        ("approve", Page::OutOfBand) => Outcome::of(challenge.final_status),
        ("submit", Page::Password | Page::OneTimeCode) if form.code.trim() == VALID_CODE => {
            Outcome::of(challenge.final_status)
        }
        _ if attempts >= ATTEMPTS_MAX => Outcome::failed("19", None),
        _ => return pages::challenge(transaction, challenge.page, Some(ATTEMPTS_MAX - attempts)),
    };
    complete(&state, transaction, challenge, outcome).await
}

fn browser_challenge(transaction: &Arc<Transaction>) -> Option<(&Arc<Transaction>, &Challenge)> {
    match (&transaction.decision, transaction.channel) {
        (Decision::Challenge(challenge), Channel::Browser) => Some((transaction, challenge)),
        _ => None,
    }
}

fn mismatch(transaction: &Transaction, request: &Fields) -> Option<&'static str> {
    if text(request, "messageVersion") != Some(&transaction.version) {
        return Some("messageVersion");
    }
    let is_same = text(request, "threeDSServerTransID") == Some(&transaction.server_id);
    (!is_same).then_some("threeDSServerTransID")
}

/// Accepts the first CReq within the timeout, and repeated ones after a page reload. Returns the
/// response for any other CReq.
fn reject_unexpected(
    transaction: &Transaction,
    session_data: Option<String>,
    is_late: bool,
    request: &Fields,
) -> Option<Response> {
    let mut progress = transaction.progress();
    match progress.stage {
        Stage::AwaitingCreq if !is_late => {
            progress.stage = Stage::Presented;
            progress.session_data = session_data;
            None
        }
        Stage::Presented => None,
        Stage::Completed(status) => {
            let session_data = progress.session_data.clone();
            Some(post_cres(transaction, status, session_data.as_deref()))
        }
        Stage::AwaitingCreq | Stage::TimedOut => {
            let fault = protocol_fault("402", "the challenge was not started in time");
            let erro = wire::erro_fields(fault, Component::A, Some(request));
            Some(post_erro(transaction, erro))
        }
    }
}

fn schedule_timeout(state: &Arc<SharedState>, transaction: &Arc<Transaction>) {
    let (shared, transaction) = (Arc::clone(state), Arc::clone(transaction));
    state.spawn(async move {
        sleep(CHALLENGE_TIMEOUT).await;
        let outcome = Outcome::failed("14", Some("04"));
        conclude(&shared, &transaction, outcome, Stage::TimedOut).await;
    });
}

async fn complete(
    state: &Arc<SharedState>,
    transaction: &Arc<Transaction>,
    challenge: &Challenge,
    outcome: Outcome,
) -> Response {
    let status = outcome.browser_status();
    conclude(state, transaction, outcome, Stage::Completed(status)).await;
    if challenge.delivery != ResultDelivery::WithoutCres {
        state.count_sent("CRes");
    }
    let session_data = transaction.progress().session_data.clone();
    completion_page(transaction, challenge, status, &session_data)
}

fn completion_page(
    transaction: &Transaction,
    challenge: &Challenge,
    status: &str,
    session_data: &Option<String>,
) -> Response {
    match challenge.delivery {
        ResultDelivery::WithoutCres => pages::challenge_completed(),
        _ => post_cres(transaction, status, session_data.as_deref()),
    }
}

/// The page that posts the CRes to the 3DS Server.
fn post_cres(transaction: &Transaction, status: &str, session_data: Option<&str>) -> Response {
    let mut fields = Fields::new();
    put(&mut fields, "messageType", "CRes");
    put(&mut fields, "messageVersion", transaction.version.as_str());
    put(
        &mut fields,
        "threeDSServerTransID",
        transaction.server_id.as_str(),
    );
    put(&mut fields, "acsTransID", transaction.acs_id.as_str());
    put(&mut fields, "transStatus", status);
    if transaction.version == "2.1.0" {
        put(&mut fields, "challengeCompletionInd", "Y");
    }
    match wire::serialize(MessageKind::CRes, &fields) {
        Ok(text) => notify(transaction, "cres", &text, session_data),
        Err(_) => pages::error("The simulator built an invalid CRes."),
    }
}

/// The page that posts an Erro instead of a CRes.
fn post_erro(transaction: &Transaction, erro: Fields) -> Response {
    notify(transaction, "error", &Value::Object(erro).to_string(), None)
}

fn notify(
    transaction: &Transaction,
    field: &str,
    message: &str,
    session_data: Option<&str>,
) -> Response {
    let Some(url) = &transaction.notification_url else {
        return pages::error("The challenge has no notification URL.");
    };
    let message = base64url::encode(message.as_bytes());
    match session_data {
        Some(data) => {
            pages::auto_submit_form(url, &[(field, &message), ("threeDSSessionData", data)])
        }
        None => pages::auto_submit_form(url, &[(field, &message)]),
    }
}
