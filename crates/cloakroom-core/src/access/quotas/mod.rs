//! Quotas of a tenant, which override those of the deployment.

use std::fmt::{self, Display};
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use cloakroom_platform::config::{self, Config};
use jiff::SignedDuration;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::Error;
use super::row_mac::NO_QUOTAS;

const SECONDS: &str = "must be a whole number of seconds";
const NUMBER: &str = "must be a whole number";
const BOOLEAN: &str = "must be true or false";

/// How the rate limits of the deployment apply to a tenant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RateLimit {
    #[default]
    Default,
    Unlimited,
    /// A multiple of the deployment's limits: `5x`.
    Times(u64),
}

impl RateLimit {
    const TIMES: RangeInclusive<u64> = 1..=100;
    const RULE: &str = "must be `default`, `unlimited` or a factor from `1x` to `100x`";

    /// Orders rate limits by how many requests they admit.
    fn rank(self) -> u64 {
        match self {
            Self::Default => 1,
            Self::Times(factor) => factor,
            Self::Unlimited => u64::MAX,
        }
    }

    /// The limit for this tenant, given the deployment's.
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

/// Quotas in effect for a tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quotas {
    pub rate_limit: RateLimit,
    pub log_retention: Duration,
    pub tokenize_limit: usize,
    pub detokenize_limit: usize,
    pub cvc_retention: Duration,
    pub token_intent_retention: Duration,
    /// Distinct card numbers with the same first six and last four digits, by one application in an hour.
    pub card_velocity_limit: usize,
    /// Whether 3-D Secure is enabled.
    pub threeds: bool,
}

/// A partial set of quotas; a missing quota falls back to the next level. Durations are in seconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct QuotaSet {
    #[serde(skip_serializing_if = "Option::is_none")]
    rate_limit: Option<RateLimit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    log_retention: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tokenize_limit: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detokenize_limit: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cvc_retention: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token_intent_retention: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    card_velocity_limit: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    threeds: Option<bool>,
}

/// Quotas of one tenant, by the party that set them.
///
/// The operator sets quotas with the CLI, the tenant over HTTP. For quotas that protect the operator (`rate_limit`,
/// `card_velocity_limit`, `cvc_retention`, `threeds`, `log_retention`), the operator's or the deployment's value is the
/// limit; the tenant's own value applies only where it is stricter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TenantQuotas {
    #[serde(flatten)]
    operator: QuotaSet,
    #[serde(skip_serializing_if = "QuotaSet::is_empty")]
    own: QuotaSet,
}

/// The party that sets a quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuotaSource {
    Operator,
    Tenant,
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

    /// Parses the stored text.
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    pub fn to_text(&self) -> String {
        serde_json::to_string(self).unwrap_or_else(|_| NO_QUOTAS.to_owned())
    }

    /// Sets one quota by name. Null restores the deployment's value, or the operator's if the tenant sets it.
    ///
    /// A value set by the operator removes the tenant's own.
    pub fn set(&mut self, by: QuotaSource, name: &str, value: &Value) -> Result<(), Error> {
        match by {
            QuotaSource::Tenant => self.own.set(name, value),
            QuotaSource::Operator => {
                self.operator.set(name, value)?;
                self.own.set(name, &Value::Null)
            }
        }
    }

    /// The party that set this quota; `None` if the deployment's value applies.
    pub fn set_by(&self, name: &str) -> Option<QuotaSource> {
        let has = |set: &QuotaSet| {
            let set = serde_json::to_value(set).unwrap_or_default();
            set.get(name).is_some()
        };
        match (has(&self.own), has(&self.operator)) {
            (true, _) => Some(QuotaSource::Tenant),
            (false, true) => Some(QuotaSource::Operator),
            (false, false) => None,
        }
    }

    /// The validation error if the tenant's own value is less strict than the operator's.
    pub fn limit_violation(&self, name: &str, config: &Config) -> Option<String> {
        let (own, allowed) = (&self.own, self.operator.or(&config_quotas(config)));
        let most = |limit: String| {
            format!("must be at most {limit}: only the operator can raise it, with the CLI")
        };
        let seconds = |time: Duration| format!("{} seconds", time.as_secs());
        match name {
            "rate_limit" => own
                .rate_limit
                .filter(|own| own.rank() > allowed.rate_limit.rank())
                .map(|_| most(format!("`{}`", allowed.rate_limit))),
            "card_velocity_limit" => own
                .card_velocity_limit
                .filter(|own| *own > allowed.card_velocity_limit)
                .map(|_| most(allowed.card_velocity_limit.to_string())),
            "cvc_retention" => own
                .cvc_retention
                .filter(|own| Duration::from_secs(*own) > allowed.cvc_retention)
                .map(|_| most(seconds(allowed.cvc_retention))),
            "threeds" => own
                .threeds
                .filter(|own| *own && !allowed.threeds)
                .map(|_| "must be false: only the operator can allow it, with the CLI".to_owned()),
            "log_retention" => own
                .log_retention
                .filter(|own| Duration::from_secs(*own) < allowed.log_retention)
                .map(|_| {
                    let least = seconds(allowed.log_retention);
                    format!(
                        "must be at least {least}: only the operator can lower it, with the CLI"
                    )
                }),
            _ => None,
        }
    }

    /// Parses a value of the CLI: `24h`, `5`, `unlimited`, or `default` to restore the deployment's value.
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

    /// The quotas in effect.
    pub fn or_default(&self, config: &Config) -> Quotas {
        let allowed = self.operator.or(&config_quotas(config));
        let own = self.own.or(&allowed);
        let rate_limit = match own.rate_limit.rank() <= allowed.rate_limit.rank() {
            true => own.rate_limit,
            false => allowed.rate_limit,
        };
        Quotas {
            rate_limit,
            log_retention: own.log_retention.max(allowed.log_retention),
            cvc_retention: own.cvc_retention.min(allowed.cvc_retention),
            card_velocity_limit: own.card_velocity_limit.min(allowed.card_velocity_limit),
            threeds: own.threeds && allowed.threeds,
            ..own
        }
    }
}

/// The deployment's quotas.
fn config_quotas(config: &Config) -> Quotas {
    let (quotas, codes) = (&config.quotas, &config.security_codes);
    Quotas {
        rate_limit: RateLimit::Default,
        log_retention: quotas.log_retention,
        tokenize_limit: quotas.tokenize,
        detokenize_limit: quotas.detokenize,
        cvc_retention: codes.retention,
        token_intent_retention: quotas.token_intent_retention,
        card_velocity_limit: quotas.card_velocity,
        threeds: quotas.threeds,
    }
}

fn no_quota() -> String {
    format!("is no quota; there are {}", TenantQuotas::NAMES.join(", "))
}

impl QuotaSet {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn set(&mut self, name: &str, value: &Value) -> Result<(), Error> {
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
            "threeds" => changed.threeds = read(name, value, BOOLEAN)?,
            _ => return Err(Error::invalid(name, no_quota())),
        }
        changed.check()?;
        *self = changed;
        Ok(())
    }

    /// These quotas, with those of `below` where one is missing.
    fn or(&self, below: &Quotas) -> Quotas {
        let seconds = |own: Option<u64>, below| own.map_or(below, Duration::from_secs);
        Quotas {
            rate_limit: self.rate_limit.unwrap_or(below.rate_limit),
            log_retention: seconds(self.log_retention, below.log_retention),
            tokenize_limit: self.tokenize_limit.unwrap_or(below.tokenize_limit),
            detokenize_limit: self.detokenize_limit.unwrap_or(below.detokenize_limit),
            cvc_retention: seconds(self.cvc_retention, below.cvc_retention),
            token_intent_retention: seconds(
                self.token_intent_retention,
                below.token_intent_retention,
            ),
            card_velocity_limit: self
                .card_velocity_limit
                .unwrap_or(below.card_velocity_limit),
            threeds: self.threeds.unwrap_or(below.threeds),
        }
    }

    /// Rejects values outside the range that applies to every party, the operator included.
    fn check(&self) -> Result<(), Error> {
        let seconds = |time: Option<u64>| time.map(Duration::from_secs);
        let format = |time: &Duration| format!("{} seconds", time.as_secs());
        let number = |count: &usize| count.to_string();
        let log = config::Quotas::LOG_RETENTION;
        within("log_retention", seconds(self.log_retention), &log, format)?;
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
        within("cvc_retention", seconds(self.cvc_retention), &codes, format)?;
        let intents = config::Quotas::TOKEN_INTENT_RETENTION;
        let given = seconds(self.token_intent_retention);
        within("token_intent_retention", given, &intents, format)
    }
}

/// Deserializes the value of a quota; `None` for null.
fn read<T: DeserializeOwned>(name: &str, value: &Value, rule: &str) -> Result<Option<T>, Error> {
    Option::deserialize(value).map_err(|_| Error::invalid(name, rule))
}

fn within<T: PartialOrd, S: Display>(
    name: &str,
    given: Option<T>,
    range: &RangeInclusive<T>,
    format: impl Fn(&T) -> S,
) -> Result<(), Error> {
    match given {
        Some(given) if !range.contains(&given) => {
            let (least, most) = (format(range.start()), format(range.end()));
            Err(Error::invalid(
                name,
                format!("must be from {least} to {most}"),
            ))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
