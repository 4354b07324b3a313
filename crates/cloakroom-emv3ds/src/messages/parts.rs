//! Objects inside messages.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::quiet_part;

/// What was one value and became a list in 2.3.1.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum OneOrMany<T> {
    /// Until 2.2.0.
    One(T),
    /// From 2.3.1.
    Many(Vec<T>),
}

impl<T> OneOrMany<T> {
    pub fn as_slice(&self) -> &[T] {
        match self {
            Self::One(value) => std::slice::from_ref(value),
            Self::Many(values) => values,
        }
    }

    pub fn first(&self) -> Option<&T> {
        self.as_slice().first()
    }
}

impl<T> fmt::Debug for OneOrMany<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("OneOrMany(..)")
    }
}

/// What to tell the cardholder: a text until 2.2.0, an object from 2.3.1.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum CardholderInfo {
    Text(String),
    Rich(RichCardholderInfo),
}

impl CardholderInfo {
    pub fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::Rich(rich) => &rich.text,
        }
    }
}

impl fmt::Debug for CardholderInfo {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("CardholderInfo(..)")
    }
}

quiet_part! {
    /// `cardholderInfo` from 2.3.1: a text with addresses of images.
    RichCardholderInfo {
        text: String = "text",
        ;
        issuer_image: Map<String, Value> = "issuerImage",
        payment_system_image: Map<String, Value> = "paymentSystemImage",
    }
}

quiet_part! {
    /// An element of `messageExtension`.
    MessageExtension {
        name: String = "name",
        id: String = "id",
        criticality_indicator: bool = "criticalityIndicator",
        data: Map<String, Value> = "data",
        ;
    }
}

quiet_part! {
    Phone {
        cc: String = "cc",
        subscriber: String = "subscriber",
        ;
    }
}

quiet_part! {
    /// How the cardholder logged in at the merchant.
    AuthenticationInfo {
        ;
        threeds_req_auth_method: String = "threeDSReqAuthMethod",
        threeds_req_auth_timestamp: String = "threeDSReqAuthTimestamp",
        threeds_req_auth_data: String = "threeDSReqAuthData",
    }
}

quiet_part! {
    /// How the cardholder was authenticated before.
    PriorAuthenticationInfo {
        ;
        threeds_req_prior_ref: String = "threeDSReqPriorRef",
        threeds_req_prior_auth_method: String = "threeDSReqPriorAuthMethod",
        threeds_req_prior_auth_timestamp: String = "threeDSReqPriorAuthTimestamp",
        threeds_req_prior_auth_data: String = "threeDSReqPriorAuthData",
    }
}

quiet_part! {
    /// What the merchant knows about the cardholder's account.
    AccountInfo {
        ;
        ch_acc_age_ind: String = "chAccAgeInd",
        ch_acc_date: String = "chAccDate",
        ch_acc_change_ind: String = "chAccChangeInd",
        ch_acc_change: String = "chAccChange",
        ch_acc_pw_change_ind: String = "chAccPwChangeInd",
        ch_acc_pw_change: String = "chAccPwChange",
        nb_purchase_account: String = "nbPurchaseAccount",
        provision_attempts_day: String = "provisionAttemptsDay",
        txn_activity_day: String = "txnActivityDay",
        txn_activity_year: String = "txnActivityYear",
        payment_acc_ind: String = "paymentAccInd",
        payment_acc_age: String = "paymentAccAge",
        ship_address_usage_ind: String = "shipAddressUsageInd",
        ship_address_usage: String = "shipAddressUsage",
        ship_name_indicator: String = "shipNameIndicator",
        suspicious_acc_activity: String = "suspiciousAccActivity",
    }
}

quiet_part! {
    /// What the merchant thinks of the risk of the purchase.
    MerchantRiskIndicator {
        ;
        delivery_email_address: String = "deliveryEmailAddress",
        delivery_timeframe: String = "deliveryTimeframe",
        gift_card_amount: String = "giftCardAmount",
        gift_card_count: String = "giftCardCount",
        gift_card_curr: String = "giftCardCurr",
        pre_order_date: String = "preOrderDate",
        pre_order_purchase_ind: String = "preOrderPurchaseInd",
        reorder_items_ind: String = "reorderItemsInd",
        ship_indicator: String = "shipIndicator",
    }
}

quiet_part! {
    /// What the SDK of an app can show.
    DeviceRenderOptions {
        sdk_interface: String = "sdkInterface",
        sdk_ui_type: Vec<String> = "sdkUiType",
        ;
    }
}

quiet_part! {
    /// What the access control server wants an app to show.
    AcsRenderingType {
        acs_interface: String = "acsInterface",
        acs_ui_template: String = "acsUiTemplate",
        ;
        device_user_interface_mode: String = "deviceUserInterfaceMode",
    }
}

quiet_part! {
    /// Whether amount and frequency of a recurring payment are fixed (from 2.3.1).
    RecurringInd {
        amount_ind: String = "amountInd",
        frequency_ind: String = "frequencyInd",
        ;
    }
}
