//! The message that says what is wrong with another.

use super::{Message, message};
use crate::fault::{Component, ErrorCode};
use crate::version::Announced;

message! {
    /// An error, from anybody to anybody. Its version is as announced: who does not speak ours says
    /// so in its own.
    Erro {
        message_version: Announced = "messageVersion",
        error_code: String = "errorCode",
        error_component: Component = "errorComponent",
        error_description: String = "errorDescription",
        error_detail: String = "errorDetail",
        ;
        error_message_type: String = "errorMessageType",
        threeds_server_trans_id: String = "threeDSServerTransID",
        acs_trans_id: String = "acsTransID",
        ds_trans_id: String = "dsTransID",
        sdk_trans_id: String = "sdkTransID",
    }
    ids { threeds_server_trans_id, acs_trans_id, ds_trans_id, sdk_trans_id }
    wrapped Message::Erro
}

impl Erro {
    /// The code, if it is one that we know.
    pub fn code(&self) -> Option<ErrorCode> {
        ErrorCode::from_code(&self.error_code)
    }
}
