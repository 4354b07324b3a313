//! The table of limits: shipped with the program, or a file of the operator's.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use serde::Deserialize;

use super::Error;
use super::asked::{Asked, Proxy};
use super::row::{Action, Counted, Row};
use crate::access::{ApplicationKind, TenantKind};
use crate::config::{self, Networks};

const SHIPPED: &str = include_str!("limits.toml");
const ROWS_MAX: usize = 100;
/// Each admitted request is remembered for as long as its window, so both have an end.
const REQUESTS_MAX: u64 = 100_000;
const TIME: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(10)..=Duration::from_secs(24 * 60 * 60);

/// Every limit, in the order of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    pub rows: Vec<Arc<Row>>,
}

impl Table {
    /// The table that the configuration names.
    pub fn load(limits: &config::Limits) -> Result<Self, Error> {
        match &limits.file {
            None => Self::shipped(),
            Some(path) => Self::read(path),
        }
    }

    pub fn shipped() -> Result<Self, Error> {
        Self::parse(SHIPPED).map_err(|reason| Error::Table {
            place: "the shipped table of limits".to_owned(),
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

    /// Reads a table. What is wrong is told with the limit it is wrong in.
    pub fn parse(text: &str) -> Result<Self, String> {
        let file: FileText = toml::from_str(text).map_err(|error| error.to_string())?;
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

/// Whether a limit applies to a request, and why.
#[derive(Clone, Copy, Debug)]
pub struct Explained<'a> {
    pub row: &'a Row,
    /// Nothing if the limit applies.
    pub objection: Option<&'static str>,
    /// How many requests it allows this one.
    pub limit: u64,
    pub is_lowest: bool,
}

impl Table {
    /// Every limit with what it means for a request; of those that apply, the lowest is marked.
    pub fn explain(&self, asked: &Asked<'_>, exempt: &Networks) -> Vec<Explained<'_>> {
        let mut all: Vec<Explained<'_>> = self
            .rows
            .iter()
            .map(|row| Explained {
                row,
                objection: row.objection(asked).or_else(|| {
                    let skips = row.counted == Counted::Ip && exempt.contain(asked.address);
                    skips.then_some("the address is exempt")
                }),
                limit: row.limit_for(asked),
                is_lowest: false,
            })
            .collect();
        let applying = all.iter_mut().filter(|one| one.objection.is_none());
        let rate = |one: &Explained<'_>| one.limit as f64 / one.row.window.as_secs_f64();
        if let Some(lowest) = applying.min_by(|a, b| rate(a).total_cmp(&rate(b))) {
            lowest.is_lowest = true;
        }
        all
    }
}

/// The file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileText {
    #[serde(default)]
    limit: Vec<RowText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RowText {
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

impl RowText {
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
        let counted = choice("counter", Some(self.counter), &Counted::ALL, Counted::name)?;
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
    time.filter(|time| TIME.contains(time))
        .ok_or_else(|| format!("{what} must be a time from 10ms to 24h, such as \"10s\" or \"1m\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate_limits::row::written;

    /// The specification's table, row by row.
    #[test]
    fn the_shipped_table_is_the_specified_one() {
        let table = Table::shipped().unwrap();

        let rows: Vec<String> = table
            .rows
            .iter()
            .map(|row| {
                let (window, scope) = (written(row.window), row.scope());
                let counter = row.counted.name();
                format!(
                    "{scope} | {counter} | {} / {window} | {}",
                    row.requests, row.action
                )
            })
            .collect();
        let expected = [
            "test tenants | key and ip | 50 / 10s | throttle",
            "POST /tokens/search, POST /v2/tokens/search | key and ip | 50 / 10s | throttle",
            "GET /tokens, GET /tokens/{id}, GET /v2/tokens, POST /detokenize | key and ip | 100 / 10s | throttle",
            "POST /tokens, POST /tokenize | key and ip | 200 / 10s | throttle",
            "PATCH /tokens/{id} | key and ip | 200 / 10s | throttle",
            "DELETE /tokens/{id} | key and ip | 200 / 10s | throttle",
            "ANY /account-updater/* | key and ip | 10 / 10s | throttle",
            "POST /documents | key and ip | 10 / 1m | throttle",
            "GET /documents/{id}/data | key and ip | 10 / 1m | throttle",
            "private applications | key or ip | 2000 / 10s | throttle",
            "public applications | key and ip | 50 / 1m | block 10s",
            "management applications | key | 200 / 1m | block 1m",
            "proxies without authentication | proxy and ip | 50 / 10s | throttle",
            "proxies with a hostname | hostname and ip | 50 / 10s | throttle",
            "everything | ip | 2000 / 10s | block 30s",
            "legacy keys | key and ip | 100 / 1m | throttle",
        ];
        assert_eq!(rows, expected);
    }

    #[test]
    fn a_table_that_cannot_be_meant_is_refused_with_its_reason() {
        let row = |lines: &str| {
            format!(
                "[[limit]]\nname = \"a\"\ncounter = \"ip\"\nrequests = 1\nwindow = \"1s\"\naction = \"throttle\"\n{lines}"
            )
        };
        assert!(Table::parse(&row("")).is_ok());
        let cases = [
            (
                row("").replace("\"a\"", "\"A b\""),
                "limit 1 (`A b`): name must be",
            ),
            (
                row("").replace("= 1\n", "= 0\n"),
                "requests must be from 1 to 100000",
            ),
            (
                row("").replace("1s", "0s"),
                "window must be a time from 10ms to 24h",
            ),
            (
                row("").replace("\"1s\"", "\"soon\""),
                "window must be a time",
            ),
            (
                row("").replace("throttle", "slow"),
                "action must be \"throttle\", or",
            ),
            (
                row("").replace("throttle", "block"),
                "action must be \"throttle\", or",
            ),
            (
                row("").replace("throttle", "block 48h"),
                "the time of a block must be",
            ),
            (
                row("").replace("\"ip\"", "\"cookie\""),
                "counter must be one of \"key and ip\"",
            ),
            (
                row("").replace("\"ip\"", "\"proxy and ip\""),
                "needs proxy = \"open\"",
            ),
            (
                row("tenant = \"real\""),
                "tenant must be one of \"test\", \"production\"",
            ),
            (row("application = \"any\""), "application must be one of"),
            (row("key = \"old\""), "key must be one of \"legacy\""),
            (row("routes = [\"/tokens\"]"), "routes holds `/tokens`"),
            (row("color = 1"), "unknown field `color`"),
            (row(&row("")), "two limits are called `a`"),
            ("limit = 1".to_owned(), "invalid type"),
        ];
        for (text, reason) in cases {
            let refusal = Table::parse(&text).unwrap_err();
            assert!(refusal.contains(reason), "{text}: {refusal}");
        }
    }
}
