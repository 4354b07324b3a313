//! Sample requests of a 3DS Server.

use serde_json::{Value, json};

use super::{Harness, new_id};

impl Harness {
    /// A valid AReq of a browser payment.
    pub(crate) fn areq(&self, version: &str, number: &str) -> Value {
        let mut message = json!({
            "messageType": "AReq", "messageVersion": version, "messageCategory": "01",
            "deviceChannel": "02", "threeDSServerTransID": new_id(),
            "threeDSServerRefNumber": "ref", "threeDSServerURL": self.results_url,
            "threeDSRequestorID": "requestor", "threeDSRequestorName": "Requestor",
            "threeDSRequestorURL": "https://shop.example/", "acctNumber": number,
            "threeDSRequestorAuthenticationInd": "01", "acquirerBIN": "400001",
            "acquirerMerchantID": "mid", "mcc": "5411", "merchantCountryCode": "250",
            "merchantName": "Shop <1>", "purchaseAmount": "1234", "purchaseCurrency": "978",
            "purchaseExponent": "2", "purchaseDate": "20300101120000",
            "cardholderName": "A Cardholder", "browserAcceptHeader": "*/*",
            "browserLanguage": "en", "browserUserAgent": "test", "browserJavaEnabled": false,
            "browserColorDepth": "24", "browserScreenHeight": "800",
            "browserScreenWidth": "600", "browserTZ": "0", "threeDSCompInd": "N",
            "notificationURL": "https://vault.example/notify",
        });
        if version != "2.1.0" {
            message["browserJavascriptEnabled"] = json!(true);
        }
        if version == "2.3.1" {
            message["acceptLanguage"] = json!(["en"]);
            message["acquirerCountryCode"] = json!("250");
            message["acquirerCountryCodeSource"] = json!("01");
        }
        message
    }

    /// A 3RI AReq, optionally requesting decoupled authentication.
    pub(crate) fn three_ri_areq(&self, number: &str, decoupled: bool) -> Value {
        let mut message = self.areq("2.2.0", number);
        let fields = message.as_object_mut().unwrap();
        fields.retain(|name, _| !name.starts_with("browser"));
        for name in [
            "threeDSCompInd",
            "notificationURL",
            "threeDSRequestorAuthenticationInd",
        ] {
            fields.remove(name);
        }
        message["deviceChannel"] = json!("03");
        message["threeRIInd"] = json!("06");
        if decoupled {
            message["threeDSRequestorDecReqInd"] = json!("Y");
            message["threeDSRequestorDecMaxTime"] = json!("00010");
        }
        message
    }
}
