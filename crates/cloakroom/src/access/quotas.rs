//! How much a tenant may use: its own quotas, over those of the deployment.

use std::fmt::{self, Display};
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use jiff::SignedDuration;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::Error;
use super::row_mac::NO_QUOTAS;
use crate::config::{self, Config};

const SECONDS: &str = "must be a whole number of seconds";
const NUMBER: &str = "must be a whole number";
const YES_OR_NO: &str = "must be true or false";

/// How the table of rate limits holds for a tenant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RateLimit {
    #[default]
    Default,
    Unlimited,
    /// So many times as much: `5x`.
    Times(u64),
}

impl RateLimit {
    const TIMES: RangeInclusive<u64> = 1..=100;
    const RULE: &str = "must be `default`, `unlimited` or a factor from `1x` to `100x`";

    /// What a limit is for this tenant.
    pub fn applied_to(self, requests: u64) -> u64 {
        match self {
            Self::Default | Self::Unlimited => requests,
            Self::Times(factor) => requests.saturating_mul(factor),
        }
    }
}

impl Display for RateLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Unlimited => f.write_str("unlimited"),
            Self::Times(factor) => write!(f, "{factor}x"),
        }
    }
}

impl FromStr for RateLimit {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        match text {
            "default" => Ok(Self::Default),
            "unlimited" => Ok(Self::Unlimited),
            _ => text
                .strip_suffix('x')
                .and_then(|factor| factor.parse().ok())
                .filter(|factor| Self::TIMES.contains(factor))
                .map(Self::Times)
                .ok_or(Self::RULE),
        }
    }
}

impl Serialize for RateLimit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for RateLimit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

/// What a tenant may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quotas {
    pub rate_limit: RateLimit,
    pub log_retention: Duration,
    pub tokenize_limit: usize,
    pub detokenize_limit: usize,
    pub cvc_retention: Duration,
    pub token_intent_retention: Duration,
    /// Different card numbers with equal first six and last four digits, by one application in an hour.
    pub card_velocity_limit: usize,
    /// Whether 3-D Secure may be used.
    pub threeds: bool,
}

/// Quotas of one tenant; where it has none, the deployment's hold. Times are in seconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TenantQuotas {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_limit: Option<RateLimit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_retention: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokenize_limit: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detokenize_limit: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cvc_retention: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_intent_retention: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub card_velocity_limit: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threeds: Option<bool>,
}

impl TenantQuotas {
    pub const NAMES: [&str; 8] = [
        "rate_limit",
        "log_retention",
        "tokenize_limit",
        "detokenize_limit",
        "cvc_retention",
        "token_intent_retention",
        "card_velocity_limit",
        "threeds",
    ];

    /// Reads what was kept.
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    pub fn to_text(&self) -> String {
        serde_json::to_string(self).unwrap_or_else(|_| NO_QUOTAS.to_owned())
    }

    /// Changes one quota by its name; null goes back to the deployment's.
    pub fn set(&mut self, name: &str, value: &Value) -> Result<(), Error> {
        let mut changed = self.clone();
        match name {
            "rate_limit" => changed.rate_limit = read(name, value, RateLimit::RULE)?,
            "log_retention" => changed.log_retention = read(name, value, SECONDS)?,
            "tokenize_limit" => changed.tokenize_limit = read(name, value, NUMBER)?,
            "detokenize_limit" => changed.detokenize_limit = read(name, value, NUMBER)?,
            "cvc_retention" => changed.cvc_retention = read(name, value, SECONDS)?,
            "token_intent_retention" => {
                changed.token_intent_retention = read(name, value, SECONDS)?;
            }
            "card_velocity_limit" => changed.card_velocity_limit = read(name, value, NUMBER)?,
            "threeds" => changed.threeds = read(name, value, YES_OR_NO)?,
            _ => return Err(Error::invalid(name, "is no quota")),
        }
        changed.check()?;
        *self = changed;
        Ok(())
    }

    /// The value that an operator means: `24h`, `5`, `unlimited`, or `default` to go back to the
    /// deployment's.
    pub fn value_of(name: &str, text: &str) -> Result<Value, Error> {
        Ok(match text {
            "default" => Value::Null,
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            _ if name.ends_with("_retention") => text
                .parse::<SignedDuration>()
                .ok()
                .filter(|time| time.subsec_nanos() == 0)
                .map(|time| Value::from(time.as_secs()))
                .ok_or_else(|| Error::invalid(name, "must be a time, such as 24h, 30m or 90s"))?,
            _ => text
                .parse::<u64>()
                .map_or_else(|_| text.into(), Value::from),
        })
    }

    /// Refuses what nobody may set.
    pub fn check(&self) -> Result<(), Error> {
        let seconds = |time: Option<u64>| time.map(Duration::from_secs);
        let shown = |time: &Duration| format!("{} seconds", time.as_secs());
        let number = |count: &usize| count.to_string();
        let log = config::Quotas::LOG_RETENTION;
        within("log_retention", seconds(self.log_retention), &log, shown)?;
        let tokens_max = config::Quotas::TOKENS;
        within("tokenize_limit", self.tokenize_limit, &tokens_max, number)?;
        within(
            "detokenize_limit",
            self.detokenize_limit,
            &tokens_max,
            number,
        )?;
        let cards = config::Quotas::CARD_VELOCITY;
        let given = self.card_velocity_limit;
        within("card_velocity_limit", given, &cards, number)?;
        let codes = config::SecurityCodes::RETENTION;
        within("cvc_retention", seconds(self.cvc_retention), &codes, shown)?;
        let intents = config::Quotas::TOKEN_INTENT_RETENTION;
        let given = seconds(self.token_intent_retention);
        within("token_intent_retention", given, &intents, shown)
    }

    /// These quotas, with the deployment's where there is none.
    pub fn or_default(&self, config: &Config) -> Quotas {
        let seconds = |own: Option<u64>, default| own.map_or(default, Duration::from_secs);
        let (quotas, codes) = (&config.quotas, &config.security_codes);
        Quotas {
            rate_limit: self.rate_limit.unwrap_or_default(),
            log_retention: seconds(self.log_retention, quotas.log_retention),
            tokenize_limit: self.tokenize_limit.unwrap_or(quotas.tokenize),
            detokenize_limit: self.detokenize_limit.unwrap_or(quotas.detokenize),
            cvc_retention: seconds(self.cvc_retention, codes.retention),
            token_intent_retention: seconds(
                self.token_intent_retention,
                quotas.token_intent_retention,
            ),
            card_velocity_limit: self.card_velocity_limit.unwrap_or(quotas.card_velocity),
            threeds: self.threeds.unwrap_or(quotas.threeds),
        }
    }
}

/// A value of the type that a quota has; nothing for null.
fn read<T: DeserializeOwned>(name: &str, value: &Value, rule: &str) -> Result<Option<T>, Error> {
    Option::deserialize(value).map_err(|_| Error::invalid(name, rule))
}

fn within<T: PartialOrd, S: Display>(
    name: &str,
    given: Option<T>,
    range: &RangeInclusive<T>,
    shown: impl Fn(&T) -> S,
) -> Result<(), Error> {
    match given {
        Some(given) if !range.contains(&given) => {
            let (least, most) = (shown(range.start()), shown(range.end()));
            Err(Error::invalid(
                name,
                format!("must be from {least} to {most}"),
            ))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn quotas_are_set_by_name_within_their_range() {
        let cases = [
            ("rate_limit", json!("unlimited"), true),
            ("rate_limit", json!("none"), false),
            ("rate_limit", json!("5x"), true),
            ("rate_limit", json!("100x"), true),
            ("rate_limit", json!("0x"), false),
            ("rate_limit", json!("101x"), false),
            ("rate_limit", json!("1.5x"), false),
            ("rate_limit", json!("x"), false),
            ("rate_limit", json!(1), false),
            ("log_retention", json!(3_600), true),
            ("log_retention", json!(3_599), false),
            ("log_retention", json!(92 * 86_400), true),
            ("log_retention", json!(92 * 86_400 + 1), false),
            ("tokenize_limit", json!(1), true),
            ("tokenize_limit", json!(0), false),
            ("tokenize_limit", json!(1_000), true),
            ("tokenize_limit", json!(1_001), false),
            ("tokenize_limit", json!(-1), false),
            ("tokenize_limit", json!(1.5), false),
            ("tokenize_limit", json!("5"), false),
            ("detokenize_limit", json!(1_000), true),
            ("detokenize_limit", json!(1_001), false),
            ("cvc_retention", json!(1), true),
            ("cvc_retention", json!(0), false),
            ("cvc_retention", json!(172_800), true),
            ("cvc_retention", json!(172_801), false),
            ("token_intent_retention", json!(172_800), true),
            ("token_intent_retention", json!(172_801), false),
            ("card_velocity_limit", json!(1), true),
            ("card_velocity_limit", json!(0), false),
            ("card_velocity_limit", json!(1_000), true),
            ("card_velocity_limit", json!(1_001), false),
            ("threeds", json!(true), true),
            ("threeds", json!("true"), false),
            ("tokenise_limit", json!(5), false),
        ];
        for (name, value, fits) in cases {
            let mut quotas = TenantQuotas::default();
            assert_eq!(quotas.set(name, &value).is_ok(), fits, "{name} {value}");
            assert_eq!(quotas != TenantQuotas::default(), fits, "{name} {value}");
            if fits {
                assert_eq!(TenantQuotas::parse(&quotas.to_text()), Some(quotas.clone()));
                quotas.set(name, &Value::Null).unwrap();
                assert_eq!(quotas.to_text(), NO_QUOTAS, "{name}");
            }
        }
    }

    #[test]
    fn operators_write_times_as_they_say_them() {
        let cases = [
            (
                "cvc_retention",
                "30m",
                Some(json!({"cvc_retention": 1_800})),
            ),
            (
                "log_retention",
                "48h",
                Some(json!({"log_retention": 172_800})),
            ),
            ("tokenize_limit", "20", Some(json!({"tokenize_limit": 20}))),
            (
                "rate_limit",
                "unlimited",
                Some(json!({"rate_limit": "unlimited"})),
            ),
            ("rate_limit", "default", Some(json!({}))),
            ("cvc_retention", "default", Some(json!({}))),
            ("cvc_retention", "1800", None),
            ("cvc_retention", "1500ms", None),
            ("cvc_retention", "-30m", None),
            ("tokenize_limit", "many", None),
            ("tokenize", "5", None),
        ];
        for (name, text, expected) in cases {
            let mut quotas = TenantQuotas::default();
            let value = TenantQuotas::value_of(name, text);
            let set = value.and_then(|value| quotas.set(name, &value));
            let kept = set.is_ok().then(|| quotas.to_text());
            let expected = expected.map(|value: Value| value.to_string());
            assert_eq!(kept, expected, "{name}={text}");
        }
    }

    #[test]
    fn every_quota_has_its_name() {
        for name in TenantQuotas::NAMES {
            TenantQuotas::default().set(name, &Value::Null).unwrap();
        }
    }
}
