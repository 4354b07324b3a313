//! Asking the network to authenticate.

use std::time::Duration;

use cloakroom_emv3ds::codes::{AuthenticationType, DeviceChannel, TransStatus};
use cloakroom_emv3ds::{AReq, ARes, Version};
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::card::{self, OpenedCard};
use super::create::{check_metadata, notification_url};
use super::session::{Asked, Device, MethodCompletion, Session};
use super::state::{Event, State};
use super::store::{self, Told};
use super::{Error, find, require_offer};
use crate::access::Permission;
use crate::api::Broken;
use crate::audit::{EntityKind, Entry, Operation, Outcome};
use crate::caller::Caller;
use crate::card_networks::{Network, Offer, Party, Trouble};
use crate::idempotency::Reply;
use crate::threeds_requests::{self as requests, About, Card, SessionKind};
use crate::vault::Vault;

/// How long after the last moment of an answer a session counts as lost.
const GRACE: Duration = Duration::from_secs(20);
/// How often a session that changes meanwhile is looked at again.
const ATTEMPTS: usize = 5;
/// How much longer than promised a decoupled authentication may take.
const DECOUPLED_GRACE: Duration = Duration::from_secs(30);

/// Asks the network, and through it the issuer, once.
///
/// Returns when what they answered is durable.
pub async fn authenticate(
    vault: &Vault,
    caller: &Caller,
    id: &str,
    body: Map<String, Value>,
    reply: &Reply<'_, Session>,
) -> Result<Session, Error> {
    caller.require_plain(Permission::ThreedsSessionAuthenticate)?;
    require_offer(caller)?;
    let session = find::open(vault, caller, id).await?;
    ask(vault, caller, session, &body, reply).await
}

/// The same, for a session that was found, by whoever may.
pub(crate) async fn ask(
    vault: &Vault,
    caller: &Caller,
    session: Session,
    body: &Map<String, Value>,
    reply: &Reply<'_, Session>,
) -> Result<Session, Error> {
    let card = card::open(vault, caller, &session.facts.card).await?;
    let card = card.ok_or(Error::NotFound)?;
    let (session, network, request) = begin(vault, caller, session, body, &card).await?;
    drop(card);

    let adapter = vault.card_networks.of(session.facts.tenant_kind.into());
    let answer = match adapter {
        Some(adapter) => adapter.authenticate(network, &request).await,
        None => Err(Trouble::not_supported()),
    };
    match answer {
        Ok(answer) => conclude(vault, caller, session, answer, reply).await,
        Err(trouble) => Err(give_up(vault, session, trouble).await?),
    }
}

/// What will be asked, worked out before anything is changed.
fn plan(
    vault: &Vault,
    session: &Session,
    body: &Map<String, Value>,
    now: Timestamp,
) -> Result<Asked, Error> {
    let facts = &session.facts;
    let mut broken = requests::check(facts.kind, body);
    let network = named_network(session, body, &mut broken);
    match (
        session.channel(),
        facts.device_info.clone().unwrap_or_default(),
    ) {
        (DeviceChannel::ThreeRi, _) => {}
        (DeviceChannel::App, device) => broken.extend(device.check_app()),
        (DeviceChannel::Browser, device) => broken.extend(device.check_browser()),
    }
    if let Some(Value::Object(metadata)) = body.get("metadata") {
        broken.extend(check_metadata(metadata));
    }
    if !broken.is_empty() {
        return Err(Error::Invalid(broken));
    }
    let offer = session.offer(network).ok_or(Error::NotFound)?;
    let ours = vault.config.threeds.versions.all();
    let version = offer.versions(ours).last().copied();
    let version = version.ok_or_else(|| trouble(session, Trouble::not_supported()))?;
    if offer.until.is_some_and(|until| until < now) {
        let message = "The 3DS Server does not remember the card: create a new session.";
        return Err(trouble(
            session,
            Trouble::new(504, Party::ThreedsServer, message),
        ));
    }
    let text = |name: &str| body.get(name).and_then(Value::as_str);
    let is_payment = text("authentication_category") == Some("payment");
    let purpose = text("authentication_type").and_then(AuthenticationType::from_name);
    if is_too_old(facts.kind, version, is_payment, purpose) {
        let message = "The issuer's version of the protocol cannot do this without the cardholder.";
        let unsupported = Trouble::new(400, Party::ThreedsServer, message);
        return Err(trouble(session, unsupported));
    }
    let decoupled = body
        .get("decoupled_challenge_max_time")
        .and_then(Value::as_u64);
    Ok(Asked {
        network: offer.network,
        version,
        is_payment,
        challenge_preference: text("challenge_preference").map(str::to_owned),
        method_completion: completion(session, offer, version),
        decoupled_minutes: decoupled.and_then(|minutes| u32::try_from(minutes).ok()),
    })
}

/// The network that the merchant wants, of those that know the card.
fn named_network(
    session: &Session,
    body: &Map<String, Value>,
    broken: &mut Vec<Broken>,
) -> Option<Network> {
    let brand = body.get("card_brand").and_then(Value::as_str)?;
    let network = Network::of_brand(brand);
    let is_offered = network.is_some_and(|network| session.offer(Some(network)).is_some());
    if !is_offered {
        let rule = "must be one of the session's additional_card_brands";
        broken.push(Broken::new("card_brand", rule));
    }
    network
}

/// The oldest version knows no payment without the cardholder, and few purposes.
fn is_too_old(
    kind: SessionKind,
    version: Version,
    is_payment: bool,
    purpose: Option<AuthenticationType>,
) -> bool {
    let code = purpose.and_then(AuthenticationType::three_ri_code);
    let is_newer = code.is_some_and(|code| code > "05");
    kind == SessionKind::Merchant && version < Version::V2_2_0 && (is_payment || is_newer)
}

/// Whether the issuer has seen the browser: it cannot have without an address to send it to, and the
/// browser was sent to the address of the primary network.
fn completion(session: &Session, offer: &Offer, version: Version) -> MethodCompletion {
    let primary = session.offer(None).map(|primary| primary.network);
    let is_primary = primary == Some(offer.network);
    match (
        session.facts.is_method_completed,
        offer.range.method_url_in(version),
    ) {
        (_, None) => MethodCompletion::U,
        (true, Some(_)) if is_primary => MethodCompletion::Y,
        (_, Some(_)) => MethodCompletion::N,
    }
}

fn request(
    vault: &Vault,
    session: &Session,
    body: &Map<String, Value>,
    asked: &Asked,
    card: &OpenedCard,
) -> Result<AReq, Error> {
    let settings = &vault.config.threeds;
    let adapter = vault.card_networks.of(session.facts.tenant_kind.into());
    let base_url = vault.config.http.base_url.as_ref();
    let results_url = settings.results_url.as_ref().or(base_url);
    let about = About {
        session: session.id,
        kind: session.facts.kind,
        channel: session.channel(),
        version: asked.version,
        network: asked.network,
        card: Card {
            number: card.number.expose(),
            expiry: card.expiry.clone(),
            is_network_token: card.is_network_token,
        },
        device: session.facts.device_info.as_ref(),
        method_completion: asked.method_completion.code(),
        notification_url: base_url.map_or_else(String::new, |base| {
            notification_url(base, session, "challenge-notification")
        }),
        results_url: results_url
            .map_or_else(String::new, |base| format!("{}/3ds/rreq", base.as_str())),
        reference_number: &settings.reference_number,
        operator_id: adapter.and_then(|adapter| adapter.operator_id(asked.network)),
        server_name: &settings.server_name,
    };
    requests::message(body, &about).map_err(Error::Invalid)
}

/// Takes the session for this one question; whoever comes second is refused.
///
/// When something harmless happens to the session at the same moment, such as the issuer's page
/// reporting that it is done, everything is worked out again.
async fn begin(
    vault: &Vault,
    caller: &Caller,
    mut session: Session,
    body: &Map<String, Value>,
    card: &OpenedCard,
) -> Result<(Session, Network, AReq), Error> {
    for _ in 0..ATTEMPTS {
        let now = vault.audit.now().await?;
        let mut next = session.step(Event::Asked).map_err(|_| refused(&session))?;
        let asked = plan(vault, &session, body, now)?;
        let request = request(vault, &session, body, &asked, card)?;
        let network = asked.network;
        next.facts.asked = Some(asked);
        if let Some(Value::Object(metadata)) = body.get("metadata") {
            let known = next.facts.metadata.get_or_insert_default();
            known.extend(metadata.clone());
        }
        next.standing.modified_by = Some(caller.application);
        next.standing.modified_at = Some(now);
        let patience = vault.config.threeds.answer_timeout + GRACE;
        next.standing.due_at = now.checked_add(patience).ok();
        // An answer that is on its way must find its session.
        next.standing.expires_at = next.standing.expires_at.max(next.standing.due_at);
        let told = Told::of(vec![card.entry.clone()]);
        if store::advance(vault, &next, told).await? {
            return Ok((next, network, request));
        }
        session = find::again(vault, &session).await?;
    }
    Err(Error::Conflict("The session changes all the time."))
}

fn refused(session: &Session) -> Error {
    Error::Conflict(match session.state() {
        State::Authenticating => "The session is being authenticated.",
        State::Dead => "Nobody knows what became of this session: create a new one.",
        _ => "The session is authenticated already.",
    })
}

/// Keeps what the issuer answered. From now on the session does not expire.
async fn conclude(
    vault: &Vault,
    caller: &Caller,
    session: Session,
    answer: ARes,
    reply: &Reply<'_, Session>,
) -> Result<Session, Error> {
    let is_hosted = session.facts.hosted.is_some();
    let event = match answer.trans_status {
        Some(TransStatus::Challenge) => Event::ChallengeWanted,
        Some(TransStatus::DecoupledChallenge) => Event::DecoupledWanted,
        _ => Event::Decided,
    };
    let now = vault.audit.now().await?;
    let mut next = session.step(event).map_err(|_| refused(&session))?;
    next.facts.answer = Some(Box::new(answer));
    if let Some(hosted) = &mut next.facts.hosted {
        // Names and addresses have done their duty.
        hosted.authentication_request = Map::new();
    }
    next.standing.modified_at = Some(now);
    next.standing.expires_at = None;
    let minutes = next
        .facts
        .asked
        .as_ref()
        .and_then(|asked| asked.decoupled_minutes);
    next.standing.due_at = match (next.state(), minutes) {
        (State::Decoupled, Some(minutes)) => {
            let wait = Duration::from_secs(u64::from(minutes) * 60) + DECOUPLED_GRACE;
            now.checked_add(wait).ok()
        }
        _ => None,
    };
    // The hosted page learns how it went, and no more.
    let shown = match is_hosted {
        true => Outcome::Done,
        false => find::shown(&next),
    };
    let entry = Entry::of(
        caller,
        Operation::Authenticate,
        EntityKind::ThreedsSession,
        next.id,
    );
    let told = Told {
        entries: vec![entry.with_outcome(shown)],
        kept: reply.keep(&next)?,
    };
    match store::advance(vault, &next, told).await? {
        true => Ok(next),
        false => Err(refused(&session)),
    }
}

/// Lets go of the session, or ends it when nobody knows what the network made of it.
async fn give_up(vault: &Vault, session: Session, trouble: Trouble) -> Result<Error, Error> {
    let event = match (trouble.is_final(), session.facts.is_method_completed) {
        (true, _) => Event::Lost,
        (false, true) => Event::RefusedAfterMethod,
        (false, false) => Event::Refused,
    };
    let mut next = session.step(event).map_err(|_| refused(&session))?;
    next.facts.asked = None;
    next.standing.due_at = None;
    let told = Told::of(Vec::new());
    store::advance(vault, &next, told).await?;
    Ok(self::trouble(&session, trouble))
}

fn trouble(session: &Session, trouble: Trouble) -> Error {
    Error::Trouble {
        session: Some(session.id),
        trouble,
    }
}

impl Session {
    /// How the cardholder takes part.
    pub fn channel(&self) -> DeviceChannel {
        match (self.facts.kind, self.facts.device) {
            (SessionKind::Merchant, _) => DeviceChannel::ThreeRi,
            (SessionKind::Customer, Some(Device::App)) => DeviceChannel::App,
            (SessionKind::Customer, _) => DeviceChannel::Browser,
        }
    }
}
