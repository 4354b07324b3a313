//! The `AReq`: merchant and cardholder, for all device channels.

use super::Format::{
    Alphanumeric, AnyObjects, Ascii, Codes, CodesOrNetwork, Country, Date, Digits, Email, Month,
    Object, Text, True,
};
use super::areq::YES_NO;
use super::condition::{Condition, Rule};
use super::field::{Channels, Field, optional, required, when};
use crate::codes::AuthenticationCategory;
use crate::version::Version::{V2_2_0, V2_3_1};

static FOR_PAYMENTS: Rule = Rule {
    name: "for payments",
    condition: Condition::Category(AuthenticationCategory::Payment),
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

const APP_AND_BROWSER: Channels = Channels::APP_AND_BROWSER;

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
    optional("addrMatch", YES_NO).on(APP_AND_BROWSER),
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
