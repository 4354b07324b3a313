//! Objects nested in messages.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::redacted_part;

/// A field that is a single value until 2.2.0 and a list from 2.3.1.
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

/// Text to show to the cardholder: a string until 2.2.0, an object from 2.3.1.
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

redacted_part! {
    /// `cardholderInfo` from 2.3.1: text and image URLs.
    RichCardholderInfo {
        text: String = "text",
        ;
        issuer_image: Map<String, Value> = "issuerImage",
        payment_system_image: Map<String, Value> = "paymentSystemImage",
    }
}

redacted_part! {
    /// An element of `messageExtension`.
    MessageExtension {
        name: String = "name",
        id: String = "id",
        criticality_indicator: bool = "criticalityIndicator",
        data: Map<String, Value> = "data",
        ;
    }
}

redacted_part! {
    Phone {
        cc: String = "cc",
        subscriber: String = "subscriber",
        ;
    }
}

redacted_part! {
    /// How the 3DS Requestor authenticated the cardholder.
    AuthenticationInfo {
        ;
        threeds_req_auth_method: String = "threeDSReqAuthMethod",
        threeds_req_auth_timestamp: String = "threeDSReqAuthTimestamp",
        threeds_req_auth_data: String = "threeDSReqAuthData",
    }
}

redacted_part! {
    /// A prior authentication of the cardholder.
    PriorAuthenticationInfo {
        ;
        threeds_req_prior_ref: String = "threeDSReqPriorRef",
        threeds_req_prior_auth_method: String = "threeDSReqPriorAuthMethod",
        threeds_req_prior_auth_timestamp: String = "threeDSReqPriorAuthTimestamp",
        threeds_req_prior_auth_data: String = "threeDSReqPriorAuthData",
    }
}

redacted_part! {
    /// The cardholder's account with the 3DS Requestor.
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

redacted_part! {
    /// The merchant's risk assessment of the purchase.
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

redacted_part! {
    /// Interfaces and UI types that the 3DS SDK supports.
    DeviceRenderOptions {
        sdk_interface: String = "sdkInterface",
        sdk_ui_type: Vec<String> = "sdkUiType",
        ;
    }
}

redacted_part! {
    /// The interface and UI template that the ACS selects.
    AcsRenderingType {
        acs_interface: String = "acsInterface",
        acs_ui_template: String = "acsUiTemplate",
        ;
        device_user_interface_mode: String = "deviceUserInterfaceMode",
    }
}

redacted_part! {
    /// Whether the amount and frequency of a recurring payment are fixed (from 2.3.1).
    RecurringInd {
        amount_ind: String = "amountInd",
        frequency_ind: String = "frequencyInd",
        ;
    }
}
