//! `PReq` and `PRes`.

use super::Format::{AnyList, Codes, Digits, List, Objects, Text, Url, Uuid, Version};
use super::field::{Field, optional, required};
use crate::version::Version::{V2_1_0, V2_2_0, V2_3_1};

const SERIAL: super::Format = Text { min: 1, max: 20 };

pub(super) const PREQ: &[Field] = &[
    required("messageVersion", Version),
    required("threeDSServerTransID", Uuid),
    required("threeDSServerRefNumber", Text { min: 1, max: 32 }),
    optional("threeDSServerOperatorID", Text { min: 1, max: 32 }),
    optional("serialNum", SERIAL),
    optional("cardRangeDataDownloadInd", Codes(&["Y"])).since(V2_3_1),
];

/// Not a real limit: the size of the message is reached first.
const MAX_RANGES: usize = 1_000_000;
const RANGES: super::Format = Objects {
    count: MAX_RANGES,
    max: usize::MAX,
};
const NUMBER: super::Format = Digits { min: 13, max: 19 };
const INFORMATION: super::Format = List {
    of: &Digits { min: 2, max: 2 },
    count: 99,
};
const VERSIONS: super::Format = List {
    of: &Version,
    count: 99,
};

pub(super) const PRES: &[Field] = &[
    required("messageVersion", Version),
    required("threeDSServerTransID", Uuid),
    required("dsTransID", Uuid),
    required("dsStartProtocolVersion", Version).until(V2_2_0),
    required("dsEndProtocolVersion", Version).until(V2_2_0),
    required("dsProtocolVersions", VERSIONS).since(V2_3_1),
    optional("serialNum", SERIAL),
    optional("cardRangeData", RANGES),
    required("cardRangeData.startRange", NUMBER).until(V2_2_0),
    required("cardRangeData.endRange", NUMBER).until(V2_2_0),
    required("cardRangeData.ranges", RANGES).since(V2_3_1),
    required("cardRangeData.ranges.startRange", NUMBER).since(V2_3_1),
    required("cardRangeData.ranges.endRange", NUMBER).since(V2_3_1),
    optional("cardRangeData.actionInd", Codes(&["A", "D"])).until(V2_1_0),
    optional("cardRangeData.actionInd", Codes(&["A", "D", "M"])).since(V2_2_0),
    required("cardRangeData.acsStartProtocolVersion", Version).until(V2_2_0),
    required("cardRangeData.acsEndProtocolVersion", Version).until(V2_2_0),
    required(
        "cardRangeData.acsProtocolVersions",
        Objects {
            count: 99,
            max: 65536,
        },
    )
    .since(V2_3_1),
    required("cardRangeData.acsProtocolVersions.version", Version).since(V2_3_1),
    optional("cardRangeData.acsProtocolVersions.acsInfoInd", INFORMATION).since(V2_3_1),
    optional(
        "cardRangeData.acsProtocolVersions.threeDSMethodURL",
        Url { max: 256 },
    )
    .since(V2_3_1),
    optional(
        "cardRangeData.acsProtocolVersions.supportedMsgExt",
        AnyList { max: 8192 },
    )
    .since(V2_3_1),
    optional("cardRangeData.dsStartProtocolVersion", Version).until(V2_2_0),
    optional("cardRangeData.dsEndProtocolVersion", Version).until(V2_2_0),
    optional("cardRangeData.dsProtocolVersions", VERSIONS).since(V2_3_1),
    optional("cardRangeData.acsInfoInd", INFORMATION)
        .since(V2_2_0)
        .until(V2_2_0),
    optional("cardRangeData.threeDSMethodURL", Url { max: 256 }).until(V2_2_0),
    optional("cardRangeDataFilePath", Text { min: 1, max: 2048 }).since(V2_3_1),
    optional("dsUrlList", AnyList { max: 65536 }).since(V2_3_1),
    optional("readOrder", Text { min: 1, max: 64 }).since(V2_3_1),
];
