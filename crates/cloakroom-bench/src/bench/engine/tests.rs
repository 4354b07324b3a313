//! Tests of the output of pgbench and of the columns.

use super::*;

const REPORT: &str = "\
pgbench (15.14 (Debian 15.14-0+deb12u1))
transaction type: select.sql
number of clients: 16
number of transactions actually processed: 40110
number of failed transactions: 0 (0.000%)
latency average = 0.797 ms
initial connection time = 41.200 ms
tps = 20063.211 (without initial connection time)
";

#[test]
fn the_rate_is_read_and_failures_are_refused() {
    let failing = REPORT.replace("transactions: 0 (0.000%)", "transactions: 3 (0.007%)");
    let only_connected = "number of transactions actually processed: 0\n";
    let cases = [
        (REPORT, Some(Some((40110, 20063.211)))),
        (only_connected, Some(None)),
        (failing.as_str(), None),
        ("pgbench (15.14)\n", None),
        ("tps = many\n", None),
    ];
    for (report, expected) in cases {
        let rate = parse(report)
            .ok()
            .map(|rate| rate.map(|rate| (rate.transactions, rate.per_s)));
        assert_eq!(rate, expected, "{report}");
    }
}

#[test]
fn the_columns_are_those_of_the_node() {
    let store =
        cloakroom_devtools::workspace::root().join("crates/cloakroom-tokens/src/tokens/store");
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let read = |file| std::fs::read_to_string(store.join(file)).unwrap();
    let theirs = |file| match file {
        "columns.rs" => columns_of(&read(file)),
        _ => words(&read(file)),
    };

    let parts = [
        ("columns.rs", INSERT, "(tenant_id", ", terms"),
        ("insert.rs", INSERT, "terms, security_code_until", ")"),
        ("insert.rs", INSERT, "insert into term", "select"),
        ("columns.rs", FIND, "token.sealed", "from"),
    ];
    for (file, script, start, end) in parts {
        let from = script.find(start).unwrap();
        let length = script[from..].find(end).unwrap();
        let columns = words(&script[from..from + length]);
        assert!(theirs(file).contains(&columns), "{columns}");
    }
}

/// The columns that the node's table of columns declares: written ones in parentheses, then those of a read.
fn columns_of(table: &str) -> String {
    let lines = || table.lines().map(str::trim);
    let is_written = |line: &&str| line.ends_with(';') && line.contains(" \"$");
    let written = lines()
        .take_while(|line| *line != "context {")
        .filter(is_written)
        .filter_map(|line| line.split_whitespace().next());
    let read = lines()
        .filter_map(|line| line.strip_suffix("\";")?.split_once(" = \""))
        .map(|(_, sql)| sql);
    let written: Vec<&str> = written.collect();
    let read: Vec<&str> = std::iter::once("token.sealed").chain(read).collect();
    format!("({}) {}", written.join(", "), read.join(", "))
}

/// The node inserts all columns of `log`.
#[test]
fn a_record_has_every_column() {
    let file = cloakroom_devtools::workspace::root().join("migrations/0023_signed_log.sql");
    let migration = std::fs::read_to_string(file).unwrap();
    let (_, table) = migration.split_once("create table log (").unwrap();
    let (table, _) = table.split_once("\n)").unwrap();
    let theirs = table
        .lines()
        .filter_map(|line| line.split_whitespace().next());

    let (_, columns) = INSERT.split_once("insert into log").unwrap();
    let (columns, _) = columns.split_once(')').unwrap();
    let ours = columns.split(['(', ',']).map(str::trim).skip(1);

    assert_eq!(ours.collect::<Vec<_>>(), theirs.collect::<Vec<_>>());
}
