//! The counters that apply to a request.

use std::sync::Arc;
use std::time::Duration;

use cloakroom_platform::api::network_of;
use cloakroom_platform::config::Networks;

use super::request_info::RequestInfo;
use super::row::{Action, CounterKind, Row};
use super::table::Table;
use crate::access::RateLimit;

/// One counter of one limit.
#[derive(Clone, Debug)]
pub(super) struct Counter {
    pub(super) row: Arc<Row>,
    /// Key in Redis, readable for an operator.
    pub(super) name: String,
    /// Requests that a window may hold.
    pub(super) limit: u64,
    /// The settings that change it, for the operator.
    pub(super) settings: &'static str,
}

/// Outcome of a request at one counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) is_rejected: bool,
    /// Requests that remain in the window.
    pub(super) remaining: u64,
    /// How long until the counter has more capacity.
    pub(super) wait: Duration,
}

/// Namespace of the counters, and the addresses that are exempt.
pub(super) struct CounterContext<'a> {
    pub(super) environment: &'a str,
    pub(super) exempt_addresses: &'a Networks,
}

impl Counter {
    /// How long a rejected request blocks the counter.
    pub(super) fn block(&self) -> Duration {
        match self.row.action {
            Action::Throttle => Duration::ZERO,
            Action::Block(time) => time,
        }
    }
}

/// All counters of a request, those of one limit together.
pub(super) fn counters_of(
    table: &Table,
    info: &RequestInfo<'_>,
    context: &CounterContext<'_>,
) -> Arc<[Counter]> {
    let is_exempt = context.exempt_addresses.contain(info.address);
    let applying = table
        .rows
        .iter()
        .filter(|row| row.objection(info).is_none());
    let names = Names::of(info, context.environment);
    let mut counters = Vec::with_capacity(USUAL_COUNTERS);
    for row in applying {
        for subject in subjects(row.counted, info).into_iter().flatten() {
            if is_exempt && subject.is_address_alone {
                continue;
            }
            counters.push(Counter {
                row: row.clone(),
                name: names.of_counter(row, &subject),
                // The address counter of "key or ip" belongs to no tenant either.
                limit: match subject.is_address_alone {
                    true => row.requests,
                    false => row.limit_for(info),
                },
                settings: settings_of(row, info, subject),
            });
        }
    }
    counters.into()
}

/// The settings that change a limit for the requests of a counter.
fn settings_of(row: &Row, info: &RequestInfo<'_>, subject: Subject<'_>) -> &'static str {
    let has_profile = row.is_profile_choice(info);
    let has_quota = info.key.is_some() && !subject.is_address_alone;
    match (has_profile, has_quota, subject.is_address_alone) {
        (true, true, _) => "limits.profile, limits.file, or the quota rate_limit of the tenant",
        (false, true, _) => "limits.file, or the quota rate_limit of the tenant",
        (true, false, _) => "limits.profile, limits.file or limits.exempt_addresses",
        (false, false, true) => "limits.file or limits.exempt_addresses",
        (false, false, false) => "limits.file",
    }
}

/// Most requests have fewer.
const USUAL_COUNTERS: usize = 6;

/// What the requests of a counter have in common.
#[derive(Clone, Copy)]
struct Subject<'a> {
    /// Kind and identifier of the subject.
    own: Option<(&'static str, SubjectId<'a>)>,
    has_address: bool,
    is_address_alone: bool,
}

#[derive(Clone, Copy)]
enum SubjectId<'a> {
    Key,
    Proxy(&'a str),
}

/// Parts of the names of counters.
struct Names<'a> {
    environment: &'a str,
    key: Option<String>,
    ip: String,
}

impl<'a> Names<'a> {
    fn of(info: &RequestInfo<'_>, environment: &'a str) -> Self {
        Self {
            environment,
            key: info.key.map(|key| key.id.to_string()),
            ip: network_of(info.address),
        }
    }

    /// Concatenated by hand: every request needs several names.
    fn of_counter(&self, row: &Row, subject: &Subject<'_>) -> String {
        let mut name = String::with_capacity(160);
        for part in ["cloakroom:", self.environment, ":limit:", &row.name, ":"] {
            name.push_str(part);
        }
        if let Some((kind, subject_id)) = subject.own {
            let subject_id = match subject_id {
                SubjectId::Key => self.key.as_deref().unwrap_or_default(),
                SubjectId::Proxy(name) => name,
            };
            for part in [kind, "=", subject_id] {
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

fn subjects<'a>(counted: CounterKind, info: &RequestInfo<'a>) -> [Option<Subject<'a>>; 2] {
    let key = info.key.map(|_| ("key", SubjectId::Key));
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
    let proxy = info.proxy.map(|(_, name)| SubjectId::Proxy(name));
    match (counted, key, proxy) {
        (CounterKind::Ip, ..) => [Some(address), None],
        (CounterKind::Key, Some(key), _) => [Some(of(key, false)), None],
        (CounterKind::KeyAndIp, Some(key), _) => [Some(of(key, true)), None],
        (CounterKind::KeyOrIp, Some(key), _) => match is_unlimited(info) {
            true => [Some(address), None],
            false => [Some(of(key, false)), Some(address)],
        },
        (CounterKind::ProxyAndIp, _, Some(proxy)) => [Some(of(("proxy", proxy), true)), None],
        (CounterKind::HostnameAndIp, _, Some(host)) => [Some(of(("hostname", host), true)), None],
        _ => [None, None],
    }
}

fn is_unlimited(info: &RequestInfo<'_>) -> bool {
    let quota = info.key.map(|key| key.rate_limit);
    quota == Some(RateLimit::Unlimited)
}
