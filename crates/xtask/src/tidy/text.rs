//! Required and forbidden text in source files.

use super::Violation;
use super::code::{Code, find_close, find_word, line_at};
use super::tree::{File, Tree};

/// Concatenated, so that this file passes the check.
const UNFINISHED: [&str; 2] = [concat!("TO", "DO"), concat!("FIX", "ME")];

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    tree.files.iter().flat_map(check_file).collect()
}

fn check_file(file: &File) -> Vec<Violation> {
    let violation = |line, rule, advice: &str| Violation {
        path: file.path.clone(),
        line,
        rule,
        advice: advice.to_owned(),
    };
    let mut found = Vec::new();
    for word in UNFINISHED {
        for at in find_word(&file.text, word) {
            let advice = "finish it, or remove it";
            found.push(violation(line_at(&file.text, at), "unfinished", advice));
        }
    }
    if !file.is_rust() {
        return found;
    }
    if !file.text.starts_with("//! ") {
        let advice = "start the file with a `//!` sentence that describes its content";
        found.push(violation(1, "module-doc", advice));
    }
    // `Code` leaves out test modules, so that tests may log anything.
    if file.is_test() {
        return found;
    }
    let code = Code::read(&file.text);
    for line in interpolated_messages(&code) {
        let advice = "log messages are constant; put variable parts into a field of the allow-list";
        found.push(violation(line, "interpolated-message", advice));
    }
    found
}

/// The lines of string literals in logging calls that interpolate values into the message. They could leak secrets.
fn interpolated_messages(code: &Code) -> Vec<usize> {
    let mut lines = Vec::new();
    for level in ["event", "error", "warn", "info", "debug", "trace"] {
        let call = format!("tracing::{level}!(");
        for (at, _) in code.text.match_indices(&call) {
            let open = at + call.len() - 1;
            let close = find_close(&code.text, open).unwrap_or(code.text.len());
            let range = code.line_at(at)..=code.line_at(close);
            let is_inside = |line: &usize| range.contains(line);
            let interpolates = |text: &String| text.contains('{');
            lines.extend(
                code.strings
                    .iter()
                    .filter(|(line, text)| is_inside(line) && interpolates(text))
                    .map(|(line, _)| *line),
            );
        }
    }
    lines
}
