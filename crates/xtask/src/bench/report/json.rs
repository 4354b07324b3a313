//! The results for programs.

use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value};

use super::Results;

/// What is told of each operation of a node, beside its name.
const OPERATION: [&str; 13] = [
    "connections",
    "requests_per_s",
    "p50_ms",
    "p99_ms",
    "load_cpu_us",
    "server_cpu_us",
    "postgres_cpu_us",
    "memory_mb",
    "engine_per_s",
    "engine_p50_ms",
    "engine_p99_ms",
    "ratio",
    "to_hello",
];
const ENGINE: [&str; 6] = [
    "connections",
    "per_s",
    "p50_ms",
    "p99_ms",
    "load_cpu_us",
    "postgres_cpu_us",
];
const HELLO: [&str; 7] = [
    "connections",
    "requests_per_s",
    "p50_ms",
    "p99_ms",
    "load_cpu_us",
    "server_cpu_us",
    "memory_mb",
];

pub(in crate::bench) fn json(results: &Results) -> Result<String> {
    let mut text = serde_json::to_string_pretty(results)?;
    text.push('\n');
    Ok(text)
}

/// Makes sure that the JSON says something about every measurement, and nothing impossible.
pub(in crate::bench) fn check(json: &str) -> Result<()> {
    let all: Map<String, Value> = serde_json::from_str(json)?;
    // A short run may be too short to see anything of Redis.
    check_list(
        &all,
        "operations",
        &OPERATION,
        &["operation", "redis_cpu_us"],
    )?;
    check_list(&all, "engine", &ENGINE, &["statement"])?;
    check_list(&all, "hello", &HELLO, &[])
}

/// Makes sure that each object of a list has these numbers above zero, these others, and nothing else.
pub(in crate::bench) fn check_list(
    all: &Map<String, Value>,
    name: &str,
    numbers: &[&str],
    others: &[&str],
) -> Result<()> {
    let list = all.get(name).and_then(Value::as_array);
    let list = list.with_context(|| format!("there is no list of {name}"))?;
    ensure!(!list.is_empty(), "nothing was measured: {name}");
    for value in list {
        let object = value.as_object().context("a result that is no object")?;
        for number in numbers {
            let value = object.get(*number).and_then(Value::as_f64);
            let value = value.with_context(|| format!("{number} is no number: {object:?}"))?;
            ensure!(value > 0.0, "{number} is {value}: {object:?}");
        }
        for other in others {
            ensure!(object.contains_key(*other), "no {other}: {object:?}");
        }
        let expected = numbers.len() + others.len();
        ensure!(
            object.len() == expected,
            "more than was asked for: {object:?}"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
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
}
