//! How long files and functions may be.

use super::Violation;
use super::code::{Code, find_close, find_word, line_at};
use super::tree::{File, Tree};

const FILE_LINES_MAX: usize = 500;
const FUNCTION_LINES_MAX: usize = 70;

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    tree.rust("crates")
        .filter(|file| !file.is_test())
        .flat_map(check_file)
        .collect()
}

fn check_file(file: &File) -> Vec<Violation> {
    let code = Code::read(&file.text);
    let mut found = Vec::new();
    let lines = file.text.lines().count().saturating_sub(code.test_lines);
    if lines > FILE_LINES_MAX {
        let advice =
            format!("{lines} lines without tests, {FILE_LINES_MAX} at most: split by verb or noun");
        found.push(Violation {
            path: file.path.clone(),
            line: 1,
            rule: "file-size",
            advice,
        });
    }
    for (line, lines) in functions(&code.text) {
        if lines > FUNCTION_LINES_MAX {
            let advice = format!("{lines} lines, {FUNCTION_LINES_MAX} at most: name the parts");
            found.push(Violation {
                path: file.path.clone(),
                line,
                rule: "function-size",
                advice,
            });
        }
    }
    found
}

/// The first line of each function with a body, and how many lines the body has.
fn functions(text: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    for at in find_word(text, "fn") {
        let Some(open) = body_start(text, at) else {
            continue;
        };
        let end = find_close(text, open).unwrap_or(text.len());
        let lines = text[open..end].matches('\n').count().saturating_sub(1);
        found.push((line_at(text, at), lines));
    }
    found
}

/// Where the body opens; a declaration or a function type has none.
fn body_start(text: &str, at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (offset, c) in text[at..].char_indices() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.checked_sub(1)?,
            '{' if depth == 0 => return Some(at + offset),
            ';' | ',' | '=' if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_measured_between_their_braces() {
        let cases = [
            ("fn a() {\n    one;\n    two;\n}", vec![(1, 2)]),
            ("\nfn a(b: [u8; 4]) -> [u8; 4] {\n    b\n}", vec![(2, 1)]),
            ("trait T {\n    fn a();\n}", vec![]),
            (
                "struct S {\n    f: fn(u8) -> u8,\n}\nfn b() {}",
                vec![(4, 0)],
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(functions(text), expected, "{text}");
        }
    }
}
