//! Authenticates a session through the card's network.

use std::time::Duration;

use cloakroom_core::access::Permission;
use cloakroom_core::audit::{EntityKind, Entry, Operation, Outcome};
use cloakroom_core::caller::Caller;
use cloakroom_core::events::EventKind;
use cloakroom_core::idempotency::ResponseTemplate;
use cloakroom_emv3ds::codes::TransStatus;
use cloakroom_emv3ds::{AReq, ARes};
use serde_json::{Map, Value};

use super::card::{self, DecryptedCard};
use super::plan::{network_failure, plan, request};
use super::sealed::{self, SideEffects};
use super::session::Session;
use super::state::{Event, State};
use super::{Error, find, require_threeds};
use crate::card_testing;
use crate::networks::{Network, NetworkFailure};
use crate::server::ThreedsServer;

/// Time after the response timeout until a session counts as lost.
const GRACE: Duration = Duration::from_secs(20);
/// Attempts to start an authentication despite concurrent modifications.
const ATTEMPTS: usize = 5;
/// Time after the decoupled authentication limit until it counts as timed out.
const DECOUPLED_GRACE: Duration = Duration::from_secs(30);

/// Sends one AReq to the network. Returns once the response is durable.
pub async fn authenticate(
    server: &ThreedsServer,
    caller: &Caller,
    id: &str,
    body: Map<String, Value>,
    template: &ResponseTemplate<'_, Session>,
) -> Result<Session, Error> {
    caller.require_plain(Permission::ThreedsSessionAuthenticate)?;
    require_threeds(caller)?;
    let session = find::load(server, caller, id).await?;
    authenticate_session(server, caller, session, &body, template).await
}

/// Authenticates a session that the caller is authorized for.
pub async fn authenticate_session(
    server: &ThreedsServer,
    caller: &Caller,
    session: Session,
    body: &Map<String, Value>,
    template: &ResponseTemplate<'_, Session>,
) -> Result<Session, Error> {
    let group = session.facts.refusal_group.as_deref();
    card_testing::admit_session(&server.card_testing, caller, session.id, group).await?;
    let card = card::decrypt(server, caller, &session.facts.card).await?;
    let card = card.ok_or(Error::NotFound)?;
    let (session, network, request) = start(server, caller, session, body, &card).await?;
    drop(card);

    let adapter = server.card_networks.of(session.facts.tenant_kind.into());
    let ares = match adapter {
        Some(adapter) => adapter.authenticate(network, &request).await,
        None => Err(NetworkFailure::not_supported()),
    };
    match ares {
        Ok(ares) => store_response(server, caller, session, ares, template).await,
        Err(failure) => Err(release(server, session, failure).await?),
    }
}

/// Moves the session to `Authenticating`, which only one request can do.
///
/// Recomputes the AReq when another transition, such as the completion of the 3DS Method, happens concurrently.
async fn start(
    server: &ThreedsServer,
    caller: &Caller,
    mut session: Session,
    body: &Map<String, Value>,
    card: &DecryptedCard,
) -> Result<(Session, Network, AReq), Error> {
    for _ in 0..ATTEMPTS {
        let now = server.clock.now().await?;
        let mut next = session
            .apply(Event::AuthenticationRequested)
            .map_err(|_| state_conflict(&session))?;
        let params = plan(server, &session, body, now)?;
        let request = request(server, &session, body, &params, card)?;
        let network = params.network;
        next.facts.params = Some(params);
        if let Some(Value::Object(metadata)) = body.get("metadata") {
            let known = next.facts.metadata.get_or_insert_default();
            known.extend(metadata.clone());
        }
        next.columns.modified_by = Some(caller.application);
        next.columns.modified_at = Some(now);
        let wait = server.config.threeds.answer_timeout + GRACE;
        next.columns.due_at = now.checked_add(wait).ok();
        // The session must not expire before the response arrives.
        next.columns.expires_at = next.columns.expires_at.max(next.columns.due_at);
        let effects = SideEffects::audit_only(vec![card.entry.clone()]);
        if sealed::advance(server, &next, effects).await? {
            return Ok((next, network, request));
        }
        session = find::reload(server, &session).await?;
    }
    Err(Error::Conflict(
        "The session was modified concurrently; retry the request.",
    ))
}

fn state_conflict(session: &Session) -> Error {
    Error::Conflict(match session.state() {
        State::Authenticating => "The session is being authenticated.",
        State::Dead => "The outcome of the authentication is unknown. Create a new session.",
        _ => "The session is already authenticated.",
    })
}

/// Stores the ARes and starts the session's retention.
async fn store_response(
    server: &ThreedsServer,
    caller: &Caller,
    session: Session,
    ares: ARes,
    template: &ResponseTemplate<'_, Session>,
) -> Result<Session, Error> {
    let is_hosted = session.facts.hosted.is_some();
    let event = match ares.trans_status {
        Some(TransStatus::Challenge) => Event::ChallengeRequired,
        Some(TransStatus::DecoupledChallenge) => Event::DecoupledRequired,
        _ => Event::Frictionless,
    };
    let now = server.clock.now().await?;
    let mut next = session.apply(event).map_err(|_| state_conflict(&session))?;
    next.facts.ares = Some(Box::new(ares));
    if let Some(hosted) = &mut next.facts.hosted {
        // The personal data in the request is no longer needed.
        hosted.authentication_request = Map::new();
    }
    next.columns.modified_at = Some(now);
    let minutes = next
        .facts
        .params
        .as_ref()
        .and_then(|params| params.decoupled_minutes);
    next.columns.due_at = match (next.state(), minutes) {
        (State::Decoupled, Some(minutes)) => {
            let wait = Duration::from_secs(u64::from(minutes) * 60) + DECOUPLED_GRACE;
            now.checked_add(wait).ok()
        }
        _ => None,
    };
    next.start_retention(&server.config, now);
    // The hosted page does not receive the authentication value.
    let outcome = match is_hosted {
        true => Outcome::Done,
        false => find::read_outcome(&next),
    };
    let entry = Entry::new(
        caller,
        Operation::Authenticate,
        EntityKind::ThreedsSession,
        next.id,
    )
    .with_event(next.event(EventKind::ThreedsAuthenticated));
    let effects = SideEffects {
        entries: vec![entry.with_outcome(outcome)],
        response: template.render_pending(&next)?.until(next.details_until),
    };
    if !sealed::advance(server, &next, effects).await? {
        return Err(state_conflict(&session));
    }
    next.count_refusal(server).await;
    Ok(next)
}

/// Releases the session for another attempt, or ends it if the outcome at the network is unknown.
async fn release(
    server: &ThreedsServer,
    session: Session,
    failure: NetworkFailure,
) -> Result<Error, Error> {
    let event = match (
        failure.is_outcome_unknown(),
        session.facts.is_method_completed,
    ) {
        (true, _) => Event::OutcomeLost,
        (false, true) => Event::RejectedAfterMethod,
        (false, false) => Event::Rejected,
    };
    let mut next = session.apply(event).map_err(|_| state_conflict(&session))?;
    next.facts.params = None;
    next.columns.due_at = None;
    if failure.is_outcome_unknown() {
        next.start_retention(&server.config, server.clock.now().await?);
    }
    let effects = SideEffects::audit_only(Vec::new());
    sealed::advance(server, &next, effects).await?;
    Ok(network_failure(&session, failure))
}
