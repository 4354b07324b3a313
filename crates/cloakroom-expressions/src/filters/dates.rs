//! The filter on dates.

use jiff::civil::{Date, DateTime};
use jiff::fmt::{strtime, temporal::Pieces};
use jiff::tz::{Offset, TimeZone};
use jiff::{Timestamp, Zoned};
use serde_json::Value;

use super::given::text;
use super::{Applied, Filter, Given};
use crate::EvaluationError;

pub(super) const FILTERS: &[Filter] = &[Filter::new("date", 1..=1, "a format", date)];

/// Dates people write, besides those of RFC 3339.
const FORMATS: [&str; 3] = ["%B %d, %Y", "%b %d, %Y", "%Y/%m/%d"];

/// Writes a date in a `strftime` format. What is no date stays as it is, as in Liquid.
fn date(given: &Given<'_>) -> Applied {
    let format = given.argument(0)?;
    let Some(input) = text(given.input) else {
        return Ok(given.input.clone());
    };
    let moment = match input.trim() {
        "now" | "today" => {
            let now = given.sources.now;
            let now = now.ok_or(EvaluationError::Unavailable(given.filter))?;
            Some(now.to_zoned(TimeZone::UTC))
        }
        input => parse(input),
    };
    let Some(moment) = moment.filter(|_| !format.is_empty()) else {
        return Ok(given.input.clone());
    };
    let shown = strtime::format(&*format, &moment).map_err(|_| given.bad_argument())?;
    Ok(Value::String(shown))
}

/// Seconds since 1970, or a date with or without a time and an offset.
fn parse(text: &str) -> Option<Zoned> {
    if let Ok(seconds) = text.parse::<i64>() {
        let moment = Timestamp::from_second(seconds).ok()?;
        return Some(moment.to_zoned(TimeZone::UTC));
    }
    if let Ok(pieces) = Pieces::parse(text) {
        let civil = DateTime::from_parts(pieces.date(), pieces.time().unwrap_or_default());
        return zoned(civil, pieces.to_numeric_offset().unwrap_or(Offset::UTC));
    }
    let date = (FORMATS.iter()).find_map(|format| Date::strptime(format, text).ok())?;
    zoned(date.into(), Offset::UTC)
}

fn zoned(civil: DateTime, offset: Offset) -> Option<Zoned> {
    let moment = offset.to_timestamp(civil).ok()?;
    Some(moment.to_zoned(offset.to_time_zone()))
}
