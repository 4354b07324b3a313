//! Human-readable descriptions of formats.

use std::fmt;

use super::Format;

impl fmt::Display for Format {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text { min, max } => write!(out, "{} characters", CountRange(*min, *max)),
            Self::Ascii { min, max } => {
                write!(out, "{} printable ASCII characters", CountRange(*min, *max))
            }
            Self::Digits { min, max } => write!(out, "{} digits", CountRange(*min, *max)),
            Self::Number {
                digits: (least, most),
                min,
                max,
            } => {
                let width = if least == most { *least } else { 1 };
                write!(out, "a number from {min:0width$} to {max:0width$}")
            }
            Self::Minutes => out.write_str("minutes: an optional sign and 1 to 4 digits"),
            Self::Letters { min, max } => write!(out, "{} ASCII letters", CountRange(*min, *max)),
            Self::Alphanumeric { min, max } => {
                write!(out, "{} ASCII letters and digits", CountRange(*min, *max))
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
struct CountRange(usize, usize);

impl fmt::Display for CountRange {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(min, max) = self;
        if min == max {
            write!(out, "{min}")
        } else {
            write!(out, "{min} to {max}")
        }
    }
}
