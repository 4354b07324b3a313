//! The counters that a request is counted by.

use std::time::Duration;

use super::asked::Asked;
use super::row::{Action, Counted, Row};
use super::table::Table;
use crate::access::RateLimit;
use crate::api::network_of;
use crate::config::Networks;

/// One counter of one limit.
#[derive(Clone, Debug)]
pub(super) struct Counter<'a> {
    pub(super) row: &'a Row,
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

impl Counter<'_> {
    /// For how long a request too many blocks it.
    pub(super) fn block(&self) -> Duration {
        match self.row.action {
            Action::Throttle => Duration::ZERO,
            Action::Block(time) => time,
        }
    }
}

/// All counters of a request, those of one limit together.
pub(super) fn counters_of<'a>(
    table: &'a Table,
    asked: &Asked<'_>,
    place: &Place<'_>,
) -> Vec<Counter<'a>> {
    let is_exempt = place.exempt_addresses.contain(asked.address);
    let applying = table
        .rows
        .iter()
        .filter(|row| row.objection(asked).is_none());
    let mut counters = Vec::new();
    for row in applying {
        for subject in subjects(row.counted, asked) {
            if is_exempt && subject.is_address_alone {
                continue;
            }
            let (environment, limit, what) = (place.environment, &row.name, subject.text);
            counters.push(Counter {
                row,
                name: format!("cloakroom:{environment}:limit:{limit}:{what}"),
                // The address of "key or ip" belongs to no tenant either.
                limit: match subject.is_address_alone {
                    true => row.requests,
                    false => row.limit_for(asked),
                },
            });
        }
    }
    counters
}

/// Whose requests are counted together.
struct Subject {
    text: String,
    is_address_alone: bool,
}

fn subjects(counted: Counted, asked: &Asked<'_>) -> Vec<Subject> {
    let of = |text: String| Subject {
        text,
        is_address_alone: false,
    };
    let ip = network_of(asked.address);
    let by_address = |ip: &str| Subject {
        text: format!("ip={ip}"),
        is_address_alone: true,
    };
    let key = asked.key.map(|key| key.id);
    let proxy = asked.proxy.map(|(_, name)| name);
    match (counted, key, proxy) {
        (Counted::Ip, ..) => vec![by_address(&ip)],
        (Counted::Key, Some(key), _) => vec![of(format!("key={key}"))],
        (Counted::KeyAndIp, Some(key), _) => vec![of(format!("key={key},ip={ip}"))],
        (Counted::KeyOrIp, Some(key), _) => match is_unlimited(asked) {
            true => vec![by_address(&ip)],
            false => vec![of(format!("key={key}")), by_address(&ip)],
        },
        (Counted::ProxyAndIp, _, Some(proxy)) => vec![of(format!("proxy={proxy},ip={ip}"))],
        (Counted::HostnameAndIp, _, Some(host)) => vec![of(format!("hostname={host},ip={ip}"))],
        _ => Vec::new(),
    }
}

fn is_unlimited(asked: &Asked<'_>) -> bool {
    let quota = asked.key.map(|key| key.rate_limit);
    quota == Some(RateLimit::Unlimited)
}
