//! The limit table: built in, or a file of the operator.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cloakroom_platform::config::{self, LimitsProfile, Networks};
use jiff::SignedDuration;
use serde::Deserialize;

use super::Error;
use super::request_info::{Proxy, RequestInfo};
use super::row::{Action, CounterKind, Row};
use crate::access::{ApplicationKind, TenantKind};

const BUILT_IN: &str = include_str!("../limits.toml");
const ROWS_MAX: usize = 100;
/// Every admitted request is stored for the length of its window, so both are bounded.
const REQUESTS_MAX: u64 = 100_000;
const DURATION_RANGE: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(10)..=Duration::from_secs(24 * 60 * 60);

/// All limits in the order of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    pub rows: Vec<Arc<Row>>,
}

impl Table {
    /// Loads the configured table.
    pub fn load(limits: &config::Limits) -> Result<Self, Error> {
        match (&limits.file, limits.profile) {
            (Some(path), _) => Self::read(path),
            (None, LimitsProfile::Standard) => Self::shipped().map(Self::for_standard),
            (None, LimitsProfile::OwnHardware) => Self::shipped().map(Self::for_own_hardware),
        }
    }

    fn for_standard(mut self) -> Self {
        for row in &mut self.rows {
            Arc::make_mut(row).is_standard = true;
        }
        self
    }

    /// Removes what protects a provider from its customers: an operator's own servers are neither limited by their private
    /// keys nor by their addresses. What anyone on the internet can send remains limited.
    fn for_own_hardware(mut self) -> Self {
        self.rows.retain(|row| {
            row.application != Some(ApplicationKind::Private) && !row.counts_all_of_an_address()
        });
        for row in &mut self.rows {
            Arc::make_mut(row).exempts_private = true;
        }
        self
    }

    pub fn shipped() -> Result<Self, Error> {
        Self::parse(BUILT_IN).map_err(|reason| Error::Table {
            place: "the built-in limit table".to_owned(),
            reason,
        })
    }

    fn read(path: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path).map_err(|error| error.kind().to_string());
        text.and_then(|text| Self::parse(&text))
            .map_err(|reason| Error::Table {
                place: format!("limits.file, {}", path.display()),
                reason,
            })
    }

    /// Parses a table. Errors name the limit that they occur in.
    pub fn parse(text: &str) -> Result<Self, String> {
        let file: TableFile = toml::from_str(text).map_err(|error| error.to_string())?;
        if file.limit.len() > ROWS_MAX {
            return Err(format!("holds more than {ROWS_MAX} limits"));
        }
        let mut rows: Vec<Arc<Row>> = Vec::new();
        for (place, text) in file.limit.into_iter().enumerate() {
            let name = text.name.clone();
            let row = text
                .check()
                .map_err(|reason| format!("limit {} (`{name}`): {reason}", place + 1))?;
            if rows.iter().any(|other| other.name == row.name) {
                return Err(format!("two limits are called `{name}`"));
            }
            rows.push(Arc::new(row));
        }
        Ok(Self { rows })
    }
}

/// Whether a limit applies to a request, and why not.
#[derive(Clone, Copy, Debug)]
pub struct LimitExplanation<'a> {
    pub row: &'a Row,
    /// `None` if the limit applies.
    pub objection: Option<&'static str>,
    /// Number of requests it allows.
    pub limit: u64,
    pub is_lowest: bool,
}

impl Table {
    /// Explains every limit for a request; of those that apply, the lowest is marked.
    pub fn explain(&self, info: &RequestInfo<'_>, exempt: &Networks) -> Vec<LimitExplanation<'_>> {
        let mut all: Vec<LimitExplanation<'_>> = self
            .rows
            .iter()
            .map(|row| LimitExplanation {
                row,
                objection: row.objection(info).or_else(|| {
                    let skips = row.counted == CounterKind::Ip && exempt.contain(info.address);
                    skips.then_some("the address is exempt")
                }),
                limit: row.limit_for(info),
                is_lowest: false,
            })
            .collect();
        let applicable = all.iter_mut().filter(|one| one.objection.is_none());
        let rate = |one: &LimitExplanation<'_>| one.limit as f64 / one.row.window.as_secs_f64();
        if let Some(lowest) = applicable.min_by(|a, b| rate(a).total_cmp(&rate(b))) {
            lowest.is_lowest = true;
        }
        all
    }
}

/// Syntax of the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TableFile {
    #[serde(default)]
    limit: Vec<TableRow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TableRow {
    name: String,
    tenant: Option<String>,
    application: Option<String>,
    key: Option<String>,
    proxy: Option<String>,
    #[serde(default)]
    routes: Vec<String>,
    counter: String,
    requests: u64,
    window: String,
    action: String,
}

impl TableRow {
    fn check(self) -> Result<Row, String> {
        let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if !(1..=40).contains(&self.name.len()) || !self.name.chars().all(is_name) {
            return Err("name must be 1 to 40 of a-z, 0-9 and -".to_owned());
        }
        if !(1..=REQUESTS_MAX).contains(&self.requests) {
            return Err(format!("requests must be from 1 to {REQUESTS_MAX}"));
        }
        let tenant = choice("tenant", self.tenant, &TenantKind::ALL, |kind| kind.name())?;
        let kinds = ApplicationKind::ALL;
        let application = choice("application", self.application, &kinds, |kind| kind.name())?;
        let key = choice("key", self.key, &["legacy"], |kind| kind)?;
        let proxy = choice("proxy", self.proxy, &Proxy::ALL, Proxy::name)?;
        let counted = choice(
            "counter",
            Some(self.counter),
            &CounterKind::ALL,
            CounterKind::name,
        )?;
        let counted = counted.ok_or("counter is missing")?;
        if let Some(needed) = counted.needed_proxy()
            && proxy != Some(needed)
        {
            let (counter, proxy) = (counted.name(), needed.name());
            return Err(format!("counter \"{counter}\" needs proxy = \"{proxy}\""));
        }
        let routes: Result<_, String> = self.routes.iter().map(|route| route.parse()).collect();
        Ok(Row {
            tenant,
            application,
            exempts_private: false,
            is_standard: false,
            only_legacy_keys: key.is_some(),
            proxy,
            routes: routes?,
            counted,
            requests: self.requests,
            window: time("window", &self.window)?,
            action: action(&self.action)?,
            name: self.name,
        })
    }
}

fn choice<T: Copy>(
    field: &str,
    given: Option<String>,
    all: &[T],
    name: impl Fn(T) -> &'static str,
) -> Result<Option<T>, String> {
    let Some(given) = given else { return Ok(None) };
    match all.iter().find(|one| name(**one) == given) {
        Some(one) => Ok(Some(*one)),
        None => {
            let names: Vec<String> = all
                .iter()
                .map(|one| format!("\"{}\"", name(*one)))
                .collect();
            Err(format!("{field} must be one of {}", names.join(", ")))
        }
    }
}

fn action(text: &str) -> Result<Action, String> {
    match text.split_once(' ') {
        None if text == "throttle" => Ok(Action::Throttle),
        Some(("block", text)) => time("the time of a block", text).map(Action::Block),
        _ => Err(
            "action must be \"throttle\", or \"block\" with a time, such as \"block 30s\""
                .to_owned(),
        ),
    }
}

fn time(what: &str, text: &str) -> Result<Duration, String> {
    let time = text.parse::<SignedDuration>().ok();
    let time = time.and_then(|time| Duration::try_from(time).ok());
    time.filter(|time| DURATION_RANGE.contains(time))
        .ok_or_else(|| format!("{what} must be a time from 10ms to 24h, such as \"10s\" or \"1m\""))
}

#[cfg(test)]
mod tests;
