//! The table of all request fields.

use cloakroom_emv3ds::codes::{self, *};

use super::field::Condition::*;
use super::field::FieldType::*;
use super::field::Needed::{Always, Never, When};
use super::field::{Field, Names};

/// The names of a protocol enumeration.
macro_rules! names {
    ($kind:ty) => {
        names!($kind, [])
    };
    ($kind:ty, $unsent:expr) => {
        Named(Names {
            all: || <$kind>::ALL.iter().map(|value| value.name()).collect(),
            code: |name| <$kind>::from_name(name).map(<$kind>::code),
            unsent: &$unsent,
        })
    };
}

/// `path: needed, takes => AReq field`.
macro_rules! fields {
    ($($path:literal: $needed:expr, $takes:expr $(=> $to:literal)?;)+) => {
        /// Every field of an authentication request.
        pub const FIELDS: &[Field] = &[$(Field {
            path: $path,
            needed: $needed,
            takes: $takes,
            to: fields!(@to $($to)?),
        }),+];
    };
    (@to) => { "" };
    (@to $to:literal) => { $to };
}

/// Authentication types have different codes for customer and 3RI sessions; `message` sets them.
const TYPES: Names = Names {
    all: || {
        AuthenticationType::ALL
            .iter()
            .map(|one| one.name())
            .collect()
    },
    code: |_| None,
    unsent: &[],
};

const AMEX_TYPES: &[&str] = &["MER", "AGG", "JCB", "OTA", "OPT", "WAL"];

fn yes_or_no(value: bool) -> &'static str {
    if value { "Y" } else { "N" }
}

fields! {
    "authentication_category": Always, names!(AuthenticationCategory) => "messageCategory";
    "authentication_type": Always, Named(TYPES);
    "card_brand": Never, Free;
    "request_decoupled_challenge": Never, Flag(yes_or_no) => "threeDSRequestorDecReqInd";
    "decoupled_challenge_max_time": When(Decoupled), Minutes => "threeDSRequestorDecMaxTime";
    "challenge_preference": Never, names!(ChallengePreference) => "threeDSRequestorChallengeInd";

    "purchase_info": When(Purchase), Object;
    "purchase_info.amount": When(Purchase), Text => "purchaseAmount";
    "purchase_info.currency": When(Purchase), Currency => "purchaseCurrency";
    "purchase_info.exponent": When(Purchase), Text => "purchaseExponent";
    "purchase_info.date": When(Purchase), Date => "purchaseDate";
    "purchase_info.transaction_type": When(Payment), names!(TransactionType) => "transType";
    "purchase_info.installment_count": When(Installment), Text => "purchaseInstalData";
    "purchase_info.recurring_expiration": When(Recurring), Date => "recurringExpiry";
    "purchase_info.recurring_frequency": When(Recurring), Text => "recurringFrequency";

    "merchant_info": When(Payment), Object;
    "merchant_info.mid": When(Payment), Text => "acquirerMerchantID";
    "merchant_info.acquirer_bin": When(Payment), Text => "acquirerBIN";
    "merchant_info.name": When(Payment), Text => "merchantName";
    "merchant_info.country_code": When(Payment), Text => "merchantCountryCode";
    "merchant_info.category_code": When(Payment), Text => "mcc";
    "merchant_info.url": Never, Free;
    "merchant_info.risk_info": Never, Object;
    "merchant_info.risk_info.delivery_email": Never, Text => "merchantRiskIndicator.deliveryEmailAddress";
    "merchant_info.risk_info.delivery_time_frame": Never, names!(DeliveryTime) => "merchantRiskIndicator.deliveryTimeframe";
    "merchant_info.risk_info.gift_card_amount": Never, Text => "merchantRiskIndicator.giftCardAmount";
    "merchant_info.risk_info.gift_card_count": Never, Count => "merchantRiskIndicator.giftCardCount";
    "merchant_info.risk_info.gift_card_currency": Never, Currency => "merchantRiskIndicator.giftCardCurr";
    "merchant_info.risk_info.pre_order_purchase": Never, Flag(codes::pre_order_code) => "merchantRiskIndicator.preOrderPurchaseInd";
    "merchant_info.risk_info.pre_order_date": Never, Date => "merchantRiskIndicator.preOrderDate";
    "merchant_info.risk_info.reordered_purchase": Never, Flag(codes::reorder_code) => "merchantRiskIndicator.reorderItemsInd";
    "merchant_info.risk_info.shipping_method": Never, names!(ShippingMethod) => "merchantRiskIndicator.shipIndicator";

    "requestor_info": Always, Object;
    "requestor_info.id": When(RequestorNamed), Text => "threeDSRequestorID";
    "requestor_info.name": When(RequestorNamed), Text => "threeDSRequestorName";
    "requestor_info.url": When(RequestorNamed), Text => "threeDSRequestorURL";
    "requestor_info.amex_requestor_type": Never, OneOf(AMEX_TYPES);
    "requestor_info.cb_siret_number": Never, Free;
    "requestor_info.discover_client_id": Never, Free;
    "requestor_info.discover_requestor_id": Never, Free;

    "cardholder_info": Always, Object;
    "cardholder_info.name": Always, Words => "cardholderName";
    "cardholder_info.email": Always, Text => "email";
    "cardholder_info.account_id": Never, Text => "acctID";
    "cardholder_info.account_type": Never, names!(AccountType) => "acctType";
    "cardholder_info.account_info": Never, Object;
    "cardholder_info.account_info.account_age": Never, names!(AccountAge) => "acctInfo.chAccAgeInd";
    "cardholder_info.account_info.account_created_date": Never, Date => "acctInfo.chAccDate";
    "cardholder_info.account_info.account_last_changed": Never, names!(AccountChange, ["no-change"]) => "acctInfo.chAccChangeInd";
    "cardholder_info.account_info.account_change_date": Never, Date => "acctInfo.chAccChange";
    "cardholder_info.account_info.account_pwd_last_changed": Never, names!(PasswordChange) => "acctInfo.chAccPwChangeInd";
    "cardholder_info.account_info.account_pwd_change_date": Never, Date => "acctInfo.chAccPwChange";
    "cardholder_info.account_info.purchase_count_half_year": Never, Text => "acctInfo.nbPurchaseAccount";
    "cardholder_info.account_info.transaction_count_day": Never, Text => "acctInfo.txnActivityDay";
    "cardholder_info.account_info.transaction_count_year": Never, Text => "acctInfo.txnActivityYear";
    "cardholder_info.account_info.payment_account_created": Never, names!(AccountAge) => "acctInfo.paymentAccInd";
    "cardholder_info.account_info.payment_account_age": Never, Date => "acctInfo.paymentAccAge";
    "cardholder_info.account_info.shipping_address_first_used": Never, names!(AddressUse, ["no-address"]) => "acctInfo.shipAddressUsageInd";
    "cardholder_info.account_info.shipping_address_usage_date": Never, Date => "acctInfo.shipAddressUsage";
    "cardholder_info.account_info.shipping_account_name_match": Never, Flag(codes::ship_name_match_code) => "acctInfo.shipNameIndicator";
    "cardholder_info.account_info.suspicious_activity_observed": Never, Flag(codes::suspicious_activity_code) => "acctInfo.suspiciousAccActivity";
    "cardholder_info.authentication_info": Never, Object;
    "cardholder_info.authentication_info.method": Never, names!(AuthenticationMethod) => "threeDSRequestorAuthenticationInfo.threeDSReqAuthMethod";
    "cardholder_info.authentication_info.timestamp": Never, Date => "threeDSRequestorAuthenticationInfo.threeDSReqAuthTimestamp";
    "cardholder_info.authentication_info.data": Never, Text => "threeDSRequestorAuthenticationInfo.threeDSReqAuthData";
    "cardholder_info.prior_authentication_info": Never, Object;
    "cardholder_info.prior_authentication_info.method": Never, names!(PriorMethod) => "threeDSRequestorPriorAuthenticationInfo.threeDSReqPriorAuthMethod";
    "cardholder_info.prior_authentication_info.timestamp": Never, Date => "threeDSRequestorPriorAuthenticationInfo.threeDSReqPriorAuthTimestamp";
    "cardholder_info.prior_authentication_info.reference_id": Never, Text => "threeDSRequestorPriorAuthenticationInfo.threeDSReqPriorRef";
    "cardholder_info.prior_authentication_info.data": Never, Text => "threeDSRequestorPriorAuthenticationInfo.threeDSReqPriorAuthData";
    "cardholder_info.phone_number": Never, Object;
    "cardholder_info.phone_number.country_code": Always, Text => "homePhone.cc";
    "cardholder_info.phone_number.number": Always, Text => "homePhone.subscriber";
    "cardholder_info.mobile_phone_number": Never, Object;
    "cardholder_info.mobile_phone_number.country_code": Always, Text => "mobilePhone.cc";
    "cardholder_info.mobile_phone_number.number": Always, Text => "mobilePhone.subscriber";
    "cardholder_info.work_phone_number": Never, Object;
    "cardholder_info.work_phone_number.country_code": Always, Text => "workPhone.cc";
    "cardholder_info.work_phone_number.number": Always, Text => "workPhone.subscriber";
    "cardholder_info.billing_shipping_address_match": Never, Text => "addrMatch";
    "cardholder_info.billing_address": Never, Object;
    "cardholder_info.billing_address.line1": Never, Text => "billAddrLine1";
    "cardholder_info.billing_address.line2": Never, Text => "billAddrLine2";
    "cardholder_info.billing_address.line3": Never, Text => "billAddrLine3";
    "cardholder_info.billing_address.postal_code": Never, Text => "billAddrPostCode";
    "cardholder_info.billing_address.city": Never, Text => "billAddrCity";
    "cardholder_info.billing_address.state_code": Never, Subdivision => "billAddrState";
    "cardholder_info.billing_address.country_code": When(BillingState), Text => "billAddrCountry";
    "cardholder_info.shipping_address": Never, Object;
    "cardholder_info.shipping_address.line1": Never, Text => "shipAddrLine1";
    "cardholder_info.shipping_address.line2": Never, Text => "shipAddrLine2";
    "cardholder_info.shipping_address.line3": Never, Text => "shipAddrLine3";
    "cardholder_info.shipping_address.postal_code": Never, Text => "shipAddrPostCode";
    "cardholder_info.shipping_address.city": Never, Text => "shipAddrCity";
    "cardholder_info.shipping_address.state_code": Never, Subdivision => "shipAddrState";
    "cardholder_info.shipping_address.country_code": When(ShippingState), Text => "shipAddrCountry";

    "broadcast_info": Never, Opaque => "broadInfo";
    "message_extensions": Never, Extensions => "messageExtension";
    "metadata": Never, Opaque;
}
