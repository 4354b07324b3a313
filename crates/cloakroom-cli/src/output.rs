//! Prints results of commands: text for people, or JSON for scripts (`--output json`).

use std::sync::OnceLock;

use clap::ValueEnum;
use serde_json::Value;

/// How results are printed. Errors are always text on standard error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    #[default]
    Text,
    Json,
}

static FORMAT: OnceLock<Format> = OnceLock::new();

/// Sets the format of this process, once.
pub(crate) fn set_format(format: Format) {
    let _ = FORMAT.set(format);
}

pub(crate) fn is_json() -> bool {
    FORMAT.get() == Some(&Format::Json)
}

/// Prints one result: a JSON object, or lines of text.
pub(crate) fn print_result(object: &Value, lines: &[String]) {
    if is_json() {
        return print_json(object);
    }
    for line in lines {
        print_line!("{line}");
    }
}

/// Prints the result with `--output json`; nothing otherwise, if `print_text` has printed it line by line.
pub(crate) fn print_if_json(object: impl FnOnce() -> Value) {
    if is_json() {
        print_json(&object());
    }
}

/// A list as JSON strings.
pub(crate) fn to_strings<T: ToString>(items: &[T]) -> Value {
    items.iter().map(ToString::to_string).collect()
}

/// Prints a list: a JSON array, or a line of text for each item.
pub(crate) fn print_list<T>(
    items: &[T],
    to_json: impl Fn(&T) -> Value,
    to_line: impl Fn(&T) -> String,
) {
    if is_json() {
        return print_json(&items.iter().map(to_json).collect());
    }
    for item in items {
        print_line!("{}", to_line(item));
    }
}

pub(crate) fn print_json(value: &Value) {
    print_line!("{value:#}");
}

#[cfg(test)]
mod tests {
    use clap::{Command, CommandFactory as _};

    /// Commands whose result is JSON with `--output json`.
    const JSON: &[&str] = &[
        "access re-anchor",
        "app create",
        "app delete",
        "app list",
        "app permit",
        "audit archive",
        "audit export",
        "audit public-key",
        "audit verify",
        "bins import",
        "bins show",
        "bins status",
        "config check",
        "crypto inventory",
        "deprecations",
        "dev",
        "doctor",
        "erasures apply",
        "erasures write",
        "export approve",
        "export cancel",
        "export list",
        "export request",
        "export run",
        "export verify",
        "formulas list",
        "formulas show",
        "import",
        "invitation accept",
        "invitation create",
        "invitation list",
        "invitation resend",
        "key create",
        "key delete",
        "key import",
        "key list",
        "key retire",
        "key rotate",
        "key status",
        "limits show",
        "member add",
        "member list",
        "migrate",
        "root-key combine",
        "root-key create",
        "root-key split",
        "root-key submit",
        "tenant cancel-deletion",
        "tenant create",
        "tenant list",
        "tenant quota",
        "tenant setting",
        "threeds-simulator",
        "webhook enable",
        "webhook list",
        "webhook replay",
        "webhook rotate-key",
    ];
    /// Commands that print a document or a log, or write files.
    const DOCUMENTS: &[&str] = &[
        "cli-reference",
        "completions",
        "config reference",
        "config sample",
        "errors",
        "man-pages",
        "metrics",
        "openapi",
        "permissions",
        "serve",
        "threeds-rules",
    ];

    /// The commands without subcommands.
    fn leaves(command: &Command, path: &str, found: &mut Vec<String>) {
        let path = format!("{path} {}", command.get_name());
        if !command.has_subcommands() {
            found.push(path.trim_start().to_owned());
        }
        for inner in command.get_subcommands() {
            leaves(inner, &path, found);
        }
    }

    #[test]
    fn every_command_prints_json_or_a_document() {
        let mut commands = Vec::new();
        for command in crate::Arguments::command().get_subcommands() {
            leaves(command, "", &mut commands);
        }
        commands.sort();

        let mut known = [JSON, DOCUMENTS].concat();
        known.sort_unstable();

        assert_eq!(commands, known);
    }
}
