//! A row of the deprecation table.

use cloakroom_platform::api::ApiError;
use cloakroom_platform::config;
use jiff::civil::Date;
use jiff::tz::TimeZone;

/// A deprecated feature.
#[derive(Debug)]
pub struct Deprecation {
    /// Name in metrics, commands and settings.
    pub name: &'static str,
    /// Display name.
    pub feature: &'static str,
    /// How a request uses it.
    pub used_by: &'static str,
    /// Operations that are deprecated as a whole, as `METHOD path`.
    pub operations: &'static [&'static str],
    /// Date of deprecation, if known.
    pub since: Option<Date>,
    /// Announced date of removal, if known.
    pub until: Option<Date>,
    /// What to use instead.
    pub replacement: &'static str,
    /// Path of the successor, for operations that have one.
    pub successor: Option<&'static str>,
    pub treatment: DeprecationTreatment,
    /// `treatment` in detail, for the documentation.
    pub behavior: &'static str,
    /// What to consider when migrating.
    pub migration: &'static str,
}

/// How a request that uses a deprecated feature is treated.
#[derive(Clone, Copy, Debug)]
pub enum DeprecationTreatment {
    /// Works unless a setting disables it.
    Served(fn(&config::Deprecated) -> config::Deprecation),
    /// Has its effect.
    Accepted,
    /// Rejected with a 400 that names it.
    Rejected,
    /// Rejected with a 410 that names the replacement.
    Gone,
}

impl DeprecationTreatment {
    pub fn name(self) -> &'static str {
        match self {
            Self::Served(_) => "served",
            Self::Accepted => "accepted",
            Self::Rejected => "rejected",
            Self::Gone => "gone",
        }
    }
}

impl Deprecation {
    /// Whether this vault rejects the operation with 410.
    pub fn is_gone(&self, config: &config::Deprecated) -> bool {
        match self.treatment {
            DeprecationTreatment::Served(mode) => mode(config) == config::Deprecation::Gone,
            DeprecationTreatment::Accepted | DeprecationTreatment::Rejected => false,
            DeprecationTreatment::Gone => true,
        }
    }

    /// A 410 that names the replacement.
    pub(super) fn gone(&self) -> ApiError {
        ApiError::gone(format!(
            "This is gone ({}): {}.",
            self.feature, self.replacement
        ))
    }

    /// The validation error of a removed attribute.
    pub fn rule(&self) -> String {
        format!("was removed: {}", self.replacement)
    }

    /// The header `Deprecation` (RFC 9745): seconds since 1970.
    pub fn since_header(&self) -> Option<String> {
        let since = self.since?.to_zoned(TimeZone::UTC).ok()?;
        Some(format!("@{}", since.timestamp().as_second()))
    }

    /// The header `Sunset` (RFC 8594): an HTTP date.
    pub fn until_header(&self) -> Option<String> {
        let until = self.until?.to_zoned(TimeZone::UTC).ok()?;
        Some(until.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::super::DeprecatedFeature;

    #[test]
    fn headers_follow_their_rfcs() {
        let row = DeprecatedFeature::ListTokensV1.row();

        assert_eq!(row.since_header().as_deref(), Some("@1735862400"));
        let sunset = row.until_header();
        assert_eq!(sunset.as_deref(), Some("Sat, 01 Mar 2025 00:00:00 GMT"));
    }
}
