//! Timestamps in responses: ISO 8601 with an explicit offset, microseconds at most.

use jiff::Timestamp;
use jiff::fmt::strtime;
use jiff::tz::{Offset, TimeZone};

/// `2020-09-15T15:53:00.5+00:00`; the fraction is omitted when it is zero.
pub fn format_utc(at: Timestamp) -> String {
    format_at_offset(at, 0)
}

/// Formats an instant with the UTC offset that the client used.
pub fn format_at_offset(at: Timestamp, offset_minutes: i16) -> String {
    let offset = Offset::from_seconds(i32::from(offset_minutes) * 60).unwrap_or(Offset::UTC);
    let zoned = at.to_zoned(TimeZone::fixed(offset));
    let mut text = strtime::format("%Y-%m-%dT%H:%M:%S", &zoned).unwrap_or_default();
    let micros = zoned.subsec_nanosecond() / 1_000;
    if micros != 0 {
        let fraction = format!("{micros:06}");
        text.push('.');
        text.push_str(fraction.trim_end_matches('0'));
    }
    let sign = if offset_minutes < 0 { '-' } else { '+' };
    let minutes = offset_minutes.unsigned_abs();
    text.push_str(&format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_have_an_offset_and_a_trimmed_fraction() {
        let cases = [
            ("2020-09-15T15:53:00Z", 0, "2020-09-15T15:53:00+00:00"),
            (
                "2025-03-10T14:23:56.5580574Z",
                0,
                "2025-03-10T14:23:56.558057+00:00",
            ),
            ("2025-03-10T14:23:56.5Z", 0, "2025-03-10T14:23:56.5+00:00"),
            ("2030-08-27T02:23:57Z", -420, "2030-08-26T19:23:57-07:00"),
            ("2030-08-27T02:23:57Z", 330, "2030-08-27T07:53:57+05:30"),
        ];
        for (instant, offset, expected) in cases {
            let at: Timestamp = instant.parse().unwrap();
            assert_eq!(format_at_offset(at, offset), expected, "{instant} {offset}");
        }
    }
}
