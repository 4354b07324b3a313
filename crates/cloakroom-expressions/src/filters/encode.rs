//! Filters that encode and decode text, and the keyed hash that is encoded.

use base64::Engine;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD, URL_SAFE};
use base64::{alphabet, engine::DecodePaddingMode};
use serde_json::Value;

use super::{Applied, Filter, Given, Mark, NOTHING};
use crate::{EvaluationError, HmacAlgorithm};

pub(super) const FILTERS: &[Filter] = &[
    Filter::new("base64_decode", 0..=0, NOTHING, base64_decode),
    Filter::new("base64_encode", 0..=0, NOTHING, base64_encode),
    Filter::new(
        "base64_url_safe_decode",
        0..=0,
        NOTHING,
        base64_url_safe_decode,
    ),
    Filter::new(
        "base64_url_safe_encode",
        0..=0,
        NOTHING,
        base64_url_safe_encode,
    ),
    Filter::new("hmac", 2..=2, "an algorithm and a key", hmac).marked(Mark::Bytes),
    Filter::new("to_base16", 0..=0, NOTHING, to_base16).marked(Mark::Encoder),
    Filter::new("to_base64", 0..=0, NOTHING, to_base64).marked(Mark::Encoder),
    Filter::new("url_decode", 0..=0, NOTHING, url_decode),
    Filter::new("url_encode", 0..=0, NOTHING, url_encode),
];

/// Written with padding, read with or without.
const LENIENT: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);

fn base64_encode(given: &Given<'_>) -> Applied {
    Ok(STANDARD.encode(&*given.text_or_empty()?).into())
}

fn base64_url_safe_encode(given: &Given<'_>) -> Applied {
    Ok(URL_SAFE.encode(&*given.text_or_empty()?).into())
}

fn base64_decode(given: &Given<'_>) -> Applied {
    decode(given, &GeneralPurpose::new(&alphabet::STANDARD, LENIENT))
}

fn base64_url_safe_decode(given: &Given<'_>) -> Applied {
    decode(given, &GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT))
}

fn decode(given: &Given<'_>, engine: &GeneralPurpose) -> Applied {
    let bytes = engine.decode(&*given.text_or_empty()?).ok();
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    text.map(Value::from)
        .ok_or(EvaluationError::BadEncoding(given.filter))
}

fn url_encode(given: &Given<'_>) -> Applied {
    given.null_or(|text| {
        // Most characters may become three.
        given.spend(text.len().saturating_mul(2))?;
        let mut encoded = String::with_capacity(text.len());
        for byte in text.bytes() {
            match byte {
                b' ' => encoded.push('+'),
                b'_' | b'.' | b'-' | b'~' => encoded.push(byte.into()),
                byte if byte.is_ascii_alphanumeric() => encoded.push(byte.into()),
                byte => push_hex(&mut encoded, "%", byte),
            }
        }
        Ok(encoded)
    })
}

fn url_decode(given: &Given<'_>) -> Applied {
    given.null_or(|text| {
        let mut decoded = Vec::with_capacity(text.len());
        let mut rest = text.as_bytes();
        while let [first, after @ ..] = rest {
            let pair = after.get(..2).filter(|_| *first == b'%');
            let escaped = pair.and_then(|pair| {
                let text = std::str::from_utf8(pair).ok()?;
                u8::from_str_radix(text, 16).ok()
            });
            match (escaped, first) {
                (Some(byte), _) => decoded.push(byte),
                (None, b'+') => decoded.push(b' '),
                (None, byte) => decoded.push(*byte),
            }
            rest = if escaped.is_some() {
                &after[2..]
            } else {
                after
            };
        }
        String::from_utf8(decoded).map_err(|_| EvaluationError::BadEncoding(given.filter))
    })
}

/// Yields the bytes as a list of numbers, which only an encoder gets to see.
fn hmac(given: &Given<'_>) -> Applied {
    let algorithm = match given.value(0) {
        None => HmacAlgorithm::Sha256,
        Some(_) => match &*given.argument(0)?.to_ascii_lowercase() {
            "sha-1" => HmacAlgorithm::Sha1,
            "sha-256" => HmacAlgorithm::Sha256,
            "sha-512" => HmacAlgorithm::Sha512,
            _ => return Err(given.bad_argument()),
        },
    };
    let key = given.argument(1)?;
    let message = given.text()?;
    let message = message.ok_or(EvaluationError::NoInput(given.filter))?;
    let hmac = given.sources.hmac;
    let hmac = hmac.ok_or(EvaluationError::Unavailable(given.filter))?;
    Ok(hmac(algorithm, key.as_bytes(), message.as_bytes()).into())
}

fn to_base64(given: &Given<'_>) -> Applied {
    Ok(STANDARD.encode(bytes(given)?).into())
}

fn to_base16(given: &Given<'_>) -> Applied {
    let bytes = bytes(given)?;
    given.spend(bytes.len())?;
    let mut encoded = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        push_hex(&mut encoded, "", byte);
    }
    Ok(encoded.into())
}

/// What an encoder encodes: the bytes of a keyed hash, or those of a text.
fn bytes(given: &Given<'_>) -> Result<Vec<u8>, EvaluationError> {
    match (given.is_bytes, given.input) {
        (true, Value::Array(bytes)) => {
            let byte = |value: &Value| value.as_u64().and_then(|byte| byte.try_into().ok());
            let bytes: Option<_> = bytes.iter().map(byte).collect();
            bytes.ok_or(EvaluationError::NoInput(given.filter))
        }
        _ => {
            let text = given.text()?;
            let text = text.ok_or(EvaluationError::NoInput(given.filter))?;
            Ok(text.as_bytes().to_vec())
        }
    }
}

fn push_hex(text: &mut String, before: &str, byte: u8) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    text.push_str(before);
    text.push(DIGITS[usize::from(byte >> 4)].into());
    text.push(DIGITS[usize::from(byte & 15)].into());
}
