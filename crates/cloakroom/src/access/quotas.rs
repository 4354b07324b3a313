//! How much a tenant may use: its own quotas, over those of the deployment.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Error;
use super::row_mac::NO_QUOTAS;
use crate::config::{self, Config};

/// Which table of rate limits holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RateLimit {
    #[default]
    Default,
    Unlimited,
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
}

impl TenantQuotas {
    /// Reads what was kept.
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    pub fn to_text(&self) -> String {
        serde_json::to_string(self).unwrap_or_else(|_| NO_QUOTAS.to_owned())
    }

    /// Refuses what nobody may set.
    pub fn check(&self) -> Result<(), Error> {
        let seconds = |time: Option<u64>| time.map(Duration::from_secs);
        let shown = |time: &Duration| format!("{} seconds", time.as_secs());
        let tokens = |count: &usize| count.to_string();
        let log = config::Quotas::LOG_RETENTION;
        within("log_retention", seconds(self.log_retention), &log, shown)?;
        let tokens_max = config::Quotas::TOKENS;
        within("tokenize_limit", self.tokenize_limit, &tokens_max, tokens)?;
        within(
            "detokenize_limit",
            self.detokenize_limit,
            &tokens_max,
            tokens,
        )?;
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
        }
    }
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
