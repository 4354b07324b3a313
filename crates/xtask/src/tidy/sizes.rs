//! Maximum length of source files. Clippy limits functions (`too_many_lines`).

use super::Violation;
use super::code::Code;
use super::tree::{File, Tree};

const FILE_LINES_MAX: usize = 500;

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    tree.rust("crates")
        .filter(|file| !file.is_test())
        .filter_map(check_file)
        .collect()
}

fn check_file(file: &File) -> Option<Violation> {
    let tests = Code::read(&file.text).test_lines;
    let lines = file.text.lines().count().saturating_sub(tests);
    (lines > FILE_LINES_MAX).then(|| Violation {
        path: file.path.clone(),
        line: 1,
        rule: "file-size",
        advice: format!(
            "{lines} lines without tests, {FILE_LINES_MAX} at most: split by operation or type"
        ),
    })
}
