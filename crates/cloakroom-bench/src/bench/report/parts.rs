//! CPU time of a request by process.

use comfy_table::Table;

use super::{Results, table};

pub(super) fn table_of(results: &Results) -> Table {
    let nodes = results.operations.iter().map(|row| {
        let name = row.operation.name();
        let parts = [
            row.cpu.load,
            row.cpu.servers,
            row.cpu.postgres,
            row.cpu.redis,
        ];
        line(name, row.connections, parts)
    });
    let engines = results.engine.iter().map(|row| {
        let name = format!("engine's {}", row.statement.name());
        line(
            &name,
            row.connections,
            [row.load_cpu, 0.0, row.postgres_cpu, 0.0],
        )
    });
    let hellos = results.hello.iter().map(|row| {
        line(
            "hello",
            row.connections,
            [row.load_cpu, row.server_cpu, 0.0, 0.0],
        )
    });
    let header = [
        "CPU µs per request",
        "connections",
        "load",
        "server",
        "PostgreSQL",
        "Redis",
        "all",
    ];
    table(header, nodes.chain(engines).chain(hellos))
}

/// Empty for processes that take no part.
fn line(name: &str, connections: u32, parts: [f64; 4]) -> [String; 7] {
    let format_part = |part: f64| match part {
        0.0 => String::new(),
        _ => format!("{part:.1}"),
    };
    let [load, server, postgres, redis] = parts.map(format_part);
    let all = format!("{:.1}", parts.iter().sum::<f64>());
    let connections = connections.to_string();
    [
        name.to_owned(),
        connections,
        load,
        server,
        postgres,
        redis,
        all,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::load::Operation;
    use crate::bench::report::tests::{results, row};

    #[test]
    fn parts_add_up_and_what_takes_no_part_is_empty() {
        let text = table_of(&results(vec![row(Operation::GetMasked, 16, 0.5)])).to_string();

        let cells = |line: &str| -> Vec<String> {
            line.trim_matches('|')
                .split('|')
                .map(|cell| cell.trim().to_owned())
                .collect()
        };
        let lines: Vec<_> = text.lines().skip(2).map(cells).collect();
        let expected = [
            ["get masked", "16", "8.0", "80.4", "30.0", "9.5", "127.9"],
            ["engine's select", "16", "5.0", "", "25.0", "", "30.0"],
            ["hello", "16", "7.0", "12.0", "", "", "19.0"],
        ];
        assert_eq!(lines, expected);
    }
}
