//! Filters that encode and decode text, and HMAC.

use base64::Engine;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD, URL_SAFE};
use base64::{alphabet, engine::DecodePaddingMode};
use serde_json::Value;

use super::{Filter, FilterArgs, FilterResult, Kind, NO_ARGUMENTS};
use crate::{EvaluationError, HmacAlgorithm};

pub(super) const FILTERS: &[Filter] = &[
    Filter::new("base64_decode", 0..=0, NO_ARGUMENTS, base64_decode),
    Filter::new("base64_encode", 0..=0, NO_ARGUMENTS, base64_encode),
    Filter::new(
        "base64_url_safe_decode",
        0..=0,
        NO_ARGUMENTS,
        base64_url_safe_decode,
    ),
    Filter::new(
        "base64_url_safe_encode",
        0..=0,
        NO_ARGUMENTS,
        base64_url_safe_encode,
    ),
    Filter::new("hmac", 2..=2, "an algorithm and a key", hmac).with_kind(Kind::Bytes),
    Filter::new("to_base16", 0..=0, NO_ARGUMENTS, to_base16).with_kind(Kind::Encoder),
    Filter::new("to_base64", 0..=0, NO_ARGUMENTS, to_base64).with_kind(Kind::Encoder),
    Filter::new("url_decode", 0..=0, NO_ARGUMENTS, url_decode),
    Filter::new("url_encode", 0..=0, NO_ARGUMENTS, url_encode),
];

/// Encodes with padding, decodes with or without.
const LENIENT: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);

fn base64_encode(args: &FilterArgs<'_>) -> FilterResult {
    Ok(STANDARD.encode(&*args.text_or_empty()?).into())
}

fn base64_url_safe_encode(args: &FilterArgs<'_>) -> FilterResult {
    Ok(URL_SAFE.encode(&*args.text_or_empty()?).into())
}

fn base64_decode(args: &FilterArgs<'_>) -> FilterResult {
    decode(args, &GeneralPurpose::new(&alphabet::STANDARD, LENIENT))
}

fn base64_url_safe_decode(args: &FilterArgs<'_>) -> FilterResult {
    decode(args, &GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT))
}

fn decode(args: &FilterArgs<'_>, engine: &GeneralPurpose) -> FilterResult {
    let bytes = engine.decode(&*args.text_or_empty()?).ok();
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    text.map(Value::from)
        .ok_or(EvaluationError::BadEncoding(args.filter))
}

fn url_encode(args: &FilterArgs<'_>) -> FilterResult {
    args.map_text(|text| {
        // Most characters may be encoded as three.
        args.charge(text.len().saturating_mul(2))?;
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

fn url_decode(args: &FilterArgs<'_>) -> FilterResult {
    args.map_text(|text| {
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
        String::from_utf8(decoded).map_err(|_| EvaluationError::BadEncoding(args.filter))
    })
}

/// Returns the bytes as a list of numbers; only an encoder may follow.
fn hmac(args: &FilterArgs<'_>) -> FilterResult {
    let algorithm = match args.value(0) {
        None => HmacAlgorithm::Sha256,
        Some(_) => match &*args.argument(0)?.to_ascii_lowercase() {
            "sha-1" => HmacAlgorithm::Sha1,
            "sha-256" => HmacAlgorithm::Sha256,
            "sha-512" => HmacAlgorithm::Sha512,
            _ => return Err(args.bad_argument()),
        },
    };
    let key = args.argument(1)?;
    let message = args.text()?;
    let message = message.ok_or(EvaluationError::NoInput(args.filter))?;
    let hmac = args.sources.hmac;
    let hmac = hmac.ok_or(EvaluationError::Unavailable(args.filter))?;
    Ok(hmac(algorithm, key.as_bytes(), message.as_bytes()).into())
}

fn to_base64(args: &FilterArgs<'_>) -> FilterResult {
    Ok(STANDARD.encode(bytes(args)?).into())
}

fn to_base16(args: &FilterArgs<'_>) -> FilterResult {
    let bytes = bytes(args)?;
    args.charge(bytes.len())?;
    let mut encoded = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        push_hex(&mut encoded, "", byte);
    }
    Ok(encoded.into())
}

/// The input of an encoder: the bytes of an HMAC, or of a text.
fn bytes(args: &FilterArgs<'_>) -> Result<Vec<u8>, EvaluationError> {
    match (args.is_bytes, args.input) {
        (true, Value::Array(bytes)) => {
            let byte = |value: &Value| value.as_u64().and_then(|byte| byte.try_into().ok());
            let bytes: Option<_> = bytes.iter().map(byte).collect();
            bytes.ok_or(EvaluationError::NoInput(args.filter))
        }
        _ => {
            let text = args.text()?;
            let text = text.ok_or(EvaluationError::NoInput(args.filter))?;
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
