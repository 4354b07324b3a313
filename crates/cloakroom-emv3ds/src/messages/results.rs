//! The final result of a challenge or of a decoupled authentication, and its receipt.

use super::{ARes, AcsRenderingType, Message, MessageExtension, message, outcome};
use crate::codes::{DeviceChannel, TransStatus};
use crate::confidential::Confidential;
use crate::fault::Fault;
use crate::version::Version;

message! {
    /// The result, sent by the access control server through the directory server.
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
    /// Whether this is the result of what that answer began: the same transaction (301 if not) and
    /// version, and all that the channel and the kind of challenge need.
    pub fn concludes(&self, answer: &ARes, channel: DeviceChannel) -> Result<(), Fault> {
        crate::exchange::concludes(self, answer, channel)
    }
}

outcome!(RReq);

message! {
    /// The receipt for a result.
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
