//! What callers see of a session.

use cloakroom_emv3ds::MessageExtension;
use cloakroom_emv3ds::codes::{
    AcsInformation, ChallengeCancel, ChallengePreference, ChallengeType, ListStatus,
    ListStatusSource, TransStatus, reason_name,
};
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;
use uuid::Uuid;

use super::create::notification_url;
use super::session::{Asked, CardReference, Device, Session};
use crate::api::format_utc;
use crate::card_networks::Offer;
use crate::config::Config;
use crate::threeds_requests::{DeviceInfo, SessionKind};

const DECOUPLED_TIMEOUT: &str = "24";

/// A session that was just created or described.
#[derive(Serialize, ToSchema)]
pub(super) struct CreatedThreedsBody<'a> {
    id: Uuid,
    #[serde(rename = "type")]
    kind: &'static str,
    card_brand: &'a str,
    /// The same as `card_brand`.
    #[serde(rename = "cardBrand")]
    card_brand_again: &'a str,
    /// Every brand of a card that has several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    additional_card_brands: Vec<&'static str>,
    /// Where the issuer wants to see the browser; empty for apps.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    method_url: Option<&'a str>,
    method_notification_url: String,
    directory_server_id: &'static str,
    recommended_version: String,
    /// Where to send the browser, when `callback_urls` were given.
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
    /// When it ends; left out once it is authenticated, for then it stays.
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

/// Where the card number is.
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

/// Versions of the protocol.
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

/// Whether the issuer has seen the browser.
#[derive(Serialize, ToSchema)]
struct MethodBody<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    method_url: Option<&'a str>,
    /// `Y` it has, `N` it has not, `U` it does not want to.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    method_completion_indicator: Option<&'static str>,
}

/// What came of an authentication. Attributes without a value are left out.
#[derive(Default, Serialize, ToSchema)]
#[serde(default)]
pub(super) struct AuthenticationBody<'a> {
    #[serde(flatten)]
    card: CardBody<'a>,
    session_id: Uuid,
    threeds_version: String,
    acs_transaction_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    acs_operator_id: Option<&'a str>,
    ds_transaction_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    sdk_transaction_id: Option<&'a str>,
    acs_reference_number: &'a str,
    ds_reference_number: &'a str,
    liability_shifted: bool,
    /// What authorizes the transaction: CAVV, AAV, AEVV and the like.
    #[serde(skip_serializing_if = "Option::is_none")]
    authentication_value: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    authentication_status: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    authentication_status_code: Option<&'static str>,
    /// The status before any challenge.
    #[serde(skip_serializing_if = "Option::is_none")]
    directory_status_code: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    authentication_status_reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    authentication_status_reason_code: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    eci: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    acs_challenge_mandated: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    acs_decoupled_authentication: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    authentication_challenge_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    acs_rendering_type: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    acs_signed_content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    acs_challenge_url: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    challenge_preference: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    challenge_preference_code: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    challenge_attempts: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    challenge_cancel_reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    challenge_cancel_reason_code: Option<&'a str>,
    /// Text of the issuer for the cardholder.
    #[serde(skip_serializing_if = "Option::is_none")]
    cardholder_info: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    whitelist_status: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    whitelist_status_source: Option<&'static str>,
    message_extensions: Vec<ExtensionBody<'a>>,
}

/// Something that a network adds to the protocol.
#[derive(Serialize, ToSchema)]
struct ExtensionBody<'a> {
    id: &'a str,
    name: &'a str,
    critical: bool,
    #[schema(value_type = Value)]
    data: &'a Map<String, Value>,
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
    /// `public_key` is the key that created the session, if a browser may know it.
    pub(super) fn new(config: &Config, session: &'a Session, public_key: Option<&str>) -> Self {
        let facts = &session.facts;
        let offer = session.offer(None);
        let base = config.http.base_url.as_ref();
        let method_url = offer.and_then(|offer| method_url(config, offer));
        Self {
            id: session.id,
            kind: facts.kind.name(),
            card_brand: &facts.brand,
            card_brand_again: &facts.brand,
            additional_card_brands: brands(session),
            method_url: match (facts.kind, facts.device) {
                (SessionKind::Merchant, _) => None,
                (_, Some(Device::App)) => Some(""),
                _ => method_url,
            },
            method_notification_url: base.map_or_else(String::new, |base| {
                notification_url(base, session, "method-notification")
            }),
            directory_server_id: offer.map_or("", |offer| offer.network.directory_server_id()),
            recommended_version: spoken(config, offer).last().cloned().unwrap_or_default(),
            redirect_url: facts.hosted.as_ref().and(base).map(|base| {
                let key = public_key.map_or_else(String::new, |key| format!("?apiKey={key}"));
                format!("{}/3ds/redirect/{}{key}", base.as_str(), session.id)
            }),
            metadata: facts.metadata.as_ref(),
        }
    }
}

/// Nothing for a card of a single brand.
fn brands(session: &Session) -> Vec<&'static str> {
    let offers = &session.facts.offers;
    match offers.len() {
        0 | 1 => Vec::new(),
        _ => offers.iter().map(|offer| offer.network.brand()).collect(),
    }
}

/// Where the issuer wants to see the browser, in the version that will be spoken.
pub(crate) fn method_url<'a>(config: &Config, offer: &'a Offer) -> Option<&'a str> {
    let version = offer
        .versions(config.threeds.versions.all())
        .last()
        .copied()?;
    offer.range.method_url_in(version)
}

fn spoken(config: &Config, offer: Option<&Offer>) -> Vec<String> {
    let ours = config.threeds.versions.all();
    let common = offer.map(|offer| offer.versions(ours)).unwrap_or_default();
    common.iter().map(ToString::to_string).collect()
}

impl<'a> ThreedsSessionBody<'a> {
    pub(super) fn new(config: &Config, session: &'a Session) -> Self {
        let facts = &session.facts;
        let asked = facts.asked.as_ref();
        let offer = session.offer(asked.map(|asked| asked.network));
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
            device_info: facts.device_info.clone().map(DeviceInfo::shown),
            web_challenge_mode: facts.web_challenge_mode.as_deref(),
            version: VersionBody::new(config, offer),
            method: MethodBody {
                method_url: offer.and_then(|offer| method_url(config, offer)),
                method_completion_indicator: match (asked, facts.is_method_completed) {
                    (Some(asked), _) => Some(asked.method_completion.code()),
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
    fn new(config: &Config, offer: Option<&Offer>) -> Self {
        let spoken = spoken(config, offer);
        let text = |version: Option<String>| version.unwrap_or_default();
        let information = offer.map(|offer| offer.range.acs_information.as_slice());
        let named = |code: &String| {
            AcsInformation::from_code(code)
                .map_or_else(|| code.clone(), |one| one.name().to_owned())
        };
        Self {
            recommended_version: text(spoken.last().cloned()),
            earliest_acs_supported_version: text(
                offer.map(|offer| offer.range.acs.start.to_string()),
            ),
            latest_acs_supported_version: text(offer.map(|offer| offer.range.acs.end.to_string())),
            earliest_ds_supported_version: text(
                offer.map(|offer| offer.range.directory_server.start.to_string()),
            ),
            latest_ds_supported_version: text(
                offer.map(|offer| offer.range.directory_server.end.to_string()),
            ),
            acs_information: information.unwrap_or_default().iter().map(named).collect(),
            available_version: spoken.clone(),
            available_versions: spoken,
        }
    }
}

impl<'a> AuthenticationBody<'a> {
    /// Nothing before the network has answered.
    pub(super) fn new(session: &'a Session) -> Option<Self> {
        let facts = &session.facts;
        let answer = facts.answer.as_deref()?;
        let asked = facts.asked.as_ref()?;
        let preference = asked.challenge_preference.as_deref();
        let mut body = Self {
            card: CardBody::new(&facts.card),
            session_id: session.id,
            threeds_version: answer.message_version.to_string(),
            acs_transaction_id: &answer.acs_trans_id,
            acs_operator_id: answer.acs_operator_id.as_deref(),
            ds_transaction_id: &answer.ds_trans_id,
            sdk_transaction_id: answer.sdk_trans_id.as_deref(),
            acs_reference_number: &answer.acs_reference_number,
            ds_reference_number: &answer.ds_reference_number,
            authentication_value: session.authentication_value(),
            directory_status_code: answer.trans_status.map(TransStatus::code),
            authentication_status_reason_code: answer.trans_status_reason.as_deref(),
            eci: answer.eci.as_deref(),
            acs_challenge_mandated: answer.acs_challenge_mandated.as_deref(),
            acs_decoupled_authentication: answer.acs_dec_con_ind.as_deref(),
            authentication_challenge_type: challenge_type(
                answer.authentication_type.as_deref(),
                answer.authentication_method.as_deref(),
            ),
            acs_rendering_type: answer
                .acs_rendering_type
                .as_ref()
                .map(|rendering| json!(rendering)),
            acs_signed_content: answer.acs_signed_content.as_deref(),
            acs_challenge_url: answer.acs_url.as_deref(),
            challenge_preference: preference,
            challenge_preference_code: preference
                .and_then(ChallengePreference::from_name)
                .map(|one| one.for_version(asked.version).code()),
            cardholder_info: answer.cardholder_info.as_ref().map(|info| info.text()),
            message_extensions: extensions(answer.message_extension.as_deref()),
            ..Self::default()
        };
        let list = (&answer.white_list_status, &answer.trust_list_status);
        let source = (
            &answer.white_list_status_source,
            &answer.trust_list_status_source,
        );
        body.tell_list(list, source);
        body.tell_result(session);
        body.settle(session, asked);
        Some(body)
    }

    /// What the result of a challenge says takes the place of what was said before.
    fn tell_result(&mut self, session: &'a Session) {
        if session.facts.ran_out {
            self.authentication_status_reason_code = Some(DECOUPLED_TIMEOUT);
        }
        let Some(result) = session.facts.result.as_deref() else {
            return;
        };
        self.authentication_status_reason_code = result.trans_status_reason.as_deref();
        self.eci = result.eci.as_deref();
        self.challenge_attempts = result.interaction_counter.as_deref();
        let cancel = result.challenge_cancel.as_deref();
        self.challenge_cancel_reason_code = cancel;
        self.challenge_cancel_reason = cancel
            .and_then(ChallengeCancel::from_code)
            .map(ChallengeCancel::name);
        let told = challenge_type(
            result.authentication_type.as_deref(),
            result.authentication_method.as_deref(),
        );
        self.authentication_challenge_type = told.or(self.authentication_challenge_type);
        if result.message_extension.is_some() {
            self.message_extensions = extensions(result.message_extension.as_deref());
        }
        let list = (&result.white_list_status, &result.trust_list_status);
        let source = (
            &result.white_list_status_source,
            &result.trust_list_status_source,
        );
        self.tell_list(list, source);
    }

    /// Whether the cardholder trusts the merchant. Newer versions have another name for it.
    fn tell_list(
        &mut self,
        (older, newer): (&Option<String>, &Option<String>),
        source: (&Option<String>, &Option<String>),
    ) {
        let Some(status) = older.as_deref().or(newer.as_deref()) else {
            return;
        };
        self.whitelist_status = ListStatus::from_code(status).map(ListStatus::name);
        let source = source.0.as_deref().or(source.1.as_deref());
        self.whitelist_status_source = source
            .and_then(ListStatusSource::from_code)
            .map(ListStatusSource::name);
    }

    fn settle(&mut self, session: &'a Session, asked: &Asked) {
        let status = session.status();
        self.authentication_status = status.map(TransStatus::name);
        self.authentication_status_code = status.map(TransStatus::code);
        self.authentication_status_reason = self
            .authentication_status_reason_code
            .and_then(|code| reason_name(asked.network.brand(), code));
        let is_proved = matches!(
            status,
            Some(TransStatus::Successful | TransStatus::Attempted)
        );
        let is_shifted = self
            .eci
            .is_some_and(|eci| asked.network.shifts_liability(eci));
        self.liability_shifted = asked.is_payment && is_proved && is_shifted;
    }
}

fn challenge_type(kind: Option<&str>, methods: Option<&[String]>) -> Option<&'static str> {
    let older = kind.and_then(ChallengeType::from_code);
    let newer = methods.and_then(|methods| ChallengeType::from_method(methods.first()?));
    older.or(newer).map(ChallengeType::name)
}

fn extensions(extensions: Option<&[MessageExtension]>) -> Vec<ExtensionBody<'_>> {
    let mut bodies = Vec::new();
    for extension in extensions.unwrap_or_default() {
        bodies.push(ExtensionBody {
            id: &extension.id,
            name: &extension.name,
            critical: extension.criticality_indicator,
            data: &extension.data,
        });
    }
    bodies
}
