//! The authentication response.

use serde_json::{Map, Value};

use super::{AReq, AcsRenderingType, CardholderInfo, Message, MessageExtension, message, outcome};
use crate::codes::TransStatus;
use crate::confidential::Confidential;
use crate::fault::Fault;
use crate::version::Version;

message! {
    /// The ACS's response to an [`AReq`], routed through the DS.
    ARes {
        message_version: Version = "messageVersion",
        threeds_server_trans_id: String = "threeDSServerTransID",
        acs_trans_id: String = "acsTransID",
        ds_trans_id: String = "dsTransID",
        acs_reference_number: String = "acsReferenceNumber",
        ds_reference_number: String = "dsReferenceNumber",
        ;
        acs_operator_id: String = "acsOperatorID",
        sdk_trans_id: String = "sdkTransID",
        trans_status: TransStatus = "transStatus",
        trans_status_reason: String = "transStatusReason",
        trans_status_reason_info: String = "transStatusReasonInfo",
        trans_challenge_exemption: String = "transChallengeExemption",
        authentication_value: Confidential = "authenticationValue",
        eci: String = "eci",
        acs_challenge_mandated: String = "acsChallengeMandated",
        authentication_type: String = "authenticationType",
        authentication_method: Vec<String> = "authenticationMethod",
        acs_url: String = "acsURL",
        acs_rendering_type: AcsRenderingType = "acsRenderingType",
        acs_signed_content: String = "acsSignedContent",
        acs_dec_con_ind: String = "acsDecConInd",
        cardholder_info: CardholderInfo = "cardholderInfo",
        white_list_status: String = "whiteListStatus",
        white_list_status_source: String = "whiteListStatusSource",
        trust_list_status: String = "trustListStatus",
        trust_list_status_source: String = "trustListStatusSource",
        device_binding_status: String = "deviceBindingStatus",
        device_binding_status_source: String = "deviceBindingStatusSource",
        broad_info: Map<String, Value> = "broadInfo",
        message_extension: Vec<MessageExtension> = "messageExtension",
    }
    ids { threeds_server_trans_id, acs_trans_id, ds_trans_id, sdk_trans_id }
    wrapped |message| Message::ARes(Box::new(message))
}

impl ARes {
    /// Validates that this is a response to `request`: same transaction (301 if not) and version, all
    /// fields that the channel and category require, and no decoupled authentication or challenge
    /// that the request does not allow.
    pub fn answers(&self, request: &AReq) -> Result<(), Fault> {
        crate::correlate::validate_ares(self, request)
    }
}

outcome!(ARes);
