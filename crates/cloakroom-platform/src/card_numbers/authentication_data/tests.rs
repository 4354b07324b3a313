//! Tests of the detection by name, by content and at any depth.

use serde_json::json;

use super::*;

#[test]
fn authentication_data_is_recognized_by_name() {
    let cases = [
        ("cvc", json!("123"), Some(SecurityCode)),
        ("CVC", json!(123), Some(SecurityCode)),
        ("Cvv2", json!("123"), Some(SecurityCode)),
        ("card-cvv", json!("1"), Some(SecurityCode)),
        ("cc_cvv2", json!("123"), Some(SecurityCode)),
        ("creditCardCvc", json!("123"), Some(SecurityCode)),
        ("cvvCode", json!("123"), Some(SecurityCode)),
        ("security_code", json!("123"), Some(SecurityCode)),
        ("Card Security Code", json!("123"), Some(SecurityCode)),
        ("card_verification_value", json!("123"), Some(SecurityCode)),
        ("cardVerificationNumber", json!("123"), Some(SecurityCode)),
        ("c.v.c", json!({"value": "123"}), Some(SecurityCode)),
        ("ｃｖｃ", json!("123"), Some(SecurityCode)),
        ("𝐜𝐯𝐯", json!("123"), Some(SecurityCode)),
        ("cid", json!("１２３"), Some(SecurityCode)),
        ("cid", json!("1234"), Some(SecurityCode)),
        ("csc", json!(123), Some(SecurityCode)),
        ("cid", json!("GA1.2.123"), None),
        ("cvc_result", json!("M"), None),
        ("cvc_check", json!("pass"), None),
        ("cvc", json!(null), None),
        ("cvc", json!(true), None),
        ("track1", json!("x"), Some(Track)),
        ("Track-2", json!("x"), Some(Track)),
        ("track2Data", json!("x"), Some(Track)),
        ("track_2_equivalent_data", json!("x"), Some(Track)),
        ("trackData", json!("x"), Some(Track)),
        ("magstripe", json!("x"), Some(Track)),
        ("track", json!("sports"), None),
        ("tracking_number", json!("1Z"), None),
        ("pin", json!("1234"), Some(Pin)),
        ("PIN", json!(123_456), Some(Pin)),
        ("pin_block", json!("041234FFFFFFFFFF"), Some(Pin)),
        ("encryptedPinBlock", json!("x"), Some(Pin)),
        ("pin", json!("top-left"), None),
        ("pincode", json!("560001"), None),
        ("pinned", json!("1234"), None),
        ("number", json!("4242424242424242"), None),
        ("name", json!("A"), None),
    ];
    for (name, value, expected) in cases {
        let found = named_authentication_data(name, &value);
        assert_eq!(found, expected, "{name} {value}");
    }
}

#[test]
fn tracks_are_recognized_by_content() {
    let cases = [
        ("%B4242424242424242^DOE/JANE^30122011000000000000?", true),
        ("B4242424242424242^DOE/JANE^3012201", true),
        ("read: %b378282246310005^A/B^3012?", true),
        (";4242424242424242=30122011000000000000?", true),
        ("4242424242424242=30122011000000000000", true),
        ("；４２４２４２４２４２４２４２４２＝３０１２２０１１", true),
        (";424242424242=3012?", true),
        ("4242424242424242D30122011000000000000F", true),
        ("4242424242424242=30", false),
        ("4242424242424242=30992011000", false),
        ("4242424242424241=30122011000", false),
        ("order=3012201", false),
        ("2^10^3", false),
        ("a424242424242424241d30122011", false),
        ("", false),
    ];
    for (text, expected) in cases {
        assert_eq!(holds_track_data(text), expected, "{text}");
    }
}

#[test]
fn authentication_data_is_found_at_any_depth() {
    let cases = [
        (
            json!({"a": [{"b": {"CVV": "123"}}]}),
            Some("data.a[0].b.CVV"),
        ),
        (json!([";4242424242424242=30122011000?"]), Some("data[0]")),
        (json!({"a": {"cvc": null}, "track": "x"}), None),
        (json!("123"), None),
    ];
    for (value, expected) in cases {
        let found = find_authentication_data(&value, "data").map(|(_, path)| path);
        assert_eq!(found.as_deref(), expected, "{value}");
    }
}
