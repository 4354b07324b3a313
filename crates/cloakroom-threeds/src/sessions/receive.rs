//! Receives the result of a challenge (RReq), the only authoritative source of its outcome.

use std::time::Duration;

use cloakroom_core::audit::{EntityKind, Entry, Operation};
use cloakroom_core::events::EventKind;
use cloakroom_emv3ds::codes::AuthenticationCategory;
use cloakroom_emv3ds::{
    Component, ErrorCode, Fault, Message, MessageKind, RReq, RRes, Version, read, write,
};
use cloakroom_platform::telemetry::catalog;
use rustls_pki_types::CertificateDer;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::sealed::{self, SideEffects};
use super::session::Session;
use super::state::{Event, State};
use super::{Error, find};
use crate::server::ThreedsServer;

/// How long an RReq waits until the ARes is stored. Directory servers time out after three seconds.
const WAIT_MAX: Duration = Duration::from_millis(2_000);
const POLL_INTERVAL: Duration = Duration::from_millis(50);
const RECEIVED: &str = "01";

/// Processes a message from a client with this certificate chain, and returns an RRes or an Erro.
///
/// The RRes is returned once the result is durable. A repeated RReq gets the same RRes.
pub async fn receive(server: &ThreedsServer, chain: &[CertificateDer<'_>], text: &[u8]) -> String {
    let versions = server.config.threeds.versions.all();
    let mut version = versions.last().copied().unwrap_or(Version::V2_2_0);
    let response = match read(text, &[MessageKind::RReq], versions) {
        Ok(Message::RReq(result)) => {
            version = result.message_version;
            process(server, chain, *result).await
        }
        Ok(_) => Err(Fault::new(ErrorCode::MessageInvalid, "messageType")),
        Err(fault) => Err(fault),
    };
    let response = match response {
        Ok(receipt) => Message::RRes(receipt),
        Err(fault) => {
            catalog::THREEDS_RESULTS_REJECTED
                .with([fault.code.code()])
                .increment(1);
            Message::Erro(fault.erro(Component::S, version))
        }
    };
    write(&response).unwrap_or_default()
}

async fn process(
    server: &ThreedsServer,
    chain: &[CertificateDer<'_>],
    result: RReq,
) -> Result<RRes, Fault> {
    let reject =
        |code, detail: &str| Fault::new(code, detail).about(MessageKind::RReq, result.ids());
    let unknown = || reject(ErrorCode::TransactionUnknown, "threeDSServerTransID");
    let busy = || {
        reject(
            ErrorCode::TransientFailure,
            "the result could not be stored",
        )
    };
    let id: Uuid = result
        .threeds_server_trans_id
        .parse()
        .map_err(|_| unknown())?;
    let deadline = Instant::now() + WAIT_MAX;
    loop {
        let session = sealed::find_by_id(server, &id).await.map_err(|_| busy())?;
        let session = session.ok_or_else(unknown)?;
        if session.state() == State::Authenticating && Instant::now() < deadline {
            sleep(POLL_INTERVAL).await;
            continue;
        }
        if !is_authorized_sender(server, &session, chain) {
            return Err(reject(ErrorCode::AccessDenied, "the certificate"));
        }
        match session.state() {
            State::Challenge | State::Decoupled => {
                check_result(&result, &session)?;
                let stored = store_result(server, &session, result.clone()).await;
                match stored.map_err(|_| busy())? {
                    Some(_) => return Ok(receipt(&result)),
                    // The session was modified concurrently: reload it.
                    None if Instant::now() < deadline => {}
                    None => return Err(busy()),
                }
            }
            State::Authenticating => return Err(busy()),
            State::Final if session.facts.result.as_deref() == Some(&result) => {
                return Ok(receipt(&result));
            }
            State::Final if session.facts.decoupled_timed_out => {
                return Err(reject(ErrorCode::TimedOut, "the authentication timed out"));
            }
            _ => {
                return Err(reject(
                    ErrorCode::TransactionInvalid,
                    "no result is expected",
                ));
            }
        }
    }
}

/// Checks that a result matches the AReq and the ARes, including the message category.
fn check_result(result: &RReq, session: &Session) -> Result<(), Fault> {
    let wrong =
        |field| Fault::new(ErrorCode::FormatInvalid, field).about(MessageKind::RReq, result.ids());
    let (Some(params), Some(ares)) = (&session.facts.params, &session.facts.ares) else {
        return Err(wrong("threeDSServerTransID"));
    };
    let category = match params.is_payment {
        true => AuthenticationCategory::Payment,
        false => AuthenticationCategory::NonPayment,
    };
    if result.message_category != category.code() {
        return Err(wrong("messageCategory"));
    }
    if result.trans_status.is_some_and(|status| !status.is_final()) {
        return Err(wrong("transStatus"));
    }
    result.concludes(ares, session.channel())
}

/// Only the network that received the AReq may send the result.
fn is_authorized_sender(
    server: &ThreedsServer,
    session: &Session,
    chain: &[CertificateDer<'_>],
) -> bool {
    let adapter = server.card_networks.of(session.facts.tenant_kind.into());
    let params = session.facts.params.as_ref();
    let directory = match (adapter, params) {
        (Some(adapter), Some(params)) => adapter.directory(params.network),
        _ => None,
    };
    directory.is_some_and(|directory| directory.is_trusted_sender(chain))
}

fn receipt(result: &RReq) -> RRes {
    RRes {
        message_version: result.message_version,
        threeds_server_trans_id: result.threeds_server_trans_id.clone(),
        acs_trans_id: result.acs_trans_id.clone(),
        ds_trans_id: result.ds_trans_id.clone(),
        results_status: RECEIVED.to_owned(),
        sdk_trans_id: result.sdk_trans_id.clone(),
        message_extension: None,
    }
}

/// Stores a result; returns `None` if the session was modified concurrently.
async fn store_result(
    server: &ThreedsServer,
    session: &Session,
    result: RReq,
) -> Result<Option<Session>, Error> {
    let Ok(mut next) = session.apply(Event::ResultReceived) else {
        return Ok(None);
    };
    next.facts.result = Some(Box::new(result));
    let now = server.clock.now().await?;
    next.columns.modified_at = Some(now);
    next.columns.due_at = None;
    next.start_retention(&server.config, now);
    let mut entry = Entry::by_system(
        next.tenant.number,
        Operation::ReceiveResult,
        EntityKind::ThreedsSession,
        next.id,
    );
    if session.state() == State::Decoupled {
        entry = entry.with_event(next.notification(EventKind::ThreedsDecoupledNotification));
    }
    let effects = SideEffects::audit_only(vec![entry]);
    if !sealed::advance(server, &next, effects).await? {
        return Ok(None);
    }
    next.count_refusal(server).await;
    Ok(Some(next))
}

/// Fetches the result from a vendor, which does not send it; returns the session unchanged if there is none yet.
pub(super) async fn fetch_result(
    server: &ThreedsServer,
    session: Session,
) -> Result<Session, Error> {
    let adapter = server.card_networks.of(session.facts.tenant_kind.into());
    let Some(adapter) = adapter else {
        return Ok(session);
    };
    let fetched = adapter.fetch_result(session.id).await;
    let fetched = fetched.map_err(|failure| Error::Network {
        session: Some(session.id),
        failure,
    })?;
    match fetched {
        Some(result) if check_result(&result, &session).is_ok() => {
            match store_result(server, &session, result).await? {
                Some(next) => Ok(next),
                None => find::reload(server, &session).await,
            }
        }
        _ => Ok(session),
    }
}
