//! Tests of the table and the chart.

use super::*;

pub(in crate::bench) fn row(operation: Operation, connections: u32, ratio: f64) -> Row {
    Row {
        operation,
        connections,
        requests_per_s: 10_000.0 * ratio,
        p50_ms: 0.5,
        p99_ms: 1.25,
        cpu: CpuShares {
            load: 8.0,
            proxy: 0.0,
            servers: 80.4,
            postgres: 30.0,
            redis: 9.5,
        },
        memory_mb: 64.0,
        engine_per_s: 10_000.0,
        engine_p50_ms: 0.25,
        engine_p99_ms: 1.0,
        ratio,
        to_hello: 6.7,
    }
}

pub(super) fn results(operations: Vec<Row>) -> Results {
    let hello = HelloRow {
        connections: 16,
        requests_per_s: 60_000.0,
        p50_ms: 0.2,
        p99_ms: 0.8,
        load_cpu: 7.0,
        server_cpu: 12.0,
        memory_mb: 6.0,
    };
    let engine = EngineRow {
        statement: Statement::Find,
        connections: 16,
        per_s: 10_000.0,
        p50_ms: 0.25,
        p99_ms: 1.0,
        load_cpu: 5.0,
        postgres_cpu: 25.0,
    };
    Results {
        operations,
        engine: vec![engine],
        hello: vec![hello],
        ..Results::default()
    }
}

#[test]
fn the_chart_has_a_group_per_operation() {
    let rows = [
        row(Operation::Create, 1, 0.25),
        row(Operation::Create, 16, 1.5),
        row(Operation::GetMasked, 1, 0.5),
        row(Operation::GetMasked, 16, 0.75),
    ];

    let chart = chart(&rows);

    let groups: Vec<_> = chart
        .groups
        .iter()
        .map(|group| (group.name.as_str(), group.ratios.clone()))
        .collect();
    let expected = [("create", vec![0.25, 1.5]), ("get masked", vec![0.5, 0.75])];
    assert_eq!(groups, expected);
    assert_eq!(chart.series, ["1 connection", "16 connections"]);
}

#[test]
fn the_table_has_a_line_per_result() {
    let results = results(vec![
        row(Operation::Create, 1, 0.25),
        row(Operation::GetRevealed, 64, 0.75),
    ]);

    let text = main(&results).to_string();

    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 5, "{text}");
    let widths: Vec<usize> = lines.iter().map(|line| line.chars().count()).collect();
    assert!(widths.iter().all(|&width| width == widths[0]), "{text}");
    assert!(lines[3].contains("get revealed") && lines[3].ends_with(" 0.75 |"));
    assert!(lines[4].contains("hello") && lines[4].contains(" 60000 "));
}
