//! What the directory server checks beyond the schema: the things that a network knows.

use cloakroom_emv3ds::Fault;
use http::Uri;

use crate::ranges::{Method, Ranges};
use crate::transaction::Channel;
use crate::wire::{Fields, refusal, text};

const REQUESTOR_ID_MAX: usize = 35;
const REQUESTOR_NAME_MAX: usize = 40;
/// Merchants whose id begins so are not enrolled.
const UNKNOWN_MERCHANT: &str = "unknown";
const ACQUIRER_BIN_MAX: usize = 11;
const DECOUPLED_MINUTES_MAX: u32 = 10_080;

/// What a request without a cardholder at hand cannot have.
const CUSTOMER_ONLY: [&str; 14] = [
    "browserAcceptHeader",
    "browserIP",
    "browserLanguage",
    "browserUserAgent",
    "browserJavascriptEnabled",
    "notificationURL",
    "threeDSCompInd",
    "threeDSRequestorAuthenticationInd",
    "threeDSRequestorChallengeInd",
    "sdkAppID",
    "sdkEncData",
    "sdkTransID",
    "sdkReferenceNumber",
    "deviceRenderOptions",
];

pub(super) fn check(fields: &Fields, ranges: &Ranges, was_answered: bool) -> Result<(), Fault> {
    let wrong = wrong_fields(fields);
    if !wrong.is_empty() {
        return Err(refusal("203", wrong.join(",")));
    }
    if was_answered {
        return Err(refusal("305", "threeDSServerTransID"));
    }
    let merchant = text(fields, "acquirerMerchantID").unwrap_or_default();
    if merchant.starts_with(UNKNOWN_MERCHANT) {
        return Err(refusal("303", "acquirerMerchantID"));
    }
    let number = text(fields, "acctNumber").unwrap_or_default();
    let range = ranges
        .find(number)
        .ok_or_else(|| refusal("305", "acctNumber"))?;
    let version = text(fields, "messageVersion").unwrap_or_default();
    if !range.supports(version) {
        return Err(refusal("102", "messageVersion"));
    }
    check_method(fields, range.method)
}

/// U says that there is no 3DS Method, and only then may it be said.
fn check_method(fields: &Fields, method: Method) -> Result<(), Fault> {
    if Channel::of(fields) != Channel::Browser {
        return Ok(());
    }
    let says_absent = text(fields, "threeDSCompInd") == Some("U");
    match says_absent == (method == Method::Absent) {
        true => Ok(()),
        false => Err(refusal("203", "threeDSCompInd")),
    }
}

fn wrong_fields(fields: &Fields) -> Vec<&'static str> {
    let mut wrong = Vec::new();
    let mut require = |name, holds: &dyn Fn(&str) -> bool| {
        if text(fields, name).is_some_and(|value| !holds(value)) {
            wrong.push(name);
        }
    };
    require("threeDSRequestorID", &|id| id.len() <= REQUESTOR_ID_MAX);
    require("threeDSRequestorName", &|name| {
        name.chars().count() <= REQUESTOR_NAME_MAX
    });
    require("threeDSRequestorURL", &|url| is_absolute(url, false));
    require("threeDSServerURL", &|url| is_absolute(url, true));
    require("notificationURL", &|url| is_absolute(url, false));
    require("acquirerBIN", &|bin| {
        bin.len() <= ACQUIRER_BIN_MAX && bin.bytes().all(|byte| byte.is_ascii_alphanumeric())
    });
    require("purchaseAmount", &is_digits);
    require("purchaseExponent", &is_digits);
    require("threeDSRequestorDecMaxTime", &|minutes| {
        let value = minutes.parse().unwrap_or(0);
        minutes.len() == 5 && (1..=DECOUPLED_MINUTES_MAX).contains(&value)
    });
    if Channel::of(fields) == Channel::Merchant {
        wrong.extend(wrong_without_customer(fields));
    }
    wrong
}

fn wrong_without_customer(fields: &Fields) -> Vec<&'static str> {
    let mut wrong = Vec::from(CUSTOMER_ONLY);
    wrong.retain(|name| fields.contains_key(*name));
    let version = text(fields, "messageVersion");
    if version == Some("2.1.0") && text(fields, "messageCategory") == Some("01") {
        wrong.push("messageCategory");
    }
    wrong
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Results carry proofs, so they go to `https` only; a laptop's browser may be sent to `http`.
fn is_absolute(url: &str, only_https: bool) -> bool {
    let Ok(uri) = url.parse::<Uri>() else {
        return false;
    };
    let scheme = match uri.scheme_str() {
        Some("https") => true,
        Some("http") => !only_https,
        _ => false,
    };
    scheme && uri.host().is_some_and(|host| !host.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn code(change: serde_json::Value) -> Option<(String, String)> {
        let mut fields = json!({
            "messageVersion": "2.2.0", "messageCategory": "01", "deviceChannel": "02",
            "acctNumber": "4200000000000002", "threeDSCompInd": "Y",
            "threeDSServerURL": "https://127.0.0.1/3ds/rreq",
            "notificationURL": "http://localhost/n", "purchaseAmount": "1000",
        });
        for (name, value) in change.as_object().unwrap() {
            fields[name] = value.clone();
        }
        let fields = fields.as_object().unwrap();
        let fault = check(fields, &Ranges::of("visa"), false).err()?;
        Some((fault.code.code().to_owned(), fault.detail))
    }

    #[test]
    fn what_a_network_knows_is_checked() {
        let cases = [
            (json!({}), None),
            (
                json!({"acquirerMerchantID": "unknown-7"}),
                Some(("303", "acquirerMerchantID")),
            ),
            (
                json!({"acctNumber": "5204247750001471"}),
                Some(("305", "acctNumber")),
            ),
            (
                json!({"acctNumber": "9000100000001000"}),
                Some(("102", "messageVersion")),
            ),
            (
                json!({"threeDSCompInd": "U"}),
                Some(("203", "threeDSCompInd")),
            ),
            (
                json!({"acctNumber": "4200000000000014"}),
                Some(("203", "threeDSCompInd")),
            ),
            (
                json!({"notificationURL": "/n"}),
                Some(("203", "notificationURL")),
            ),
            (
                json!({"threeDSServerURL": "http://a.test/"}),
                Some(("203", "threeDSServerURL")),
            ),
            (
                json!({"deviceChannel": "03"}),
                Some(("203", "notificationURL,threeDSCompInd")),
            ),
            (
                json!({"threeDSRequestorDecMaxTime": "10081"}),
                Some(("203", "threeDSRequestorDecMaxTime")),
            ),
        ];
        for (change, expected) in cases {
            let found = code(change.clone());
            let found = found
                .as_ref()
                .map(|(code, detail)| (code.as_str(), detail.as_str()));
            assert_eq!(found, expected, "{change}");
        }
    }
}
