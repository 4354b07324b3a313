//! Names of files and folders that say nothing.

use super::Violation;
use super::tree::Tree;

const EMPTY_NAMES: [&str; 7] = [
    "util", "utils", "common", "helper", "helpers", "misc", "shared",
];

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let is_empty_name = |part: &str| {
        let stem = part.split('.').next().unwrap_or(part).to_lowercase();
        EMPTY_NAMES.contains(&stem.as_str())
    };
    tree.files
        .iter()
        .filter(|file| {
            file.path
                .iter()
                .filter_map(|part| part.to_str())
                .any(is_empty_name)
        })
        .map(|file| Violation {
            path: file.path.clone(),
            line: 1,
            rule: "empty-name",
            advice: "name what it holds: code without a room has not been understood yet"
                .to_owned(),
        })
        .collect()
}
