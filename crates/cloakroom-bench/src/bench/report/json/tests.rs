//! Tests of the JSON and of implausible results.

use super::*;
use crate::bench::load::Operation;
use crate::bench::report::tests::{results, row};

#[test]
fn json_tells_exactly_what_was_promised() {
    let text = json(&results(vec![row(Operation::GetMasked, 16, 0.5)])).unwrap();

    let expected = serde_json::json!({
        "operations": [{
            "operation": "get masked",
            "connections": 16,
            "requests_per_s": 5000.0,
            "p50_ms": 0.5,
            "p99_ms": 1.25,
            "load_cpu_us": 8.0,
            "server_cpu_us": 80.4,
            "postgres_cpu_us": 30.0,
            "redis_cpu_us": 9.5,
            "memory_mb": 64.0,
            "engine_per_s": 10000.0,
            "engine_p50_ms": 0.25,
            "engine_p99_ms": 1.0,
            "ratio": 0.5,
            "to_hello": 6.7,
        }],
        "engine": [{
            "statement": "select",
            "connections": 16,
            "per_s": 10000.0,
            "p50_ms": 0.25,
            "p99_ms": 1.0,
            "load_cpu_us": 5.0,
            "postgres_cpu_us": 25.0,
        }],
        "hello": [{
            "connections": 16,
            "requests_per_s": 60000.0,
            "p50_ms": 0.2,
            "p99_ms": 0.8,
            "load_cpu_us": 7.0,
            "server_cpu_us": 12.0,
            "memory_mb": 6.0,
        }],
        "compared": [],
        "verdict": [],
    });
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected);
    check(&text).unwrap();
}

#[test]
fn impossible_results_are_refused() {
    for ratio in [0.0, f64::NAN, f64::INFINITY] {
        let text = json(&results(vec![row(Operation::Create, 1, ratio)])).unwrap();
        assert!(check(&text).is_err(), "{ratio}");
    }
    assert!(check(&json(&results(Vec::new())).unwrap()).is_err());
    assert!(check("{}").is_err());
}

#[test]
fn one_measurement_of_cpu_time_may_be_zero_but_not_all() {
    let engine = |cpu: f64| serde_json::json!({"rate": 5.0, "load_cpu_us": cpu});
    let check = |rows: [f64; 2]| {
        let all = Map::from_iter([("engine".to_owned(), rows.map(engine).to_vec().into())]);
        check_list(&all, "engine", &["rate", "load_cpu_us"], &[])
    };

    check([0.0, 3.5]).unwrap();
    assert!(check([0.0, 0.0]).is_err());
    assert!(check([-1.0, 3.5]).is_err());
}
