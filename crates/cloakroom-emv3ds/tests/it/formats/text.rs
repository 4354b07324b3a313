//! Text, numbers and dates.

use cloakroom_emv3ds::Version;
use serde_json::json;

use super::{V210, V220, V231, accepts, check};

/// Checks the maximum length and one character more.
fn check_length(path: &str, max: usize, fill: &str) {
    for version in Version::ALL {
        assert!(accepts(path, version, &json!(fill.repeat(max))), "{path}");
        assert!(
            !accepts(path, version, &json!(fill.repeat(max + 1))),
            "{path}"
        );
        assert!(!accepts(path, version, &json!("")), "{path}");
    }
}

const TEXTS: &[(&str, usize)] = &[
    ("threeDSServerRefNumber", 32),
    ("threeDSServerOperatorID", 32),
    ("threeDSRequestorID", 35),
    ("threeDSRequestorName", 40),
    ("acquirerBIN", 11),
    ("acquirerMerchantID", 35),
    ("merchantName", 40),
    ("acctID", 64),
    ("billAddrLine1", 50),
    ("billAddrLine2", 50),
    ("billAddrLine3", 50),
    ("billAddrCity", 50),
    ("billAddrState", 3),
    ("billAddrPostCode", 16),
    ("shipAddrLine1", 50),
    ("shipAddrLine2", 50),
    ("shipAddrLine3", 50),
    ("shipAddrCity", 50),
    ("shipAddrState", 3),
    ("shipAddrPostCode", 16),
    ("browserAcceptHeader", 2048),
    ("browserUserAgent", 2048),
    ("sdkEncData", 64000),
    ("sdkReferenceNumber", 32),
    ("cardholderName", 45),
    (
        "threeDSRequestorAuthenticationInfo.threeDSReqAuthData",
        20000,
    ),
    (
        "threeDSRequestorPriorAuthenticationInfo.threeDSReqPriorAuthData",
        2048,
    ),
    ("messageExtension.name", 64),
    ("messageExtension.id", 64),
];

#[test]
fn text_lengths_are_limited() {
    for (path, max) in TEXTS {
        check_length(path, *max, "x");
    }
    for (path, max) in [
        ("purchaseAmount", 48),
        ("purchaseExponent", 1),
        ("recurringFrequency", 4),
        ("browserScreenHeight", 6),
        ("browserScreenWidth", 6),
        ("homePhone.cc", 3),
        ("homePhone.subscriber", 15),
        ("mobilePhone.cc", 3),
        ("workPhone.subscriber", 15),
        ("acctInfo.nbPurchaseAccount", 4),
        ("acctInfo.txnActivityDay", 3),
        ("acctInfo.txnActivityYear", 3),
        ("acctInfo.provisionAttemptsDay", 3),
        ("merchantRiskIndicator.giftCardAmount", 15),
    ] {
        check_length(path, max, "7");
        check(path, &Version::ALL, &["0"], &["a", "-1", "1.", " 1", "١"]);
    }
    check(
        "browserLanguage",
        &[V210, V220],
        &["en", "zh-Hant"],
        &["zh-Hant-TW"],
    );
    check("browserLanguage", &[V231], &["zh-Hant-TW"], &["", "é"]);
    check("cardholderName", &[V210, V220], &["Al"], &["A", "José"]);
    check("cardholderName", &[V231], &["José"], &["J", "a\nb"]);
    check(
        "billAddrLine1",
        &Version::ALL,
        &["Straße"],
        &["a\u{0}", "a\tb", "\u{7f}"],
    );
}

#[test]
fn numbers_have_a_digit_count_and_a_range() {
    check(
        "acctNumber",
        &Version::ALL,
        &["4000000000000", "4000000000000000000"],
        &[
            "400000000000",
            "40000000000000000000",
            "4000 0000 0000 0000",
        ],
    );
    check(
        "mcc",
        &Version::ALL,
        &["0000", "5411"],
        &["541", "54111", "541a"],
    );
    check(
        "threeDSRequestorDecMaxTime",
        &[V220, V231],
        &["00001", "10080"],
        &["00000", "10081", "1", "0001", "000001", "+0001"],
    );
    check(
        "sdkMaxTimeout",
        &Version::ALL,
        &["05", "99"],
        &["04", "5", "100", "+9"],
    );
    check(
        "purchaseInstalData",
        &Version::ALL,
        &["2", "02", "999"],
        &["1", "0", "1000", "001"],
    );
    check(
        "merchantRiskIndicator.giftCardCount",
        &Version::ALL,
        &["01"],
        &["1", "001"],
    );
    check(
        "browserTZ",
        &Version::ALL,
        &["0", "-180", "+60", "840", "1440"],
        &["", "-", "--1", "12345", "1.5", "18O"],
    );
    check(
        "purchaseCurrency",
        &Version::ALL,
        &["826", "954", "965", "008"],
        &["955", "960", "964", "999", "82", "0826", "GBP"],
    );
    check(
        "merchantCountryCode",
        &Version::ALL,
        &["826", "004"],
        &["000", "001", "900", "901", "999", "82", "GBR"],
    );
    check(
        "billAddrCountry",
        &Version::ALL,
        &["276", "004"],
        &["000", "001", "901", "DE"],
    );
}

#[test]
fn dates_must_exist() {
    check(
        "purchaseDate",
        &Version::ALL,
        &["20240229235959", "20260101000000"],
        &[
            "20230229000000",
            "20261301000000",
            "20260101240000",
            "20260101006000",
            "20260101000060",
            "202601010000",
            "2026010100000 ",
        ],
    );
    check(
        "recurringExpiry",
        &Version::ALL,
        &["20240229"],
        &["20230229", "20260431", "20260001", "2026010", "202601011"],
    );
    check(
        "cardExpiryDate",
        &Version::ALL,
        &["2812", "0001"],
        &["2813", "2800", "281", "12/28"],
    );
    check(
        "threeDSRequestorAuthenticationInfo.threeDSReqAuthTimestamp",
        &Version::ALL,
        &["202402292359"],
        &["202302290000", "202601012400", "20260101000000"],
    );
    check(
        "acctInfo.chAccDate",
        &Version::ALL,
        &["20000229"],
        &["19000229"],
    );
}
