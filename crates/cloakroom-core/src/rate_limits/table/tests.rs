//! Tests of the built-in table and of invalid files.

use uuid::Uuid;

use super::*;
use crate::access::RateLimit;
use crate::rate_limits::KeyInfo;
use crate::rate_limits::row::written;

/// Creates a token of a test tenant.
fn request_of(application: ApplicationKind) -> RequestInfo<'static> {
    RequestInfo {
        method: "POST",
        route: "/tokens",
        address: "192.0.2.1".parse().unwrap(),
        key: Some(KeyInfo {
            id: Uuid::nil(),
            tenant: TenantKind::Test,
            application,
            is_legacy: false,
            rate_limit: RateLimit::default(),
        }),
        proxy: None,
    }
}

/// Compares with the specification's table, row by row.
#[test]
fn built_in_table_matches_the_specification() {
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
        "POST /tokens/search | key and ip | 50 / 10s | throttle",
        "GET /tokens | key and ip | 100 / 10s | throttle",
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
        "POST /checkout/{key}/card | ip | 30 / 1m | throttle",
    ];
    assert_eq!(rows, expected);
}

#[test]
fn own_hardware_limits_neither_private_applications_nor_addresses_alone() {
    let table = Table::load(&config::Limits {
        profile: LimitsProfile::OwnHardware,
        ..config::Limits::default()
    })
    .unwrap();

    let mut names = table.rows.iter().map(|row| row.name.as_str());
    assert!(!names.any(|name| ["private-application", "everything"].contains(&name)));
    let applied = |application| {
        let info = request_of(application);
        let applied = table
            .rows
            .iter()
            .filter(|row| row.objection(&info).is_none());
        applied.map(|row| row.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(applied(ApplicationKind::Private), Vec::<String>::new());
    assert_eq!(
        applied(ApplicationKind::Public),
        ["test-tenant", "token-create", "public-application"]
    );
}

#[test]
fn invalid_tables_are_rejected_with_a_reason() {
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
        let error = Table::parse(&text).unwrap_err();
        assert!(error.contains(reason), "{text}: {error}");
    }
}
