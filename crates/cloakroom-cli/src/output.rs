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
