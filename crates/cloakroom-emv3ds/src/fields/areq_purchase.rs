//! The `AReq`: purchase, recurring payments and risk information.

use super::Format::{Codes, CodesOrNetwork, Currency, Date, Digits, Email, Number, Object, Second};
use super::areq::{LIST_SOURCE, LIST_STATUS};
use super::condition::{Condition, Rule};
use super::field::{Channels, Field, optional, required, when};
use crate::codes::AuthenticationCategory;
use crate::version::Version::{V2_1_0, V2_2_0, V2_3_1};

static FOR_PURCHASES: Rule = Rule {
    name: "for payments, for recurring and installment transactions, and for 3RI payments",
    condition: Condition::Any(&[
        Condition::Category(AuthenticationCategory::Payment),
        Condition::Is("threeDSRequestorAuthenticationInd", &["02", "03"]),
        Condition::Is("threeRIInd", &["01", "02", "06", "07", "08", "09", "11"]),
    ]),
};

static FOR_INSTALLMENTS: Rule = Rule {
    name: "for installment transactions",
    condition: Condition::Any(&[
        Condition::Is("threeDSRequestorAuthenticationInd", &["03"]),
        Condition::Is("threeRIInd", &["02"]),
    ]),
};

static FOR_RECURRING: Rule = Rule {
    name: "for recurring and installment transactions",
    condition: Condition::Any(&[
        Condition::Is("threeDSRequestorAuthenticationInd", &["02", "03"]),
        Condition::Is("threeRIInd", &["01", "02"]),
    ]),
};

static WITH_WHITE_LIST_STATUS: Rule = Rule {
    name: "with whiteListStatus",
    condition: Condition::Present("whiteListStatus"),
};

static WITH_TRUST_LIST_STATUS: Rule = Rule {
    name: "with trustListStatus",
    condition: Condition::Present("trustListStatus"),
};

const AMOUNT: super::Format = Digits { min: 1, max: 48 };
const EXPONENT: super::Format = Digits { min: 1, max: 1 };
const INSTALLMENTS: super::Format = Number {
    digits: (1, 3),
    min: 2,
    max: 999,
};
const DAYS: super::Format = Digits { min: 1, max: 4 };

const APP_AND_BROWSER: Channels = Channels::APP_AND_BROWSER;
const THREE_RI: Channels = Channels::THREE_RI;

/// 2.1.0 has no purchase data on the 3RI channel.
pub(super) const PURCHASE: &[Field] = &[
    when(&FOR_PURCHASES, "purchaseAmount", AMOUNT)
        .until(V2_1_0)
        .on(APP_AND_BROWSER),
    when(&FOR_PURCHASES, "purchaseAmount", AMOUNT).since(V2_2_0),
    when(&FOR_PURCHASES, "purchaseCurrency", Currency)
        .until(V2_1_0)
        .on(APP_AND_BROWSER),
    when(&FOR_PURCHASES, "purchaseCurrency", Currency).since(V2_2_0),
    when(&FOR_PURCHASES, "purchaseExponent", EXPONENT)
        .until(V2_1_0)
        .on(APP_AND_BROWSER),
    when(&FOR_PURCHASES, "purchaseExponent", EXPONENT).since(V2_2_0),
    when(&FOR_PURCHASES, "purchaseDate", Second)
        .until(V2_1_0)
        .on(APP_AND_BROWSER),
    when(&FOR_PURCHASES, "purchaseDate", Second).since(V2_2_0),
    optional("transType", Codes(&["01", "03", "10", "11", "28"])),
    when(&FOR_INSTALLMENTS, "purchaseInstalData", INSTALLMENTS)
        .until(V2_1_0)
        .on(APP_AND_BROWSER),
    optional("purchaseInstalData", INSTALLMENTS)
        .until(V2_1_0)
        .on(THREE_RI),
    when(&FOR_INSTALLMENTS, "purchaseInstalData", INSTALLMENTS).since(V2_2_0),
    when(&FOR_RECURRING, "recurringExpiry", Date)
        .until(V2_1_0)
        .on(APP_AND_BROWSER),
    optional("recurringExpiry", Date).until(V2_1_0).on(THREE_RI),
    when(&FOR_RECURRING, "recurringExpiry", Date)
        .since(V2_2_0)
        .until(V2_2_0),
    optional("recurringExpiry", Date).since(V2_3_1),
    when(&FOR_RECURRING, "recurringFrequency", DAYS)
        .until(V2_1_0)
        .on(APP_AND_BROWSER),
    optional("recurringFrequency", DAYS)
        .until(V2_1_0)
        .on(THREE_RI),
    when(&FOR_RECURRING, "recurringFrequency", DAYS)
        .since(V2_2_0)
        .until(V2_2_0),
    optional("recurringFrequency", DAYS).since(V2_3_1),
    optional("recurringInd", Object).since(V2_3_1),
    required("recurringInd.amountInd", Codes(&["01", "02"])).since(V2_3_1),
    required("recurringInd.frequencyInd", Codes(&["01", "02"])).since(V2_3_1),
    optional("recurringAmount", AMOUNT).since(V2_3_1),
    optional("recurringCurrency", Currency).since(V2_3_1),
    optional("recurringExponent", EXPONENT).since(V2_3_1),
    optional("recurringDate", Date).since(V2_3_1),
];

pub(super) const RISK: &[Field] = &[
    optional("merchantRiskIndicator", Object),
    optional(
        "merchantRiskIndicator.deliveryEmailAddress",
        Email { max: 254 },
    ),
    optional(
        "merchantRiskIndicator.deliveryTimeframe",
        Codes(&["01", "02", "03", "04"]),
    ),
    optional(
        "merchantRiskIndicator.giftCardAmount",
        Digits { min: 1, max: 15 },
    ),
    optional(
        "merchantRiskIndicator.giftCardCount",
        Digits { min: 2, max: 2 },
    ),
    optional("merchantRiskIndicator.giftCardCurr", Currency),
    optional("merchantRiskIndicator.preOrderDate", Date),
    optional(
        "merchantRiskIndicator.preOrderPurchaseInd",
        Codes(&["01", "02"]),
    ),
    optional(
        "merchantRiskIndicator.reorderItemsInd",
        Codes(&["01", "02"]),
    ),
    optional(
        "merchantRiskIndicator.shipIndicator",
        CodesOrNetwork(&["01", "02", "03", "04", "05", "06", "07"]),
    ),
    optional("whiteListStatus", LIST_STATUS)
        .since(V2_2_0)
        .until(V2_2_0),
    when(
        &WITH_WHITE_LIST_STATUS,
        "whiteListStatusSource",
        LIST_SOURCE,
    )
    .since(V2_2_0)
    .until(V2_2_0),
    optional("trustListStatus", LIST_STATUS).since(V2_3_1),
    when(
        &WITH_TRUST_LIST_STATUS,
        "trustListStatusSource",
        LIST_SOURCE,
    )
    .since(V2_3_1),
    optional("transChallengeExemption", Digits { min: 2, max: 2 }).since(V2_3_1),
    optional("deviceBindingStatus", Digits { min: 2, max: 2 }).since(V2_3_1),
    optional("deviceBindingStatusSource", Digits { min: 2, max: 2 }).since(V2_3_1),
];
