//! Creates sessions: finds the card's networks, and stores the session.

use std::time::Duration;

use cloakroom_core::access::{ApplicationKind, Permission};
use cloakroom_core::audit::{EntityKind, Entry, Operation};
use cloakroom_core::caller::Caller;
use cloakroom_core::events::EventKind;
use cloakroom_core::idempotency::ResponseTemplate;
use cloakroom_platform::api::FieldError;
use cloakroom_platform::config::BaseUrl;
use cloakroom_platform::ids;
use jiff::Timestamp;

use super::card::{self, DecryptedCard};
use super::new_session::{ClientInfo, NewSession, ValidatedSession};
use super::sealed::{self, SideEffects};
use super::session::{CardReference, Facts, Session};
use super::{Error, require_threeds};
use crate::card_testing;
use crate::networks::{CardLookup, ErrorSource, Network, NetworkFailure, NetworkRange};
use crate::server::ThreedsServer;

/// Lifetime of an unauthenticated session whose token does not expire.
const LIFETIME: Duration = Duration::from_secs(60 * 60);

/// Creates a session for a card that a network supports. Returns once the session is durable.
pub async fn create(
    server: &ThreedsServer,
    caller: &Caller,
    new: NewSession,
    client: ClientInfo,
    template: &ResponseTemplate<'_, Session>,
) -> Result<Session, Error> {
    caller.require_plain(Permission::ThreedsSessionCreate)?;
    require_threeds(caller)?;
    require_private_key(server, caller, &new)?;
    card_testing::admit(&server.card_testing, caller).await?;
    let (validated, errors) = new.validate(caller, client);
    let reference = validated.reference.as_ref();
    let card = match reference {
        Some((_, reference)) => card::decrypt(server, caller, reference).await?,
        None => None,
    };
    let card = card.filter(|card| may_use(caller, &validated, card));
    let (Some((_, reference)), Some(card), true) =
        (validated.reference.clone(), card, errors.is_empty())
    else {
        return Err(Error::Invalid(invalid_reference(errors, reference)));
    };

    let now = server.clock.now().await?;
    let found = look_up(server, caller, &card, now).await?;
    let mut facts = facts(caller, validated, reference, &card, found.network_ranges);
    facts.refusal_group = card_testing::group_of(&server.card_testing, caller).await?;
    let mut session = Session::new(caller, found.id, now, facts);
    let end = card.expires_at.or_else(|| now.checked_add(LIFETIME).ok());
    session.columns.expires_at = end;
    session.start_detail_retention(&server.config, now);
    let entry = Entry::new(
        caller,
        Operation::Create,
        EntityKind::ThreedsSession,
        session.id,
    )
    .with_event(session.event(EventKind::ThreedsSessionCreated));
    let effects = SideEffects {
        entries: vec![entry],
        response: template.render_pending(&session)?.until(session.expires_at),
    };
    match sealed::insert(server, &session, effects).await? {
        true => Ok(session),
        false => Err(Error::Conflict(
            "A session with this ID already exists. Retry the request.",
        )),
    }
}

/// Requires a private key for sessions with a hosted page, unless the deployment allows public keys.
///
/// The page authenticates such a session, so a public key could test cards against their issuers.
fn require_private_key(
    server: &ThreedsServer,
    caller: &Caller,
    new: &NewSession,
) -> Result<(), Error> {
    let is_public = caller.application_kind == ApplicationKind::Public;
    match new.is_hosted() && is_public && !server.config.threeds.public_hosted_sessions {
        true => Err(Error::HostedByPublicKey),
        false => Ok(()),
    }
}

/// Whether a caller may create this session for this card.
///
/// A public key may use any token of its tenant if a private key has to authenticate the session. A session with a
/// hosted page needs no private key, so its card must have been created by the key's own application.
fn may_use(caller: &Caller, validated: &ValidatedSession, card: &DecryptedCard) -> bool {
    let is_public = caller.application_kind == ApplicationKind::Public;
    validated.hosted.is_none() || !is_public || card.creator == caller.application
}

/// Adds an error for a reference without a usable card, if there are no other errors.
fn invalid_reference(
    mut errors: Vec<FieldError>,
    reference: Option<&(&'static str, CardReference)>,
) -> Vec<FieldError> {
    if let Some((field, _)) = reference
        && errors.is_empty()
    {
        errors.push(FieldError::new(
            *field,
            "must reference a card of this tenant",
        ));
    }
    errors
}

/// Looks up the card and retains the networks with a common protocol version, the primary one first.
async fn look_up(
    server: &ThreedsServer,
    caller: &Caller,
    card: &DecryptedCard,
    now: Timestamp,
) -> Result<CardLookup, Error> {
    let failed = |failure| Error::Network {
        session: None,
        failure,
    };
    let adapter = server.card_networks.of(caller.tenant_kind).ok_or_else(|| {
        let message = "No card network is configured for tenants of this kind.";
        failed(NetworkFailure::new(
            500,
            ErrorSource::ThreedsServer,
            message,
        ))
    })?;
    if adapter.sends_card_number_on_lookup() {
        // The lookup sends the card number, so its use is logged first, whatever the outcome.
        server.audit.record(vec![card.entry.clone()]).await?;
    }
    let number = card.number.expose();
    let found = adapter.look_up(number, ids::new_uuid(), now).await;
    let mut found = found.map_err(failed)?;
    if !found.network_ranges.iter().all(NetworkRange::is_valid) {
        let message = "The card range data of the network is invalid.";
        return Err(failed(NetworkFailure::new(
            500,
            ErrorSource::ThreedsServer,
            message,
        )));
    }
    let ours = server.config.threeds.versions.all();
    found
        .network_ranges
        .retain(|network_range| !network_range.versions(ours).is_empty());
    let primary = card.brand.and_then(Network::of_card_brand);
    let first = found
        .network_ranges
        .iter()
        .position(|network_range| Some(network_range.network) == primary);
    if let Some(first) = first {
        found.network_ranges[..=first].rotate_right(1);
    }
    match found.network_ranges.is_empty() {
        true => Err(failed(NetworkFailure::not_supported())),
        false => Ok(found),
    }
}

fn facts(
    caller: &Caller,
    validated: ValidatedSession,
    card_reference: CardReference,
    card: &DecryptedCard,
    network_ranges: Vec<NetworkRange>,
) -> Facts {
    let network = network_ranges
        .first()
        .map(|network_range| network_range.network);
    let brand = match (network, card.brand) {
        (Some(Network::Discover), Some("diners-club")) => "Diners Club",
        (network, _) => network.map_or("", Network::brand),
    };
    Facts {
        tenant_kind: caller.tenant_kind.into(),
        kind: validated.kind,
        card: card_reference,
        brand: brand.to_owned(),
        network_ranges,
        device: validated.device,
        device_info: validated.device_info,
        web_challenge_mode: validated.web_challenge_mode,
        metadata: validated.metadata,
        is_method_completed: false,
        is_challenge_completed: false,
        params: None,
        ares: None,
        result: None,
        decoupled_timed_out: false,
        hosted: validated.hosted,
        refusal_group: None,
    }
}

/// The URL that the issuer's page posts a notification to.
pub fn notification_url(base: &BaseUrl, session: &Session, path: &str) -> String {
    format!("{}/3ds/sessions/{}/{path}", base.as_str(), session.id)
}
