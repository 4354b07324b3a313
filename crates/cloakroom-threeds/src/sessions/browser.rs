//! Transitions caused by the cardholder's browser. None of them affects the outcome.

use std::time::Duration;

use cloakroom_core::audit::{EntityKind, Entry, Operation};
use cloakroom_core::events::EventKind;
use cloakroom_emv3ds::codes::TransStatus;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::sealed::{self, SideEffects};
use super::session::Session;
use super::state::{Event, State};
use super::{Error, find, receive};
use crate::card_testing;
use crate::requests::DeviceInfo;
use crate::server::ThreedsServer;

/// How long to wait for the RReq, which the protocol sends before the browser returns.
const WAIT_MAX: Duration = Duration::from_secs(3);
const POLL_INTERVAL: Duration = Duration::from_millis(100);
const ATTEMPTS: usize = 5;
const CHANGED: &str = "The session was modified concurrently; retry the request.";

/// Finds a session by its ID alone, which is all that an issuer's page knows.
pub async fn find_by_id(server: &ThreedsServer, id: &str) -> Result<Session, Error> {
    let id: Uuid = id.parse().map_err(|_| Error::NotFound)?;
    sealed::find_by_id(server, &id)
        .await?
        .ok_or(Error::NotFound)
}

/// Records that the 3DS Method completed. Has no effect after the first time, or once authentication has started.
pub async fn complete_method(server: &ThreedsServer, session: &Session) -> Result<(), Error> {
    let mut session = session.clone();
    for _ in 0..ATTEMPTS {
        let Ok(mut next) = session.apply(Event::MethodCompleted) else {
            return Ok(());
        };
        next.facts.is_method_completed = true;
        let effects = by_browser(
            &next,
            Operation::CompleteMethod,
            EventKind::ThreedsMethodCompleted,
        );
        if sealed::advance(server, &next, effects).await? {
            return Ok(());
        }
        session = find::reload(server, &session).await?;
    }
    Ok(())
}

/// Records once that the browser returned from the challenge, whether or not the result was received.
pub async fn complete_challenge(
    server: &ThreedsServer,
    session: Session,
) -> Result<Session, Error> {
    let mut session = await_result(server, session).await?;
    for _ in 0..ATTEMPTS {
        let next = session.apply(Event::BrowserReturned).ok();
        let next = next.filter(|_| !session.facts.is_challenge_completed);
        let Some(mut next) = next else {
            return Ok(session);
        };
        next.facts.is_challenge_completed = true;
        let effects = by_browser(
            &next,
            Operation::CompleteChallenge,
            EventKind::ThreedsChallengeCompleted,
        );
        if sealed::advance(server, &next, effects).await? {
            return Ok(next);
        }
        session = find::reload(server, &session).await?;
    }
    Ok(session)
}

/// Waits up to `WAIT_MAX` for the result of a challenge.
pub async fn await_result(server: &ThreedsServer, session: Session) -> Result<Session, Error> {
    let deadline = Instant::now() + WAIT_MAX;
    let mut session = session;
    loop {
        if session.state() != State::Challenge || Instant::now() > deadline {
            return Ok(session);
        }
        session = receive::fetch_result(server, session).await?;
        sleep(POLL_INTERVAL).await;
        session = find::reload(server, &session).await?;
    }
}

/// Issues `nonce` to the hosted page that is about to be served. Returns false if another page has started or the
/// session is already authenticated; the page then needs the nonce stored in its browser.
pub async fn issue_nonce(
    server: &ThreedsServer,
    session: &Session,
    nonce: &str,
) -> Result<bool, Error> {
    let Ok(mut next) = session.apply(Event::PageServed) else {
        return Ok(false);
    };
    match &mut next.facts.hosted {
        Some(hosted) if !hosted.has_begun => hosted.nonce = Some(nonce.to_owned()),
        _ => return Ok(false),
    }
    advance(server, next).await.map(|_| true)
}

/// Stores the device data that the hosted page reports, and binds the session to that page.
pub async fn store_browser_info(
    server: &ThreedsServer,
    session: &Session,
    device: DeviceInfo,
    refusal_group: Option<String>,
) -> Result<Session, Error> {
    let errors = device.check_browser();
    if !errors.is_empty() {
        return Err(Error::Invalid(errors));
    }
    let next = session.apply(Event::DeviceReported);
    let mut next = next.map_err(|_| Error::Conflict("The session is already authenticated."))?;
    next.facts.device_info = Some(device);
    next.facts.refusal_group = refusal_group;
    if let Some(hosted) = &mut next.facts.hosted {
        hosted.has_begun = true;
    }
    advance(server, next).await
}

impl Session {
    /// Whether the authentication succeeded; `None` until the network reports a final status.
    pub fn outcome(&self) -> Option<bool> {
        let status = self.status()?;
        let is_successful = matches!(status, TransStatus::Successful | TransStatus::Attempted);
        status.is_final().then_some(is_successful)
    }

    /// Counts an issuer decline toward the limit of the public key and client address that created the session.
    pub(super) async fn count_refusal(&self, server: &ThreedsServer) {
        if let (Some(group), Some(false)) = (&self.facts.refusal_group, self.outcome()) {
            card_testing::count(&server.card_testing, group).await;
        }
    }
}

fn by_browser(session: &Session, operation: Operation, kind: EventKind) -> SideEffects<'static> {
    let entity = EntityKind::ThreedsSession;
    let entry = Entry::by_system(session.tenant.number, operation, entity, session.id);
    SideEffects::audit_only(vec![entry.with_event(session.notification(kind))])
}

async fn advance(server: &ThreedsServer, next: Session) -> Result<Session, Error> {
    let effects = SideEffects::audit_only(Vec::new());
    match sealed::advance(server, &next, effects).await? {
        true => Ok(next),
        false => Err(Error::Conflict(CHANGED)),
    }
}
