//! Plans an authentication: the parameters of the AReq, and the AReq itself.

use cloakroom_emv3ds::codes::{AuthenticationType, DeviceChannel};
use cloakroom_emv3ds::{AReq, Version};
use cloakroom_platform::api::FieldError;
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::Error;
use super::card::DecryptedCard;
use super::create::notification_url;
use super::new_session::check_metadata;
use super::session::{AuthenticationParams, Device, MethodCompletion, Session};
use crate::networks::{ErrorSource, Network, NetworkFailure, NetworkRange};
use crate::requests::{self as requests, Card, MessageContext, SessionKind};
use crate::server::ThreedsServer;

/// Validates the request and computes the parameters of the AReq, without changing the session.
pub(super) fn plan(
    server: &ThreedsServer,
    session: &Session,
    body: &Map<String, Value>,
    now: Timestamp,
) -> Result<AuthenticationParams, Error> {
    let facts = &session.facts;
    let mut errors = requests::check(facts.kind, body);
    let network = named_network(session, body, &mut errors);
    match (
        session.channel(),
        facts.device_info.clone().unwrap_or_default(),
    ) {
        (DeviceChannel::ThreeRi, _) => {}
        (DeviceChannel::App, device) => errors.extend(device.check_app()),
        (DeviceChannel::Browser, device) => errors.extend(device.check_browser()),
    }
    if let Some(Value::Object(metadata)) = body.get("metadata") {
        errors.extend(check_metadata(metadata));
    }
    if !errors.is_empty() {
        return Err(Error::Invalid(errors));
    }
    let network_range = session.network_range(network).ok_or(Error::NotFound)?;
    let ours = server.config.threeds.versions.all();
    let version = network_range.versions(ours).last().copied();
    let version =
        version.ok_or_else(|| network_failure(session, NetworkFailure::not_supported()))?;
    if network_range.until.is_some_and(|until| until < now) {
        let message = "The card lookup at the 3DS Server has expired. Create a new session.";
        return Err(network_failure(
            session,
            NetworkFailure::new(504, ErrorSource::ThreedsServer, message),
        ));
    }
    let text = |name: &str| body.get(name).and_then(Value::as_str);
    let is_payment = text("authentication_category") == Some("payment");
    let purpose = text("authentication_type").and_then(AuthenticationType::from_name);
    if is_too_old(facts.kind, version, is_payment, purpose) {
        let message = "The issuer's protocol version does not support this merchant-initiated authentication.";
        let unsupported = NetworkFailure::new(400, ErrorSource::ThreedsServer, message);
        return Err(network_failure(session, unsupported));
    }
    let decoupled = body
        .get("decoupled_challenge_max_time")
        .and_then(Value::as_u64);
    Ok(AuthenticationParams {
        network: network_range.network,
        version,
        is_payment,
        challenge_preference: text("challenge_preference").map(str::to_owned),
        method_completion: method_completion(session, network_range, version),
        decoupled_minutes: decoupled.and_then(|minutes| u32::try_from(minutes).ok()),
    })
}

/// The network that the merchant chose by `card_brand`.
fn named_network(
    session: &Session,
    body: &Map<String, Value>,
    errors: &mut Vec<FieldError>,
) -> Option<Network> {
    let brand = body.get("card_brand").and_then(Value::as_str)?;
    let network = Network::of_brand(brand);
    let is_offered = network.is_some_and(|network| session.network_range(Some(network)).is_some());
    if !is_offered {
        let rule = "must be one of the session's additional_card_brands";
        errors.push(FieldError::new("card_brand", rule));
    }
    network
}

/// Version 2.1.0 supports 3RI only for non-payment authentications with the first five indicators.
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

/// The completion indicator of the 3DS Method, which runs only at the URL of the primary network.
fn method_completion(
    session: &Session,
    network_range: &NetworkRange,
    version: Version,
) -> MethodCompletion {
    let primary = session.network_range(None).map(|primary| primary.network);
    let is_primary = primary == Some(network_range.network);
    match (
        session.facts.is_method_completed,
        network_range.range.method_url_in(version),
    ) {
        (_, None) => MethodCompletion::U,
        (true, Some(_)) if is_primary => MethodCompletion::Y,
        (_, Some(_)) => MethodCompletion::N,
    }
}

/// The AReq with these parameters.
pub(super) fn request(
    server: &ThreedsServer,
    session: &Session,
    body: &Map<String, Value>,
    params: &AuthenticationParams,
    card: &DecryptedCard,
) -> Result<AReq, Error> {
    let settings = &server.config.threeds;
    let adapter = server.card_networks.of(session.facts.tenant_kind.into());
    let base_url = server.config.http.base_url.as_ref();
    let results_url = settings.results_url.as_ref().or(base_url);
    let context = MessageContext {
        session: session.id,
        kind: session.facts.kind,
        channel: session.channel(),
        version: params.version,
        network: params.network,
        card: Card {
            number: card.number.expose(),
            expiry: card.expiry.clone(),
            is_network_token: card.is_network_token,
        },
        device: session.facts.device_info.as_ref(),
        method_completion: params.method_completion.code(),
        notification_url: base_url.map_or_else(String::new, |base| {
            notification_url(base, session, "challenge-notification")
        }),
        results_url: results_url
            .map_or_else(String::new, |base| format!("{}/3ds/rreq", base.as_str())),
        reference_number: &settings.reference_number,
        operator_id: adapter.and_then(|adapter| adapter.operator_id(params.network)),
        server_name: &settings.server_name,
    };
    requests::message(body, &context).map_err(Error::Invalid)
}

pub(super) fn network_failure(session: &Session, failure: NetworkFailure) -> Error {
    Error::Network {
        session: Some(session.id),
        failure,
    }
}

impl Session {
    /// The device channel of the AReq.
    pub fn channel(&self) -> DeviceChannel {
        match (self.facts.kind, self.facts.device) {
            (SessionKind::Merchant, _) => DeviceChannel::ThreeRi,
            (SessionKind::Customer, Some(Device::App)) => DeviceChannel::App,
            (SessionKind::Customer, _) => DeviceChannel::Browser,
        }
    }
}
