//! The challenge request and response of the browser channel.

use super::{Message, MessageExtension, message};
use crate::codes::TransStatus;
use crate::version::Version;

message! {
    /// The request to start a challenge, which the browser posts to the ACS.
    CReq {
        message_version: Version = "messageVersion",
        threeds_server_trans_id: String = "threeDSServerTransID",
        acs_trans_id: String = "acsTransID",
        challenge_window_size: String = "challengeWindowSize",
        ;
        message_extension: Vec<MessageExtension> = "messageExtension",
    }
    ids { threeds_server_trans_id, acs_trans_id }
    wrapped Message::CReq
}

message! {
    /// The final challenge response. It passes through the browser, so it must not be trusted.
    CRes {
        message_version: Version = "messageVersion",
        threeds_server_trans_id: String = "threeDSServerTransID",
        acs_trans_id: String = "acsTransID",
        trans_status: TransStatus = "transStatus",
        ;
        challenge_completion_ind: String = "challengeCompletionInd",
        message_extension: Vec<MessageExtension> = "messageExtension",
    }
    ids { threeds_server_trans_id, acs_trans_id }
    wrapped Message::CRes
}
