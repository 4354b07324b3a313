//! The error message.

use super::{Message, message};
use crate::fault::{Component, ErrorCode};
use crate::version::Announced;

message! {
    /// Reports an error in another message, between any two components. Its version may be one that
    /// is not supported here: a component reports an unsupported version in its own version.
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
    /// The error code, if known.
    pub fn code(&self) -> Option<ErrorCode> {
        ErrorCode::from_code(&self.error_code)
    }
}
