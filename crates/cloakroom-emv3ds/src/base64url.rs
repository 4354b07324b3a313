//! Base64 for URLs, as browsers carry messages: written without padding, read with or without it.

use base64::Engine;
use base64::alphabet::URL_SAFE;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// Access control servers pad or do not, so both are read.
const ENGINE: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    GeneralPurposeConfig::new()
        .with_encode_padding(false)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The text is not base64 for URLs. Says no more, because the text may be confidential.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not base64url")]
pub struct NotBase64url;

/// Without padding.
pub fn encode(bytes: &[u8]) -> String {
    ENGINE.encode(bytes)
}

/// With or without padding.
pub fn decode(text: &str) -> Result<Vec<u8>, NotBase64url> {
    ENGINE.decode(text).map_err(|_| NotBase64url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_is_never_written_and_may_be_read() {
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
    fn other_alphabets_and_cut_texts_are_refused() {
        for text in ["+/8", "Z", "Zg=a", "Zm 8", "Zm8\n", "Zm9v=", "Zg==="] {
            assert_eq!(decode(text), Err(NotBase64url), "{text:?}");
        }
    }
}
