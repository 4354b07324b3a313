//! Vague names of files and folders.

use super::Violation;
use super::tree::Tree;

const VAGUE_NAMES: [&str; 7] = [
    "util", "utils", "common", "helper", "helpers", "misc", "shared",
];

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let is_vague = |part: &str| {
        let stem = part.split('.').next().unwrap_or(part).to_lowercase();
        VAGUE_NAMES.contains(&stem.as_str())
    };
    tree.files
        .iter()
        .filter(|file| {
            file.path
                .iter()
                .filter_map(|part| part.to_str())
                .any(is_vague)
        })
        .map(|file| Violation {
            path: file.path.clone(),
            line: 1,
            rule: "vague-name",
            advice: "name it after its content".to_owned(),
        })
        .collect()
}
