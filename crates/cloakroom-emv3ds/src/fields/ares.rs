//! The `ARes` and the `RReq`: the initial and the final authentication result.

use super::Format::{
    Alphanumeric, AnyObject, Ascii, Base64, Codes, Digits, List, Number, Object, Text, Url, Uuid,
    Version,
};
use super::areq::{LIST_SOURCE, LIST_STATUS, YES_NO};
use super::condition::{Condition, Rule};
use super::field::{Constraint, Field, optional, required, when};
use crate::codes::{AuthenticationCategory, DeviceChannel, TransStatus};
use crate::version::Version::{V2_1_0, V2_2_0, V2_3_1};

const PAYMENT: Condition = Condition::Category(AuthenticationCategory::Payment);
const APP: Condition = Condition::Channel(DeviceChannel::App);
const BROWSER: Condition = Condition::Channel(DeviceChannel::Browser);
const CHALLENGE: Condition = Condition::Is("transStatus", &["C"]);

static FOR_PAYMENTS: Rule = Rule {
    name: "for payments",
    condition: PAYMENT,
};

static FOR_APPS: Rule = Rule {
    name: "for apps",
    condition: APP,
};

static IF_PAYMENT_FAILED: Rule = Rule {
    name: "for payments if transStatus is N, U or R",
    condition: Condition::All(&[PAYMENT, Condition::Is("transStatus", &["N", "U", "R"])]),
};

static IF_PAYMENT_SUCCEEDED: Rule = Rule {
    name: "for payments if transStatus is Y or A",
    condition: Condition::All(&[PAYMENT, Condition::Is("transStatus", &["Y", "A"])]),
};

static IF_CHALLENGE: Rule = Rule {
    name: "if transStatus is C or D",
    condition: Condition::Is("transStatus", &["C", "D"]),
};

static FOR_BROWSER_CHALLENGES: Rule = Rule {
    name: "for a challenge in a browser",
    condition: Condition::All(&[CHALLENGE, BROWSER]),
};

static FOR_APP_CHALLENGES: Rule = Rule {
    name: "for a challenge in an app",
    condition: Condition::All(&[CHALLENGE, APP]),
};

static IF_DECOUPLED: Rule = Rule {
    name: "if transStatus is D",
    condition: Condition::Is("transStatus", &["D"]),
};

static IF_CONFIRMED_DECOUPLED: Rule = Rule {
    name: "if acsDecConInd is Y",
    condition: Condition::Is("acsDecConInd", &["Y"]),
};

static IF_AUTHENTICATED_OR_FAILED: Rule = Rule {
    name: "if transStatus is Y or N",
    condition: Condition::Is("transStatus", &["Y", "N"]),
};

static IF_INTERACTIVE: Rule = Rule {
    name: "unless the authentication was decoupled",
    condition: Condition::Any(&[
        Condition::AresStatus(TransStatus::Challenge),
        Condition::Is("authenticationType", &["01", "02", "03"]),
    ]),
};

/// `transStatus` D requires `acsDecConInd` Y.
pub(super) const CONSTRAINTS: &[Constraint] = &[Constraint {
    until: V2_3_1,
    when: Condition::Is("transStatus", &["D"]),
    path: "acsDecConInd",
    one_of: &["Y"],
}];

const REFERENCE: super::Format = Text { min: 1, max: 32 };
/// Any two digits, so that codes added later are accepted.
const CODE: super::Format = Digits { min: 2, max: 2 };
const AUTHENTICATION_VALUE: super::Format = Base64 { bytes: 20 };
const ECI: super::Format = Alphanumeric { min: 2, max: 2 };
const METHODS: super::Format = List {
    of: &CODE,
    count: 99,
};

pub(super) const ARES: &[Field] = &[
    required("messageVersion", Version),
    required("threeDSServerTransID", Uuid),
    required("acsTransID", Uuid),
    required("dsTransID", Uuid),
    required("acsReferenceNumber", REFERENCE),
    required("dsReferenceNumber", REFERENCE),
    optional("acsOperatorID", REFERENCE),
    when(&FOR_APPS, "sdkTransID", Uuid),
    when(
        &FOR_PAYMENTS,
        "transStatus",
        Codes(&["Y", "N", "U", "A", "C", "R"]),
    )
    .until(V2_1_0),
    when(
        &FOR_PAYMENTS,
        "transStatus",
        Codes(&["Y", "N", "U", "A", "C", "D", "R", "I"]),
    )
    .since(V2_2_0)
    .until(V2_2_0),
    when(
        &FOR_PAYMENTS,
        "transStatus",
        Codes(&["Y", "N", "U", "A", "C", "D", "R", "I", "S"]),
    )
    .since(V2_3_1),
    when(&IF_PAYMENT_FAILED, "transStatusReason", CODE),
    optional("transStatusReasonInfo", Text { min: 1, max: 256 }).since(V2_3_1),
    optional("transChallengeExemption", CODE).since(V2_3_1),
    when(
        &IF_PAYMENT_SUCCEEDED,
        "authenticationValue",
        AUTHENTICATION_VALUE,
    ),
    optional("eci", ECI),
    when(&IF_CHALLENGE, "acsChallengeMandated", YES_NO),
    when(&IF_CHALLENGE, "authenticationType", CODE).until(V2_2_0),
    when(&IF_CHALLENGE, "authenticationMethod", METHODS).since(V2_3_1),
    when(&FOR_BROWSER_CHALLENGES, "acsURL", Url { max: 2048 }),
    when(&FOR_APP_CHALLENGES, "acsRenderingType", Object),
    required("acsRenderingType.acsInterface", CODE),
    required("acsRenderingType.acsUiTemplate", CODE),
    optional("acsRenderingType.deviceUserInterfaceMode", CODE).since(V2_3_1),
    when(
        &FOR_APP_CHALLENGES,
        "acsSignedContent",
        Ascii { min: 1, max: 65536 },
    ),
    when(&IF_DECOUPLED, "acsDecConInd", YES_NO).since(V2_2_0),
    when(
        &IF_CONFIRMED_DECOUPLED,
        "cardholderInfo",
        Text { min: 1, max: 128 },
    )
    .until(V2_2_0),
    when(&IF_CONFIRMED_DECOUPLED, "cardholderInfo", Object).since(V2_3_1),
    required("cardholderInfo.text", Text { min: 1, max: 128 }).since(V2_3_1),
    optional("cardholderInfo.issuerImage", AnyObject { max: 8192 }).since(V2_3_1),
    optional("cardholderInfo.paymentSystemImage", AnyObject { max: 8192 }).since(V2_3_1),
    optional("whiteListStatus", LIST_STATUS)
        .since(V2_2_0)
        .until(V2_2_0),
    optional("whiteListStatusSource", LIST_SOURCE)
        .since(V2_2_0)
        .until(V2_2_0),
    optional("trustListStatus", LIST_STATUS).since(V2_3_1),
    optional("trustListStatusSource", LIST_SOURCE).since(V2_3_1),
    optional("deviceBindingStatus", CODE).since(V2_3_1),
    optional("deviceBindingStatusSource", CODE).since(V2_3_1),
    optional("broadInfo", AnyObject { max: 4096 }),
];

pub(super) const RREQ: &[Field] = &[
    required("messageVersion", Version),
    required("messageCategory", Codes(&["01", "02"])),
    required("threeDSServerTransID", Uuid),
    required("acsTransID", Uuid),
    required("dsTransID", Uuid),
    when(&FOR_APPS, "sdkTransID", Uuid),
    when(
        &FOR_PAYMENTS,
        "transStatus",
        Codes(&["Y", "N", "U", "A", "R"]),
    )
    .until(V2_2_0),
    when(
        &FOR_PAYMENTS,
        "transStatus",
        Codes(&["Y", "N", "U", "A", "R", "D"]),
    )
    .since(V2_3_1),
    when(&IF_PAYMENT_FAILED, "transStatusReason", CODE),
    optional("transStatusReasonInfo", Text { min: 1, max: 256 }).since(V2_3_1),
    optional("transChallengeExemption", CODE).since(V2_3_1),
    when(
        &IF_PAYMENT_SUCCEEDED,
        "authenticationValue",
        AUTHENTICATION_VALUE,
    ),
    when(&IF_PAYMENT_SUCCEEDED, "eci", ECI),
    when(&IF_AUTHENTICATED_OR_FAILED, "authenticationType", CODE).until(V2_2_0),
    when(&IF_AUTHENTICATED_OR_FAILED, "authenticationMethod", METHODS).since(V2_3_1),
    when(
        &IF_INTERACTIVE,
        "interactionCounter",
        Number {
            digits: (2, 2),
            min: 0,
            max: 99,
        },
    ),
    optional("challengeCancel", CODE),
    when(&FOR_APPS, "acsRenderingType", Object),
    required("acsRenderingType.acsInterface", CODE),
    required("acsRenderingType.acsUiTemplate", CODE),
    optional("acsRenderingType.deviceUserInterfaceMode", CODE).since(V2_3_1),
    optional("whiteListStatus", LIST_STATUS)
        .since(V2_2_0)
        .until(V2_2_0),
    optional("whiteListStatusSource", LIST_SOURCE)
        .since(V2_2_0)
        .until(V2_2_0),
    optional("trustListStatus", LIST_STATUS).since(V2_3_1),
    optional("trustListStatusSource", LIST_SOURCE).since(V2_3_1),
    optional("deviceBindingStatus", CODE).since(V2_3_1),
    optional("deviceBindingStatusSource", CODE).since(V2_3_1),
];
