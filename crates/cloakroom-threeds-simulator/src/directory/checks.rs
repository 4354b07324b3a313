//! Checks of the DS beyond the schema: enrollment, card range and 3DS Method.

use cloakroom_emv3ds::Fault;
use http::Uri;

use crate::ranges::{Method, Ranges};
use crate::transaction::Channel;
use crate::wire::{Fields, protocol_fault, text};

const REQUESTOR_ID_MAX: usize = 35;
const REQUESTOR_NAME_MAX: usize = 40;
/// Merchant ids with this prefix are not enrolled.
const UNKNOWN_MERCHANT: &str = "unknown";
const ACQUIRER_BIN_MAX: usize = 11;
const DECOUPLED_MINUTES_MAX: u32 = 10_080;

/// Fields of the app and browser channels, invalid in a 3RI request.
const APP_AND_BROWSER_ONLY: [&str; 14] = [
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

pub(super) fn check(fields: &Fields, ranges: &Ranges, has_ares: bool) -> Result<(), Fault> {
    let invalid = invalid_fields(fields);
    if !invalid.is_empty() {
        return Err(protocol_fault("203", invalid.join(",")));
    }
    if has_ares {
        return Err(protocol_fault("305", "threeDSServerTransID"));
    }
    let merchant = text(fields, "acquirerMerchantID").unwrap_or_default();
    if merchant.starts_with(UNKNOWN_MERCHANT) {
        return Err(protocol_fault("303", "acquirerMerchantID"));
    }
    let number = text(fields, "acctNumber").unwrap_or_default();
    let range = ranges
        .find(number)
        .ok_or_else(|| protocol_fault("305", "acctNumber"))?;
    let version = text(fields, "messageVersion").unwrap_or_default();
    if !range.supports(version) {
        return Err(protocol_fault("102", "messageVersion"));
    }
    check_method(fields, range.method)
}

/// `threeDSCompInd` must be U if and only if the range has no 3DS Method.
fn check_method(fields: &Fields, method: Method) -> Result<(), Fault> {
    if Channel::of(fields) != Channel::Browser {
        return Ok(());
    }
    let is_unavailable = text(fields, "threeDSCompInd") == Some("U");
    match is_unavailable == (method == Method::Absent) {
        true => Ok(()),
        false => Err(protocol_fault("203", "threeDSCompInd")),
    }
}

fn invalid_fields(fields: &Fields) -> Vec<&'static str> {
    let mut invalid = Vec::new();
    let mut require = |name, holds: &dyn Fn(&str) -> bool| {
        if text(fields, name).is_some_and(|value| !holds(value)) {
            invalid.push(name);
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
    if Channel::of(fields) == Channel::ThreeRi {
        invalid.extend(invalid_three_ri_fields(fields));
    }
    invalid
}

fn invalid_three_ri_fields(fields: &Fields) -> Vec<&'static str> {
    let mut invalid = Vec::from(APP_AND_BROWSER_ONLY);
    invalid.retain(|name| fields.contains_key(*name));
    let version = text(fields, "messageVersion");
    if version == Some("2.1.0") && text(fields, "messageCategory") == Some("01") {
        invalid.push("messageCategory");
    }
    invalid
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Results contain authentication values and require `https`; local browser URLs may use `http`.
fn is_absolute(url: &str, https_only: bool) -> bool {
    let Ok(uri) = url.parse::<Uri>() else {
        return false;
    };
    let scheme = match uri.scheme_str() {
        Some("https") => true,
        Some("http") => !https_only,
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
    fn the_ds_checks_enrollment_ranges_and_urls() {
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
