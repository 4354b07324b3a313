//! The outcome of an authentication in a response.

use cloakroom_emv3ds::MessageExtension;
use cloakroom_emv3ds::codes::{
    ChallengeCancel, ChallengePreference, ChallengeType, ListStatus, ListStatusSource, TransStatus,
    reason_name,
};
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;
use uuid::Uuid;

use super::CardBody;
use crate::sessions::session::{AuthenticationParams, Session};

const DECOUPLED_TIMEOUT: &str = "24";

/// Outcome of an authentication. Attributes without a value are omitted.
#[derive(Default, Serialize, ToSchema)]
#[serde(default)]
pub(in crate::sessions) struct AuthenticationBody<'a> {
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
    /// Proof of the authentication for the authorization request: CAVV, AAV, AEVV or similar.
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
    /// Text from the issuer to show to the cardholder.
    #[serde(skip_serializing_if = "Option::is_none")]
    cardholder_info: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    whitelist_status: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    whitelist_status_source: Option<&'static str>,
    message_extensions: Vec<ExtensionBody<'a>>,
}

/// A message extension of a network.
#[derive(Serialize, ToSchema)]
struct ExtensionBody<'a> {
    id: &'a str,
    name: &'a str,
    critical: bool,
    #[schema(value_type = Value)]
    data: &'a Map<String, Value>,
}

impl<'a> AuthenticationBody<'a> {
    /// Returns `None` before an ARes is received.
    pub(in crate::sessions) fn new(session: &'a Session) -> Option<Self> {
        let facts = &session.facts;
        let ares = facts.ares.as_deref()?;
        let params = facts.params.as_ref()?;
        let preference = params.challenge_preference.as_deref();
        let mut body = Self {
            card: CardBody::new(&facts.card),
            session_id: session.id,
            threeds_version: ares.message_version.to_string(),
            acs_transaction_id: &ares.acs_trans_id,
            acs_operator_id: ares.acs_operator_id.as_deref(),
            ds_transaction_id: &ares.ds_trans_id,
            sdk_transaction_id: ares.sdk_trans_id.as_deref(),
            acs_reference_number: &ares.acs_reference_number,
            ds_reference_number: &ares.ds_reference_number,
            authentication_value: session.authentication_value(),
            directory_status_code: ares.trans_status.map(TransStatus::code),
            authentication_status_reason_code: ares.trans_status_reason.as_deref(),
            eci: ares.eci.as_deref(),
            acs_challenge_mandated: ares.acs_challenge_mandated.as_deref(),
            acs_decoupled_authentication: ares.acs_dec_con_ind.as_deref(),
            authentication_challenge_type: challenge_type(
                ares.authentication_type.as_deref(),
                ares.authentication_method.as_deref(),
            ),
            acs_rendering_type: ares
                .acs_rendering_type
                .as_ref()
                .map(|rendering| json!(rendering)),
            acs_signed_content: ares.acs_signed_content.as_deref(),
            acs_challenge_url: ares.acs_url.as_deref(),
            challenge_preference: preference,
            challenge_preference_code: preference
                .and_then(ChallengePreference::from_name)
                .map(|one| one.for_version(params.version).code()),
            cardholder_info: ares.cardholder_info.as_ref().map(|info| info.text()),
            message_extensions: extensions(ares.message_extension.as_deref()),
            ..Self::default()
        };
        let status = ares.white_list_status.as_ref();
        let source = ares.white_list_status_source.as_ref();
        body.set_trust_list(
            status.or(ares.trust_list_status.as_ref()),
            source.or(ares.trust_list_status_source.as_ref()),
        );
        body.set_result(session);
        body.set_status(session, params);
        Some(body)
    }

    /// Overrides attributes of the ARes with those of the RReq.
    fn set_result(&mut self, session: &'a Session) {
        if session.facts.decoupled_timed_out {
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
        let challenge_type = challenge_type(
            result.authentication_type.as_deref(),
            result.authentication_method.as_deref(),
        );
        self.authentication_challenge_type = challenge_type.or(self.authentication_challenge_type);
        if result.message_extension.is_some() {
            self.message_extensions = extensions(result.message_extension.as_deref());
        }
        let status = result.white_list_status.as_ref();
        let source = result.white_list_status_source.as_ref();
        self.set_trust_list(
            status.or(result.trust_list_status.as_ref()),
            source.or(result.trust_list_status_source.as_ref()),
        );
    }

    /// Sets the trust list status, which older protocol versions call whitelist.
    fn set_trust_list(&mut self, status: Option<&String>, source: Option<&String>) {
        let Some(status) = status else {
            return;
        };
        self.whitelist_status = ListStatus::from_code(status).map(ListStatus::name);
        self.whitelist_status_source = source
            .and_then(|source| ListStatusSource::from_code(source))
            .map(ListStatusSource::name);
    }

    fn set_status(&mut self, session: &'a Session, params: &AuthenticationParams) {
        let status = session.status();
        self.authentication_status = status.map(TransStatus::name);
        self.authentication_status_code = status.map(TransStatus::code);
        self.authentication_status_reason = self
            .authentication_status_reason_code
            .and_then(|code| reason_name(params.network.brand(), code));
        let is_proved = matches!(
            status,
            Some(TransStatus::Successful | TransStatus::Attempted)
        );
        let is_shifted = self
            .eci
            .is_some_and(|eci| params.network.shifts_liability(eci));
        self.liability_shifted = params.is_payment && is_proved && is_shifted;
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
