//! Converts ISO 8601 dates and times to the formats of the protocol.

use cloakroom_emv3ds::Format;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// Converts an ISO 8601 date or time to one of the protocol's formats, in UTC.
///
/// A time without an offset is taken as UTC, a date without a time as the start of the day.
pub(super) fn from_iso(text: &str, format: &Format) -> Option<String> {
    let pattern = match format {
        Format::Date => "%Y%m%d",
        Format::Minute => "%Y%m%d%H%M",
        Format::Second => "%Y%m%d%H%M%S",
        _ => return None,
    };
    // Only `YYYY-MM-DD...`: the parser also accepts other forms, such as named time zones.
    let is_extended = text.as_bytes().get(4) == Some(&b'-') && !text.contains('[');
    if !is_extended {
        return None;
    }
    let time: DateTime = match text.parse::<Timestamp>() {
        Ok(instant) => instant.to_zoned(TimeZone::UTC).datetime(),
        Err(_) => text.parse().ok()?,
    };
    Some(time.strftime(pattern).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iso_dates_are_converted_to_protocol_formats() {
        let cases = [
            ("2024-01-09", Format::Date, Some("20240109")),
            ("2024-01-09", Format::Minute, Some("202401090000")),
            ("2024-01-09", Format::Second, Some("20240109000000")),
            ("2024-01-09T14:10:11Z", Format::Date, Some("20240109")),
            ("2024-01-09T14:10:11Z", Format::Minute, Some("202401091410")),
            (
                "2024-01-09T14:10:11.9Z",
                Format::Second,
                Some("20240109141011"),
            ),
            (
                "2024-01-09T23:10:11-02:00",
                Format::Second,
                Some("20240110011011"),
            ),
            ("2024-01-09T23:10:11-02:00", Format::Date, Some("20240110")),
            (
                "2024-01-09T14:10:11",
                Format::Second,
                Some("20240109141011"),
            ),
            ("2024-01-09T14:10", Format::Minute, Some("202401091410")),
            (
                "2024-01-09 14:10:11",
                Format::Second,
                Some("20240109141011"),
            ),
            ("2024-02-30", Format::Date, None),
            ("2024-13-01", Format::Date, None),
            ("2024-01-09T25:00:00Z", Format::Second, None),
            ("2024-01-09T14:10[Europe/Berlin]", Format::Second, None),
            ("20240109", Format::Date, None),
            ("09.01.2024", Format::Date, None),
            ("2024", Format::Date, None),
            ("", Format::Date, None),
            ("2024-01-09", Format::Uuid, None),
        ];
        for (text, format, expected) in cases {
            let written = from_iso(text, &format);
            assert_eq!(written.as_deref(), expected, "{text} {format:?}");
        }
    }
}
