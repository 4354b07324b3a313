//! The `AReq`: fields about the request itself, for all device channels.

use super::Format::{
    AnyObject, Ascii, Codes, CodesOrNetwork, List, Minute, Number, Object, Objects, Text, Url,
    Uuid, Version,
};
use super::condition::{Condition, Rule};
use super::field::{Channels, Constraint, Field, optional, required, when};
use crate::codes::DeviceChannel;
use crate::version::Version::{V2_1_0, V2_2_0, V2_3_1};

static DECOUPLED_REQUESTED: Rule = Rule {
    name: "if decoupled authentication is requested",
    condition: Condition::Is("threeDSRequestorDecReqInd", &["Y", "F", "B"]),
};

/// 2.1.0 has no 3RI payments.
pub(super) const CONSTRAINTS: &[Constraint] = &[Constraint {
    until: V2_1_0,
    when: Condition::Channel(DeviceChannel::ThreeRi),
    path: "messageCategory",
    one_of: &["02"],
}];

pub(super) const YES_NO: super::Format = Codes(&["Y", "N"]);
pub(super) const LIST_STATUS: super::Format = Codes(&["Y", "N", "E", "P", "R", "U"]);
pub(super) const LIST_SOURCE: super::Format = Codes(&["01", "02", "03"]);

const CHALLENGE_210: super::Format = CodesOrNetwork(&["01", "02", "03", "04"]);
const CHALLENGE_220: super::Format =
    CodesOrNetwork(&["01", "02", "03", "04", "05", "06", "07", "08", "09"]);
const CHALLENGE_231: super::Format = CodesOrNetwork(&[
    "01", "02", "03", "04", "05", "06", "07", "08", "09", "10", "11", "12",
]);
const METHOD_210: super::Format = CodesOrNetwork(&["01", "02", "03", "04", "05", "06"]);
const METHOD_220: super::Format = CodesOrNetwork(&["01", "02", "03", "04", "05", "06", "07", "08"]);
const METHOD_231: super::Format = CodesOrNetwork(&[
    "01", "02", "03", "04", "05", "06", "07", "08", "09", "10", "11",
]);

const AUTHENTICATION_INFO: &str = "threeDSRequestorAuthenticationInfo";
const PRIOR_INFO: &str = "threeDSRequestorPriorAuthenticationInfo";

const APP_AND_BROWSER: Channels = Channels::APP_AND_BROWSER;

pub(super) const ENVELOPE: &[Field] = &[
    required("messageVersion", Version),
    required("messageCategory", Codes(&["01", "02"])),
    required("deviceChannel", Codes(&["01", "02", "03"])),
    required("threeDSServerTransID", Uuid),
    required("threeDSServerRefNumber", Text { min: 1, max: 32 }),
    optional("threeDSServerOperatorID", Text { min: 1, max: 32 }),
    required("threeDSServerURL", Url { max: 2048 }),
    required("threeDSRequestorID", Text { min: 1, max: 35 }),
    required("threeDSRequestorName", Text { min: 1, max: 40 }),
    required("threeDSRequestorURL", Url { max: 2048 }),
    required(
        "threeDSRequestorAuthenticationInd",
        Codes(&["01", "02", "03", "04", "05", "06"]),
    )
    .until(V2_2_0)
    .on(APP_AND_BROWSER),
    required(
        "threeDSRequestorAuthenticationInd",
        Codes(&["01", "02", "03", "04", "05", "06", "07", "08", "09", "10"]),
    )
    .since(V2_3_1)
    .on(APP_AND_BROWSER),
    required("threeRIInd", Codes(&["01", "02", "03", "04", "05"]))
        .until(V2_1_0)
        .on(Channels::THREE_RI),
    required(
        "threeRIInd",
        Number {
            digits: (2, 2),
            min: 1,
            max: 12,
        },
    )
    .since(V2_2_0)
    .until(V2_2_0)
    .on(Channels::THREE_RI),
    required(
        "threeRIInd",
        Number {
            digits: (2, 2),
            min: 1,
            max: 19,
        },
    )
    .since(V2_3_1)
    .on(Channels::THREE_RI),
    optional("threeDSRequestorChallengeInd", CHALLENGE_210)
        .until(V2_1_0)
        .on(APP_AND_BROWSER),
    optional("threeDSRequestorChallengeInd", CHALLENGE_220)
        .since(V2_2_0)
        .until(V2_2_0)
        .on(APP_AND_BROWSER),
    optional(
        "threeDSRequestorChallengeInd",
        List {
            of: &CHALLENGE_231,
            count: 2,
        },
    )
    .since(V2_3_1)
    .on(APP_AND_BROWSER),
    optional(AUTHENTICATION_INFO, Object)
        .until(V2_2_0)
        .on(APP_AND_BROWSER),
    optional(
        AUTHENTICATION_INFO,
        Objects {
            count: 3,
            max: 65536,
        },
    )
    .since(V2_3_1)
    .on(APP_AND_BROWSER),
    optional(
        "threeDSRequestorAuthenticationInfo.threeDSReqAuthMethod",
        METHOD_210,
    )
    .until(V2_1_0)
    .on(APP_AND_BROWSER),
    optional(
        "threeDSRequestorAuthenticationInfo.threeDSReqAuthMethod",
        METHOD_220,
    )
    .since(V2_2_0)
    .until(V2_2_0)
    .on(APP_AND_BROWSER),
    optional(
        "threeDSRequestorAuthenticationInfo.threeDSReqAuthMethod",
        METHOD_231,
    )
    .since(V2_3_1)
    .on(APP_AND_BROWSER),
    optional(
        "threeDSRequestorAuthenticationInfo.threeDSReqAuthTimestamp",
        Minute,
    )
    .on(APP_AND_BROWSER),
    optional(
        "threeDSRequestorAuthenticationInfo.threeDSReqAuthData",
        Text { min: 1, max: 20000 },
    )
    .on(APP_AND_BROWSER),
    optional(PRIOR_INFO, Object).until(V2_2_0),
    optional(
        PRIOR_INFO,
        Objects {
            count: 3,
            max: 65536,
        },
    )
    .since(V2_3_1),
    optional(
        "threeDSRequestorPriorAuthenticationInfo.threeDSReqPriorRef",
        Ascii { min: 36, max: 36 },
    ),
    optional(
        "threeDSRequestorPriorAuthenticationInfo.threeDSReqPriorAuthMethod",
        CodesOrNetwork(&["01", "02", "03", "04"]),
    ),
    optional(
        "threeDSRequestorPriorAuthenticationInfo.threeDSReqPriorAuthTimestamp",
        Minute,
    ),
    optional(
        "threeDSRequestorPriorAuthenticationInfo.threeDSReqPriorAuthData",
        Text { min: 1, max: 2048 },
    ),
    optional("threeDSRequestorDecReqInd", YES_NO)
        .since(V2_2_0)
        .until(V2_2_0),
    optional("threeDSRequestorDecReqInd", Codes(&["Y", "N", "F", "B"])).since(V2_3_1),
    when(
        &DECOUPLED_REQUESTED,
        "threeDSRequestorDecMaxTime",
        Number {
            digits: (5, 5),
            min: 1,
            max: 10080,
        },
    )
    .since(V2_2_0),
    optional("threeDSReqAuthMethodInd", Codes(&["01", "02", "03"]))
        .since(V2_2_0)
        .until(V2_2_0)
        .on(APP_AND_BROWSER),
    optional("broadInfo", AnyObject { max: 4096 }),
];
