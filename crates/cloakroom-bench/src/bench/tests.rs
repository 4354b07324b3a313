//! Tests of the arguments.

use clap::Parser;

use super::*;

#[derive(Parser)]
struct Task {
    #[command(flatten)]
    arguments: Arguments,
}

fn plan(words: &str) -> Plan {
    let words = ["bench"].into_iter().chain(words.split_whitespace());
    Plan::new(&Task::parse_from(words).arguments)
}

#[test]
fn omitted_arguments_have_defaults() {
    let connections = |words| plan(words).connections;

    assert_eq!(connections(""), [1, 16, 64]);
    assert_eq!(connections("--short"), [1, 16]);
    assert_eq!(connections("--nodes 1,3"), [64]);
    assert_eq!(connections("--nodes 1 --connections 8,32"), [8, 32]);
    assert_eq!(plan("").operations.len(), 3);
    let chosen = plan("--operations masked,create").operations;
    assert_eq!(chosen, [Operation::GetMasked, Operation::Create]);
}

#[test]
fn a_warm_up_is_not_longer_than_the_measurement() {
    let times = |words| (plan(words).warm_up_s, plan(words).measured_s);

    assert_eq!(times(""), (3, 10));
    assert_eq!(times("--seconds 2"), (2, 2));
    assert_eq!(times("--short"), (1, 2));
}
