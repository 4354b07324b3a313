//! Creating a session: check, find the card's networks, keep.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::card::{self, OpenedCard};
use super::session::{CardReference, Device, Facts, Hosted, Session};
use super::store::{self, Told};
use super::{Error, require_offer};
use crate::access::Permission;
use crate::api::{Broken, optional_object};
use crate::audit::{EntityKind, Entry, Operation};
use crate::caller::Caller;
use crate::card_networks::{Found, Network, Offer, Party, Trouble};
use crate::card_numbers::holds_card_number;
use crate::config::BaseUrl;
use crate::idempotency::Reply;
use crate::ids;
use crate::threeds_requests::{self as requests, DeviceInfo, SessionKind};
use crate::vault::Vault;

/// How long a session of a card without an end waits to be authenticated.
const LIFETIME: Duration = Duration::from_secs(60 * 60);
const METADATA_MAX: usize = 50;

/// A session that is asked for; nothing in it is checked yet.
#[derive(Default)]
pub struct NewSession {
    pub token_id: Option<String>,
    pub token_intent_id: Option<String>,
    /// The older name of `token_id`.
    pub pan: Option<String>,
    pub kind: Option<String>,
    pub device: Option<String>,
    pub device_info: Option<DeviceInfo>,
    pub web_challenge_mode: Option<String>,
    pub authentication_request: Option<Map<String, Value>>,
    pub callback_urls: Option<CallbackUrls>,
    pub metadata: Option<Map<String, Value>>,
}

/// Where the hosted page sends the browser in the end.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct CallbackUrls {
    #[schema(required)]
    pub success: Option<String>,
    #[schema(required)]
    pub failure: Option<String>,
    #[serde(deserialize_with = "optional_object")]
    pub branding: Option<Branding>,
}

/// How the hosted page looks. It has no brand of its own, so there is nothing to hide.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct Branding {
    pub hide_basis_theory_branding: Option<bool>,
}

/// What the request itself tells of whoever asks.
#[derive(Default)]
pub struct Asker {
    pub address: Option<String>,
    pub accept: Option<String>,
    pub accept_language: Option<String>,
}

/// Creates a session for a card that some network knows.
///
/// Returns once it is durable.
pub async fn create(
    vault: &Vault,
    caller: &Caller,
    new: NewSession,
    asker: Asker,
    reply: &Reply<'_, Session>,
) -> Result<Session, Error> {
    caller.require_plain(Permission::ThreedsSessionCreate)?;
    require_offer(caller)?;
    let (checked, broken) = check(new, asker);
    let reference = checked.reference.as_ref();
    let card = match reference {
        Some((_, reference)) => card::open(vault, caller, reference).await?,
        None => None,
    };
    let (Some((_, reference)), Some(card), true) =
        (checked.reference.clone(), card, broken.is_empty())
    else {
        return Err(Error::Invalid(unusable(broken, reference)));
    };

    let now = vault.audit.now().await?;
    let found = look_up(vault, caller, &card, now).await?;
    let facts = facts(caller, checked, reference, &card, found.offers);
    let place = (caller.tenant, found.id);
    let mut session = Session::new(place, (caller.application, now), facts);
    let end = card.expires_at.or_else(|| now.checked_add(LIFETIME).ok());
    session.standing.expires_at = end;
    let entry = Entry::of(
        caller,
        Operation::Create,
        EntityKind::ThreedsSession,
        session.id,
    );
    let told = Told {
        entries: vec![entry],
        kept: reply.keep(&session)?.until(session.expires_at),
    };
    match store::insert(vault, &session, told).await? {
        true => Ok(session),
        false => Err(Error::Conflict("The id of the session is taken.")),
    }
}

/// Says which reference leads to no card, besides everything else.
fn unusable(
    mut broken: Vec<Broken>,
    reference: Option<&(&'static str, CardReference)>,
) -> Vec<Broken> {
    if let Some((field, _)) = reference
        && broken.is_empty()
    {
        broken.push(Broken::new(*field, "must name a card of this tenant"));
    }
    broken
}

/// A session that was checked, as far as it can be without looking anything up.
struct Checked {
    /// The field that names the card, and the card.
    reference: Option<(&'static str, CardReference)>,
    kind: SessionKind,
    device: Option<Device>,
    device_info: Option<DeviceInfo>,
    web_challenge_mode: Option<String>,
    metadata: Option<Map<String, Value>>,
    hosted: Option<Box<Hosted>>,
}

fn check(new: NewSession, asker: Asker) -> (Checked, Vec<Broken>) {
    let mut broken = Vec::new();
    let reference = reference(&new, &mut broken);
    let kind = match new.kind.as_deref() {
        None => SessionKind::Customer,
        Some(name) => SessionKind::parse(name).unwrap_or_else(|| {
            broken.push(Broken::new("type", "must be customer or merchant"));
            SessionKind::Customer
        }),
    };
    if let Some(metadata) = &new.metadata {
        broken.extend(check_metadata(metadata));
    }
    let mut checked = Checked {
        reference,
        kind,
        device: None,
        device_info: None,
        web_challenge_mode: None,
        metadata: new.metadata,
        hosted: None,
    };
    let is_hosted = new.authentication_request.is_some() || new.callback_urls.is_some();
    if kind == SessionKind::Merchant {
        if is_hosted {
            let rule = "are for sessions of a customer, who is sent there";
            broken.push(Broken::new("callback_urls", rule));
        }
        return (checked, broken);
    }
    checked.device = device(new.device.as_deref(), &mut broken);
    checked.web_challenge_mode = new.web_challenge_mode.filter(|mode| {
        let is_known = ["iframe", "redirect"].contains(&mode.as_str());
        if !is_known {
            broken.push(Broken::new(
                "web_challenge_mode",
                "must be iframe or redirect",
            ));
        }
        is_known
    });
    checked.hosted = hosted(new.authentication_request, new.callback_urls, &mut broken);
    if checked.hosted.is_some() && checked.device == Some(Device::App) {
        let rule = "must be browser when callback_urls are given";
        broken.push(Broken::new("device", rule));
    }
    let mut info = new.device_info;
    if checked.device == Some(Device::Browser) && (info.is_some() || !is_hosted) {
        let mut browser = info.unwrap_or_default();
        browser.complete(asker.address, asker.accept.as_deref());
        browser.accept_language = asker.accept_language;
        broken.extend(browser.check_browser());
        info = Some(browser);
    }
    checked.device_info = info;
    (checked, broken)
}

fn reference(new: &NewSession, broken: &mut Vec<Broken>) -> Option<(&'static str, CardReference)> {
    let given = [
        ("token_id", new.token_id.clone().map(CardReference::Token)),
        (
            "token_intent_id",
            new.token_intent_id.clone().map(CardReference::TokenIntent),
        ),
        ("pan", new.pan.clone().map(CardReference::Token)),
    ];
    let mut given = given
        .into_iter()
        .filter_map(|(field, reference)| Some((field, reference?)));
    match (given.next(), given.next()) {
        (Some(only), None) => Some(only),
        (None, _) => {
            let rule = "is required, or token_intent_id in its place";
            broken.push(Broken::new("token_id", rule));
            None
        }
        (Some(_), Some((field, _))) => {
            let rule = "must not be given with another reference to a card";
            broken.push(Broken::new(field, rule));
            None
        }
    }
}

fn device(name: Option<&str>, broken: &mut Vec<Broken>) -> Option<Device> {
    match name {
        Some("browser") => Some(Device::Browser),
        Some("app" | "mobile") => Some(Device::App),
        Some(_) => {
            broken.push(Broken::new("device", "must be browser or app"));
            None
        }
        None => {
            broken.push(Broken::new("device", "is required when type is customer"));
            None
        }
    }
}

/// Both of them or none; what will be asked later is checked now.
fn hosted(
    request: Option<Map<String, Value>>,
    urls: Option<CallbackUrls>,
    broken: &mut Vec<Broken>,
) -> Option<Box<Hosted>> {
    let (request, urls) = match (request, urls) {
        (None, None) => return None,
        (Some(request), Some(urls)) => (request, urls),
        (Some(_), None) => {
            let rule = "are required with authentication_request";
            broken.push(Broken::new("callback_urls", rule));
            return None;
        }
        (None, Some(_)) => {
            let rule = "is required with callback_urls";
            broken.push(Broken::new("authentication_request", rule));
            return None;
        }
    };
    let wrong = requests::check(SessionKind::Customer, &request).into_iter();
    broken.extend(wrong.map(|one| one.within("authentication_request")));
    let mut address = |name: &str, url: Option<String>| {
        let is_address = url.as_deref().is_some_and(|url| {
            (url.starts_with("https://") || url.starts_with("http://"))
                && url.len() <= 2_048
                && url
                    .parse::<http::Uri>()
                    .is_ok_and(|uri| uri.host().is_some())
        });
        if !is_address {
            let path = format!("callback_urls.{name}");
            broken.push(Broken::new(path, "must be an http or https URL"));
        }
        url.unwrap_or_default()
    };
    Some(Box::new(Hosted {
        success: address("success", urls.success),
        failure: address("failure", urls.failure),
        authentication_request: request,
        nonce: None,
    }))
}

pub(super) fn check_metadata(metadata: &Map<String, Value>) -> Option<Broken> {
    let is_fine = metadata.len() <= METADATA_MAX
        && metadata.iter().all(|(name, value)| {
            let length = value.as_str().map(str::len);
            name.len() <= 500 && length.is_some_and(|length| length <= 500)
        });
    let is_clean = |text: &str| !holds_card_number(text);
    let is_fine = is_fine
        && metadata
            .iter()
            .all(|(name, value)| is_clean(name) && is_clean(value.as_str().unwrap_or_default()));
    let rule = "must be at most 50 texts of at most 500 characters, without card numbers";
    (!is_fine).then(|| Broken::new("metadata", rule))
}

/// Asks which networks know the card, and keeps those that can be talked to, the primary one first.
async fn look_up(
    vault: &Vault,
    caller: &Caller,
    card: &OpenedCard,
    now: Timestamp,
) -> Result<Found, Error> {
    let failed = |trouble| Error::Trouble {
        session: None,
        trouble,
    };
    let adapter = vault.card_networks.of(caller.tenant_kind).ok_or_else(|| {
        let message = "No card network is set up for tenants of this kind.";
        failed(Trouble::new(500, Party::ThreedsServer, message))
    })?;
    if adapter.tells_others() {
        // The number leaves now, whatever comes of it.
        vault.audit.record(vec![card.entry.clone()]).await?;
    }
    let number = card.number.expose();
    let found = adapter.look_up(number, ids::new_uuid(), now).await;
    let mut found = found.map_err(failed)?;
    if !found.offers.iter().all(Offer::is_sound) {
        let message = "What is known of the card makes no sense.";
        return Err(failed(Trouble::new(500, Party::ThreedsServer, message)));
    }
    let ours = vault.config.threeds.versions.all();
    found
        .offers
        .retain(|offer| !offer.versions(ours).is_empty());
    let primary = card.brand.and_then(Network::of_card_brand);
    let first = found
        .offers
        .iter()
        .position(|offer| Some(offer.network) == primary);
    if let Some(first) = first {
        found.offers[..=first].rotate_right(1);
    }
    match found.offers.is_empty() {
        true => Err(failed(Trouble::not_supported())),
        false => Ok(found),
    }
}

fn facts(
    caller: &Caller,
    checked: Checked,
    card_reference: CardReference,
    card: &OpenedCard,
    offers: Vec<Offer>,
) -> Facts {
    let network = offers.first().map(|offer| offer.network);
    let brand = match (network, card.brand) {
        (Some(Network::Discover), Some("diners-club")) => "Diners Club",
        (network, _) => network.map_or("", Network::brand),
    };
    Facts {
        tenant_kind: caller.tenant_kind.into(),
        kind: checked.kind,
        card: card_reference,
        brand: brand.to_owned(),
        offers,
        device: checked.device,
        device_info: checked.device_info,
        web_challenge_mode: checked.web_challenge_mode,
        metadata: checked.metadata,
        is_method_completed: false,
        is_challenge_completed: false,
        asked: None,
        answer: None,
        result: None,
        ran_out: false,
        hosted: checked.hosted,
    }
}

/// Where an issuer's page sends the browser back to.
pub(crate) fn notification_url(base: &BaseUrl, session: &Session, what: &str) -> String {
    format!("{}/3ds/sessions/{}/{what}", base.as_str(), session.id)
}
