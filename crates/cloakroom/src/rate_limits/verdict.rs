//! What a request is told about its limits.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use jiff::Timestamp;

use super::counter::{Counter, Outcome};
use super::row::{Counted, written};

const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");
const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const STATE: HeaderName = HeaderName::from_static("ratelimit");

/// The headers that scripts in browsers may see.
pub const HEADERS: [HeaderName; 5] = [LIMIT, REMAINING, RESET, POLICY, STATE];

/// The counter that matters most to a request: the one that refuses it for longest, or has least left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) is_refused: bool,
    /// The name of the limit.
    pub(super) name: String,
    counted: Counted,
    limit: u64,
    window: Duration,
    left: u64,
    /// How long until there is room again, or more of it.
    pub(super) wait: Duration,
}

impl Verdict {
    pub(super) fn new(counters: &[Counter], outcomes: &[Outcome]) -> Option<Self> {
        let all = counters.iter().zip(outcomes);
        let refusing = all.clone().filter(|(_, outcome)| outcome.is_refused);
        let refused = refusing.max_by_key(|(_, outcome)| outcome.wait);
        let tightest = || all.min_by_key(|(counter, outcome)| (outcome.left, counter.limit));
        let (counter, outcome) = refused.or_else(tightest)?;
        Some(Self {
            is_refused: outcome.is_refused,
            name: counter.row.name.clone(),
            counted: counter.row.counted,
            limit: counter.limit,
            window: counter.row.window,
            left: outcome.left,
            wait: outcome.wait,
        })
    }

    /// Whole seconds until trying again makes sense.
    fn retry_after(&self) -> u32 {
        seconds(self.wait).max(1)
    }

    /// What is wrong, for people.
    pub(super) fn detail(&self) -> String {
        let Self { name, limit, .. } = self;
        let window = written(self.window);
        let apart = match self.counted {
            Counted::KeyAndIp => "per key and address",
            Counted::KeyOrIp => "per key, and per address",
            Counted::Key => "per key",
            Counted::Ip => "per address",
            Counted::ProxyAndIp => "per proxy and address",
            Counted::HostnameAndIp => "per hostname and address",
        };
        format!("The limit `{name}` allows {limit} requests in {window} {apart}.")
    }

    /// Tells where the request stands.
    pub(super) fn write(&self, headers: &mut HeaderMap) {
        let Self {
            name, limit, left, ..
        } = self;
        let (window, wait) = (seconds(self.window), seconds(self.wait));
        let texts = [
            (POLICY, format!("\"{name}\";q={limit};w={window}")),
            (STATE, format!("\"{name}\";r={left};t={wait}")),
        ];
        for (name, text) in texts {
            if let Ok(text) = HeaderValue::from_str(&text) {
                headers.insert(name, text);
            }
        }
        headers.insert(LIMIT, HeaderValue::from(*limit));
        headers.insert(REMAINING, HeaderValue::from(*left));
    }

    /// Tells a refused request when it may come back. No other answer has this: official clients sleep
    /// until then on whatever they retry.
    pub(super) fn write_reset(&self, now: Timestamp, headers: &mut HeaderMap) {
        let reset = now
            .as_second()
            .saturating_add(i64::from(self.retry_after()));
        // Rounded up, so that nobody comes back too early.
        let reset = reset + i64::from(now.subsec_nanosecond() > 0);
        headers.insert(RESET, HeaderValue::from(reset));
    }
}

/// Rounded up.
fn seconds(time: Duration) -> u32 {
    let seconds = time.as_secs() + u64::from(time.subsec_nanos() > 0);
    u32::try_from(seconds).unwrap_or(u32::MAX)
}
