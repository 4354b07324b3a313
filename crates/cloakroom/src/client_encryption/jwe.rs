//! A compact JWE of the one kind that is supported, taken apart.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cloakroom_crypto::ClientMessage;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use uuid::Uuid;

use crate::api::{Object, parse_json};

/// Every header that is meant here has about 200 characters.
const HEADER_LENGTH_MAX: usize = 2_048;
/// As large as data may be, and a byte of ciphertext is a byte of data.
const CIPHERTEXT_BYTES_MAX: usize = 1024 * 1024;

/// What a client encrypted, and for which key it says that it did.
pub(super) struct Jwe<'a> {
    pub key_id: Uuid,
    /// The header as it was sent, which is authenticated.
    header: &'a str,
    ephemeral: Vec<u8>,
    nonce: Vec<u8>,
    ciphertext: Vec<u8>,
    tag: Vec<u8>,
}

/// Members that nobody needs here are ignored, as the standard says.
#[derive(Deserialize)]
struct Header<'a> {
    #[serde(borrow)]
    alg: &'a str,
    #[serde(borrow)]
    enc: &'a str,
    kid: Uuid,
    epk: Object<EphemeralKey>,
    /// Each of these changes what the rest means.
    #[serde(default, deserialize_with = "is_given")]
    zip: bool,
    #[serde(default, deserialize_with = "is_given")]
    crit: bool,
    #[serde(default, deserialize_with = "is_given")]
    apu: bool,
    #[serde(default, deserialize_with = "is_given")]
    apv: bool,
}

#[derive(Deserialize)]
struct EphemeralKey {
    kty: String,
    crv: String,
    x: String,
}

fn is_given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    IgnoredAny::deserialize(deserializer).map(|_| true)
}

impl<'a> Jwe<'a> {
    /// Takes the text apart; none when it is not of the supported kind.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.split('.');
        let [header, encrypted_key, nonce, ciphertext, tag] = [(); 5].map(|()| parts.next());
        let (header, ciphertext) = (header?, ciphertext?);
        // With this algorithm the parties agree on the key itself: there is none to be sent.
        if parts.next().is_some() || !encrypted_key?.is_empty() || header.len() > HEADER_LENGTH_MAX
        {
            return None;
        }
        let read = URL_SAFE_NO_PAD.decode(header).ok()?;
        let Object(read) =
            parse_json::<Object<Header<'_>>>(std::str::from_utf8(&read).ok()?).ok()?;
        let Object(epk) = &read.epk;
        let is_supported = read.alg == "ECDH-ES"
            && read.enc == "A256GCM"
            && epk.kty == "OKP"
            && epk.crv == "X25519"
            && !(read.zip || read.crit || read.apu || read.apv);
        // Four characters are three bytes: known before anything is decoded.
        if !is_supported || ciphertext.len() / 4 * 3 > CIPHERTEXT_BYTES_MAX {
            return None;
        }
        Some(Self {
            key_id: read.kid,
            header,
            ephemeral: URL_SAFE_NO_PAD.decode(&epk.x).ok()?,
            nonce: URL_SAFE_NO_PAD.decode(nonce?).ok()?,
            ciphertext: URL_SAFE_NO_PAD.decode(ciphertext).ok()?,
            tag: URL_SAFE_NO_PAD.decode(tag?).ok()?,
        })
    }

    pub(super) fn message(&self) -> ClientMessage<'_> {
        ClientMessage {
            ephemeral: &self.ephemeral,
            aad: self.header.as_bytes(),
            nonce: &self.nonce,
            ciphertext: &self.ciphertext,
            tag: &self.tag,
        }
    }
}

#[cfg(test)]
mod tests {
    use cloakroom_crypto::{ClientKey, Sensitive};
    use serde_json::{Value, json};

    use super::*;

    const VECTORS: &str = include_str!("../../../cloakroom-crypto/vectors/client_key.json");

    #[test]
    fn what_other_implementations_encrypted_opens() {
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
    fn only_headers_of_the_one_kind_are_read() {
        let accepted = [
            header(|_| {}),
            header(|header| header["typ"] = json!("JWE")),
            header(|header| header["cty"] = json!({"a": [1]})),
            header(|header| header["epk"]["use"] = json!("enc")),
        ];
        for text in accepted {
            assert!(Jwe::parse(&text).is_some(), "{text}");
        }
        let refused: [fn(&mut Value); 22] = [
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
            |header| header["kid"] = json!("mine"),
            |header| header["epk"]["kty"] = json!("EC"),
            |header| header["epk"]["crv"] = json!("X448"),
            |header| header["epk"]["x"] = json!("AAAA="),
            |header| header["epk"] = json!(["OKP", "X25519", "AAAA"]),
            |header| *header = json!([]),
        ];
        for (position, change) in refused.into_iter().enumerate() {
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
    fn only_five_parts_of_reasonable_size_are_read() {
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
}
