//! Response bodies of the sessions API.

mod authentication;
mod event;

pub(super) use authentication::AuthenticationBody;
use cloakroom_emv3ds::codes::AcsInformation;
use cloakroom_platform::api::format_utc;
use cloakroom_platform::config::Config;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

use super::create::notification_url;
use super::session::{CardReference, Device, Session};
use crate::networks::NetworkRange;
use crate::requests::{DeviceInfo, SessionKind};

/// A session that was just created or updated.
#[derive(Serialize, ToSchema)]
pub(super) struct CreatedThreedsBody<'a> {
    id: Uuid,
    #[serde(rename = "type")]
    kind: &'static str,
    card_brand: &'a str,
    /// The same as `card_brand`.
    #[serde(rename = "cardBrand")]
    card_brand_camel: &'a str,
    /// Every brand of a card that has several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    additional_card_brands: Vec<&'static str>,
    /// The issuer's 3DS Method URL; empty for apps.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    method_url: Option<&'a str>,
    method_notification_url: String,
    directory_server_id: &'static str,
    recommended_version: String,
    /// Hosted page to redirect the browser to, if `callback_urls` were given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    redirect_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<std::collections::BTreeMap<String, String>>)]
    metadata: Option<&'a Map<String, Value>>,
}

/// A session.
#[derive(Serialize, ToSchema)]
pub(super) struct ThreedsSessionBody<'a> {
    id: Uuid,
    tenant_id: Uuid,
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(flatten)]
    card: CardBody<'a>,
    card_brand: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    additional_card_brands: Vec<&'static str>,
    /// When the session expires. Finished sessions are stored for `threeds.session_retention`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    expiration_date: Option<String>,
    #[schema(format = DateTime)]
    created_date: String,
    created_by: Uuid,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    modified_date: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    modified_by: Option<Uuid>,
    /// `browser` or `mobile`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    device: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    device_info: Option<DeviceInfo>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    web_challenge_mode: Option<&'a str>,
    version: VersionBody,
    method: MethodBody<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    authentication: Option<AuthenticationBody<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<std::collections::BTreeMap<String, String>>)]
    metadata: Option<&'a Map<String, Value>>,
}

/// The token or token intent that contains the card number.
#[derive(Default, Serialize, ToSchema)]
pub(super) struct CardBody<'a> {
    /// The same as `token_id`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pan_token_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    token_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    token_intent_id: Option<&'a str>,
}

/// Protocol versions.
#[derive(Serialize, ToSchema)]
struct VersionBody {
    recommended_version: String,
    available_version: Vec<String>,
    /// The same as `available_version`.
    available_versions: Vec<String>,
    earliest_acs_supported_version: String,
    latest_acs_supported_version: String,
    earliest_ds_supported_version: String,
    latest_ds_supported_version: String,
    acs_information: Vec<String>,
}

/// The 3DS Method of the issuer.
#[derive(Serialize, ToSchema)]
struct MethodBody<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    method_url: Option<&'a str>,
    /// `Y` completed, `N` not completed, `U` the issuer has no 3DS Method.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    method_completion_indicator: Option<&'static str>,
}

impl<'a> CardBody<'a> {
    fn new(reference: &'a CardReference) -> Self {
        match reference {
            CardReference::Token(id) => Self {
                pan_token_id: Some(id),
                token_id: Some(id),
                token_intent_id: None,
            },
            CardReference::TokenIntent(id) => Self {
                token_intent_id: Some(id),
                ..Self::default()
            },
        }
    }
}

impl<'a> CreatedThreedsBody<'a> {
    /// `public_key` is the key that created the session, if it is a public one.
    pub(super) fn new(config: &Config, session: &'a Session, public_key: Option<&str>) -> Self {
        let facts = &session.facts;
        let network_range = session.network_range(None);
        let base = config.http.base_url.as_ref();
        let method_url = network_range.and_then(|network_range| method_url(config, network_range));
        Self {
            id: session.id,
            kind: facts.kind.name(),
            card_brand: &facts.brand,
            card_brand_camel: &facts.brand,
            additional_card_brands: brands(session),
            method_url: match (facts.kind, facts.device) {
                (SessionKind::Customer, Some(Device::App)) => Some(""),
                _ => method_url,
            },
            method_notification_url: base.map_or_else(String::new, |base| {
                notification_url(base, session, "method-notification")
            }),
            directory_server_id: network_range.map_or("", |network_range| {
                network_range.network.directory_server_id()
            }),
            recommended_version: common_versions(config, network_range)
                .last()
                .cloned()
                .unwrap_or_default(),
            redirect_url: facts.hosted.as_ref().and(base).map(|base| {
                let key = public_key.map_or_else(String::new, |key| format!("?apiKey={key}"));
                format!("{}/3ds/redirect/{}{key}", base.as_str(), session.id)
            }),
            metadata: facts.metadata.as_ref(),
        }
    }
}

/// Returns an empty list for a card with a single brand.
fn brands(session: &Session) -> Vec<&'static str> {
    let network_ranges = &session.facts.network_ranges;
    match network_ranges.len() {
        0 | 1 => Vec::new(),
        _ => network_ranges
            .iter()
            .map(|network_range| network_range.network.brand())
            .collect(),
    }
}

/// The issuer's 3DS Method URL in the version that will be used.
pub fn method_url<'a>(config: &Config, network_range: &'a NetworkRange) -> Option<&'a str> {
    let version = network_range
        .versions(config.threeds.versions.all())
        .last()
        .copied()?;
    network_range.range.method_url_in(version)
}

fn common_versions(config: &Config, network_range: Option<&NetworkRange>) -> Vec<String> {
    let ours = config.threeds.versions.all();
    let common = network_range
        .map(|network_range| network_range.versions(ours))
        .unwrap_or_default();
    common.iter().map(ToString::to_string).collect()
}

impl<'a> ThreedsSessionBody<'a> {
    pub(super) fn new(config: &Config, session: &'a Session) -> Self {
        let facts = &session.facts;
        let params = facts.params.as_ref();
        let network_range = session.network_range(params.map(|params| params.network));
        Self {
            id: session.id,
            tenant_id: session.tenant.uuid,
            kind: facts.kind.name(),
            card: CardBody::new(&facts.card),
            card_brand: &facts.brand,
            additional_card_brands: brands(session),
            expiration_date: session.expires_at.map(format_utc),
            created_date: format_utc(session.created_at),
            created_by: session.created_by,
            modified_date: session.modified_at.map(format_utc),
            modified_by: session.modified_by,
            device: facts.device.map(|device| match device {
                Device::Browser => "browser",
                Device::App => "mobile",
            }),
            device_info: facts.device_info.clone().map(DeviceInfo::public_view),
            web_challenge_mode: facts.web_challenge_mode.as_deref(),
            version: VersionBody::new(config, network_range),
            method: MethodBody {
                method_url: network_range
                    .and_then(|network_range| method_url(config, network_range)),
                method_completion_indicator: match (params, facts.is_method_completed) {
                    (Some(params), _) => Some(params.method_completion.code()),
                    (None, true) => Some("Y"),
                    (None, false) => None,
                },
            },
            authentication: AuthenticationBody::new(session),
            metadata: facts.metadata.as_ref(),
        }
    }
}

impl VersionBody {
    fn new(config: &Config, network_range: Option<&NetworkRange>) -> Self {
        let common_versions = common_versions(config, network_range);
        let text = |version: Option<String>| version.unwrap_or_default();
        let information =
            network_range.map(|network_range| network_range.range.acs_information.as_slice());
        let named = |code: &String| {
            AcsInformation::from_code(code)
                .map_or_else(|| code.clone(), |one| one.name().to_owned())
        };
        Self {
            recommended_version: text(common_versions.last().cloned()),
            earliest_acs_supported_version: text(
                network_range.map(|network_range| network_range.range.acs.start.to_string()),
            ),
            latest_acs_supported_version: text(
                network_range.map(|network_range| network_range.range.acs.end.to_string()),
            ),
            earliest_ds_supported_version: text(
                network_range
                    .map(|network_range| network_range.range.directory_server.start.to_string()),
            ),
            latest_ds_supported_version: text(
                network_range
                    .map(|network_range| network_range.range.directory_server.end.to_string()),
            ),
            acs_information: information.unwrap_or_default().iter().map(named).collect(),
            available_version: common_versions.clone(),
            available_versions: common_versions,
        }
    }
}
