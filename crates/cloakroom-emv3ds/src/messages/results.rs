//! The results request and response: the final result of a challenge or decoupled authentication.

use super::{ARes, AcsRenderingType, Message, MessageExtension, message, outcome};
use crate::codes::{DeviceChannel, TransStatus};
use crate::confidential::Confidential;
use crate::fault::Fault;
use crate::version::Version;

message! {
    /// The final authentication result, sent by the ACS through the DS.
    RReq {
        message_version: Version = "messageVersion",
        message_category: String = "messageCategory",
        threeds_server_trans_id: String = "threeDSServerTransID",
        acs_trans_id: String = "acsTransID",
        ds_trans_id: String = "dsTransID",
        ;
        sdk_trans_id: String = "sdkTransID",
        trans_status: TransStatus = "transStatus",
        trans_status_reason: String = "transStatusReason",
        trans_status_reason_info: String = "transStatusReasonInfo",
        trans_challenge_exemption: String = "transChallengeExemption",
        authentication_value: Confidential = "authenticationValue",
        eci: String = "eci",
        authentication_type: String = "authenticationType",
        authentication_method: Vec<String> = "authenticationMethod",
        interaction_counter: String = "interactionCounter",
        challenge_cancel: String = "challengeCancel",
        acs_rendering_type: AcsRenderingType = "acsRenderingType",
        white_list_status: String = "whiteListStatus",
        white_list_status_source: String = "whiteListStatusSource",
        trust_list_status: String = "trustListStatus",
        trust_list_status_source: String = "trustListStatusSource",
        device_binding_status: String = "deviceBindingStatus",
        device_binding_status_source: String = "deviceBindingStatusSource",
        message_extension: Vec<MessageExtension> = "messageExtension",
    }
    ids { threeds_server_trans_id, acs_trans_id, ds_trans_id, sdk_trans_id }
    wrapped |message| Message::RReq(Box::new(message))
}

impl RReq {
    /// Validates that this is the result of the transaction of `ares`: same ids (301 if not) and
    /// version, and all fields that the channel and the type of challenge require.
    pub fn concludes(&self, ares: &ARes, channel: DeviceChannel) -> Result<(), Fault> {
        crate::correlate::validate_rreq(self, ares, channel)
    }
}

outcome!(RReq);

message! {
    /// The 3DS Server's response to an [`RReq`].
    RRes {
        message_version: Version = "messageVersion",
        threeds_server_trans_id: String = "threeDSServerTransID",
        acs_trans_id: String = "acsTransID",
        ds_trans_id: String = "dsTransID",
        results_status: String = "resultsStatus",
        ;
        sdk_trans_id: String = "sdkTransID",
        message_extension: Vec<MessageExtension> = "messageExtension",
    }
    ids { threeds_server_trans_id, acs_trans_id, ds_trans_id, sdk_trans_id }
    wrapped Message::RRes
}
