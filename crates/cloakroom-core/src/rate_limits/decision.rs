//! The rate limit status that a response reports in its headers.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use jiff::Timestamp;

use super::counter::{Counter, Outcome};
use super::row::{CounterKind, written};

const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");
const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const STATE: HeaderName = HeaderName::from_static("ratelimit");

/// Headers exposed to scripts in browsers.
pub const HEADERS: [HeaderName; 5] = [LIMIT, REMAINING, RESET, POLICY, STATE];

/// The most relevant counter of a request: the one that rejects it for the longest time, or the one
/// with the least remaining.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    pub is_rejected: bool,
    /// The name of the limit.
    pub name: String,
    counted: CounterKind,
    limit: u64,
    window: Duration,
    settings: &'static str,
    remaining: u64,
    /// How long until the counter has more capacity.
    pub wait: Duration,
}

impl Decision {
    pub(super) fn new(counters: &[Counter], outcomes: &[Outcome]) -> Option<Self> {
        let all = counters.iter().zip(outcomes);
        let rejecting = all.clone().filter(|(_, outcome)| outcome.is_rejected);
        let rejected = rejecting.max_by_key(|(_, outcome)| outcome.wait);
        let tightest = || all.min_by_key(|(counter, outcome)| (outcome.remaining, counter.limit));
        let (counter, outcome) = rejected.or_else(tightest)?;
        Some(Self {
            is_rejected: outcome.is_rejected,
            name: counter.row.name.clone(),
            counted: counter.row.counted,
            limit: counter.limit,
            window: counter.row.window,
            settings: counter.settings,
            remaining: outcome.remaining,
            wait: outcome.wait,
        })
    }

    /// Whole seconds until a retry makes sense.
    fn retry_after(&self) -> u32 {
        seconds(self.wait).max(1)
    }

    /// The error message.
    pub fn detail(&self) -> String {
        let Self {
            name,
            limit,
            settings,
            ..
        } = self;
        let window = written(self.window);
        let per = match self.counted {
            CounterKind::KeyAndIp => "per key and address",
            CounterKind::KeyOrIp => "per key, and per address",
            CounterKind::Key => "per key",
            CounterKind::Ip => "per address",
            CounterKind::ProxyAndIp => "per proxy and address",
            CounterKind::HostnameAndIp => "per hostname and address",
        };
        format!(
            "The limit `{name}` allows {limit} requests in {window} {per}. The operator can change it ({settings})."
        )
    }

    /// Writes the headers that report the limit and what remains of it.
    pub fn write(&self, headers: &mut HeaderMap) {
        let Self {
            name,
            limit,
            remaining,
            ..
        } = self;
        let (window, wait) = (seconds(self.window), seconds(self.wait));
        let texts = [
            (POLICY, format!("\"{name}\";q={limit};w={window}")),
            (STATE, format!("\"{name}\";r={remaining};t={wait}")),
        ];
        for (name, text) in texts {
            if let Ok(text) = HeaderValue::from_str(&text) {
                headers.insert(name, text);
            }
        }
        headers.insert(LIMIT, HeaderValue::from(*limit));
        headers.insert(REMAINING, HeaderValue::from(*remaining));
    }

    /// Writes the time at which a rejected request may be retried. Only rejections have this
    /// header: official clients sleep until then on any response that they retry.
    pub fn write_reset(&self, now: Timestamp, headers: &mut HeaderMap) {
        let reset = now
            .as_second()
            .saturating_add(i64::from(self.retry_after()));
        // Rounded up, so that no client retries too early.
        let reset = reset + i64::from(now.subsec_nanosecond() > 0);
        headers.insert(RESET, HeaderValue::from(reset));
    }
}

/// Rounded up.
fn seconds(time: Duration) -> u32 {
    let seconds = time.as_secs() + u64::from(time.subsec_nanos() > 0);
    u32::try_from(seconds).unwrap_or(u32::MAX)
}
