//! A row of the table.

use jiff::civil::Date;
use jiff::tz::TimeZone;

use crate::api::ApiError;
use crate::config;

/// Something that is deprecated.
#[derive(Debug)]
pub struct Deprecation {
    /// What metrics, commands and settings call it.
    pub name: &'static str,
    /// What people call it.
    pub feature: &'static str,
    /// How a request uses it.
    pub used_by: &'static str,
    /// The operations that are deprecated as a whole, as `METHOD path`.
    pub operations: &'static [&'static str],
    /// When it was deprecated, where that is known.
    pub since: Option<Date>,
    /// Until when it was promised, where that is known.
    pub until: Option<Date>,
    /// What to use instead.
    pub replacement: &'static str,
    /// The path of the operation that follows, for operations that have one.
    pub successor: Option<&'static str>,
    pub treatment: Treatment,
    /// What this vault does with it.
    pub behaviour: &'static str,
    /// What to look at when moving away from it.
    pub moving: &'static str,
}

/// What becomes of a request that uses something deprecated.
#[derive(Clone, Copy, Debug)]
pub enum Treatment {
    /// It works as ever, unless a setting says that it is gone.
    Served(fn(&config::Deprecated) -> config::Deprecation),
    /// It has its effect.
    Accepted,
    /// 400 that names it.
    Refused,
    /// 410 that names what to use instead.
    Gone,
}

impl Treatment {
    pub fn name(self) -> &'static str {
        match self {
            Self::Served(_) => "served",
            Self::Accepted => "accepted",
            Self::Refused => "refused",
            Self::Gone => "gone",
        }
    }
}

impl Deprecation {
    /// Whether this vault answers to the operation at all.
    pub fn is_gone(&self, config: &config::Deprecated) -> bool {
        match self.treatment {
            Treatment::Served(mode) => mode(config) == config::Deprecation::Gone,
            Treatment::Accepted | Treatment::Refused => false,
            Treatment::Gone => true,
        }
    }

    /// 410 that says what to use instead.
    pub(super) fn gone(&self) -> ApiError {
        ApiError::gone(format!(
            "This is gone ({}): {}.",
            self.feature, self.replacement
        ))
    }

    /// What is said of an attribute that is refused.
    pub fn rule(&self) -> String {
        format!("was removed: {}", self.replacement)
    }

    /// The header `Deprecation` (RFC 9745): seconds since 1970.
    pub(super) fn since_header(&self) -> Option<String> {
        let since = self.since?.to_zoned(TimeZone::UTC).ok()?;
        Some(format!("@{}", since.timestamp().as_second()))
    }

    /// The header `Sunset` (RFC 8594): a date as HTTP writes it.
    pub(super) fn until_header(&self) -> Option<String> {
        let until = self.until?.to_zoned(TimeZone::UTC).ok()?;
        Some(until.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Deprecated;

    #[test]
    fn headers_are_written_as_their_standards_say() {
        let row = Deprecated::ListTokensV1.row();

        assert_eq!(row.since_header().as_deref(), Some("@1735862400"));
        let sunset = row.until_header();
        assert_eq!(sunset.as_deref(), Some("Sat, 01 Mar 2025 00:00:00 GMT"));
    }
}
