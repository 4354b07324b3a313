//! What every source file says first, and what it may not say at all.

use super::Violation;
use super::code::{Code, find_close, find_word, line_at};
use super::tree::{File, Tree};

/// Put together here, so that this file may be checked too.
const LEFT_FOR_LATER: [&str; 2] = [concat!("TO", "DO"), concat!("FIX", "ME")];

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
    for word in LEFT_FOR_LATER {
        for at in find_word(&file.text, word) {
            let advice = "do it now, or leave it out";
            found.push(violation(line_at(&file.text, at), "left-for-later", advice));
        }
    }
    if !file.is_rust() {
        return found;
    }
    if !file.text.starts_with("//! ") {
        let advice = "open the file with one `//!` sentence saying what it holds";
        found.push(violation(1, "opening", advice));
    }
    let code = Code::read(&file.text);
    for at in code.find_word("dbg") {
        if code.text[at..].starts_with("dbg!") {
            found.push(violation(
                code.line_at(at),
                "debug-print",
                "log it, or remove it",
            ));
        }
    }
    for line in spliced_messages(&code) {
        let advice =
            "a log message is constant text; put what varies into a field of the allow-list";
        found.push(violation(line, "spliced-message", advice));
    }
    found
}

/// The lines of string literals in logging calls that splice values into the message.
fn spliced_messages(code: &Code) -> Vec<usize> {
    let mut lines = Vec::new();
    for level in ["event", "error", "warn", "info", "debug", "trace"] {
        let call = format!("tracing::{level}!(");
        for (at, _) in code.text.match_indices(&call) {
            let open = at + call.len() - 1;
            let close = find_close(&code.text, open).unwrap_or(code.text.len());
            let range = code.line_at(at)..=code.line_at(close);
            let is_inside = |line: &usize| range.contains(line);
            let splices = |text: &String| text.contains('{');
            lines.extend(
                code.strings
                    .iter()
                    .filter(|(line, text)| is_inside(line) && splices(text))
                    .map(|(line, _)| *line),
            );
        }
    }
    lines
}
