//! Receiving the result of a challenge: the only word about it that counts.

use std::time::Duration;

use cloakroom_emv3ds::codes::AuthenticationCategory;
use cloakroom_emv3ds::{
    Component, ErrorCode, Fault, Message, MessageKind, RReq, RRes, Version, read, write,
};
use rustls_pki_types::CertificateDer;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::session::Session;
use super::state::{Event, State};
use super::store::{self, Told};
use super::{Error, find};
use crate::audit::{EntityKind, Entry, Operation};
use crate::vault::Vault;

/// How long a result waits for the answer that it follows; whoever sent it waits for three seconds.
const PATIENCE: Duration = Duration::from_millis(2_000);
const PAUSE: Duration = Duration::from_millis(50);
const RECEIVED: &str = "01";

/// Takes a result that somebody with these certificates tells, and answers in the protocol.
///
/// The receipt is given when the result is durable, and the same result again gets the same receipt.
pub async fn receive(vault: &Vault, chain: &[CertificateDer<'_>], text: &[u8]) -> String {
    let versions = vault.config.threeds.versions.all();
    let mut version = versions.last().copied().unwrap_or(Version::V2_2_0);
    let answer = match read(text, &[MessageKind::RReq], versions) {
        Ok(Message::RReq(result)) => {
            version = result.message_version;
            take(vault, chain, *result).await
        }
        Ok(_) => Err(Fault::new(ErrorCode::MessageInvalid, "messageType")),
        Err(fault) => Err(fault),
    };
    let answer = match answer {
        Ok(receipt) => Message::RRes(receipt),
        Err(fault) => {
            metrics::counter!("threeds_results_refused_total", "code" => fault.code.code())
                .increment(1);
            Message::Erro(fault.erro(Component::S, version))
        }
    };
    write(&answer).unwrap_or_default()
}

async fn take(vault: &Vault, chain: &[CertificateDer<'_>], result: RReq) -> Result<RRes, Fault> {
    let refuse =
        |code, detail: &str| Fault::new(code, detail).about(MessageKind::RReq, result.ids());
    let unknown = || refuse(ErrorCode::TransactionUnknown, "threeDSServerTransID");
    let busy = || refuse(ErrorCode::TransientFailure, "the result could not be kept");
    let id: Uuid = result
        .threeds_server_trans_id
        .parse()
        .map_err(|_| unknown())?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        let session = store::find_by_id(vault, &id).await.map_err(|_| busy())?;
        let session = session.ok_or_else(unknown)?;
        if session.state() == State::Authenticating && Instant::now() < deadline {
            sleep(PAUSE).await;
            continue;
        }
        if !may_tell(vault, &session, chain) {
            return Err(refuse(ErrorCode::AccessDenied, "the certificate"));
        }
        match session.state() {
            State::Challenge | State::Decoupled => {
                concludes(&result, &session)?;
                let kept = keep(vault, &session, result.clone()).await;
                match kept.map_err(|_| busy())? {
                    Some(_) => return Ok(receipt(&result)),
                    // Something else happened to the session at the same moment: look again.
                    None if Instant::now() < deadline => {}
                    None => return Err(busy()),
                }
            }
            State::Authenticating => return Err(busy()),
            State::Final if session.facts.result.as_deref() == Some(&result) => {
                return Ok(receipt(&result));
            }
            State::Final if session.facts.ran_out => {
                return Err(refuse(ErrorCode::TimedOut, "the time for it is over"));
            }
            _ => {
                return Err(refuse(
                    ErrorCode::TransactionInvalid,
                    "no result is awaited",
                ));
            }
        }
    }
}

/// Whether a result is one of what was asked and answered: for a payment, no result of something else.
fn concludes(result: &RReq, session: &Session) -> Result<(), Fault> {
    let wrong =
        |field| Fault::new(ErrorCode::FormatInvalid, field).about(MessageKind::RReq, result.ids());
    let (Some(asked), Some(answer)) = (&session.facts.asked, &session.facts.answer) else {
        return Err(wrong("threeDSServerTransID"));
    };
    let category = match asked.is_payment {
        true => AuthenticationCategory::Payment,
        false => AuthenticationCategory::NonPayment,
    };
    if result.message_category != category.code() {
        return Err(wrong("messageCategory"));
    }
    if result.trans_status.is_some_and(|status| !status.is_final()) {
        return Err(wrong("transStatus"));
    }
    result.concludes(answer, session.channel())
}

/// Results come from the network that was asked, and from nobody else.
fn may_tell(vault: &Vault, session: &Session, chain: &[CertificateDer<'_>]) -> bool {
    let adapter = vault.card_networks.of(session.facts.tenant_kind.into());
    let asked = session.facts.asked.as_ref();
    let directory = match (adapter, asked) {
        (Some(adapter), Some(asked)) => adapter.directory(asked.network),
        _ => None,
    };
    directory.is_some_and(|directory| directory.is_sent_by(chain))
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

/// Keeps a result; nothing if the session was changed at the same moment.
async fn keep(vault: &Vault, session: &Session, result: RReq) -> Result<Option<Session>, Error> {
    let Ok(mut next) = session.step(Event::ResultTold) else {
        return Ok(None);
    };
    next.facts.result = Some(Box::new(result));
    next.standing.modified_at = Some(vault.audit.now().await?);
    next.standing.due_at = None;
    let entry = Entry::by_system(
        next.tenant.number,
        Operation::ReceiveResult,
        EntityKind::ThreedsSession,
        next.id,
    );
    let told = Told::of(vec![entry]);
    let is_kept = store::advance(vault, &next, told).await?;
    Ok(is_kept.then_some(next))
}

/// Asks for a result where nobody tells it by himself; the session as it is if there is none yet.
pub(super) async fn ask(vault: &Vault, session: Session) -> Result<Session, Error> {
    let adapter = vault.card_networks.of(session.facts.tenant_kind.into());
    let Some(adapter) = adapter else {
        return Ok(session);
    };
    let told = adapter.result(session.id).await;
    let told = told.map_err(|trouble| Error::Trouble {
        session: Some(session.id),
        trouble,
    })?;
    match told {
        Some(result) if concludes(&result, &session).is_ok() => {
            match keep(vault, &session, result).await? {
                Some(next) => Ok(next),
                None => find::again(vault, &session).await,
            }
        }
        _ => Ok(session),
    }
}
