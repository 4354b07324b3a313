//! The `date` filter.

use jiff::civil::{Date, DateTime};
use jiff::fmt::{strtime, temporal::Pieces};
use jiff::tz::{Offset, TimeZone};
use jiff::{Timestamp, Zoned};
use serde_json::Value;

use super::args::text;
use super::{Filter, FilterArgs, FilterResult};
use crate::EvaluationError;

pub(super) const FILTERS: &[Filter] = &[Filter::new("date", 1..=1, "a format", date)];

/// Accepted date formats besides RFC 3339.
const FORMATS: [&str; 3] = ["%B %d, %Y", "%b %d, %Y", "%Y/%m/%d"];

/// Formats a date with `strftime`. Input that is not a date is returned unchanged, as in Liquid.
fn date(args: &FilterArgs<'_>) -> FilterResult {
    let format = args.argument(0)?;
    let Some(input) = text(args.input) else {
        return Ok(args.input.clone());
    };
    let moment = match input.trim() {
        "now" | "today" => {
            let now = args.sources.now;
            let now = now.ok_or(EvaluationError::Unavailable(args.filter))?;
            Some(now.to_zoned(TimeZone::UTC))
        }
        input => parse(input),
    };
    let Some(moment) = moment.filter(|_| !format.is_empty()) else {
        return Ok(args.input.clone());
    };
    let result = strtime::format(&*format, &moment).map_err(|_| args.bad_argument())?;
    Ok(Value::String(result))
}

/// Parses a Unix timestamp, or a date with optional time and offset.
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
