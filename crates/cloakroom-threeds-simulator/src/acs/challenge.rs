//! The challenge in a browser: from the CReq over the cardholder's answer to the CRes.

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
use crate::behaviour::{Answer, Challenge, Delivery, Page};
use crate::results::{Outcome, conclude};
use crate::transaction::{Channel, Stage, Transaction};
use crate::wire::{self, Fields, put, refusal, text};
use crate::world::World;

const RIGHT_CODE: &str = "1234";
const ATTEMPTS_MAX: u8 = 3;
/// How long a cardholder may look at a page.
const INTERACTION: Duration = Duration::from_secs(600);
const SESSION_DATA_MAX: usize = 1024;

#[derive(Deserialize)]
pub(super) struct Request {
    creq: String,
    #[serde(rename = "threeDSSessionData")]
    session_data: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Submission {
    transaction: String,
    action: String,
    #[serde(default)]
    code: String,
}

/// Takes the CReq, and shows the page of the card or goes on at once.
pub(super) async fn begin(State(world): State<Arc<World>>, Form(form): Form<Request>) -> Response {
    world.count_received("CReq");
    let Ok(decoded) = base64url::decode(&form.creq) else {
        return pages::refused("The challenge request is not base64url.");
    };
    let fields = wire::object(&decoded).unwrap_or_default();
    let found = text(&fields, "acsTransID").and_then(|id| world.transaction(id));
    let Some((transaction, challenge)) = found.as_ref().and_then(in_browser) else {
        return pages::refused("The challenge request belongs to no challenge.");
    };
    let read = cloakroom_emv3ds::read(&decoded, &[MessageKind::CReq], &Version::ALL);
    let fault = match read {
        Err(fault) => Some(fault),
        Ok(_) => mismatch(transaction, &fields).map(|name| refusal("305", name)),
    };
    if let Some(fault) = fault {
        return give_up(transaction, wire::erro(fault, Component::A, Some(&fields)));
    }
    let session_data = form
        .session_data
        .filter(|data| data.len() <= SESSION_DATA_MAX);
    let is_first = transaction.progress().stage == Stage::Waiting;
    let is_late = transaction.began.elapsed() > world.creq_timeout;
    if let Some(response) = turn_away(transaction, session_data, is_late, &fields) {
        return response;
    }
    if is_first {
        expire_later(&world, transaction);
    }
    match challenge.page {
        Page::Automatic | Page::Cancelled => {
            end(
                &world,
                transaction,
                challenge,
                Outcome::unattended(challenge),
            )
            .await
        }
        page => pages::challenge(transaction, page, None),
    }
}

/// Takes what the cardholder typed or pressed.
pub(super) async fn submit(
    State(world): State<Arc<World>>,
    Form(form): Form<Submission>,
) -> Response {
    let found = world.transaction(&form.transaction);
    let Some((transaction, challenge)) = found.as_ref().and_then(in_browser) else {
        return pages::refused("The answer belongs to no challenge.");
    };
    let attempts = {
        let mut progress = transaction.progress();
        match progress.stage {
            Stage::Shown => {}
            Stage::Ended(status) => {
                return finished(transaction, challenge, status, &progress.session_data);
            }
            Stage::Waiting | Stage::TimedOut => {
                return pages::refused("The challenge is not open.");
            }
        }
        progress.attempts = progress.attempts.saturating_add(1);
        progress.attempts
    };
    let outcome = match (form.action.as_str(), challenge.page) {
        ("cancel", _) => Outcome::failed("01", Some("01")),
        ("approve", Page::OutOfBand) => Outcome::of(challenge.ending),
        ("submit", Page::Password | Page::OneTimeCode) if form.code.trim() == RIGHT_CODE => {
            Outcome::of(challenge.ending)
        }
        _ if attempts >= ATTEMPTS_MAX => Outcome::failed("19", None),
        _ => return pages::challenge(transaction, challenge.page, Some(ATTEMPTS_MAX - attempts)),
    };
    end(&world, transaction, challenge, outcome).await
}

fn in_browser(transaction: &Arc<Transaction>) -> Option<(&Arc<Transaction>, &Challenge)> {
    match (&transaction.answer, transaction.channel) {
        (Answer::Challenge(challenge), Channel::Browser) => Some((transaction, challenge)),
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

/// Lets the first CReq in if it is in time, and the same one again after a reload; tells what all
/// others get instead.
fn turn_away(
    transaction: &Transaction,
    session_data: Option<String>,
    is_late: bool,
    request: &Fields,
) -> Option<Response> {
    let mut progress = transaction.progress();
    match progress.stage {
        Stage::Waiting if !is_late => {
            progress.stage = Stage::Shown;
            progress.session_data = session_data;
            None
        }
        Stage::Shown => None,
        Stage::Ended(status) => {
            let session_data = progress.session_data.clone();
            Some(back(transaction, status, session_data.as_deref()))
        }
        Stage::Waiting | Stage::TimedOut => {
            let fault = refusal("402", "the challenge was not started in time");
            let erro = wire::erro(fault, Component::A, Some(request));
            Some(give_up(transaction, erro))
        }
    }
}

fn expire_later(world: &Arc<World>, transaction: &Arc<Transaction>) {
    let (shared, transaction) = (Arc::clone(world), Arc::clone(transaction));
    world.later(async move {
        sleep(INTERACTION).await;
        let outcome = Outcome::failed("14", Some("04"));
        conclude(&shared, &transaction, outcome, Stage::TimedOut).await;
    });
}

async fn end(
    world: &Arc<World>,
    transaction: &Arc<Transaction>,
    challenge: &Challenge,
    outcome: Outcome,
) -> Response {
    let status = outcome.browser_status();
    conclude(world, transaction, outcome, Stage::Ended(status)).await;
    if challenge.delivery != Delivery::ResultOnly {
        world.count_sent("CRes");
    }
    let session_data = transaction.progress().session_data.clone();
    finished(transaction, challenge, status, &session_data)
}

fn finished(
    transaction: &Transaction,
    challenge: &Challenge,
    status: &str,
    session_data: &Option<String>,
) -> Response {
    match challenge.delivery {
        Delivery::ResultOnly => pages::ended(),
        _ => back(transaction, status, session_data.as_deref()),
    }
}

/// The page that brings the CRes to the 3DS Server.
fn back(transaction: &Transaction, status: &str, session_data: Option<&str>) -> Response {
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
    match wire::checked(MessageKind::CRes, &fields) {
        Ok(text) => notify(transaction, "cres", &text, session_data),
        Err(_) => pages::refused("The simulator's CRes is wrong."),
    }
}

/// The page that brings an Erro instead of a CRes.
fn give_up(transaction: &Transaction, erro: Fields) -> Response {
    notify(transaction, "error", &Value::Object(erro).to_string(), None)
}

fn notify(
    transaction: &Transaction,
    field: &str,
    message: &str,
    session_data: Option<&str>,
) -> Response {
    let Some(url) = &transaction.notification_url else {
        return pages::refused("The challenge has no notification URL.");
    };
    let message = base64url::encode(message.as_bytes());
    match session_data {
        Some(data) => pages::posting(url, &[(field, &message), ("threeDSSessionData", data)]),
        None => pages::posting(url, &[(field, &message)]),
    }
}
