//! What values are accepted, written down from the specification.

use cloakroom_emv3ds::codes::DeviceChannel;
use cloakroom_emv3ds::{MessageKind, Version, field, field_of};
use serde_json::{Value, json};

const V210: Version = Version::V2_1_0;
const V220: Version = Version::V2_2_0;
const V231: Version = Version::V2_3_1;

fn accepts(path: &str, version: Version, value: &Value) -> bool {
    let channels = [
        DeviceChannel::Browser,
        DeviceChannel::App,
        DeviceChannel::ThreeRi,
    ];
    let row = channels
        .iter()
        .find_map(|channel| field_of(MessageKind::AReq, path, version, Some(*channel)));
    row.unwrap_or_else(|| panic!("{path} in {version}"))
        .format
        .accepts(value)
}

fn check(path: &str, versions: &[Version], good: &[&str], bad: &[&str]) {
    for version in versions {
        for text in good {
            assert!(
                accepts(path, *version, &json!(text)),
                "{path} {version} {text:?}"
            );
        }
        for text in bad {
            assert!(
                !accepts(path, *version, &json!(text)),
                "{path} {version} {text:?}"
            );
        }
    }
}

/// The longest that fits, and one more.
fn check_length(path: &str, max: usize, filling: &str) {
    for version in Version::ALL {
        assert!(
            accepts(path, version, &json!(filling.repeat(max))),
            "{path}"
        );
        assert!(
            !accepts(path, version, &json!(filling.repeat(max + 1))),
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
fn texts_have_a_length() {
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
fn numbers_have_their_digits_and_bounds() {
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
        &["826", "004", "900"],
        &["901", "999", "82", "GBR"],
    );
    check("billAddrCountry", &Version::ALL, &["276"], &["901", "DE"]);
}

#[test]
fn dates_are_real() {
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

#[test]
fn codes_depend_on_the_version() {
    let requestor = "threeDSRequestorAuthenticationInd";
    check(
        requestor,
        &[V210, V220],
        &["01", "06"],
        &["00", "07", "1", "10"],
    );
    check(requestor, &[V231], &["01", "07", "10"], &["11", "00"]);
    check("threeRIInd", &[V210], &["01", "05"], &["06", "12", "00"]);
    check("threeRIInd", &[V220], &["06", "12"], &["13", "00", "6"]);
    check("threeRIInd", &[V231], &["12", "19"], &["20", "00"]);
    let challenge = "threeDSRequestorChallengeInd";
    check(challenge, &[V210], &["01", "04", "90"], &["05", "09", "79"]);
    check(
        challenge,
        &[V220],
        &["05", "09", "80", "99"],
        &["10", "00", "9"],
    );
    check(challenge, &[V231], &[], &["01"]);
    for (list, good) in [
        (json!(["01"]), true),
        (json!(["01", "09"]), true),
        (json!([]), false),
        (json!(["01", "02", "03"]), false),
        (json!(["00"]), false),
    ] {
        assert_eq!(accepts(challenge, V231, &list), good, "{list}");
        assert!(!accepts(challenge, V220, &list));
    }
    let method = "threeDSRequestorAuthenticationInfo.threeDSReqAuthMethod";
    check(method, &[V210], &["06"], &["07", "08"]);
    check(method, &[V220], &["07", "08"], &["09"]);
}

#[test]
fn other_codes_are_those_of_the_specification() {
    check(
        "threeDSRequestorDecReqInd",
        &[V220],
        &["Y", "N"],
        &["F", "B", "y"],
    );
    check(
        "threeDSRequestorDecReqInd",
        &[V231],
        &["Y", "N", "F", "B"],
        &["U"],
    );
    check(
        "browserColorDepth",
        &Version::ALL,
        &["1", "4", "8", "15", "16", "24", "32", "48"],
        &["2", "30", "024", "64"],
    );
    check(
        "transType",
        &Version::ALL,
        &["01", "03", "10", "11", "28"],
        &["02", "04", "29"],
    );
    check(
        "acctType",
        &Version::ALL,
        &["01", "02", "03", "80", "99"],
        &["04", "79", "00"],
    );
    check(
        "threeDSCompInd",
        &Version::ALL,
        &["Y", "N", "U"],
        &["y", "X"],
    );
    check(
        "messageCategory",
        &Version::ALL,
        &["01", "02"],
        &["03", "1"],
    );
    check(
        "deviceChannel",
        &Version::ALL,
        &["01", "02", "03"],
        &["04", "00"],
    );
}

#[test]
fn addresses_and_ids_are_such() {
    check(
        "threeDSServerTransID",
        &Version::ALL,
        &[
            "8a880dc0-d2d2-4067-bcb1-b08d1690b26e",
            "8A880DC0-D2D2-4067-BCB1-B08D1690B26E",
        ],
        &[
            "8a880dc0d2d24067bcb1b08d1690b26e",
            "{8a880dc0-d2d2-4067-bcb1-b08d1690b26e}",
            "8a880dc0-d2d2-4067-bcb1-b08d1690b26g",
            "x",
        ],
    );
    for path in ["threeDSRequestorURL", "threeDSServerURL", "notificationURL"] {
        check(
            path,
            &Version::ALL,
            &[
                "https://a.example",
                "http://a.example:81/b?c=d",
                "https://a.example/%20",
            ],
            &[
                "a.example",
                "/b",
                "ftp://a.example",
                "https://",
                "https:///b",
                "https://a b",
                "https://a.example/ü\n",
                "javascript:alert(1)",
            ],
        );
    }
    let address = |length: usize| format!("https://a.example/{}", "x".repeat(length - 18));
    assert!(accepts("notificationURL", V220, &json!(address(256))));
    assert!(!accepts("notificationURL", V220, &json!(address(257))));
    assert!(accepts("threeDSRequestorURL", V220, &json!(address(2048))));
    assert!(!accepts("threeDSRequestorURL", V220, &json!(address(2049))));
    check(
        "browserIP",
        &Version::ALL,
        &["192.0.2.1", "2001:db8::1"],
        &["192.0.2", "192.0.2.256", "localhost", "192.0.2.1:80"],
    );
    check(
        "email",
        &Version::ALL,
        &["a@b", "a+b@c.example"],
        &["a", "@b", "a@", "a b@c", &format!("{}@b", "a".repeat(253))],
    );
}

#[test]
fn values_that_are_no_text_have_their_type() {
    let key = json!({"kty": "EC", "crv": "P-256", "x": "a", "y": "b"});
    assert!(accepts("sdkEphemPubKey", V220, &key));
    for (name, wrong) in [
        ("kty", json!("RSA")),
        ("crv", json!("P-384")),
        ("x", json!("")),
        ("y", json!(1)),
        ("kid", json!("x".repeat(256))),
    ] {
        let mut broken = key.clone();
        broken[name] = wrong;
        assert!(!accepts("sdkEphemPubKey", V220, &broken), "{name}");
    }
    assert!(accepts("payTokenInd", V220, &json!(true)));
    for wrong in [json!(false), json!("true"), json!(1)] {
        assert!(!accepts("payTokenInd", V220, &wrong));
    }
    assert!(accepts("browserJavaEnabled", V210, &json!(false)));
    assert!(!accepts("browserJavaEnabled", V210, &json!("false")));
    assert!(accepts(
        "broadInfo",
        V220,
        &json!({"a": "x".repeat(4096 - 8)})
    ));
    assert!(!accepts(
        "broadInfo",
        V220,
        &json!({"a": "x".repeat(4096 - 7)})
    ));
    assert!(accepts("acceptLanguage", V231, &json!(["de"])));
    assert!(!accepts("acceptLanguage", V231, &json!("de")));
    let extensions = |count: usize| json!(vec![json!({"name": "n"}); count]);
    assert!(accepts("messageExtension", V220, &extensions(10)));
    assert!(!accepts("messageExtension", V220, &extensions(11)));
    assert!(!accepts(
        "messageExtension",
        V220,
        &json!([{"data": "x".repeat(81920)}])
    ));
    let answers = |value: &str| {
        field(MessageKind::ARes, "authenticationValue")
            .unwrap()
            .format
            .accepts(&json!(value))
    };
    assert!(answers("MTIzNDU2Nzg5MDEyMzQ1Njc4OTA="));
    for wrong in [
        "MTIzNDU2Nzg5MDEyMzQ1Njc4OTA",
        "MTIzNDU2Nzg5MDEyMzQ1Njc4OTAx",
        "_TIzNDU2Nzg5MDEyMzQ1Njc4OTA=",
    ] {
        assert!(!answers(wrong));
    }
}
