//! What a value looks like.

use std::fmt;
use std::net::IpAddr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::civil::{Date, DateTime};
use serde_json::Value;
use uuid::Uuid;

use crate::version::Announced;

/// The form of a value. `Display` ends the sentence "must be ...". Lengths are in characters.
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
    /// A number in decimal digits: how many digits, and which values.
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
    /// Or a code from 80 to 99, which are left to the networks.
    CodesOrNetwork(&'static [&'static str]),
    Uuid,
    Version,
    Email {
        max: usize,
    },
    /// An absolute address of the web.
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
    /// So many bytes as base64 with padding.
    Base64 {
        bytes: usize,
    },
    Boolean,
    True,
    /// A public key on the curve P-256.
    PublicKey {
        max: usize,
    },
    /// An object of which nothing more is known.
    AnyObject {
        max: usize,
    },
    /// A list of which nothing more is known.
    AnyList {
        max: usize,
    },
    /// A list of objects of which nothing more is known.
    AnyObjects {
        count: usize,
        max: usize,
    },
    /// An object whose fields are rows of the table.
    Object,
    /// A list of such objects: how many, and how long all together.
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
    /// Whether a value has this format. Of an object with rows of its own only that it is one and
    /// has something in it.
    pub fn accepts(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Boolean, Value::Bool(_)) | (Self::True, Value::Bool(true)) => true,
            (Self::Object, Value::Object(object)) => !object.is_empty(),
            (Self::AnyObject { max }, Value::Object(object)) => {
                !object.is_empty() && is_short(value, *max)
            }
            (Self::PublicKey { max }, Value::Object(_)) => {
                is_public_key(value) && is_short(value, *max)
            }
            (Self::AnyList { max }, Value::Array(elements)) => {
                !elements.is_empty() && is_short(value, *max)
            }
            (
                Self::AnyObjects { count, max } | Self::Objects { count, max },
                Value::Array(elements),
            ) => {
                let objects = elements.iter().all(|element| Self::Object.accepts(element));
                objects && (1..=*count).contains(&elements.len()) && is_short(value, *max)
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
            Self::Text { min, max } => long(text, *min, *max) && !text.contains(char::is_control),
            Self::Ascii { min, max } => {
                long(text, *min, *max) && all(text, |c| matches!(c, ' '..='~'))
            }
            Self::Digits { min, max } => long(text, *min, *max) && digits(text),
            Self::Number {
                digits: (least, most),
                min,
                max,
            } => {
                let number = text
                    .parse::<u32>()
                    .is_ok_and(|number| (*min..=*max).contains(&number));
                number && digits(text) && long(text, *least, *most)
            }
            Self::Minutes => {
                let number = text.strip_prefix(['+', '-']).unwrap_or(text);
                long(number, 1, 4) && digits(number)
            }
            Self::Letters { min, max } => {
                long(text, *min, *max) && all(text, |c| c.is_ascii_alphabetic())
            }
            Self::Alphanumeric { min, max } => {
                long(text, *min, *max) && all(text, |c| c.is_ascii_alphanumeric())
            }
            Self::Codes(codes) => codes.contains(&text),
            Self::CodesOrNetwork(codes) => codes.contains(&text) || is_of_network(text),
            Self::Uuid => is_uuid(text),
            Self::Version => text.parse::<Announced>().is_ok(),
            Self::Email { max } => {
                Self::Text { min: 3, max: *max }.accepts_text(text) && is_email(text)
            }
            Self::Url { max } => long(text, 1, *max) && is_url(text),
            Self::Ip => text.len() <= 45 && text.parse::<IpAddr>().is_ok(),
            Self::Date => long(text, 8, 8) && digits(text) && is_date(text),
            Self::Month => long(text, 4, 4) && digits(text) && is_date(&format!("20{text}01")),
            Self::Minute => long(text, 12, 12) && digits(text) && is_second(&format!("{text}00")),
            Self::Second => long(text, 14, 14) && digits(text) && is_second(text),
            Self::Currency => is_iso_number(text, |n| !(955..=964).contains(&n) && n != 999),
            Self::Country => is_iso_number(text, |n| n < 901),
            Self::Base64 { bytes } => STANDARD.decode(text).is_ok_and(|raw| raw.len() == *bytes),
            _ => false,
        }
    }
}

fn long(text: &str, min: usize, max: usize) -> bool {
    (min..=max).contains(&text.chars().count())
}

fn all(text: &str, allowed: impl Fn(char) -> bool) -> bool {
    text.chars().all(allowed)
}

fn digits(text: &str) -> bool {
    all(text, |c| c.is_ascii_digit())
}

fn is_of_network(code: &str) -> bool {
    code.len() == 2 && digits(code) && code >= "80"
}

/// In the form with hyphens, which is the only one of this length.
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

/// `text` is eight digits.
fn is_date(text: &str) -> bool {
    let number = |from: usize, to: usize| text.get(from..to).and_then(|part| part.parse().ok());
    let date = || {
        let year: i16 = number(0, 4)?;
        Some(Date::new(year, number(4, 6)? as i8, number(6, 8)? as i8))
    };
    date().is_some_and(|date| date.is_ok())
}

/// `text` is fourteen digits. A leap second is no time of day here, as in most calendars.
fn is_second(text: &str) -> bool {
    DateTime::strptime("%Y%m%d%H%M%S", text).is_ok() && !text.ends_with("60")
}

fn is_iso_number(text: &str, allowed: impl Fn(u16) -> bool) -> bool {
    text.len() == 3 && digits(text) && text.parse().is_ok_and(allowed)
}

fn is_public_key(value: &Value) -> bool {
    let member = |name: &str| value.get(name).and_then(Value::as_str);
    let coordinate = |name| member(name).is_some_and(|text| (1..=64).contains(&text.len()));
    member("kty") == Some("EC")
        && member("crv") == Some("P-256")
        && coordinate("x")
        && coordinate("y")
}

/// How long it is on the wire. What only the message itself bounds is not counted.
fn is_short(value: &Value, max: usize) -> bool {
    max == usize::MAX || value.to_string().chars().count() <= max
}

impl fmt::Display for Format {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text { min, max } => write!(out, "{} characters", Count(*min, *max)),
            Self::Ascii { min, max } => {
                write!(out, "{} printable ASCII characters", Count(*min, *max))
            }
            Self::Digits { min, max } => write!(out, "{} digits", Count(*min, *max)),
            Self::Number {
                digits: (least, most),
                min,
                max,
            } => {
                let width = if least == most { *least } else { 1 };
                write!(out, "a number from {min:0width$} to {max:0width$}")
            }
            Self::Minutes => out.write_str("minutes: an optional sign and 1 to 4 digits"),
            Self::Letters { min, max } => write!(out, "{} ASCII letters", Count(*min, *max)),
            Self::Alphanumeric { min, max } => {
                write!(out, "{} ASCII letters and digits", Count(*min, *max))
            }
            Self::Codes([only]) => out.write_str(only),
            Self::Codes(codes) => write!(out, "one of {}", codes.join(", ")),
            Self::CodesOrNetwork(codes) => write!(out, "one of {}, 80 to 99", codes.join(", ")),
            Self::Uuid => out.write_str("a UUID"),
            Self::Version => out.write_str("a protocol version"),
            Self::Email { max } => write!(out, "an e-mail address of up to {max} characters"),
            Self::Url { max } => write!(out, "an absolute URL of up to {max} characters"),
            Self::Ip => out.write_str("an IP address"),
            Self::Date => out.write_str("a date as YYYYMMDD"),
            Self::Month => out.write_str("a month as YYMM"),
            Self::Minute => out.write_str("a time as YYYYMMDDHHMM"),
            Self::Second => out.write_str("a time as YYYYMMDDHHMMSS"),
            Self::Currency => out.write_str("a numeric ISO 4217 currency code"),
            Self::Country => out.write_str("a numeric ISO 3166-1 country code"),
            Self::Base64 { bytes } => write!(out, "{bytes} bytes in base64"),
            Self::Boolean => out.write_str("true or false"),
            Self::True => out.write_str("true"),
            Self::PublicKey { max } => {
                write!(
                    out,
                    "a public key on P-256 as JWK of up to {max} characters"
                )
            }
            Self::AnyObject { max } => write!(out, "an object of up to {max} characters"),
            Self::AnyList { max } => write!(out, "a list of up to {max} characters"),
            Self::Objects {
                max: usize::MAX, ..
            } => out.write_str("a list of objects"),
            Self::AnyObjects { count, max } | Self::Objects { count, max } => {
                write!(
                    out,
                    "a list of 1 to {count} objects, up to {max} characters together"
                )
            }
            Self::Object => out.write_str("an object"),
            Self::List { of, count } => write!(out, "a list of 1 to {count}, each {of}"),
        }
    }
}

/// "3" or "1 to 48".
struct Count(usize, usize);

impl fmt::Display for Count {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(min, max) = self;
        if min == max {
            write!(out, "{min}")
        } else {
            write!(out, "{min} to {max}")
        }
    }
}
