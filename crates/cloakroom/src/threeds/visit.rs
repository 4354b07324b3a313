//! What the cardholder's browser does to a session. None of it decides anything.

use std::time::Duration;

use cloakroom_emv3ds::codes::TransStatus;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::session::{Hosted, Session};
use super::state::{Event, State};
use super::store::{self, Told};
use super::{Error, find, receive};
use crate::audit::{EntityKind, Entry, Operation};
use crate::threeds_requests::DeviceInfo;
use crate::vault::Vault;

/// The result comes first, by the protocol; a slow network gets some time more.
const PATIENCE: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(100);
const ATTEMPTS: usize = 5;
const CHANGED: &str = "The session changed at the same moment.";

/// Finds a session by its id alone, which is what an issuer's page knows of it.
pub(crate) async fn find_by_id(vault: &Vault, id: &str) -> Result<Session, Error> {
    let id: Uuid = id.parse().map_err(|_| Error::NotFound)?;
    store::find_by_id(vault, &id).await?.ok_or(Error::NotFound)
}

/// Takes down that the issuer has seen the browser: once, and only before anything is authenticated.
/// Afterwards it changes nothing.
pub(crate) async fn complete_method(vault: &Vault, session: &Session) -> Result<(), Error> {
    let mut session = session.clone();
    for _ in 0..ATTEMPTS {
        let Ok(mut next) = session.step(Event::MethodCompleted) else {
            return Ok(());
        };
        next.facts.is_method_completed = true;
        let told = by_browser(&next, Operation::CompleteMethod);
        if store::advance(vault, &next, told).await? {
            return Ok(());
        }
        session = find::again(vault, &session).await?;
    }
    Ok(())
}

/// Takes down that the browser is back from the challenge: once, whether the result is there or not.
pub(crate) async fn complete_challenge(vault: &Vault, session: Session) -> Result<Session, Error> {
    let mut session = await_result(vault, session).await?;
    for _ in 0..ATTEMPTS {
        let next = session.step(Event::ChallengeReturned).ok();
        let next = next.filter(|_| !session.facts.is_challenge_completed);
        let Some(mut next) = next else {
            return Ok(session);
        };
        next.facts.is_challenge_completed = true;
        let told = by_browser(&next, Operation::CompleteChallenge);
        if store::advance(vault, &next, told).await? {
            return Ok(next);
        }
        session = find::again(vault, &session).await?;
    }
    Ok(session)
}

/// Waits a little for the network to tell the result of a challenge.
pub(crate) async fn await_result(vault: &Vault, session: Session) -> Result<Session, Error> {
    let deadline = Instant::now() + PATIENCE;
    let mut session = session;
    loop {
        if session.state() != State::Challenge || Instant::now() > deadline {
            return Ok(session);
        }
        session = receive::ask(vault, session).await?;
        sleep(PAUSE).await;
        session = find::again(vault, &session).await?;
    }
}

/// Gives the hosted page that is about to be shown a nonce of its own; `None` when it is too late for it.
pub(crate) async fn serve_page(
    vault: &Vault,
    session: &Session,
    nonce: &str,
) -> Result<Option<()>, Error> {
    let Ok(mut next) = session.step(Event::PageServed) else {
        return Ok(None);
    };
    next.facts.hosted = next.facts.hosted.map(|hosted| {
        Box::new(Hosted {
            nonce: Some(nonce.to_owned()),
            ..*hosted
        })
    });
    advance(vault, next).await.map(|_| Some(()))
}

/// Takes over what the hosted page tells of its browser.
pub(crate) async fn tell_browser(
    vault: &Vault,
    session: &Session,
    device: DeviceInfo,
) -> Result<Session, Error> {
    let broken = device.check_browser();
    if !broken.is_empty() {
        return Err(Error::Invalid(broken));
    }
    let next = session.step(Event::DeviceTold);
    let mut next = next.map_err(|_| Error::Conflict("The session is authenticated already."))?;
    next.facts.device_info = Some(device);
    advance(vault, next).await
}

impl Session {
    /// Whether it was successful, as the network says; nothing while it has not said so.
    pub fn outcome(&self) -> Option<bool> {
        let status = self.status()?;
        let is_successful = matches!(status, TransStatus::Successful | TransStatus::Attempted);
        status.is_final().then_some(is_successful)
    }
}

fn by_browser(session: &Session, operation: Operation) -> Told<'static> {
    let entity = EntityKind::ThreedsSession;
    let entry = Entry::by_system(session.tenant.number, operation, entity, session.id);
    Told::of(vec![entry])
}

async fn advance(vault: &Vault, next: Session) -> Result<Session, Error> {
    let told = Told::of(Vec::new());
    match store::advance(vault, &next, told).await? {
        true => Ok(next),
        false => Err(Error::Conflict(CHANGED)),
    }
}
