//! The results as JSON.

use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value};

use super::Results;

/// Numbers of each operation of a node.
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

/// Verifies that the JSON has all measurements and plausible numbers.
pub(in crate::bench) fn check(json: &str) -> Result<()> {
    let all: Map<String, Value> = serde_json::from_str(json)?;
    // In a short run, the CPU time of Redis may be 0.
    check_list(
        &all,
        "operations",
        &OPERATION,
        &["operation", "redis_cpu_us"],
    )?;
    check_list(&all, "engine", &ENGINE, &["statement"])?;
    check_list(&all, "hello", &HELLO, &[])
}

/// Verifies that each object of a list has these numbers above zero, these other fields, and no more.
///
/// CPU per request is unknown if a busy machine completes no request within a short measurement, and zero if the requests take
/// less than a tick of the clock. It is measured if one object has it.
pub(in crate::bench) fn check_list(
    all: &Map<String, Value>,
    name: &str,
    numbers: &[&str],
    others: &[&str],
) -> Result<()> {
    let list = all.get(name).and_then(Value::as_array);
    let list = list.with_context(|| format!("there is no list of {name}"))?;
    ensure!(!list.is_empty(), "nothing was measured: {name}");
    for number in numbers.iter().filter(|number| is_cpu_time(number)) {
        let positive = |value: &Value| value[*number].as_f64().is_some_and(|value| value > 0.0);
        ensure!(list.iter().any(positive), "{name} have no {number}");
    }
    for value in list {
        let object = value.as_object().context("a result that is no object")?;
        for number in numbers {
            let value = object.get(*number);
            if value.is_some_and(Value::is_null) && is_cpu_time(number) {
                continue;
            }
            let value = value.and_then(Value::as_f64);
            let value = value.with_context(|| format!("{number} is no number: {object:?}"))?;
            let is_plausible = value > 0.0 || value == 0.0 && is_cpu_time(number);
            ensure!(is_plausible, "{number} is {value}: {object:?}");
        }
        for other in others {
            ensure!(object.contains_key(*other), "no {other}: {object:?}");
        }
        let expected = numbers.len() + others.len();
        ensure!(object.len() == expected, "unexpected fields: {object:?}");
    }
    Ok(())
}

fn is_cpu_time(number: &str) -> bool {
    number.ends_with("_cpu_us")
}

#[cfg(test)]
mod tests;
