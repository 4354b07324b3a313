//! When something expires: the formats clients write, and the instant they mean.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::fmt::strtime;
use jiff::fmt::temporal::{Pieces, PiecesOffset};
use jiff::tz::Offset;

/// An instant, and the offset at which the client wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expiry {
    pub at: Timestamp,
    pub offset_minutes: i16,
}

pub(crate) const RULE: &str =
    "must be an ISO 8601 date-time, or a date written as month/day/year, that lies in the future";

impl Expiry {
    /// Reads any of the accepted formats; without an offset, UTC is meant.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if text.contains('/') {
            parse_american(text)
        } else {
            parse_iso(text)
        }
    }

    fn new(at: DateTime, offset: Offset) -> Option<Self> {
        let offset_minutes = i16::try_from(offset.seconds() / 60).ok()?;
        Some(Self {
            at: truncate_to_micros(offset.to_timestamp(at).ok()?)?,
            offset_minutes,
        })
    }
}

/// `2030-08-26T19:23:57-07:00`, `2030-08-26T19:23:57Z`, `2030-08-26T19:23:57`, `2030-08-26`.
fn parse_iso(text: &str) -> Option<Expiry> {
    let pieces = Pieces::parse(text).ok()?;
    let time = pieces.time().unwrap_or_default();
    let offset = match pieces.offset() {
        None | Some(PiecesOffset::Zulu) => Offset::UTC,
        Some(PiecesOffset::Numeric(offset)) => offset.offset(),
        Some(_) => return None,
    };
    Expiry::new(pieces.date().to_datetime(time), offset)
}

/// `8/26/2030 7:23:57 PM -07:00`, the same without an offset, and `8/26/2030`.
fn parse_american(text: &str) -> Option<Expiry> {
    if let Ok(parsed) = strtime::parse("%m/%d/%Y %I:%M:%S %p %:z", text) {
        return Expiry::new(parsed.to_datetime().ok()?, parsed.offset()?);
    }
    if let Ok(parsed) = strtime::parse("%m/%d/%Y %I:%M:%S %p", text) {
        return Expiry::new(parsed.to_datetime().ok()?, Offset::UTC);
    }
    let date = strtime::parse("%m/%d/%Y", text).ok()?.to_date().ok()?;
    Expiry::new(date.to_datetime(jiff::civil::Time::midnight()), Offset::UTC)
}

/// The database keeps microseconds, and the instant is authenticated with the data: both must agree.
///
/// Whether it lies ahead is for the database to say, but what it cannot even hold is refused here.
fn truncate_to_micros(at: Timestamp) -> Option<Timestamp> {
    let micros = at.as_microsecond();
    (micros > 0)
        .then(|| Timestamp::from_microsecond(micros).ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::format_at_offset;

    #[test]
    fn every_documented_format_is_understood() {
        let cases = [
            (
                "2030-08-26T19:23:57-07:00",
                Some("2030-08-26T19:23:57-07:00"),
            ),
            ("2030-08-26T19:23:57Z", Some("2030-08-26T19:23:57+00:00")),
            ("2030-08-26T19:23:57", Some("2030-08-26T19:23:57+00:00")),
            (
                "2030-08-26T19:23:57.1234567+00:00",
                Some("2030-08-26T19:23:57.123456+00:00"),
            ),
            ("2030-08-26", Some("2030-08-26T00:00:00+00:00")),
            (
                "8/26/2030 7:23:57 PM -07:00",
                Some("2030-08-26T19:23:57-07:00"),
            ),
            ("8/26/2030 7:23:57 PM", Some("2030-08-26T19:23:57+00:00")),
            ("08/26/2030 12:00:00 AM", Some("2030-08-26T00:00:00+00:00")),
            ("8/26/2030", Some("2030-08-26T00:00:00+00:00")),
            ("-005000-01-01", None),
            ("1969-12-31", None),
            ("26/8/2030", None),
            ("tomorrow", None),
            ("", None),
            ("2030-13-01", None),
            ("99999-01-01T00:00:00Z", None),
        ];
        for (text, expected) in cases {
            let told = Expiry::parse(text)
                .map(|expiry| format_at_offset(expiry.at, expiry.offset_minutes));
            assert_eq!(told.as_deref(), expected, "{text}");
        }
    }
}
