//! The challenge in a browser: what starts it and what ends it.

use super::{Message, MessageExtension, message};
use crate::codes::TransStatus;
use crate::version::Version;

message! {
    /// What a browser brings to the access control server.
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
    /// What a browser brings back. It passed through the browser, so it proves nothing.
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
