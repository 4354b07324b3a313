//! The counters of a request.

use std::net::IpAddr;

use cloakroom_platform::config::{self, Networks};

use crate::access::{ApplicationKind, RateLimit, TenantKind};
use crate::rate_limits::counter::{Counter, CounterContext, counters_of};
use crate::rate_limits::{KeyInfo, Proxy, RequestInfo, Table};

const ADDRESS: &str = "192.0.2.1";

fn key(tenant: TenantKind, application: ApplicationKind) -> KeyInfo {
    KeyInfo {
        id: uuid::Uuid::nil(),
        tenant,
        application,
        is_legacy: false,
        rate_limit: RateLimit::Default,
    }
}

fn info<'a>(method: &'a str, route: &'a str, key: Option<KeyInfo>) -> RequestInfo<'a> {
    RequestInfo {
        method,
        route,
        address: ADDRESS.parse().unwrap(),
        key,
        proxy: None,
    }
}

/// The counters of a request without their common prefix, and their limits.
fn counted(info: &RequestInfo<'_>, exempt: &str) -> Vec<String> {
    let table = Table::shipped().unwrap();
    let exempt_addresses: Networks = exempt.parse().unwrap();
    let context = CounterContext {
        environment: "test",
        exempt_addresses: &exempt_addresses,
    };
    let counters = counters_of(&table, info, &context);
    let short = |counter: &Counter| {
        let name = counter.name.strip_prefix("cloakroom:test:limit:").unwrap();
        let name = name.replace(&uuid::Uuid::nil().to_string(), "K");
        format!("{name} {}", counter.limit)
    };
    counters.iter().map(short).collect()
}

/// The settings that the error message names for each limit.
fn settings(limits: &config::Limits, info: &RequestInfo<'_>) -> Vec<(String, &'static str)> {
    let context = CounterContext {
        environment: "test",
        exempt_addresses: &Networks::default(),
    };
    let counters = counters_of(&Table::load(limits).unwrap(), info, &context);
    let named = counters.iter();
    named
        .map(|counter| (counter.row.name.clone(), counter.settings))
        .collect()
}

#[test]
fn the_settings_that_change_a_limit_are_named() {
    use ApplicationKind::{Private, Public};
    let standard = config::Limits::default();
    let own_hardware = config::Limits {
        profile: config::LimitsProfile::OwnHardware,
        ..config::Limits::default()
    };
    let (profile, file, quota, exempt) = (
        "limits.profile, limits.file, or the quota rate_limit of the tenant",
        "limits.profile, limits.file or limits.exempt_addresses",
        "limits.file, or the quota rate_limit of the tenant",
        "limits.file or limits.exempt_addresses",
    );
    let get = |key| info("GET", "/tokens/{id}", key);
    let card = info("POST", "/checkout/{key}/card", None);
    let cases = [
        (
            settings(&standard, &get(Some(key(TenantKind::Test, Private)))),
            vec![
                ("test-tenant", profile),
                ("private-application", profile),
                ("private-application", file),
                ("everything", file),
            ],
        ),
        (
            settings(&standard, &get(Some(key(TenantKind::Test, Public)))),
            vec![
                ("test-tenant", quota),
                ("public-application", quota),
                ("everything", file),
            ],
        ),
        (
            settings(&own_hardware, &get(Some(key(TenantKind::Test, Public)))),
            vec![("test-tenant", quota), ("public-application", quota)],
        ),
        (
            settings(&own_hardware, &card),
            vec![("checkout-card", exempt)],
        ),
    ];
    for (found, expected) in cases {
        let found: Vec<(&str, &str)> = found.iter().map(|(name, it)| (&name[..], *it)).collect();
        assert_eq!(found, expected);
    }
}

#[test]
fn requests_count_toward_every_applicable_limit() {
    use ApplicationKind::{Management, Private, Public};
    use TenantKind::{Production, Test};
    let both = "key=K,ip=192.0.2.1";
    let cases = [
        (
            info("POST", "/tokens", Some(key(Production, Private))),
            vec![
                format!("token-create:{both} 200"),
                "private-application:key=K 2000".into(),
                "private-application:ip=192.0.2.1 2000".into(),
                "everything:ip=192.0.2.1 2000".into(),
            ],
        ),
        (
            info("GET", "/tokens/{id}", Some(key(Test, Public))),
            vec![
                format!("test-tenant:{both} 50"),
                format!("public-application:{both} 50"),
                "everything:ip=192.0.2.1 2000".into(),
            ],
        ),
        (
            info("GET", "/applications", Some(key(Production, Management))),
            vec![
                "management-application:key=K 200".into(),
                "everything:ip=192.0.2.1 2000".into(),
            ],
        ),
        (
            info("GET", "/ping", None),
            vec!["everything:ip=192.0.2.1 2000".into()],
        ),
    ];
    for (info, expected) in cases {
        assert_eq!(counted(&info, ""), expected, "{info:?}");
    }
}

#[test]
fn proxies_legacy_keys_and_unimplemented_routes_have_limits() {
    let production = key(TenantKind::Production, ApplicationKind::Management);
    let legacy = KeyInfo {
        is_legacy: true,
        ..production
    };
    let through = |proxy| RequestInfo {
        proxy: Some((proxy, "P")),
        ..info("POST", "/proxy", None)
    };
    let both = "key=K,ip=192.0.2.1";
    let cases = [
        (
            info("GET", "/x", Some(legacy)),
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
            info("PUT", "/account-updater/jobs", Some(production)),
            format!("account-updater:{both} 10"),
        ),
        (
            info("POST", "/documents", Some(production)),
            format!("document-create:{both} 10"),
        ),
        (
            info("GET", "/documents/{id}/data", Some(production)),
            format!("document-read:{both} 10"),
        ),
        (
            info("PATCH", "/tokens/{id}", Some(production)),
            format!("token-update:{both} 200"),
        ),
        (
            info("DELETE", "/tokens/{id}", Some(production)),
            format!("token-delete:{both} 200"),
        ),
        (
            info("POST", "/tokens/search", Some(production)),
            format!("token-search:{both} 50"),
        ),
        (
            info("GET", "/tokens", Some(production)),
            format!("token-list:{both} 100"),
        ),
        (
            info("POST", "/tokenize", Some(production)),
            format!("token-create:{both} 200"),
        ),
    ];
    for (info, expected) in cases {
        let found = counted(&info, "");
        assert!(found.contains(&expected), "{expected}: {found:?}");
    }
}

#[test]
fn unnamed_reads_count_toward_the_application_only() {
    let production = key(TenantKind::Production, ApplicationKind::Private);
    let application = [
        "private-application:key=K 2000",
        "private-application:ip=192.0.2.1 2000",
        "everything:ip=192.0.2.1 2000",
    ];
    for (method, path) in [
        ("GET", "/tokens/{id}"),
        ("GET", "/v2/tokens"),
        ("POST", "/v2/tokens/search"),
        ("POST", "/detokenize"),
    ] {
        let found = counted(&info(method, path, Some(production)), "");
        assert_eq!(found, application, "{method} {path}");
    }
}

#[test]
fn quotas_multiply_tenant_limits_and_exempt_addresses_are_not_counted() {
    let with = |rate_limit| {
        let key = key(TenantKind::Production, ApplicationKind::Private);
        info("POST", "/tokens", Some(KeyInfo { rate_limit, ..key }))
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
fn ipv6_addresses_count_by_network() {
    for (address, expected) in [
        (
            "2001:db8:1:2:3:4:5:6",
            "everything:ip=2001:db8:1:2::/64 2000",
        ),
        ("2001:db8:1:2::", "everything:ip=2001:db8:1:2::/64 2000"),
        ("::ffff:192.0.2.9", "everything:ip=192.0.2.9 2000"),
    ] {
        let address: IpAddr = address.parse().unwrap();
        let info = RequestInfo {
            address,
            ..info("GET", "/ping", None)
        };
        assert_eq!(counted(&info, ""), [expected]);
    }
}
