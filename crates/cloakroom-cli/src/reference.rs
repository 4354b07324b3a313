//! The reference of the command line, as Markdown, from the definitions of the arguments.

use std::fmt::Write as _;

use clap::{Arg, Command, CommandFactory as _};

use crate::Arguments;

const INTRODUCTION: &str = "\
# Command line

Generated from the program by `cargo xtask generate`. `cloakroom COMMAND --help` prints the same.

Commands that read or change a vault need its configuration: `--config FILE`, or the variable `CLOAKROOM_CONFIG`. Every
setting can also be set as `CLOAKROOM__SECTION__KEY` ([settings](configuration.md)). Changes are recorded in the audit
log with the user and host of the command, and with the name of `--as`.
";

/// Every command with its arguments.
pub(crate) fn markdown() -> String {
    let mut root = Arguments::command();
    root.build();
    let mut text = INTRODUCTION.to_owned();
    text.push_str("\n## Options of every command\n\n");
    text.push_str(&table(root.get_arguments().filter(|it| it.is_global_set())));
    for command in visible(&root) {
        add_command(&mut text, command, 2);
    }
    text
}

fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    let commands = command.get_subcommands();
    commands.filter(|it| !it.is_hide_set() && it.get_name() != "help")
}

fn add_command(text: &mut String, command: &Command, level: usize) {
    let name = command.get_bin_name().unwrap_or(command.get_name());
    let about = command.get_long_about().or(command.get_about());
    let about = about.map(ToString::to_string).unwrap_or_default();
    // Writing to a string cannot fail.
    let _written = write!(text, "\n{} {name}\n\n{about}.\n", "#".repeat(level));
    if visible(command).next().is_none() {
        let usage = command.clone().render_usage().to_string();
        let usage = usage.trim_start_matches("Usage: ");
        let _written = write!(text, "\n```text\n{usage}\n```\n");
    }
    let own = command.get_arguments().filter(|argument| {
        let is_common = ["help", "version"].contains(&argument.get_id().as_str());
        !argument.is_global_set() && !argument.is_hide_set() && !is_common
    });
    let own = table(own);
    if !own.is_empty() {
        let _written = write!(text, "\n{own}");
    }
    for inner in visible(command) {
        add_command(text, inner, level + 1);
    }
}

fn table<'a>(arguments: impl Iterator<Item = &'a Arg>) -> String {
    let rows: Vec<String> = arguments.map(row).collect();
    if rows.is_empty() {
        return String::new();
    }
    format!(
        "| argument | description |\n| --- | --- |\n{}",
        rows.concat()
    )
}

fn row(argument: &Arg) -> String {
    let mut name = argument.to_string();
    if let (Some(short), true) = (argument.get_short(), argument.get_long().is_some()) {
        name = format!("-{short}, {name}");
    }
    let help = argument.get_long_help().or(argument.get_help());
    let mut help = help.map(ToString::to_string).unwrap_or_default();
    let values: Vec<String> = argument
        .get_possible_values()
        .iter()
        .filter(|_| argument.get_action().takes_values())
        .map(|value| format!("`{}`", value.get_name()))
        .collect();
    if !values.is_empty() {
        help.push_str(&format!(": {}", values.join(", ")));
    }
    let defaults: Vec<String> = argument
        .get_default_values()
        .iter()
        .filter(|_| argument.get_action().takes_values())
        .map(|value| format!("`{}`", value.to_string_lossy()))
        .collect();
    if !defaults.is_empty() {
        help.push_str(&format!(" (default: {})", defaults.join(", ")));
    }
    let escape = |cell: &str| cell.replace('|', "\\|").replace('\n', " ");
    format!("| `{}` | {} |\n", escape(&name), escape(&help))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_has_every_command_and_no_hidden_one() {
        let text = markdown();

        for heading in ["## cloakroom dev\n", "### cloakroom tenant create\n"] {
            assert!(text.contains(heading), "{heading}");
        }
        assert!(text.contains("| `--json` |"));
        assert!(!text.contains("cli-reference"));
        assert!(!text.contains("| `-h, --help"));
    }

    #[test]
    fn every_command_and_argument_has_a_description() {
        fn check(command: &Command, undescribed: &mut Vec<String>) {
            let path = command.get_bin_name().unwrap_or(command.get_name());
            if command.get_about().is_none() {
                undescribed.push(path.to_owned());
            }
            for argument in command.get_arguments() {
                if argument.get_help().is_none() && !argument.is_hide_set() {
                    undescribed.push(format!("{path} {argument}"));
                }
            }
            for inner in visible(command) {
                check(inner, undescribed);
            }
        }
        let (mut root, mut undescribed) = (Arguments::command(), Vec::new());
        root.build();
        check(&root, &mut undescribed);
        assert_eq!(undescribed, Vec::<String>::new());
    }
}
