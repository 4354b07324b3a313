//! Tests of the results.

use super::*;
use crate::bench::load::Outcome;

fn row(nodes: usize) -> Row {
    Row {
        nodes,
        operation: Operation::Create,
        connections: 64,
        requests_per_s: 9000.0,
        p50_ms: 7.0,
        p99_ms: 12.5,
        cpu: CpuShares {
            load: 8.0,
            proxy: 15.0,
            servers: 80.5,
            postgres: 60.0,
            redis: 20.0,
        },
        memory_mb: 64.0,
        transactions_per_request: 0.125,
        redis_scripts_per_request: 2.0,
        redis_commands_per_request: 48.0,
    }
}

#[test]
fn json_contains_every_number_and_rejects_implausible_ones() {
    let text = json(&[row(1), row(2)]).unwrap();

    let all: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(all["nodes"][1]["nodes"], 2);
    assert_eq!(all["nodes"][1]["proxy_cpu_us"], 15.0);
    assert!(json(&[]).is_err());
    let mut impossible = row(3);
    impossible.transactions_per_request = f64::NAN;
    assert!(json(&[impossible]).is_err());
}

#[test]
fn parts_add_up() {
    let [_, shares] = tables(&[row(1)]);

    let text = shares.to_string();
    assert!(text.ends_with(" 183.5 |"), "{text}");
}

#[test]
fn counters_are_shared_by_all_requests_that_they_saw() {
    let outcome = |requests| Outcome::with_requests(requests);
    let measured = Measured {
        warm_up: outcome(100),
        outcome: outcome(300),
        cpu: CpuShares::default(),
        memory_mb: 64.0,
    };
    let counted = Counters {
        transactions: 200,
        redis_commands: 4000,
        redis_scripts: 800,
    };

    let row = Row::new(2, Operation::Create, 64, &measured, counted);

    assert_eq!(row.transactions_per_request, 0.5);
    assert_eq!(row.redis_commands_per_request, 10.0);
    assert_eq!(row.redis_scripts_per_request, 2.0);
}
