//! Formats of field values.

mod display;

use std::net::IpAddr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::civil::{Date, DateTime};
use serde_json::Value;
use uuid::Uuid;

use crate::version::Announced;

/// The format of a value. `Display` completes the sentence "must be ...". Lengths are in characters.
#[derive(Clone, Copy, Debug)]
pub enum Format {
    /// Any text without control characters.
    Text {
        min: usize,
        max: usize,
    },
    /// Printable ASCII.
    Ascii {
        min: usize,
        max: usize,
    },
    Digits {
        min: usize,
        max: usize,
    },
    /// A decimal number with a minimum and maximum number of digits and a range of values.
    Number {
        digits: (usize, usize),
        min: u32,
        max: u32,
    },
    /// An optional sign and one to four digits.
    Minutes,
    Letters {
        min: usize,
        max: usize,
    },
    /// ASCII letters and digits.
    Alphanumeric {
        min: usize,
        max: usize,
    },
    Codes(&'static [&'static str]),
    /// One of the codes, or a code from 80 to 99, which are reserved for the card networks.
    CodesOrNetwork(&'static [&'static str]),
    Uuid,
    Version,
    Email {
        max: usize,
    },
    /// An absolute `http` or `https` URL.
    Url {
        max: usize,
    },
    Ip,
    /// YYYYMMDD.
    Date,
    /// YYMM.
    Month,
    /// YYYYMMDDHHMM.
    Minute,
    /// YYYYMMDDHHMMSS.
    Second,
    Currency,
    Country,
    /// This many bytes as base64 with padding.
    Base64 {
        bytes: usize,
    },
    Boolean,
    True,
    /// A P-256 public key as JWK.
    PublicKey {
        max: usize,
    },
    /// An object with any content.
    AnyObject {
        max: usize,
    },
    /// A list with any content.
    AnyList {
        max: usize,
    },
    /// A list of objects with any content.
    AnyObjects {
        count: usize,
        max: usize,
    },
    /// An object whose fields are rows of the field table.
    Object,
    /// A list of such objects, with a maximum count and a maximum total length.
    Objects {
        count: usize,
        max: usize,
    },
    /// A list of values of one format.
    List {
        of: &'static Self,
        count: usize,
    },
}

impl Format {
    /// Whether a value has this format. For `Object` and `Objects`, the fields inside are not checked.
    pub fn accepts(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Boolean, Value::Bool(_)) | (Self::True, Value::Bool(true)) => true,
            (Self::Object, Value::Object(object)) => !object.is_empty(),
            (Self::AnyObject { max }, Value::Object(object)) => {
                !object.is_empty() && fits(value, *max)
            }
            (Self::PublicKey { max }, Value::Object(_)) => {
                is_public_key(value) && fits(value, *max)
            }
            (Self::AnyList { max }, Value::Array(elements)) => {
                !elements.is_empty() && fits(value, *max)
            }
            (
                Self::AnyObjects { count, max } | Self::Objects { count, max },
                Value::Array(elements),
            ) => {
                let objects = elements.iter().all(|element| Self::Object.accepts(element));
                objects && (1..=*count).contains(&elements.len()) && fits(value, *max)
            }
            (Self::List { of, count }, Value::Array(elements)) => {
                let all = elements.iter().all(|element| of.accepts(element));
                all && (1..=*count).contains(&elements.len())
            }
            (_, Value::String(text)) => self.accepts_text(text),
            _ => false,
        }
    }

    fn accepts_text(&self, text: &str) -> bool {
        match self {
            Self::Text { min, max } => {
                has_length(text, *min, *max) && !text.contains(char::is_control)
            }
            Self::Ascii { min, max } => {
                has_length(text, *min, *max) && all_chars(text, |c| matches!(c, ' '..='~'))
            }
            Self::Digits { min, max } => has_length(text, *min, *max) && is_digits(text),
            Self::Number {
                digits: (least, most),
                min,
                max,
            } => {
                let number = text
                    .parse::<u32>()
                    .is_ok_and(|number| (*min..=*max).contains(&number));
                number && is_digits(text) && has_length(text, *least, *most)
            }
            Self::Minutes => {
                let number = text.strip_prefix(['+', '-']).unwrap_or(text);
                has_length(number, 1, 4) && is_digits(number)
            }
            Self::Letters { min, max } => {
                has_length(text, *min, *max) && all_chars(text, |c| c.is_ascii_alphabetic())
            }
            Self::Alphanumeric { min, max } => {
                has_length(text, *min, *max) && all_chars(text, |c| c.is_ascii_alphanumeric())
            }
            Self::Codes(codes) => codes.contains(&text),
            Self::CodesOrNetwork(codes) => codes.contains(&text) || is_network_code(text),
            Self::Uuid => is_uuid(text),
            Self::Version => text.parse::<Announced>().is_ok(),
            Self::Email { max } => {
                Self::Text { min: 3, max: *max }.accepts_text(text) && is_email(text)
            }
            Self::Url { max } => has_length(text, 1, *max) && is_url(text),
            Self::Ip => text.len() <= 45 && text.parse::<IpAddr>().is_ok(),
            Self::Date => has_length(text, 8, 8) && is_digits(text) && is_date(text),
            Self::Month => {
                has_length(text, 4, 4) && is_digits(text) && is_date(&format!("20{text}01"))
            }
            Self::Minute => {
                has_length(text, 12, 12) && is_digits(text) && is_second(&format!("{text}00"))
            }
            Self::Second => has_length(text, 14, 14) && is_digits(text) && is_second(text),
            Self::Currency => is_iso_number(text, |n| !(955..=964).contains(&n) && n != 999),
            Self::Country => is_iso_number(text, |n| rust_iso3166::from_numeric(n).is_some()),
            Self::Base64 { bytes } => STANDARD.decode(text).is_ok_and(|raw| raw.len() == *bytes),
            _ => false,
        }
    }
}

fn has_length(text: &str, min: usize, max: usize) -> bool {
    (min..=max).contains(&text.chars().count())
}

fn all_chars(text: &str, allowed: impl Fn(char) -> bool) -> bool {
    text.chars().all(allowed)
}

fn is_digits(text: &str) -> bool {
    all_chars(text, |c| c.is_ascii_digit())
}

fn is_network_code(code: &str) -> bool {
    code.len() == 2 && is_digits(code) && code >= "80"
}

/// The hyphenated form, the only one with 36 characters.
pub(crate) fn is_uuid(text: &str) -> bool {
    text.len() == 36 && Uuid::try_parse(text).is_ok()
}

fn is_email(text: &str) -> bool {
    let parts = text.rsplit_once('@');
    parts.is_some_and(|(name, host)| !name.is_empty() && !host.is_empty()) && !text.contains(' ')
}

fn is_url(text: &str) -> bool {
    text.parse::<http::Uri>().is_ok_and(|address| {
        matches!(address.scheme_str(), Some("http" | "https"))
            && address.host().is_some_and(|host| !host.is_empty())
    })
}

/// `text` must be eight digits.
fn is_date(text: &str) -> bool {
    let number = |from: usize, to: usize| text.get(from..to).and_then(|part| part.parse().ok());
    let date = || {
        let year: i16 = number(0, 4)?;
        Some(Date::new(year, number(4, 6)? as i8, number(6, 8)? as i8))
    };
    date().is_some_and(|date| date.is_ok())
}

/// `text` must be fourteen digits. Leap seconds are rejected.
fn is_second(text: &str) -> bool {
    DateTime::strptime("%Y%m%d%H%M%S", text).is_ok() && !text.ends_with("60")
}

fn is_iso_number(text: &str, allowed: impl Fn(u16) -> bool) -> bool {
    text.len() == 3 && is_digits(text) && text.parse().is_ok_and(allowed)
}

fn is_public_key(value: &Value) -> bool {
    let member = |name: &str| value.get(name).and_then(Value::as_str);
    let coordinate = |name| member(name).is_some_and(|text| (1..=64).contains(&text.len()));
    member("kty") == Some("EC")
        && member("crv") == Some("P-256")
        && coordinate("x")
        && coordinate("y")
}

/// Whether the JSON text has at most `max` characters. `usize::MAX` means no limit and skips counting.
fn fits(value: &Value, max: usize) -> bool {
    max == usize::MAX || value.to_string().chars().count() <= max
}
