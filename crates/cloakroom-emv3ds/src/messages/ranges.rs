//! The preparation request and response, which download card ranges.

use serde_json::Value;

use super::{Message, MessageExtension, message, redacted_part};
use crate::version::{Announced, Version};

message! {
    /// Requests all card ranges from a DS, or the changes since `serialNum`.
    PReq {
        message_version: Version = "messageVersion",
        threeds_server_trans_id: String = "threeDSServerTransID",
        threeds_server_ref_number: String = "threeDSServerRefNumber",
        ;
        threeds_server_operator_id: String = "threeDSServerOperatorID",
        serial_num: String = "serialNum",
        card_range_data_download_ind: String = "cardRangeDataDownloadInd",
        message_extension: Vec<MessageExtension> = "messageExtension",
    }
    ids { threeds_server_trans_id }
    wrapped Message::PReq
}

message! {
    /// All card ranges, or the changes; see [`crate::RangeTable::apply`].
    PRes {
        message_version: Version = "messageVersion",
        threeds_server_trans_id: String = "threeDSServerTransID",
        ds_trans_id: String = "dsTransID",
        ;
        ds_start_protocol_version: Announced = "dsStartProtocolVersion",
        ds_end_protocol_version: Announced = "dsEndProtocolVersion",
        ds_protocol_versions: Vec<Announced> = "dsProtocolVersions",
        serial_num: String = "serialNum",
        card_range_data: Vec<CardRangeData> = "cardRangeData",
        card_range_data_file_path: String = "cardRangeDataFilePath",
        ds_url_list: Vec<Value> = "dsUrlList",
        read_order: String = "readOrder",
        message_extension: Vec<MessageExtension> = "messageExtension",
    }
    ids { threeds_server_trans_id, ds_trans_id }
    wrapped Message::PRes
}

redacted_part! {
    /// An element of `cardRangeData`: one range until 2.2.0, several from 2.3.1.
    CardRangeData {
        ;
        start_range: String = "startRange",
        end_range: String = "endRange",
        ranges: Vec<Range> = "ranges",
        action_ind: String = "actionInd",
        acs_start_protocol_version: Announced = "acsStartProtocolVersion",
        acs_end_protocol_version: Announced = "acsEndProtocolVersion",
        acs_protocol_versions: Vec<AcsProtocolVersion> = "acsProtocolVersions",
        ds_start_protocol_version: Announced = "dsStartProtocolVersion",
        ds_end_protocol_version: Announced = "dsEndProtocolVersion",
        ds_protocol_versions: Vec<Announced> = "dsProtocolVersions",
        acs_info_ind: Vec<String> = "acsInfoInd",
        threeds_method_url: String = "threeDSMethodURL",
    }
}

redacted_part! {
    /// The first and the last account number, inclusive.
    Range {
        start_range: String = "startRange",
        end_range: String = "endRange",
        ;
    }
}

redacted_part! {
    /// Capabilities of an ACS in one protocol version (from 2.3.1).
    AcsProtocolVersion {
        version: Announced = "version",
        ;
        acs_info_ind: Vec<String> = "acsInfoInd",
        threeds_method_url: String = "threeDSMethodURL",
        supported_msg_ext: Vec<Value> = "supportedMsgExt",
    }
}
