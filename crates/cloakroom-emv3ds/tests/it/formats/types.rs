//! URLs, ids, and values that are not strings.

use cloakroom_emv3ds::{MessageKind, Version, field};
use serde_json::json;

use super::{V210, V220, V231, accepts, check};

#[test]
fn urls_ids_and_addresses_are_validated() {
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
fn values_that_are_not_strings_have_their_type() {
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
    let accepts_value = |value: &str| {
        field(MessageKind::ARes, "authenticationValue")
            .unwrap()
            .format
            .accepts(&json!(value))
    };
    assert!(accepts_value("MTIzNDU2Nzg5MDEyMzQ1Njc4OTA="));
    for wrong in [
        "MTIzNDU2Nzg5MDEyMzQ1Njc4OTA",
        "MTIzNDU2Nzg5MDEyMzQ1Njc4OTAx",
        "_TIzNDU2Nzg5MDEyMzQ1Njc4OTA=",
    ] {
        assert!(!accepts_value(wrong));
    }
}
