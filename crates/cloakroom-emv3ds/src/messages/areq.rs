//! The authentication request.

use serde_json::{Map, Value};

use super::{
    AccountInfo, AuthenticationInfo, DeviceRenderOptions, MerchantRiskIndicator, MessageExtension,
    OneOrMany, Phone, PriorAuthenticationInfo, RecurringInd, message,
};
use crate::codes::{AuthenticationCategory, DeviceChannel};
use crate::confidential::Confidential;
use crate::messages::Message;
use crate::version::Version;

message! {
    /// Sent by the 3DS Server to start an authentication. Built by [`AReq::from_object`].
    AReq {
        message_version: Version = "messageVersion",
        message_category: String = "messageCategory",
        device_channel: String = "deviceChannel",
        threeds_server_trans_id: String = "threeDSServerTransID",
        threeds_server_ref_number: String = "threeDSServerRefNumber",
        threeds_server_url: String = "threeDSServerURL",
        threeds_requestor_id: String = "threeDSRequestorID",
        threeds_requestor_name: String = "threeDSRequestorName",
        threeds_requestor_url: String = "threeDSRequestorURL",
        acct_number: Confidential = "acctNumber",
        ;
        threeds_server_operator_id: String = "threeDSServerOperatorID",
        threeds_requestor_authentication_ind: String = "threeDSRequestorAuthenticationInd",
        three_ri_ind: String = "threeRIInd",
        threeds_requestor_challenge_ind: OneOrMany<String> = "threeDSRequestorChallengeInd",
        threeds_requestor_authentication_info: OneOrMany<AuthenticationInfo> = "threeDSRequestorAuthenticationInfo",
        threeds_requestor_prior_authentication_info: OneOrMany<PriorAuthenticationInfo>
            = "threeDSRequestorPriorAuthenticationInfo",
        threeds_requestor_dec_req_ind: String = "threeDSRequestorDecReqInd",
        threeds_requestor_dec_max_time: String = "threeDSRequestorDecMaxTime",
        threeds_req_auth_method_ind: String = "threeDSReqAuthMethodInd",
        acquirer_bin: String = "acquirerBIN",
        acquirer_merchant_id: String = "acquirerMerchantID",
        acquirer_country_code: String = "acquirerCountryCode",
        acquirer_country_code_source: String = "acquirerCountryCodeSource",
        mcc: String = "mcc",
        merchant_country_code: String = "merchantCountryCode",
        merchant_name: String = "merchantName",
        merchant_risk_indicator: MerchantRiskIndicator = "merchantRiskIndicator",
        seller_info: Vec<Map<String, Value>> = "sellerInfo",
        card_expiry_date: String = "cardExpiryDate",
        acct_type: String = "acctType",
        acct_id: String = "acctID",
        acct_info: AccountInfo = "acctInfo",
        pay_token_ind: bool = "payTokenInd",
        pay_token_source: String = "payTokenSource",
        cardholder_name: String = "cardholderName",
        email: String = "email",
        home_phone: Phone = "homePhone",
        mobile_phone: Phone = "mobilePhone",
        work_phone: Phone = "workPhone",
        addr_match: String = "addrMatch",
        bill_addr_line1: String = "billAddrLine1",
        bill_addr_line2: String = "billAddrLine2",
        bill_addr_line3: String = "billAddrLine3",
        bill_addr_city: String = "billAddrCity",
        bill_addr_state: String = "billAddrState",
        bill_addr_post_code: String = "billAddrPostCode",
        bill_addr_country: String = "billAddrCountry",
        ship_addr_line1: String = "shipAddrLine1",
        ship_addr_line2: String = "shipAddrLine2",
        ship_addr_line3: String = "shipAddrLine3",
        ship_addr_city: String = "shipAddrCity",
        ship_addr_state: String = "shipAddrState",
        ship_addr_post_code: String = "shipAddrPostCode",
        ship_addr_country: String = "shipAddrCountry",
        browser_accept_header: String = "browserAcceptHeader",
        browser_ip: String = "browserIP",
        browser_javascript_enabled: bool = "browserJavascriptEnabled",
        browser_java_enabled: bool = "browserJavaEnabled",
        browser_language: String = "browserLanguage",
        browser_color_depth: String = "browserColorDepth",
        browser_screen_height: String = "browserScreenHeight",
        browser_screen_width: String = "browserScreenWidth",
        browser_tz: String = "browserTZ",
        browser_user_agent: String = "browserUserAgent",
        accept_language: Vec<String> = "acceptLanguage",
        threeds_comp_ind: String = "threeDSCompInd",
        threeds_method_id: String = "threeDSMethodId",
        notification_url: String = "notificationURL",
        sdk_app_id: String = "sdkAppID",
        sdk_enc_data: String = "sdkEncData",
        sdk_ephem_pub_key: Map<String, Value> = "sdkEphemPubKey",
        sdk_max_timeout: String = "sdkMaxTimeout",
        sdk_reference_number: String = "sdkReferenceNumber",
        sdk_trans_id: String = "sdkTransID",
        sdk_type: String = "sdkType",
        device_render_options: DeviceRenderOptions = "deviceRenderOptions",
        device_binding_status: String = "deviceBindingStatus",
        device_binding_status_source: String = "deviceBindingStatusSource",
        purchase_amount: String = "purchaseAmount",
        purchase_currency: String = "purchaseCurrency",
        purchase_exponent: String = "purchaseExponent",
        purchase_date: String = "purchaseDate",
        trans_type: String = "transType",
        purchase_instal_data: String = "purchaseInstalData",
        recurring_expiry: String = "recurringExpiry",
        recurring_frequency: String = "recurringFrequency",
        recurring_ind: RecurringInd = "recurringInd",
        recurring_amount: String = "recurringAmount",
        recurring_currency: String = "recurringCurrency",
        recurring_exponent: String = "recurringExponent",
        recurring_date: String = "recurringDate",
        white_list_status: String = "whiteListStatus",
        white_list_status_source: String = "whiteListStatusSource",
        trust_list_status: String = "trustListStatus",
        trust_list_status_source: String = "trustListStatusSource",
        trans_challenge_exemption: String = "transChallengeExemption",
        broad_info: Map<String, Value> = "broadInfo",
        message_extension: Vec<MessageExtension> = "messageExtension",
    }
    ids { threeds_server_trans_id, sdk_trans_id }
    wrapped |message| Message::AReq(Box::new(message))
}

impl AReq {
    pub fn channel(&self) -> Option<DeviceChannel> {
        DeviceChannel::from_code(&self.device_channel)
    }

    pub fn category(&self) -> Option<AuthenticationCategory> {
        AuthenticationCategory::from_code(&self.message_category)
    }
}
