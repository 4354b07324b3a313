//! base64url encoding of messages that pass through the browser.

use base64::Engine;
use base64::alphabet::URL_SAFE;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// Decoding accepts padding, because some ACSs send it.
const ENGINE: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    GeneralPurposeConfig::new()
        .with_encode_padding(false)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The input is not base64url. Carries no details, because the input may be confidential.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not base64url")]
pub struct InvalidBase64url;

/// Encodes without padding.
pub fn encode(bytes: &[u8]) -> String {
    ENGINE.encode(bytes)
}

/// Decodes with or without padding.
pub fn decode(text: &str) -> Result<Vec<u8>, InvalidBase64url> {
    ENGINE.decode(text).map_err(|_| InvalidBase64url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoding_omits_padding_and_decoding_accepts_it() {
        for (bytes, text) in [
            (&b""[..], ""),
            (b"f", "Zg"),
            (b"fo", "Zm8"),
            (b"foo", "Zm9v"),
            (&[0xfb, 0xff], "-_8"),
        ] {
            assert_eq!(encode(bytes), text);
            assert_eq!(decode(text).unwrap(), bytes);
            let padding = (4 - text.len() % 4) % 4;
            let padded = format!("{text}{}", "=".repeat(padding));
            assert_eq!(decode(&padded).unwrap(), bytes);
        }
    }

    #[test]
    fn other_alphabets_and_truncated_input_are_rejected() {
        for text in ["+/8", "Z", "Zg=a", "Zm 8", "Zm8\n", "Zm9v=", "Zg==="] {
            assert_eq!(decode(text), Err(InvalidBase64url), "{text:?}");
        }
    }
}
