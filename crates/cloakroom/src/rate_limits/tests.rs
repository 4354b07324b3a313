//! Which counters a request meets, and what they say, without Redis.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use tokio::time::Instant;

use super::counter::{Counter, Outcome, Place, counters_of};
use super::local_windows::LocalWindows;
use super::reserves::{Group, Reserves, Wish};
use super::{Action, Asked, AskedKey, Proxy, Row, Table};
use crate::access::{ApplicationKind, RateLimit, TenantKind};
use crate::config::Networks;
use crate::ids;

const ADDRESS: &str = "192.0.2.1";

fn key(tenant: TenantKind, application: ApplicationKind) -> AskedKey {
    AskedKey {
        id: uuid::Uuid::nil(),
        tenant,
        application,
        is_legacy: false,
        rate_limit: RateLimit::Default,
    }
}

fn asked<'a>(method: &'a str, route: &'a str, key: Option<AskedKey>) -> Asked<'a> {
    Asked {
        method,
        route,
        address: ADDRESS.parse().unwrap(),
        key,
        proxy: None,
    }
}

/// The counters of a request without what all their names begin with, and their limits.
fn counted(asked: &Asked<'_>, exempt: &str) -> Vec<String> {
    let table = Table::shipped().unwrap();
    let exempt_addresses: Networks = exempt.parse().unwrap();
    let place = Place {
        environment: "test",
        exempt_addresses: &exempt_addresses,
    };
    let counters = counters_of(&table, asked, &place);
    let short = |counter: &Counter| {
        let name = counter.name.strip_prefix("cloakroom:test:limit:").unwrap();
        let name = name.replace(&uuid::Uuid::nil().to_string(), "K");
        format!("{name} {}", counter.limit)
    };
    counters.iter().map(short).collect()
}

#[test]
fn a_request_is_counted_by_every_limit_that_applies_to_it() {
    use ApplicationKind::{Management, Private, Public};
    use TenantKind::{Production, Test};
    let both = "key=K,ip=192.0.2.1";
    let cases = [
        (
            asked("POST", "/tokens", Some(key(Production, Private))),
            vec![
                format!("token-create:{both} 200"),
                "private-application:key=K 2000".into(),
                "private-application:ip=192.0.2.1 2000".into(),
                "everything:ip=192.0.2.1 2000".into(),
            ],
        ),
        (
            asked("GET", "/tokens/{id}", Some(key(Test, Public))),
            vec![
                format!("test-tenant:{both} 50"),
                format!("token-read:{both} 100"),
                format!("public-application:{both} 50"),
                "everything:ip=192.0.2.1 2000".into(),
            ],
        ),
        (
            asked("GET", "/applications", Some(key(Production, Management))),
            vec![
                "management-application:key=K 200".into(),
                "everything:ip=192.0.2.1 2000".into(),
            ],
        ),
        (
            asked("GET", "/ping", None),
            vec!["everything:ip=192.0.2.1 2000".into()],
        ),
    ];
    for (asked, expected) in cases {
        assert_eq!(counted(&asked, ""), expected, "{asked:?}");
    }
}

#[test]
fn proxies_legacy_keys_and_routes_to_come_have_their_limits() {
    let production = key(TenantKind::Production, ApplicationKind::Management);
    let legacy = AskedKey {
        is_legacy: true,
        ..production
    };
    let through = |proxy| Asked {
        proxy: Some((proxy, "P")),
        ..asked("POST", "/proxy", None)
    };
    let both = "key=K,ip=192.0.2.1";
    let cases = [
        (
            asked("GET", "/x", Some(legacy)),
            format!("legacy-key:{both} 100"),
        ),
        (
            through(Proxy::Open),
            "open-proxy:proxy=P,ip=192.0.2.1 50".into(),
        ),
        (
            through(Proxy::Hostname),
            "hostname-proxy:hostname=P,ip=192.0.2.1 50".into(),
        ),
        (
            asked("PUT", "/account-updater/jobs", Some(production)),
            format!("account-updater:{both} 10"),
        ),
        (
            asked("POST", "/documents", Some(production)),
            format!("document-create:{both} 10"),
        ),
        (
            asked("GET", "/documents/{id}/data", Some(production)),
            format!("document-read:{both} 10"),
        ),
        (
            asked("PATCH", "/tokens/{id}", Some(production)),
            format!("token-update:{both} 200"),
        ),
        (
            asked("DELETE", "/tokens/{id}", Some(production)),
            format!("token-delete:{both} 200"),
        ),
        (
            asked("POST", "/v2/tokens/search", Some(production)),
            format!("token-search:{both} 50"),
        ),
        (
            asked("POST", "/tokens/search", Some(production)),
            format!("token-search:{both} 50"),
        ),
        (
            asked("POST", "/detokenize", Some(production)),
            format!("token-read:{both} 100"),
        ),
        (
            asked("POST", "/tokenize", Some(production)),
            format!("token-create:{both} 200"),
        ),
    ];
    for (asked, expected) in cases {
        let found = counted(&asked, "");
        assert!(found.contains(&expected), "{expected}: {found:?}");
    }
}

#[test]
fn a_quota_multiplies_what_belongs_to_the_tenant_and_an_exempt_address_is_not_counted_alone() {
    let with = |rate_limit| {
        let key = key(TenantKind::Production, ApplicationKind::Private);
        asked("POST", "/tokens", Some(AskedKey { rate_limit, ..key }))
    };
    let alone = [
        "private-application:ip=192.0.2.1 2000",
        "everything:ip=192.0.2.1 2000",
    ];

    let five = counted(&with(RateLimit::Times(5)), "");
    let unlimited = counted(&with(RateLimit::Unlimited), "");
    let exempt = counted(&with(RateLimit::Default), "192.0.2.0/24");

    let multiplied = [
        "token-create:key=K,ip=192.0.2.1 1000",
        "private-application:key=K 10000",
    ];
    assert_eq!(five, [multiplied, alone].concat());
    assert_eq!(unlimited, alone);
    assert_eq!(
        exempt,
        [
            "token-create:key=K,ip=192.0.2.1 200",
            "private-application:key=K 2000"
        ]
    );
}

#[test]
fn ipv6_addresses_count_by_their_network() {
    for (address, expected) in [
        (
            "2001:db8:1:2:3:4:5:6",
            "everything:ip=2001:db8:1:2::/64 2000",
        ),
        ("2001:db8:1:2::", "everything:ip=2001:db8:1:2::/64 2000"),
        ("::ffff:192.0.2.9", "everything:ip=192.0.2.9 2000"),
    ] {
        let address: IpAddr = address.parse().unwrap();
        let asked = Asked {
            address,
            ..asked("GET", "/ping", None)
        };
        assert_eq!(counted(&asked, ""), [expected]);
    }
}

fn counter(row: &Arc<Row>) -> Counter {
    Counter {
        row: row.clone(),
        name: row.name.clone(),
        limit: row.requests,
    }
}

#[tokio::test]
async fn every_shipped_limit_holds_at_its_edge() {
    let millisecond = Duration::from_millis(1);
    for row in &Table::shipped().unwrap().rows {
        let (windows, begun, counters) = (LocalWindows::default(), Instant::now(), [counter(row)]);
        let refused = |at: Duration| windows.admit(&counters, 1, begun + at)[0];

        for _ in 0..row.requests {
            assert!(!refused(Duration::ZERO).is_refused, "{}", row.name);
        }
        let first = refused(millisecond);
        let reopened = match row.action {
            Action::Throttle => row.window,
            Action::Block(time) => row.window.max(time + millisecond),
        };

        assert!(
            first.is_refused && first.wait == reopened - millisecond,
            "{row:?} {first:?}"
        );
        assert!(refused(reopened - millisecond).is_refused, "{}", row.name);
        assert!(!refused(reopened).is_refused, "{}", row.name);
    }
}

#[tokio::test]
async fn a_node_alone_admits_its_share_and_one_at_least() {
    let table = Table::shipped().unwrap();
    for (nodes, expected) in [(1, 50), (2, 25), (4, 12), (49, 1), (1_000, 1)] {
        let (windows, now) = (LocalWindows::default(), Instant::now());
        let counters = [counter(&table.rows[0])];
        let admitted = (0..100).filter(|_| !windows.admit(&counters, nodes, now)[0].is_refused);
        assert_eq!(admitted.count(), expected, "{nodes}");
    }
}

/// A window as simple as can be: every admission is remembered for good, and counted each time.
#[derive(Default)]
struct Model {
    admitted: HashMap<String, VecDeque<Instant>>,
    blocked_until: HashMap<String, Instant>,
}

impl Model {
    fn refuses(&mut self, counter: &Counter, now: Instant) -> bool {
        let (name, window) = (&counter.name, counter.row.window);
        if self
            .blocked_until
            .get(name)
            .is_some_and(|until| now < *until)
        {
            return true;
        }
        let admitted = self.admitted.entry(name.clone()).or_default();
        let inside: Vec<Instant> = admitted
            .iter()
            .copied()
            .filter(|at| now < *at + window)
            .collect();
        let is_full = inside.len() as u64 >= counter.limit;
        if is_full && let Action::Block(time) = counter.row.action {
            let place = inside.len() - usize::try_from(counter.limit).unwrap();
            let until = (now + time).max(inside[place] + window);
            self.blocked_until.insert(name.clone(), until);
        }
        is_full
    }

    fn admit(&mut self, counters: &[Counter], now: Instant) -> Vec<bool> {
        let refusals: Vec<bool> = counters.iter().map(|one| self.refuses(one, now)).collect();
        if !refusals.contains(&true) {
            for counter in counters {
                self.admitted.get_mut(&counter.name).unwrap().push_back(now);
            }
        }
        refusals
    }
}

fn small_row(name: String, requests: u64, window_ms: u64, block_ms: u64) -> Arc<Row> {
    let mut row = (*Table::shipped().unwrap().rows[0]).clone();
    row.name = name;
    row.requests = requests;
    row.window = Duration::from_millis(window_ms);
    row.action = match block_ms {
        0 => Action::Throttle,
        time => Action::Block(Duration::from_millis(time)),
    };
    Arc::new(row)
}

proptest! {
    #[test]
    fn local_windows_do_what_the_model_does(
        rows in prop::collection::vec((1_u64..6, 1_u64..40, 0_u64..30), 1..4),
        steps in prop::collection::vec((0_u64..15, 0_usize..8), 1..120),
    ) {
        let rows: Vec<Arc<Row>> = rows
            .into_iter()
            .enumerate()
            .map(|(at, (requests, window, block))| small_row(at.to_string(), requests, window, block))
            .collect();
        let (windows, mut model, mut now) = (LocalWindows::default(), Model::default(), Instant::now());
        for (pause, chosen) in steps {
            now += Duration::from_millis(pause);
            let counters: Vec<Counter> = rows
                .iter()
                .enumerate()
                .filter(|(at, _)| chosen & (1 << at) != 0)
                .map(|(_, row)| counter(row))
                .collect();
            let outcomes: Vec<Outcome> = windows.admit(&counters, 1, now);
            let refusals: Vec<bool> = outcomes.iter().map(|outcome| outcome.is_refused).collect();
            prop_assert_eq!(refusals, model.admit(&counters, now));
        }
    }
}

#[tokio::test]
async fn counters_are_forgotten_when_there_are_too_many() {
    let (windows, now) = (LocalWindows::default(), Instant::now());
    let row = small_row("one".into(), 1, 1_000, 0);
    for _ in 0..150_000 {
        let counter = Counter {
            name: ids::new_uuid().to_string(),
            ..counter(&row)
        };
        assert!(!windows.admit(&[counter], 1, now)[0].is_refused);
    }
    assert!(windows.count() <= 100_000, "{}", windows.count());
}

/// Requests of the same counters, of which so many are admitted in two seconds.
fn group(limit: u64) -> Group {
    let row = small_row("many".into(), limit, 2_000, 0);
    Group([counter(&row)].into())
}

/// What so many hear for whom an admission is set aside.
fn admissions(count: u64) -> Vec<Vec<Outcome>> {
    let outcome = |left| Outcome {
        is_refused: false,
        left,
        wait: Duration::ZERO,
    };
    (0..count).rev().map(|left| vec![outcome(left)]).collect()
}

#[tokio::test]
async fn what_is_set_aside_is_used_in_order_until_its_time_is_over() {
    let (reserves, now, group) = (Reserves::default(), Instant::now(), group(1_000));
    assert_eq!(reserves.take(&group, now), None);
    let wish = reserves.wish(&group, 4, 1, now);
    // As many as came together, except for the first.
    assert_eq!((wish.admissions, wish.time), (3, Duration::from_millis(20)));
    // Only one question at a time sets something aside.
    assert_eq!(reserves.wish(&group, 4, 1, now), Wish::NONE);
    let until = now + wish.time;
    reserves.keep(&group, admissions(3), until);

    let left = |taken: Option<Vec<Outcome>>| taken.map(|outcomes| outcomes[0].left);
    assert_eq!(left(reserves.take(&group, now)), Some(2));
    assert_eq!(
        left(reserves.take(&group, until - Duration::from_nanos(1))),
        Some(1)
    );
    assert_eq!(left(reserves.take(&group, until)), None);
    // Two came in that time, and two come together now.
    assert_eq!(reserves.wish(&group, 2, 1, until).admissions, 3);
    reserves.keep(&group, admissions(2), until + wish.time);
    assert_eq!(left(reserves.take(&group, until)), Some(1));
    assert_eq!(left(reserves.take(&group, until)), Some(0));
    // They were not enough.
    assert_eq!(reserves.wish(&group, 1, 1, until).admissions, 4);
}

#[tokio::test]
async fn little_is_set_aside_and_nothing_for_who_asks_now_and_then() {
    let (reserves, now) = (Reserves::default(), Instant::now());
    let wish = |limit, requests, nodes| reserves.wish(&group(limit), requests, nodes, now);
    assert_eq!(wish(1_000_000, 1, 1), Wish::NONE);
    assert_eq!(wish(99, 50, 1), Wish::NONE);
    assert_eq!(wish(400, 50, 4).admissions, 1);
    assert_eq!(wish(500, 50, 1).admissions, 5);
    assert_eq!(wish(399, 50, 4), Wish::NONE);

    // Whoever asked for more and left without an answer is not waited for.
    let busy = group(1_000);
    assert_ne!(reserves.wish(&busy, 9, 1, now), Wish::NONE);
    assert_eq!(reserves.wish(&busy, 9, 1, now), Wish::NONE);
    let later = now + Duration::from_secs(1);
    assert_ne!(reserves.wish(&busy, 9, 1, later), Wish::NONE);
}
