//! Tests of valid and malformed messages.

use cloakroom_crypto::{ClientKey, Sensitive};
use serde_json::{Value, json};

use super::*;

const VECTORS: &str = include_str!("../../../../cloakroom-crypto/vectors/client_key.json");

#[test]
fn test_vectors_of_other_implementations_decrypt() {
    let vectors: Vec<Value> = serde_json::from_str(VECTORS).unwrap();
    assert!(vectors.len() >= 4);
    for vector in vectors {
        let bytes = |name: &str| hex::decode(vector[name].as_str().unwrap()).unwrap();
        let key = ClientKey::from_sealed(&Sensitive::new(bytes("private"))).unwrap();

        let jwe = Jwe::parse(vector["compact"].as_str().unwrap()).unwrap();

        let opened = key.open(&jwe.message()).unwrap();
        assert_eq!(*opened.expose(), bytes("plaintext"));
    }
}

fn with_header(header: &str) -> String {
    format!("{}..AAAA.AAAA.AAAA", URL_SAFE_NO_PAD.encode(header))
}

fn header(change: impl FnOnce(&mut Value)) -> String {
    let mut header = json!({
        "alg": "ECDH-ES",
        "enc": "A256GCM",
        "kid": "9a9a8a4c-5d3e-4b2f-8c1d-0e7f6a5b4c30",
        "epk": {"kty": "OKP", "crv": "X25519", "x": "AAAA"},
    });
    change(&mut header);
    with_header(&header.to_string())
}

#[test]
fn only_supported_headers_are_accepted() {
    let accepted = [
        header(|_| {}),
        header(|header| header["typ"] = json!("JWE")),
        header(|header| header["cty"] = json!({"a": [1]})),
        header(|header| header["epk"]["use"] = json!("enc")),
        header(|header| header["iat"] = json!(1_900_000_000)),
        header(|header| header["iat"] = json!(1_900_000_000.5)),
    ];
    for text in accepted {
        assert!(Jwe::parse(&text).is_some(), "{text}");
    }
    let rejected: [fn(&mut Value); 25] = [
        |header| header["alg"] = json!("RSA-OAEP"),
        |header| header["alg"] = json!("RSA-OAEP-256"),
        |header| header["alg"] = json!("dir"),
        |header| header["alg"] = json!("ECDH-ES+A256KW"),
        |header| header["alg"] = json!("ecdh-es"),
        |header| header["alg"] = json!(["ECDH-ES"]),
        |header| header["alg"] = Value::Null,
        |header| header["enc"] = json!("A128GCM"),
        |header| header["enc"] = json!("A256CBC-HS512"),
        |header| header["enc"] = Value::Null,
        |header| header["zip"] = json!("DEF"),
        |header| header["zip"] = Value::Null,
        |header| header["crit"] = json!(["exp"]),
        |header| header["crit"] = json!([]),
        |header| header["apu"] = json!("QWxpY2U"),
        |header| header["apv"] = json!(""),
        |header| header["iat"] = json!("2030-01-01T00:00:00Z"),
        |header| header["iat"] = Value::Null,
        |header| header["iat"] = json!(1e300),
        |header| header["kid"] = json!("mine"),
        |header| header["epk"]["kty"] = json!("EC"),
        |header| header["epk"]["crv"] = json!("X448"),
        |header| header["epk"]["x"] = json!("AAAA="),
        |header| header["epk"] = json!(["OKP", "X25519", "AAAA"]),
        |header| *header = json!([]),
    ];
    for (position, change) in rejected.into_iter().enumerate() {
        assert!(Jwe::parse(&header(change)).is_none(), "{position}");
    }
    for name in ["alg", "enc", "kid", "epk"] {
        let without = header(|header| {
            header.as_object_mut().unwrap().remove(name);
        });
        assert!(Jwe::parse(&without).is_none(), "{name}");
    }
    let twice = r#"{"alg":"dir","alg":"ECDH-ES","enc":"A256GCM",
            "kid":"9a9a8a4c-5d3e-4b2f-8c1d-0e7f6a5b4c30",
            "epk":{"kty":"OKP","crv":"X25519","x":"AAAA"}}"#;
    assert!(Jwe::parse(&with_header(twice)).is_none());
    assert!(Jwe::parse(&with_header("nothing")).is_none());
    assert!(Jwe::parse(&with_header("\u{1}")).is_none());
}

#[test]
fn only_five_parts_within_the_size_limits_are_accepted() {
    let good = header(|_| {});
    let head = good.split('.').next().unwrap();
    let long = |bytes: usize| URL_SAFE_NO_PAD.encode(vec![0; bytes]);
    let wide = header(|header| header["cty"] = json!("x".repeat(1_000)));
    let too_wide = header(|header| header["cty"] = json!("x".repeat(2_000)));
    let cases = [
        (good.clone(), true),
        (
            format!("{head}..AAAA.{}.AAAA", long(CIPHERTEXT_BYTES_MAX)),
            true,
        ),
        (
            format!("{head}..AAAA.{}.AAAA", long(CIPHERTEXT_BYTES_MAX + 3)),
            false,
        ),
        (format!("{head}..AAAA..AAAA"), true),
        (format!("{head}.AAAA.AAAA.AAAA.AAAA"), false),
        (format!("{head}..AAAA.AAAA"), false),
        (format!("{head}..AAAA.AAAA.AAAA.AAAA"), false),
        (format!("{head}..AAAA.AAAA.AAAA."), false),
        (format!("{head}..AA==.AAAA.AAAA"), false),
        (format!("{head}..AAAA.AA+A.AAAA"), false),
        (format!("{head}..AAAA.AAAA.AB"), false),
        (format!(" {good}"), false),
        (format!("{good}\n"), false),
        (wide, true),
        (too_wide, false),
        ("....".to_owned(), false),
        (String::new(), false),
        ("é".to_owned(), false),
    ];
    for (position, (text, expected)) in cases.into_iter().enumerate() {
        assert_eq!(Jwe::parse(&text).is_some(), expected, "{position}");
    }
}
