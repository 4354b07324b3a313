//! Expiry times in the formats that clients send.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::fmt::strtime;
use jiff::fmt::temporal::{Pieces, PiecesOffset};
use jiff::tz::Offset;

/// An instant, and the UTC offset with which the client sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expiry {
    pub at: Timestamp,
    pub offset_minutes: i16,
}

pub const RULE: &str = "must be an ISO 8601 date-time, or a month/day/year date with or without a time, that lies in the future";

/// 9999-12-30T22:00:00Z, the last second in which every UTC offset has a date.
const LATEST_SECOND: i64 = 253_402_207_200;

impl Expiry {
    /// Parses any of the accepted formats. The default offset is UTC.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if text.contains('/') {
            parse_american(text)
        } else {
            parse_iso(text)
        }
    }

    fn new(at: DateTime, offset: Offset) -> Option<Self> {
        if at.date() == Date::MAX {
            // The usual notation of "never" is beyond the last instant.
            let at = Timestamp::from_second(LATEST_SECOND).ok()?;
            return Some(Self {
                at,
                offset_minutes: 0,
            });
        }
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

/// Times of day after a month/day/year date: 12-hour and 24-hour, to the second and to the minute.
const AMERICAN_TIMES: [&str; 4] = ["%I:%M:%S %p", "%I:%M %p", "%H:%M:%S", "%H:%M"];

/// `8/26/2030 7:23:57 PM -07:00`, `8/26/2030 19:23:57 -07:00`, both without seconds or without an offset, and
/// `8/26/2030`.
fn parse_american(text: &str) -> Option<Expiry> {
    for time in AMERICAN_TIMES {
        if let Ok(parsed) = strtime::parse(format!("%m/%d/%Y {time} %:z"), text) {
            return Expiry::new(parsed.to_datetime().ok()?, parsed.offset()?);
        }
        if let Ok(parsed) = strtime::parse(format!("%m/%d/%Y {time}"), text) {
            return Expiry::new(parsed.to_datetime().ok()?, Offset::UTC);
        }
    }
    let date = strtime::parse("%m/%d/%Y", text).ok()?.to_date().ok()?;
    Expiry::new(date.to_datetime(jiff::civil::Time::midnight()), Offset::UTC)
}

/// Truncates to microseconds, the precision of the database. The instant is part of the associated data of the
/// encryption, so both must agree.
///
/// Rejects an instant before 1970. The database decides whether the instant is in the future.
fn truncate_to_micros(at: Timestamp) -> Option<Timestamp> {
    let micros = at.as_microsecond();
    (micros > 0)
        .then(|| Timestamp::from_microsecond(micros).ok())
        .flatten()
}

#[cfg(test)]
mod tests;
