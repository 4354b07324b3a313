//! The counters that a request is counted by.

use std::sync::Arc;
use std::time::Duration;

use super::asked::Asked;
use super::row::{Action, Counted, Row};
use super::table::Table;
use crate::access::RateLimit;
use crate::api::network_of;
use crate::config::Networks;

/// One counter of one limit.
#[derive(Clone, Debug)]
pub(super) struct Counter {
    pub(super) row: Arc<Row>,
    /// What it is kept under, and readable for who looks there.
    pub(super) name: String,
    /// How many requests a window may hold.
    pub(super) limit: u64,
}

/// What a counter says to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) is_refused: bool,
    /// How many more requests the window holds.
    pub(super) left: u64,
    /// How long until there is room again, or more of it.
    pub(super) wait: Duration,
}

/// Where counters are kept, and which of them skip whom.
pub(super) struct Place<'a> {
    pub(super) environment: &'a str,
    pub(super) exempt_addresses: &'a Networks,
}

impl Counter {
    /// For how long a request too many blocks it.
    pub(super) fn block(&self) -> Duration {
        match self.row.action {
            Action::Throttle => Duration::ZERO,
            Action::Block(time) => time,
        }
    }
}

/// All counters of a request, those of one limit together.
pub(super) fn counters_of(table: &Table, asked: &Asked<'_>, place: &Place<'_>) -> Arc<[Counter]> {
    let is_exempt = place.exempt_addresses.contain(asked.address);
    let applying = table
        .rows
        .iter()
        .filter(|row| row.objection(asked).is_none());
    let names = Names::of(asked, place.environment);
    let mut counters = Vec::with_capacity(USUAL_COUNTERS);
    for row in applying {
        for subject in subjects(row.counted, asked).into_iter().flatten() {
            if is_exempt && subject.is_address_alone {
                continue;
            }
            counters.push(Counter {
                row: row.clone(),
                name: names.of_counter(row, &subject),
                // The address of "key or ip" belongs to no tenant either.
                limit: match subject.is_address_alone {
                    true => row.requests,
                    false => row.limit_for(asked),
                },
            });
        }
    }
    counters.into()
}

/// Most requests have fewer.
const USUAL_COUNTERS: usize = 6;

/// Whose requests are counted together: those that have all of these in common.
#[derive(Clone, Copy)]
struct Subject<'a> {
    /// What it is, and which.
    own: Option<(&'static str, Which<'a>)>,
    has_address: bool,
    is_address_alone: bool,
}

#[derive(Clone, Copy)]
enum Which<'a> {
    Key,
    Proxy(&'a str),
}

/// The texts that names of counters are made of.
struct Names<'a> {
    environment: &'a str,
    key: Option<String>,
    ip: String,
}

impl<'a> Names<'a> {
    fn of(asked: &Asked<'_>, environment: &'a str) -> Self {
        Self {
            environment,
            key: asked.key.map(|key| key.id.to_string()),
            ip: network_of(asked.address),
        }
    }

    /// Put together by hand: every request needs several.
    fn of_counter(&self, row: &Row, subject: &Subject<'_>) -> String {
        let mut name = String::with_capacity(160);
        for part in ["cloakroom:", self.environment, ":limit:", &row.name, ":"] {
            name.push_str(part);
        }
        if let Some((what, which)) = subject.own {
            let which = match which {
                Which::Key => self.key.as_deref().unwrap_or_default(),
                Which::Proxy(name) => name,
            };
            for part in [what, "=", which] {
                name.push_str(part);
            }
        }
        if subject.has_address {
            name.push_str(if subject.own.is_some() { ",ip=" } else { "ip=" });
            name.push_str(&self.ip);
        }
        name
    }
}

fn subjects<'a>(counted: Counted, asked: &Asked<'a>) -> [Option<Subject<'a>>; 2] {
    let key = asked.key.map(|_| ("key", Which::Key));
    let address = Subject {
        own: None,
        has_address: true,
        is_address_alone: true,
    };
    let of = |own, has_address| Subject {
        own: Some(own),
        has_address,
        is_address_alone: false,
    };
    let proxy = asked.proxy.map(|(_, name)| Which::Proxy(name));
    match (counted, key, proxy) {
        (Counted::Ip, ..) => [Some(address), None],
        (Counted::Key, Some(key), _) => [Some(of(key, false)), None],
        (Counted::KeyAndIp, Some(key), _) => [Some(of(key, true)), None],
        (Counted::KeyOrIp, Some(key), _) => match is_unlimited(asked) {
            true => [Some(address), None],
            false => [Some(of(key, false)), Some(address)],
        },
        (Counted::ProxyAndIp, _, Some(proxy)) => [Some(of(("proxy", proxy), true)), None],
        (Counted::HostnameAndIp, _, Some(host)) => [Some(of(("hostname", host), true)), None],
        _ => [None, None],
    }
}

fn is_unlimited(asked: &Asked<'_>) -> bool {
    let quota = asked.key.map(|key| key.rate_limit);
    quota == Some(RateLimit::Unlimited)
}
