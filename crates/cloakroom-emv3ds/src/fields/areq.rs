//! The `AReq`: envelope, merchant and cardholder, for all channels.

use super::Format::{
    Alphanumeric, AnyObject, AnyObjects, Ascii, Codes, CodesOrNetwork, Country, Date, Digits,
    Email, List, Minute, Month, Number, Object, Objects, Text, True, Url, Uuid, Version,
};
use super::condition::{Condition, Rule};
use super::field::{Channels, Constraint, Field, optional, required, when};
use crate::codes::{AuthenticationCategory, DeviceChannel};
use crate::version::Version::{V2_1_0, V2_2_0, V2_3_1};

pub(super) static FOR_PAYMENTS: Rule = Rule {
    name: "for payments",
    condition: Condition::Category(AuthenticationCategory::Payment),
};

static DECOUPLED_ASKED_FOR: Rule = Rule {
    name: "if decoupled authentication is asked for",
    condition: Condition::Is("threeDSRequestorDecReqInd", &["Y", "F", "B"]),
};

static WITH_ACQUIRER_COUNTRY: Rule = Rule {
    name: "with acquirerCountryCode",
    condition: Condition::Present("acquirerCountryCode"),
};

static FOR_PAYMENT_TOKENS: Rule = Rule {
    name: "with payTokenInd",
    condition: Condition::Present("payTokenInd"),
};

static WITH_BILLING_STATE: Rule = Rule {
    name: "with billAddrState",
    condition: Condition::Present("billAddrState"),
};

static WITH_SHIPPING_STATE: Rule = Rule {
    name: "with shipAddrState",
    condition: Condition::Present("shipAddrState"),
};

/// Without the cardholder nothing can be paid in the oldest version.
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

const CUSTOMER: Channels = Channels::CUSTOMER;

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
    .on(CUSTOMER),
    required(
        "threeDSRequestorAuthenticationInd",
        Codes(&["01", "02", "03", "04", "05", "06", "07", "08", "09", "10"]),
    )
    .since(V2_3_1)
    .on(CUSTOMER),
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
        .on(CUSTOMER),
    optional("threeDSRequestorChallengeInd", CHALLENGE_220)
        .since(V2_2_0)
        .until(V2_2_0)
        .on(CUSTOMER),
    optional(
        "threeDSRequestorChallengeInd",
        List {
            of: &CHALLENGE_231,
            count: 2,
        },
    )
    .since(V2_3_1)
    .on(CUSTOMER),
    optional(AUTHENTICATION_INFO, Object)
        .until(V2_2_0)
        .on(CUSTOMER),
    optional(
        AUTHENTICATION_INFO,
        Objects {
            count: 3,
            max: 65536,
        },
    )
    .since(V2_3_1)
    .on(CUSTOMER),
    optional(
        "threeDSRequestorAuthenticationInfo.threeDSReqAuthMethod",
        METHOD_210,
    )
    .until(V2_1_0)
    .on(CUSTOMER),
    optional(
        "threeDSRequestorAuthenticationInfo.threeDSReqAuthMethod",
        METHOD_220,
    )
    .since(V2_2_0)
    .until(V2_2_0)
    .on(CUSTOMER),
    optional(
        "threeDSRequestorAuthenticationInfo.threeDSReqAuthMethod",
        METHOD_231,
    )
    .since(V2_3_1)
    .on(CUSTOMER),
    optional(
        "threeDSRequestorAuthenticationInfo.threeDSReqAuthTimestamp",
        Minute,
    )
    .on(CUSTOMER),
    optional(
        "threeDSRequestorAuthenticationInfo.threeDSReqAuthData",
        Text { min: 1, max: 20000 },
    )
    .on(CUSTOMER),
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
        &DECOUPLED_ASKED_FOR,
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
        .on(CUSTOMER),
    optional("broadInfo", AnyObject { max: 4096 }),
];

pub(super) const MERCHANT: &[Field] = &[
    when(
        &FOR_PAYMENTS,
        "acquirerBIN",
        Alphanumeric { min: 1, max: 11 },
    ),
    when(
        &FOR_PAYMENTS,
        "acquirerMerchantID",
        Text { min: 1, max: 35 },
    ),
    when(&FOR_PAYMENTS, "acquirerCountryCode", Country).since(V2_3_1),
    when(
        &WITH_ACQUIRER_COUNTRY,
        "acquirerCountryCodeSource",
        Codes(&["01", "02"]),
    )
    .since(V2_3_1),
    when(&FOR_PAYMENTS, "mcc", Digits { min: 4, max: 4 }),
    when(&FOR_PAYMENTS, "merchantCountryCode", Country),
    when(&FOR_PAYMENTS, "merchantName", Text { min: 1, max: 40 }),
    optional(
        "sellerInfo",
        AnyObjects {
            count: 50,
            max: 65536,
        },
    )
    .since(V2_3_1),
];

pub(super) const CARDHOLDER: &[Field] = &[
    required("acctNumber", Digits { min: 13, max: 19 }),
    optional("cardExpiryDate", Month),
    optional("acctType", CodesOrNetwork(&["01", "02", "03"])),
    optional("acctID", Text { min: 1, max: 64 }),
    optional("acctInfo", Object),
    optional(
        "acctInfo.chAccAgeInd",
        Codes(&["01", "02", "03", "04", "05"]),
    ),
    optional("acctInfo.chAccDate", Date),
    optional("acctInfo.chAccChangeInd", Codes(&["01", "02", "03", "04"])),
    optional("acctInfo.chAccChange", Date),
    optional(
        "acctInfo.chAccPwChangeInd",
        Codes(&["01", "02", "03", "04", "05"]),
    ),
    optional("acctInfo.chAccPwChange", Date),
    optional("acctInfo.nbPurchaseAccount", Digits { min: 1, max: 4 }),
    optional("acctInfo.provisionAttemptsDay", Digits { min: 1, max: 3 }),
    optional("acctInfo.txnActivityDay", Digits { min: 1, max: 3 }),
    optional("acctInfo.txnActivityYear", Digits { min: 1, max: 3 }),
    optional(
        "acctInfo.paymentAccInd",
        Codes(&["01", "02", "03", "04", "05"]),
    ),
    optional("acctInfo.paymentAccAge", Date),
    optional(
        "acctInfo.shipAddressUsageInd",
        Codes(&["01", "02", "03", "04"]),
    ),
    optional("acctInfo.shipAddressUsage", Date),
    optional("acctInfo.shipNameIndicator", Codes(&["01", "02"])),
    optional("acctInfo.suspiciousAccActivity", Codes(&["01", "02"])),
    optional("payTokenInd", True),
    when(&FOR_PAYMENT_TOKENS, "payTokenSource", Codes(&["01", "02"])),
    optional("cardholderName", Ascii { min: 2, max: 45 }).until(V2_2_0),
    optional("cardholderName", Text { min: 2, max: 45 }).since(V2_3_1),
    optional("email", Email { max: 254 }),
    optional("homePhone", Object),
    required("homePhone.cc", Digits { min: 1, max: 3 }),
    required("homePhone.subscriber", Digits { min: 1, max: 15 }),
    optional("mobilePhone", Object),
    required("mobilePhone.cc", Digits { min: 1, max: 3 }),
    required("mobilePhone.subscriber", Digits { min: 1, max: 15 }),
    optional("workPhone", Object),
    required("workPhone.cc", Digits { min: 1, max: 3 }),
    required("workPhone.subscriber", Digits { min: 1, max: 15 }),
    optional("addrMatch", YES_NO).on(CUSTOMER),
    optional("billAddrLine1", Text { min: 1, max: 50 }),
    optional("billAddrLine2", Text { min: 1, max: 50 }),
    optional("billAddrLine3", Text { min: 1, max: 50 }),
    optional("billAddrCity", Text { min: 1, max: 50 }),
    optional("billAddrState", Alphanumeric { min: 1, max: 3 }),
    optional("billAddrPostCode", Text { min: 1, max: 16 }),
    when(&WITH_BILLING_STATE, "billAddrCountry", Country),
    optional("shipAddrLine1", Text { min: 1, max: 50 }),
    optional("shipAddrLine2", Text { min: 1, max: 50 }),
    optional("shipAddrLine3", Text { min: 1, max: 50 }),
    optional("shipAddrCity", Text { min: 1, max: 50 }),
    optional("shipAddrState", Alphanumeric { min: 1, max: 3 }),
    optional("shipAddrPostCode", Text { min: 1, max: 16 }),
    when(&WITH_SHIPPING_STATE, "shipAddrCountry", Country),
];
